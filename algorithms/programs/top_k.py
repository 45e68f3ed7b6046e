"""Top-k: the first rows in an order, and no more of them in memory than a query asks for."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from algorithms.expressions.floats import order_keys
from algorithms.programs.base import ROOM, Operator, one_batch
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Work

TITLE = "top-k"
BLOCKING = True
NO_BOUND = 1 << 62  #: Room where memory has no bound, bytes.


class Order(NamedTuple):
    """A column by which rows are ordered."""

    column: str
    descending: bool = False
    nulls_first: bool = False


class FirstRows(Operator):
    """The first ``skip + limit`` rows of a part of the table, or all without a limit; of the whole `TopK` hands on so many columns."""

    def __init__(
        self, schema: pa.Schema, *, orders: Sequence[Order] = (), limit: int | None = None, skip: int = 0, columns: int | None = None,
        room: int = ROOM,
    ) -> None:  # fmt: skip
        for name, number, least in (("limit", limit, 0), ("skip", skip, 0), ("columns", columns, 1)):
            if number is not None and number < least:
                raise InvalidParameterError(name, number, f"it must be {least} or more")
        super().__init__(schema)
        self._orders, self._limit, self._skip, self._columns, self._room = orders, limit, skip, columns or len(schema), room
        self._most = None if limit is None else min(skip + limit, NO_BOUND)
        self._waiting: list[pa.RecordBatch] = []

    def step(self, batch: pa.RecordBatch) -> None:
        self.work[Work.COMPARE] += batch.num_rows
        self._waiting += [batch] if batch.num_rows else []
        if self._most is not None and sum(each.num_rows for each in self._waiting) > 2 * self._most:
            self._waiting = [self._first()]
        self.use(sum(each.nbytes for each in self._waiting), self._room)

    def finish(self) -> pa.RecordBatch:
        rows, self._waiting = self._first(), []
        return rows

    def whole(self) -> Operator:
        rows = FirstRows(self.schema, orders=self._orders, limit=self._limit, skip=self._skip, room=NO_BOUND)
        return TopK(rows, self._skip, self._columns)

    def _first(self) -> pa.RecordBatch:
        batch = one_batch(self.schema, self._waiting)
        if self._orders and batch.num_rows:
            batch = batch.take(sorted_rows(batch, self._orders))
        return batch.slice(0, self._most)


start = FirstRows


class TopK(Operator):
    """Of the first rows of all parts those that are not skipped, and so many columns."""

    def __init__(self, rows: FirstRows, skip: int, columns: int) -> None:
        super().__init__(pa.schema(list(rows.schema)[:columns]))
        self._rows, self._skip, self.work = rows, skip, rows.work

    def step(self, batch: pa.RecordBatch) -> None:
        self._rows.step(batch)

    def finish(self) -> pa.RecordBatch:
        return self._rows.finish().slice(self._skip).select(self.schema.names)


def sorted_rows(batch: pa.RecordBatch, orders: Sequence[Order]) -> pa.Array:
    """Numbers of rows in an order."""
    columns, keys = [], []
    for number, each in enumerate(orders):
        values = batch.column(each.column)
        columns += [values.is_null(), order_keys(values) if pa.types.is_floating(values.type) else values]
        keys += [(f"null {number}", "descending" if each.nulls_first else "ascending")]
        keys += [(f"value {number}", "descending" if each.descending else "ascending")]
    return pc.sort_indices(pa.table(columns, [name for name, _ in keys]), keys)
