"""Values as texts, and as Python and pandas hold them: the one place where rows leave Arrow, and dates and times return from texts.

Dates and timestamps of years beyond 1 to 9999, for which neither Python nor Arrow has a text, are spelled as DuckDB and PostgreSQL spell
them: ``5874897-12-31``, and ``0044-03-15 (BC)`` before year 1.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import SchemaError, shorten
from flashsim.core.request import Integers
from flashsim.core.units import MICROSECONDS
from flashsim.storage.columns import array_of, mixed_array, one_array

if TYPE_CHECKING:
    import pandas as pd

#: Days, counted from 1970, of 0001-01-01 and 9999-12-31.
_CALENDAR = (-719_162, 2_932_896)
_DAY = 86_400
_INT64 = np.iinfo(np.int64)
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SPELLED = re.compile(r"(\d+)-(\d\d)-(\d\d)( \(BC\))?(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)


def stored_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column of a plain type as int64, double, text, bytes, NULLs, or a union of these.

    Dates, times and decimals become texts, booleans integers; unsigned integers that SQLite cannot hold become texts. NaN stays, which
    SQLite reads as NULL.
    """
    values = one_array(column)
    kind = values.type
    if pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_uint64(kind):
        return _unsigned_values(values)
    if pa.types.is_integer(kind) or pa.types.is_duration(kind):
        return values.cast(pa.int64())
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(pa.int64())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return texts_of(values)
    if pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_union(kind):
        return values
    raise SchemaError(f"column type: {kind}, but only numbers, texts, bytes, booleans, dates and times can be stored")


def _unsigned_values(values: pa.Array) -> pa.Array:
    large = pc.fill_null(pc.greater(values, pa.scalar(_INT64.max, pa.uint64())), False)
    if not pc.any(large).as_py():
        return values.cast(pa.int64())
    small = pc.if_else(large, pa.scalar(None, pa.uint64()), values).cast(pa.int64())
    return mixed_array(array_of(large).astype(np.int8) * 2, small, None, values.cast(pa.large_string()), None)


def texts_of(column: pa.Array) -> pa.Array:
    """Dates, times, decimals and other values of a plain type as texts; timestamps in UTC, without saying so."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp(kind.unit))
    if pa.types.is_time(kind):
        _check_times(column)
    if pa.types.is_duration(kind):
        return pc.binary_join_element_wise(
            column.cast(pa.int64()).cast(pa.large_string()), pa.scalar(kind.unit, pa.large_string()), pa.scalar(" ", pa.large_string())
        )
    if _is_dated(kind) and not _in_calendar(column):
        return pa.array(_spell_times(column), pa.large_string())
    return column.cast(pa.string()).cast(pa.large_string())


def from_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Dates and times that texts spell (`texts_of`); one that spells none, or none that the type holds, is refused."""
    if pa.types.is_time(kind):
        texts = pc.binary_join_element_wise("1970-01-01", texts.cast(pa.string()), " ")
    naive = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) or pa.types.is_time(kind) else kind
    try:
        values = texts.cast(pa.string()).cast(naive)
    except pa.ArrowException:
        numbers = [None if text is None else _number(text, naive) for text in texts.to_pylist()]
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        try:
            values = pa.array(numbers, width).cast(naive)
        except (pa.ArrowException, OverflowError):
            raise SchemaError(f"a text is a day that {kind} does not hold") from None
    return values.cast(kind)


