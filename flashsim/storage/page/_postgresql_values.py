"""Columns as PostgreSQL stores their values, made from Arrow arrays and turned back into them.

    int2 int4 int8 float4 float8 bool date timestamp(tz)   the bytes of the number; days and microseconds count from 2000
    text bytea, up to 126 bytes   2 * (bytes + 1) + 1 (1) | bytes, wherever the value before ends
    text bytea, longer            4 * (bytes + 4) (4) | bytes, from a multiple of 4 on
    numeric, short                as a bytea: 1 0 sign (1 bit) scale (6) weight (7)        | digits to base 10000 (2 bytes each)
    numeric, long                 as a bytea: 0 sign (1 bit) scale (14) | weight (2 bytes) | digits

A numeric's weight is the power of 10000 of its first digit; neither the first nor the last of its digits is zero.
Source: src/include/varatt.h (postgres.h before release 16), src/include/datatype/timestamp.h and src/backend/utils/adt/numeric.c of
PostgreSQL.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.core.request import Integers
from flashsim.storage.attributes import Attribute, Values, values_of
from flashsim.storage.columns import array_of, binary_array, text_array, validity
from flashsim.storage.heap_file import ranges
from flashsim.storage.page import _postgresql as pg
from flashsim.storage.record import Bytes, copy_pieces

#: Days and microseconds, counted from 2000, of the first date and behind the last (src/include/datatype/timestamp.h).
_DAYS, _MICROSECONDS = (-2_451_545, 2_145_031_949), (-211_813_488_000_000_000, 9_223_371_331_200_000_000)
_BINARY = pa.large_binary()
#: The types of Arrow that hold values exactly; a numeric's follows from its precision and scale.
ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
ARROW |= dict.fromkeys(("bytea", "uuid"), _BINARY) | dict.fromkeys(("text", "varchar", "bpchar"), pa.large_string())
#: Decimal digits of one to base 10000.
_PLACES = np.array([1000, 100, 10, 1], np.int32)


class Stored(NamedTuple):
    """Stored form of an attribute."""

    #: PostgreSQL's name of its type.
    type: str
    #: The type as CREATE TABLE has it.
    declared: str
    #: The same attribute, of the Arrow type whose bytes are stored.
    attribute: Attribute


def stored_form(attribute: Attribute, title: str) -> Stored:
    kind, types = attribute.kind, pa.types
    if types.is_integer(kind) and not types.is_uint64(kind):
        unsigned = types.is_unsigned_integer(kind)
        bytes_ = next(width for width in (2, 4, 8) if attribute.size + unsigned <= width)
        return _number(attribute, f"int{bytes_}", ARROW[f"int{bytes_}"])
    if types.is_floating(kind):
        return _number(attribute, "float8", pa.float64()) if types.is_float64(kind) else _number(attribute, "float4", pa.float32())
    if types.is_boolean(kind):
        return _number(attribute, "bool", kind)
    if types.is_date(kind):
        return _number(attribute, "date", pa.int32())
    if types.is_timestamp(kind):
        return _number(attribute, "timestamp" if kind.tz is None else "timestamptz", pa.int64())
    if types.is_decimal(kind) or types.is_uint64(kind):
        declared = f"numeric({kind.precision},{kind.scale})" if types.is_decimal(kind) and kind.scale >= 0 else "numeric"
        return Stored("numeric", declared, replace(attribute, kind=_BINARY, varies=True))
    if types.is_large_binary(kind):
        return Stored("bytea", "bytea", replace(attribute, varies=True))
    if types.is_large_string(kind) or types.is_null(kind):
        return Stored(
            "text", "text", replace(attribute, kind=pa.large_string(), varies=True, nullable=attribute.nullable or types.is_null(kind))
        )
    kinds, actual = "numbers, truth values, dates, timestamps, texts and bytes", "of several types" if types.is_union(kind) else kind
    raise SchemaError(f"{title}: column {attribute.name} is {actual}, but PostgreSQL's pages hold {kinds} here")


def _number(attribute: Attribute, name: str, kind: pa.DataType) -> Stored:
    return Stored(name, name, replace(attribute, kind=kind, size=pg.TYPES[name].length, varies=False))


def to_stored(attribute: Attribute, stored: Stored, column: pa.Array, title: str) -> Values:
    """The bytes of some values of an attribute; those of a length of its own without that length."""
    kind, types = attribute.kind, pa.types
    try:
        if types.is_date(kind):
            column = _shift_epoch(column.cast(pa.date32()).cast(pa.int32()), pg.FIRST_DAY, _DAYS)
        elif types.is_timestamp(kind):
            column = _shift_epoch(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), pg.FIRST_MICROSECOND, _MICROSECONDS)
        elif stored.type == "numeric":
            column = _numerics(column)
        elif not types.is_union(kind):
            column = column.cast(stored.attribute.kind)
        if stored.type == "text" and pc.any(pc.match_substring(column, "\0")).as_py():
            raise pa.ArrowInvalid("a text has a zero character, which PostgreSQL's have not")
    except (pa.ArrowInvalid, OverflowError) as problem:
        raise SchemaError(
            f"{title}: column {attribute.name} cannot be stored as {stored.declared}: {str(problem).splitlines()[0]}"
        ) from None
    return values_of(stored.attribute, column)


def _shift_epoch(numbers: pa.Array, first: int, bounds: tuple[int, int]) -> pa.Array:
    """Days or microseconds from 2000 instead of from 1970."""
    shifted = pc.subtract_checked(numbers, pa.scalar(first, numbers.type))
    extremes = pc.min_max(shifted).as_py()
    if extremes["min"] is not None and not bounds[0] <= extremes["min"] <= extremes["max"] < bounds[1]:
        raise pa.ArrowInvalid("it has a day that PostgreSQL's calendar has not")
    return shifted


def _numerics(column: pa.Array) -> pa.Array:
    if not pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal128(20, 0))
    scale, valid = max(column.type.scale, 0), array_of(column.is_valid())
    whole = pa.Array.from_buffers(_whole(column.type), len(column), column.buffers(), offset=column.offset)
    texts = whole.cast(pa.large_string()).fill_null("0")
    zeros = -column.type.scale % 4 if scale else -column.type.scale  # so that the point stands between digits to base 10000
    negative, digits = array_of(pc.starts_with(texts, "-")), pc.utf8_ltrim(texts, "-")
    longest = pc.max(pc.binary_length(digits)).as_py() or 1
    width = longest + -(longest + zeros) % 4
    chars = np.frombuffer(pc.utf8_lpad(digits, width, "0").buffers()[2] or b"", np.uint8)[: len(column) * width].reshape(-1, width)
    count = (width + zeros) // 4
    groups = np.pad(chars - ord("0"), ((0, 0), (0, zeros))).reshape(len(column), count, 4) @ _PLACES
    is_behind_first, unended = (np.logical_or.accumulate(side != 0, axis=1) for side in (groups, groups[:, ::-1]))
    is_stored = is_behind_first & unended[:, ::-1]
    weight = np.where(is_stored.any(axis=1), count - 1 - is_stored.argmax(axis=1) - -(-scale // 4), 0)
    short = (scale <= 63) & (weight >= -64) & (weight <= 63)
    heads = np.where(short, pg.NUMERIC_SHORT | negative * 0x2000 | scale << 7 | weight & 0x7F, negative * pg.NUMERIC_NEGATIVE | scale)
    is_stored = np.column_stack([np.ones(len(column), np.bool_), ~short, is_stored])
    words = np.column_stack([heads, weight & 0xFFFF, groups]).astype("<u2")[is_stored]
    return binary_array(np.concatenate([[0], np.cumsum(2 * is_stored.sum(axis=1))]), words.view(np.uint8), valid)


def _whole(kind: pa.DataType) -> pa.DataType:
    """The type of a decimal's digits without its point."""
    makers = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}
    return makers[kind.bit_width](kind.precision, 0)


