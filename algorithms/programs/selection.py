"""Selection: the rows for which a predicate is true."""

import pyarrow as pa

from algorithms.expressions.expression import Expression, calls_of, true_rows, type_of
from algorithms.programs.base import Operator
from flashsim.core.errors import SchemaError
from flashsim.execution.requests import Work

TITLE = "selection"


class PredicateSelection(Operator):
    """The first function of the predicate is in the price of a tuple that is visited; others are counted a row."""

    def __init__(self, schema: pa.Schema, *, predicate: Expression) -> None:
        super().__init__(schema)
        kind = type_of(predicate, schema)
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise SchemaError(f"query: a condition is of type {kind}, but it must be true or false")
        self._predicate, self._calls = predicate, max(0, calls_of(predicate) - 1)

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.work[Work.COMPARE] += batch.num_rows * self._calls
        return batch.filter(true_rows(self._predicate, batch))


start = PredicateSelection