def parts_of(column: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Year, month and day of dates or timestamps, int64, shape (n,) each; the year before 1 is 0, as in DuckDB."""
    if _in_calendar(column):
        return pc.year(column), pc.month(column), pc.day(column)
    valid = column.is_valid()
    return tuple(pc.if_else(valid, pa.array(each), None) for each in _parts(_days_and_ticks(column)[0]))


def readable(table: pa.Table) -> pa.Table:
    """A table for formats and programs that know neither unions nor dates and times that Python has not: these columns become texts."""
    return _with_texts(without_unions(table), lambda column: not _is_python(column), _zoned_texts)


def spell_out(table: pa.Table) -> pa.Table:
    """A readable table for CSV and terminals, whose bytes are texts too: ``X'0AFF'``."""
    return _with_texts(readable(table), lambda column: pa.types.is_large_binary(column.type), _texts_of_objects)


def without_unions(table: pa.Table) -> pa.Table:
    """A table for formats that know no unions: columns of several storage classes become texts, and bytes in them ``X'0AFF'``."""
    return _with_texts(table, lambda column: pa.types.is_union(column.type), _texts_of_objects)


def _with_texts(table: pa.Table, is_odd: Callable[[pa.Array], bool], texts: Callable[[pa.Array], pa.Array]) -> pa.Table:
    for index, name in enumerate(table.column_names):
        column = one_array(table.column(index))
        try:
            if is_odd(column):
                table = table.set_column(index, name, texts(column))
        except SchemaError as problem:
            raise SchemaError(f"column {name}: {problem}") from None
    return table


def _zoned_texts(column: pa.Array) -> pa.Array:
    texts, zoned = texts_of(column), pa.types.is_timestamp(column.type) and column.type.tz
    return pc.binary_join_element_wise(texts, *(pa.scalar(text, texts.type) for text in ("+00:00", ""))) if zoned else texts


def check_parquet(table: pa.Table) -> pa.Table:
    """A table as Parquet holds it, or a refusal.

    Timestamps in seconds are milliseconds there, days have 32 bits, and decimals all their digits.
    """
    for number, (field, column) in enumerate(zip(table.schema, table.columns, strict=True)):
        kind, wanted = field.type, field.type
        if pa.types.is_timestamp(kind) and kind.unit == "s":
            wanted = pa.timestamp("ms", kind.tz)
        elif pa.types.is_date64(kind):
            wanted = pa.date32()
        elif pa.types.is_decimal(kind) and kind.scale < 0:
            digits = kind.precision - kind.scale
            wanted = (pa.decimal128 if digits <= 38 else pa.decimal256)(min(digits, 76), 0)
        try:
            values = column.cast(wanted)
        except pa.ArrowInvalid:
            raise SchemaError(f"column {field.name}: a value of {kind} that {wanted}, Parquet's, does not hold") from None
        if wanted != kind and pa.types.is_decimal(wanted):
            table = table.set_column(number, field.name, values)
    return table


def frame_of(table: pa.Table) -> "pd.DataFrame":
    frame: pd.DataFrame = readable(table).to_pandas(integer_object_nulls=True)
    return frame


def _texts_of_objects(column: pa.Array) -> pa.Array:
    values = (f"X'{value.hex().upper()}'" if isinstance(value, bytes) else value for value in column.to_pylist())
    return pa.array([value if value is None or isinstance(value, str) else repr(value) for value in values], pa.large_string())


def _is_dated(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _ticks_of_a_day(kind: pa.DataType) -> int:
    return 1 if pa.types.is_date32(kind) else _DAY * (1000 if pa.types.is_date64(kind) else _TICKS[kind.unit])


def _days_and_ticks(column: pa.Array) -> tuple[Integers, Integers]:
    """Days since 1970 and what is left of each, shape (n,) each; those of NULL are 0."""
    numbers = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    days, ticks = np.divmod(array_of(numbers, 0), _ticks_of_a_day(column.type))
    return days, ticks


def _in_calendar(column: pa.Array) -> bool:
    days, _ = _days_and_ticks(column)
    zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None  # by which a day may be the one before or after
    return bool(not len(days) or _CALENDAR[0] + zoned <= days.min() <= days.max() <= _CALENDAR[1] - zoned)


def _is_python(column: pa.Array) -> bool:
    """True if Python and pandas hold all values: dates of the calendar, whole microseconds, and not the least time, pandas' NULL."""
    if pa.types.is_time(column.type):
        _check_times(column)
        return column.type.unit != "ns" or not (_times(column) % MICROSECONDS).any()
    if pa.types.is_duration(column.type):
        return not (array_of(column.cast(pa.int64()), 0) == _INT64.min).any()
    if not _is_dated(column.type):
        return True
    return _in_calendar(column) and not (pa.types.is_timestamp(column.type) and (array_of(column.cast(pa.int64()), 0) == _INT64.min).any())


def _parts(days: Integers) -> tuple[Integers, Integers, Integers]:
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    numbers = months.astype(np.int64)
    return 1970 + numbers // 12, numbers % 12 + 1, (dates - months.astype("M8[D]")).astype(np.int64) + 1


def _spell_times(column: pa.Array) -> list[str | None]:
    days, ticks = _days_and_ticks(column)
    a_second = _ticks_of_a_day(column.type) // _DAY
    digits = len(str(a_second)) - 1
    texts: list[str | None] = []
    for valid, year, month, day, tick in zip(array_of(column.is_valid()), *_parts(days), ticks, strict=True):
        text = f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}{'' if year > 0 else ' (BC)'}"
        if pa.types.is_timestamp(column.type):
            seconds, fraction = divmod(int(tick), a_second)
            text += f" {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{f'.{fraction:0{digits}}' if digits else ''}"
        texts.append(text if valid else None)
    return texts


def _number(text: str, kind: pa.DataType) -> int:
    match = _SPELLED.fullmatch(text)
    problem = SchemaError(f"{shorten(text)!r} is not a value of type {kind}")
    if not match or len(match[1]) > len("292277026596"):
        raise problem
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    year = 1 - year if match[4] else year
    days = int(np.datetime64((year - 1970) * 12 + month - 1, "M").astype("M8[D]").astype(np.int64)) + day - 1
    if [int(part[0]) for part in _parts(np.array([days]))] != [year, month, day]:
        raise problem
    hour, minute, second = (int(part or 0) for part in match.groups()[4:7])
    a_second = _ticks_of_a_day(kind) // _DAY
    fraction, rest = divmod(int((match[8] or "").ljust(9, "0")) * a_second, 10**9)
    if hour > 23 or minute > 59 or second > 59 or rest or (match[5] and not pa.types.is_timestamp(kind)):
        raise problem
    return days * _ticks_of_a_day(kind) + (hour * 3600 + minute * 60 + second) * a_second + fraction


def _check_times(column: pa.Array) -> None:
    numbers = _times(column)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < _DAY * _TICKS[column.type.unit]:
        raise SchemaError("a time of day is before 0:00 or not before 24:00")


def _times(column: pa.Array) -> Integers:
    width = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
    numbers: Integers = array_of(column.cast(width), 0)
    return numbers
