"""Semi-join: rows whose value is among those of another table; a Bloom filter inside a drive, the values themselves on the host.

A filter passes a few rows too many (2 % at ten bits a value), so nothing follows it inside a drive, and the host tests what passes.
Source: B. Bloom, "Space/time trade-offs in hash coding with allowable errors" (CACM 13, 1970).
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from algorithms.programs._keys import Hashes, comparable, hashes
from algorithms.programs.base import ROOM, Operator
from flashsim.execution.requests import Work
from flashsim.storage.columns import array_of

TITLE = "semi-join"
BLOCKING = True
BITS, FUNCTIONS = 10, 4  #: Bits of the filter a value at least, and bits that a value sets.


class SemiJoin(Operator):
    """Rows that a Bloom filter of the build side's only column passes."""

    def __init__(self, schema: pa.Schema, *, build: pa.RecordBatch, probe: str, room: int = ROOM) -> None:
        super().__init__(schema)
        self._column, self._other = probe, build.column(0).type
        self.values = comparable(build.column(0), schema.field(probe).type).drop_null().unique()
        self._bits = np.zeros(1 << max(3, BITS * len(self.values) - 1).bit_length(), np.bool_)
        for places in self._places(hashes(self.values)):
            self._bits[places] = True
        self.work[Work.BUILD] += build.num_rows
        self.use(len(self._bits) // 8, room)

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.work[Work.HASH] += batch.num_rows
        values = comparable(batch.column(self._column), self._other)
        passed = array_of(values.is_valid()).copy()
        for places in self._places(hashes(values)):
            passed &= self._bits[places]
        return batch.filter(pa.array(passed))

    def whole(self) -> Operator:
        return Among(self.schema, self.values, self._column, self._other)

    def _places(self, each: Hashes) -> list[npt.NDArray[np.uint64]]:
        step, mask = each >> np.uint64(32) | np.uint64(1), np.uint64(len(self._bits) - 1)
        return [each + np.uint64(number) * step & mask for number in range(FUNCTIONS)]


start = SemiJoin


class Among(Operator):
    """Rows whose value is among some values."""

    def __init__(self, schema: pa.Schema, values: pa.Array, column: str, other: pa.DataType) -> None:
        super().__init__(schema)
        self._values, self._column, self._other = values, column, other

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.work[Work.PROBE] += batch.num_rows
        return batch.filter(pc.is_in(comparable(batch.column(self._column), self._other), self._values, skip_nulls=True))
