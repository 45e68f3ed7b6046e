"""Projection: expressions of every row, under new names."""

import pyarrow as pa

from algorithms.expressions.expression import Expression, calls_of, evaluate, type_of
from algorithms.programs.base import Operator

TITLE = "projection"
COMPUTE = "compute"  #: A function of a row, as a kind of work.


class Projection(Operator):
    """Computations are counted a row and function."""

    def __init__(self, schema: pa.Schema, *, columns: dict[str, Expression]) -> None:
        super().__init__(pa.schema([(name, type_of(expression, schema)) for name, expression in columns.items()]))
        self._columns, self._calls = columns, sum(map(calls_of, columns.values()))

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.work[COMPUTE] += batch.num_rows * self._calls
        arrays = [evaluate(expression, batch) for expression in self._columns.values()]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


start = Projection
