"""Aggregation: count, sum, minimum, maximum and average, of all rows or by group, in a table of bounded memory.

The table holds parts of aggregates, which no number of rows overflows: a sum of integers as two, one of long decimals with 76 digits.  When
memory is full, its groups are handed on as they stand and it begins anew: `whole` puts parts of a group together, whether they come from
there or from several drives.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from algorithms.expressions.floats import canonical, from_order_keys, order_keys
from algorithms.programs.base import ROOM, Operator, one_batch
from flashsim.core.errors import SchemaError, check_known
from flashsim.core.units import MIB
from flashsim.execution.requests import Work

TITLE = "aggregation"
BLOCKING = True
FUNCTIONS = ("count", "sum", "min", "max", "avg")
#: Digits of sums of decimals; of values whose sum over less than 10^18 rows has no more; bits of the lower part of an integer.
_DIGITS, _SHORT, _LOW = 38, 20, 32
_WAITING = 4 * MIB  #: Parts that wait are put together when they take so many bytes, or as many as memory has room for.


class Aggregate(NamedTuple):
    """An aggregate function of a column, or of all rows (``count`` without a column), under a name."""

    function: str
    column: str | None
    name: str


class Aggregation(Operator):
    """Parts of aggregates by group."""

    def __init__(self, schema: pa.Schema, *, keys: Sequence[str], aggregates: Sequence[Aggregate], room: int = ROOM) -> None:
        for each in aggregates:
            _check(each, schema)
        self._keys, self._aggregates, self._room, self._input = list(keys), list(aggregates), room, schema
        self._tables: list[pa.Table] = []
        self._held = 0
        super().__init__(self._parts(one_batch(schema, [])).schema)

    def step(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        self.work[Work.PROBE] += batch.num_rows
        self.work[Work.HASH] += batch.num_rows * bool(self._keys)
        if not batch.num_rows:
            return None
        self._tables.append(self._parts(batch))
        self._held += self._tables[-1].nbytes
        if self._held > min(self._room, _WAITING):
            self._tables = [combine(self._tables, self._keys)]
            self._held = self._tables[0].nbytes
        self.memory = max(self.memory, min(self._held, self._room))
        return self.finish() if self._held > self._room else None

    def finish(self) -> pa.RecordBatch | None:
        """The groups of the table, which is empty afterwards."""
        if not self._tables:
            return None
        table, self._tables, self._held = combine(self._tables, self._keys), [], 0
        return one_batch(self.schema, table.to_batches())

    def whole(self) -> Operator:
        return Whole(self._input, self.schema, self._keys, self._aggregates)

    def _parts(self, batch: pa.RecordBatch) -> pa.Table:
        """Parts of the aggregates of a batch, a row a group; their names say how they are put together (`combine`)."""
        columns = {key: canonical(batch.column(key)) for key in self._keys}
        calls: dict[str, str] = {}
        for number, each in enumerate(self._aggregates):
            values = pa.repeat(pa.scalar(1, pa.int8()), batch.num_rows) if each.column is None else batch.column(each.column)
            for part, prepared, function in _partial_columns(each, values):
                columns[f"{part}.{number}"] = prepared
                calls[f"{part}.{number}"] = function
        return _group(pa.table(columns), self._keys, calls)


start = Aggregation


class Whole(Operator):
    """Aggregates of parts."""

    def __init__(self, inputs: pa.Schema, parts: pa.Schema, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> None:
        self._inputs, self._parts, self._keys, self._aggregates = inputs, parts, list(keys), list(aggregates)
        self._tables: list[pa.Table] = []
        super().__init__(self._final(parts.empty_table()).schema)

    def step(self, batch: pa.RecordBatch) -> None:
        self.work[Work.BUILD] += batch.num_rows
        self._tables.append(pa.Table.from_batches([batch]))
        if sum(table.nbytes for table in self._tables) > 2 * _WAITING and len(self._tables) > 2:
            self._tables = [combine(self._tables, self._keys)]

    def finish(self) -> pa.RecordBatch:
        table = combine(self._tables or [self._parts.empty_table()], self._keys)
        return one_batch(self.schema, self._final(table).to_batches())

    def _final(self, parts: pa.Table) -> pa.Table:
        columns = {key: parts.column(key) for key in self._keys}
        for number, each in enumerate(self._aggregates):
            mine = {name.split(".")[0]: parts.column(name).combine_chunks() for name in parts.column_names if name.endswith(f".{number}")}
            columns[each.name] = _value(each, mine, None if each.column is None else self._inputs.field(each.column).type)
        return pa.table(columns)


def combine(tables: list[pa.Table], keys: list[str]) -> pa.Table:
    """Parts of the same groups as one."""
    table = pa.concat_tables(tables)
    calls = {name: {"min": "min", "max": "max"}.get(name.split(".")[0], "sum") for name in table.column_names if name not in keys}
    return _group(table, keys, calls)


def _group(table: pa.Table, keys: list[str], calls: dict[str, str]) -> pa.Table:
    if not calls:
        return table.group_by(keys, use_threads=False).aggregate([]).select(keys)
    grouped = table.group_by(keys, use_threads=False).aggregate(list(calls.items()))
    return grouped.rename_columns([*keys, *calls] if grouped.column_names[: len(keys)] == keys else [*calls, *keys]).select([*keys, *calls])


def _check(aggregate: Aggregate, schema: pa.Schema) -> None:
    check_known("aggregate function", aggregate.function, FUNCTIONS)
    kind = None if aggregate.column is None else schema.field(aggregate.column).type
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if aggregate.function in ("sum", "avg") and (kind is None or not any(is_kind(kind) for is_kind in kinds)):
        raise SchemaError(f"query: {aggregate.function} of {kind}, but it takes numbers")


def _partial_columns(aggregate: Aggregate, values: pa.Array) -> list[tuple[str, pa.Array, str]]:
    """Columns that parts are made of: their names, values, and Arrow's function."""
    kind = values.type
    if aggregate.function == "count":
        return [("count", values, "count")]
    if aggregate.function in ("min", "max"):
        return [(aggregate.function, order_keys(values) if pa.types.is_floating(kind) else values, aggregate.function)]
    count = [("count", values, "count")] if aggregate.function == "avg" else []
    if pa.types.is_floating(kind):
        return [("sum", values.cast(pa.float64()), "sum"), *count]
    if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
        wide = pa.types.is_decimal(kind) and kind.precision > _SHORT
        sums = pa.decimal256(2 * _DIGITS, kind.scale) if wide else pa.decimal128(_DIGITS, getattr(kind, "scale", 0))
        return [("sum", values.cast(sums), "sum"), *count]
    whole = values.cast(pa.int64())
    high = pc.shift_right(whole, _LOW)
    return [("high", high, "sum"), ("low", pc.bit_wise_and(whole, (1 << _LOW) - 1), "sum"), *count]