def values_at(name: str, data: Bytes, at: Integers, size: Integers, kind: pa.DataType | None = None) -> pa.Array:
    """Values of a type of PostgreSQL, as an array of Arrow's.

    They lie in `data`, of whole words of 8 bytes; `at` and `size`, shape (n,), are where each begins, without a length before it, or a
    negative number for NULL, and its bytes.  `kind` is the type of numerics; without it, one of as many digits as some need before and
    after the point.

    Raises
    ------
    SchemaError, DamagedFileError
        Arrow has no such value; the bytes are none.
    """
    valid, length = at >= 0, pg.TYPES[name].length
    if name == "numeric":
        return _decimals(data, at, size, valid, kind)
    if length < 0 or name == "uuid":
        offsets = np.concatenate([[0], np.cumsum(np.where(valid, size, 0))])
        pieces = np.empty(offsets[-1], np.uint8)
        copy_pieces(data, at, pieces, offsets)
        array = binary_array(offsets, pieces, None if valid.all() else valid)
        return text_array(array) if ARROW[name] == pa.large_string() else array
    dtype = np.dtype(f"<{'f' if name.startswith('float') else 'i'}{length}")
    values: npt.NDArray[Any] = data.view(dtype)[np.where(valid, at, 0) // length]
    values[~valid] = 0
    bits = None if valid.all() else validity(valid)
    if name == "bool":
        if (values & ~1).any():
            raise DamagedFileError("a truth value is neither true nor false")
        return pa.Array.from_buffers(pa.uint8(), len(at), [bits, pa.py_buffer(values)]).cast(pa.bool_())
    if name in ("date", "timestamp", "timestamptz"):
        bounds, first = np.iinfo(dtype), pg.FIRST_DAY if name == "date" else pg.FIRST_MICROSECOND
        if (values == bounds.max).any() or (values == bounds.min).any():
            raise SchemaError("a value is infinity, but only days and times are read")
        if (values > bounds.max - first).any():
            raise SchemaError("a time is after the year 294246, where Arrow's end")
        values += first
    return pa.Array.from_buffers(ARROW[name], len(at), [bits, pa.py_buffer(values)])


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The narrowest of Arrow's types for numbers of so many digits, so many of them after the point."""
    if precision > 76:
        raise SchemaError(f"values of {precision} digits, but only 76 are read")
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(max(precision, 1), scale)


def _decimals(data: Bytes, at: Integers, size: Integers, valid: npt.NDArray[np.bool_], kind: pa.DataType | None) -> pa.Array:
    if (size[valid] < 2).any() or (size[valid] & 1).any():
        raise SchemaError("a value is not a numeric")
    begins = np.concatenate([[0], np.cumsum(size[valid])])
    pieces = np.empty(begins[-1], np.uint8)
    copy_pieces(data, at[valid], pieces, begins)
    words, begins = np.append(pieces.view("<u2"), 0).astype(np.int32), begins // 2
    heads, behind = words[begins[:-1]], words[begins[:-1] + 1]
    if (heads & pg.NUMERIC_SPECIAL == pg.NUMERIC_SPECIAL).any():
        raise SchemaError("a value is NaN or infinity, but only numbers are read")
    short = heads & pg.NUMERIC_SHORT > 0
    firsts = begins[:-1] + np.where(short, 1, 2)
    counts = begins[1:] - firsts
    weight = np.where(short, (heads & 0x3F) - (heads & 0x40), (behind & 0x7FFF) - (behind & 0x8000))
    negative = np.where(short, heads & 0x2000, heads & pg.NUMERIC_NEGATIVE) > 0
    places = ranges(firsts, np.maximum(counts, 0))
    if (counts < 0).any() or (words[places] >= pg.NUMERIC_BASE).any():
        raise SchemaError("a value is not a numeric")
    lengths = np.searchsorted(_PLACES[::-1], words[firsts], side="right") + 4 * weight
    before = int(lengths[counts > 0].max(initial=0))
    after = int(np.where(short, heads >> 7 & 0x3F, heads & 0x3FFF).max(initial=0))
    kind = kind or decimal_type(before + after, after)
    if after > max(kind.scale, 0) or before > kind.precision - kind.scale:
        raise SchemaError(f"a value has {before} digits before and {after} after the point, which {kind} does not hold")
    # Digits to base 10000 in columns, those before the point first; then the digits of each, behind a sign.
    whole, fraction = -(-before // 4), -(-max(kind.scale, 0) // 4)
    groups, row = np.zeros((len(heads), whole + fraction), np.int32), np.repeat(np.arange(len(heads)), counts)
    column = whole - 1 - weight[row] + places - firsts[row]
    inside = (column >= 0) & (column < whole + fraction)
    groups[row[inside], column[inside]] = words[places[inside]]
    chars = np.full((len(heads), 2 + 4 * (whole + fraction)), ord("0"), np.uint8)
    chars[negative, 0] = ord("-")
    chars[:, 2:] += (groups[:, :, None] // _PLACES % 10).astype(np.uint8).reshape(len(heads), 4 * (whole + fraction))
    length = max(2, chars.shape[1] - 4 * fraction + kind.scale)
    if words[places[~inside]].any() or (chars[:, length:] > ord("0")).any():
        raise SchemaError("a value has more digits than its scale")
    texts = np.ascontiguousarray(chars[:, :length])
    numbers = text_array(binary_array(np.arange(len(heads) + 1) * length, texts)).cast(_whole(kind))
    decimals = pa.Array.from_buffers(kind, len(heads), numbers.buffers())
    return decimals if valid.all() else decimals.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
