"""Partitioning: rows by the hash of a column, handed on in blocks of one partition each, whose number stands in a first column."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from algorithms.programs._keys import hashes
from algorithms.programs.base import ROOM, Operator, one_batch
from flashsim.core.errors import InvalidParameterError, check_known
from flashsim.execution.requests import Work

TITLE = "partitioning"
BLOCKING = True
MOST_PARTS = 4096


class Partitioning(Operator):
    """Rows of a partition wait until they make a block."""

    def __init__(self, schema: pa.Schema, *, by: str, parts: int | str, block: int | str = 1024, room: int = ROOM) -> None:
        super().__init__(pa.schema([("partition", pa.int32()), *schema]))
        self._by, self._parts, self._block, self._room = by, int(parts), int(block), room
        check_known("column", by, schema.names)
        if not 1 <= self._parts <= MOST_PARTS:
            raise InvalidParameterError("parts", self._parts, f"it must be from 1 to {MOST_PARTS}")
        if self._block < 1:
            raise InvalidParameterError("block", self._block, "it must be at least 1 row")
        self._waiting = one_batch(self.schema, [])

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        self.work[Work.HASH] += batch.num_rows
        self.work[Work.WRITE_TUPLE] += batch.num_rows
        numbers = pa.array(partitions(batch.column(self._by), self._parts))
        numbered = pa.RecordBatch.from_arrays([numbers, *batch.columns], schema=self.schema)
        rows = one_batch(self.schema, [self._waiting, numbered])
        part = rows.column(0).to_numpy()
        order = np.argsort(part, kind="stable")
        counts = np.bincount(part, minlength=self._parts)
        place = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)  # within its partition
        ready = place < np.repeat(counts // self._block * self._block, counts)
        self._waiting = rows.take(pa.array(order[~ready]))
        self.use(self._waiting.nbytes, self._room)
        return rows.take(pa.array(order[ready])) if ready.any() else None

    def finish(self) -> pa.RecordBatch:
        rows, self._waiting = self._waiting, one_batch(self.schema, [])
        return rows


start = Partitioning


def partitions(values: pa.Array, parts: int) -> npt.NDArray[np.int32]:
    """Number of each value's partition, shape (rows,)."""
    return (hashes(values) % np.uint64(parts)).astype(np.int32)


def same_partitions(left: pa.DataType, right: pa.DataType) -> bool:
    """True if equal values of two types have the same partition."""
    return left == right or any(kind(left) and kind(right) for kind in (pa.types.is_integer, pa.types.is_floating))
