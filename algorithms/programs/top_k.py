"""Top-k: the first rows in an order, and no more of them in memory than a query asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from algorithms.expressions.floats import order_keys
from algorithms.programs.base import ROOM, Operator, one_batch
from flashsim.execution.requests import Work

TITLE = "top-k"
BLOCKING = True


#: Room where memory has no bound, bytes.
NO_BOUND = 1 << 62


class Order(NamedTuple):
    """A column by which rows are ordered."""

    column: str
    descending: bool = False
    nulls_first: bool = False


class TopK(Operator):
    """The first ``skip + limit`` rows, or all without a limit; `columns` are those that the whole hands on."""

    def __init__(self, schema: pa.Schema, orders: Sequence[Order], limit: int | None, skip: int, columns: int, room: int) -> None:
        super().__init__(schema)
        self._input, self._orders, self._limit, self._skip, self._columns, self._room = schema, list(orders), limit, skip, columns, room
        self._most = None if limit is None else skip + limit
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def step(self, batch: pa.RecordBatch) -> None:
        self.work[Work.COMPARE] += batch.num_rows
        if batch.num_rows:
            self._waiting.append(batch)
            self._rows += batch.num_rows
        if self._most is not None and self._rows > 2 * self._most:
            self._waiting = [self._first()]
            self._rows = self._waiting[0].num_rows
        self.use(sum(each.nbytes for each in self._waiting), self._room)

    def finish(self) -> pa.RecordBatch:
        rows, self._waiting, self._rows = self._first(), [], 0
        return rows

    def whole(self) -> Operator | None:
        return Cut(self.schema, self._orders, self._limit, self._skip, self._columns, NO_BOUND)

    def _first(self) -> pa.RecordBatch:
        batch = one_batch(self._input, self._waiting)
        if self._orders and batch.num_rows:
            batch = batch.take(sorted_rows(batch, self._orders))
        return batch.slice(0, self._most)


class Cut(TopK):
    """What a query asks for of the first rows."""

    def __init__(self, schema: pa.Schema, orders: Sequence[Order], limit: int | None, skip: int, columns: int, room: int) -> None:
        super().__init__(schema, orders, limit, skip, columns, room)
        self.schema = pa.schema(list(schema)[:columns])

    def whole(self) -> None:
        return None

    def finish(self) -> pa.RecordBatch:
        return super().finish().slice(self._skip).select(self.schema.names)


def sorted_rows(batch: pa.RecordBatch, orders: Sequence[Order]) -> pa.Array:
    """Numbers of rows in an order."""
    columns, keys = [], []
    for number, each in enumerate(orders):
        values = batch.column(each.column)
        columns += [values.is_null(), order_keys(values) if pa.types.is_floating(values.type) else values]
        keys += [(f"null {number}", "descending" if each.nulls_first else "ascending")]
        keys += [(f"value {number}", "descending" if each.descending else "ascending")]
    return pc.sort_indices(pa.table(columns, [name for name, _ in keys]), keys)


def start(
    schema: pa.Schema,
    *,
    orders: Sequence[Order] = (),
    limit: int | None = None,
    skip: int = 0,
    columns: int | None = None,
    room: int = ROOM,
) -> Operator:
    return TopK(schema, orders, limit, skip, len(schema) if columns is None else columns, room)
