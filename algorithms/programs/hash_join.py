"""Hash join: rows beside those of a table in memory that have an equal key; NULL equals nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from algorithms.programs._keys import comparable
from algorithms.programs.base import ROOM, Operator
from flashsim.execution.requests import Work
from flashsim.storage.columns import array_of
from flashsim.storage.heap_file import ranges

TITLE = "hash join"
_ENTRY = 16  #: Bytes of a row in the table beside its values: its place, and that of the next row with its key.


class HashJoin(Operator):
    """An inner join with the rows of `build`, whose columns come last."""

    def __init__(self, schema: pa.Schema, *, build: pa.RecordBatch, probe: str, key: str, room: int = ROOM) -> None:
        super().__init__(pa.schema([*schema, *build.schema]))
        self._probe, self._kind = probe, build.schema.field(key).type
        keys = comparable(build.column(key), schema.field(probe).type)
        rows = np.flatnonzero(array_of(keys.is_valid()))
        self._distinct = keys.take(pa.array(rows)).unique()
        codes = array_of(pc.index_in(keys.take(pa.array(rows)), self._distinct)).astype(np.int64)
        order = np.argsort(codes, kind="stable")
        self._build, self._counts = build.take(pa.array(rows[order])), np.bincount(codes, minlength=len(self._distinct))
        self._firsts = np.cumsum(self._counts) - self._counts
        self.work[Work.BUILD] += build.num_rows
        self.use(build.nbytes + _ENTRY * build.num_rows, room)

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.work[Work.HASH] += batch.num_rows
        self.work[Work.PROBE] += batch.num_rows
        keys = comparable(batch.column(self._probe), self._kind)
        codes = array_of(pc.index_in(keys, self._distinct, skip_nulls=True).cast(pa.int64()), -1)
        rows = np.flatnonzero(codes >= 0)
        counts = self._counts[codes[rows]]
        left, right = np.repeat(rows, counts), ranges(self._firsts[codes[rows]], counts)
        columns = [*batch.take(pa.array(left)).columns, *self._build.take(pa.array(right)).columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


start = HashJoin