def _value(aggregate: Aggregate, parts: dict[str, pa.Array], kind: pa.DataType | None) -> pa.Array:
    if aggregate.function == "count":
        return parts["count"].fill_null(0)
    if aggregate.function in ("min", "max"):
        values = parts[aggregate.function]
        return from_order_keys(values, kind) if pa.types.is_floating(kind) else values
    if "sum" in parts:
        total = parts["sum"]
    else:  # exact sums of integers, of any size
        above = pc.multiply(parts["high"].cast(pa.decimal128(19, 0)), pa.scalar(Decimal(1 << _LOW), pa.decimal128(10, 0)))
        total = pc.add(above.cast(pa.decimal128(_DIGITS - 1, 0)), parts["low"].cast(pa.decimal128(19, 0)))
    if aggregate.function == "sum" and pa.types.is_decimal256(total.type):
        try:
            return total.cast(pa.decimal128(_DIGITS, total.type.scale))
        except pa.ArrowInvalid:
            raise SchemaError(f"query: sum of {kind}: its result has more than {_DIGITS} digits") from None
    if aggregate.function == "sum":
        return total
    count = pc.if_else(pc.equal(parts["count"], 0), pa.scalar(None, pa.int64()), parts["count"])
    return pc.divide(total.cast(pa.float64(), safe=False), count.cast(pa.float64()))
