"""Columns as PostgreSQL stores their values, made from Arrow arrays and turned back into them.

    int2 int4 int8 float4 float8 bool date timestamp(tz)   the bytes of the number; days and microseconds count from 2000
    text bytea, up to 126 bytes   2 * (bytes + 1) + 1 (1) | bytes, wherever the value before ends
    text bytea, longer            4 * (bytes + 4) (4) | bytes, from a multiple of 4 on
    numeric                       as a bytea: 0x8000 | negative, scale, weight (2) | digits to base 10000 (2 each)
    numeric, of a large scale     as a bytea: negative, scale (2) | weight (2) | digits

A numeric's weight is the power of 10000 of its first digit; neither the first nor the last of its digits is zero.
Source: src/include/varatt.h (postgres.h before release 16) and src/backend/utils/adt/numeric.c of PostgreSQL.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.attributes import Attribute, Values, array_from, values_of
from flashsim.storage.columns import array_of
from flashsim.storage.page._postgresql import FIRST_DAY, FIRST_MICROSECOND, NUMERIC_BASE, NUMERIC_NEGATIVE, NUMERIC_SHORT, TYPES
from flashsim.storage.page._postgresql_numerics import decimals
from flashsim.storage.record import Bytes

#: Days and microseconds, counted from 2000, of the first date and behind the last (src/include/datatype/timestamp.h).
_DAYS, _MICROSECONDS = (-2_451_545, 2_145_031_949), (-211_813_488_000_000_000, 9_223_371_331_200_000_000)
_BINARY = pa.large_binary()


class Stored(NamedTuple):
    """How an attribute is stored.

    Attributes
    ----------
    type
        PostgreSQL's name of its type.
    declared
        The type as CREATE TABLE has it.
    attribute
        The same attribute, of the Arrow type whose bytes are stored.
    """

    type: str
    declared: str
    attribute: Attribute


def stored_as(attribute: Attribute, title: str) -> Stored:
    """How values of an attribute are stored."""
    kind, types = attribute.kind, pa.types
    if types.is_integer(kind) and not types.is_uint64(kind):
        unsigned = types.is_unsigned_integer(kind)
        bytes_ = next(width for width in (2, 4, 8) if attribute.size + unsigned <= width)
        return _number(attribute, f"int{bytes_}", {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[bytes_])
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
    held = "numbers, truth values, dates, timestamps, texts and bytes"
    raise SchemaError(f"{title}: column {attribute.name} is {_called(kind)}, but PostgreSQL's pages hold {held} here")


def _called(kind: pa.DataType) -> str:
    return "of several types" if pa.types.is_union(kind) else str(kind)


def _number(attribute: Attribute, name: str, kind: pa.DataType) -> Stored:
    return Stored(name, name, replace(attribute, kind=kind, size=TYPES[name].length, varies=False))


def to_stored(attribute: Attribute, stored: Stored, column: pa.Array, title: str) -> Values:
    """The bytes of some values of an attribute; those of a length of its own without that length."""
    kind, types = attribute.kind, pa.types
    try:
        if types.is_date(kind):
            column = _shifted(column.cast(pa.date32()).cast(pa.int32()), FIRST_DAY, _DAYS)
        elif types.is_timestamp(kind):
            column = _shifted(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), FIRST_MICROSECOND, _MICROSECONDS)
        elif stored.type == "numeric":
            column = _numerics(column)
        elif not types.is_union(kind):
            column = column.cast(stored.attribute.kind)
        if stored.type == "text" and _has_zero(column):
            raise pa.ArrowInvalid("a text has a zero character, which PostgreSQL's have not")
    except (pa.ArrowInvalid, OverflowError) as problem:
        raise SchemaError(
            f"{title}: column {attribute.name} cannot be stored as {stored.declared}: {str(problem).splitlines()[0]}"
        ) from None
    return values_of(stored.attribute, column)


def _shifted(numbers: pa.Array, first: int, bounds: tuple[int, int]) -> pa.Array:
    """Days or microseconds from 2000 instead of from 1970."""
    shifted = pc.subtract_checked(numbers, pa.scalar(first, numbers.type))
    extremes = pc.min_max(shifted).as_py()
    if extremes["min"] is not None and not bounds[0] <= extremes["min"] <= extremes["max"] < bounds[1]:
        raise pa.ArrowInvalid("it has a day that PostgreSQL's calendar has not")
    return shifted


def _has_zero(texts: pa.Array) -> bool:
    if not len(texts) or texts.buffers()[2] is None:
        return False
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return not np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].all()


def _limbs(column: pa.Array) -> tuple[Integers, int]:
    """Whole numbers and decimals as 32 bits each, the least first, shape (n, words), and their scale; zeros for NULL."""
    if not pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal128(20, 0))
    width, scale = column.type.bit_width // 32, column.type.scale
    limbs = (
        np.frombuffer(column.buffers()[1], "<u4")[column.offset * width : (column.offset + len(column)) * width]
        if len(column)
        else np.zeros(0)
    )
    found = limbs.reshape(-1, width).astype(np.int64)
    if column.null_count:
        found[array_of(column.is_null())] = 0
    return found, scale


def _numerics(column: pa.Array) -> pa.Array:
    """Decimals as a numeric's bytes."""
    limbs, scale = _limbs(column)
    power = -scale % 4 if scale >= 0 else -scale
    most = 4 + 2 * ((limbs.shape[1] * 10 + power) // 4 + 2)
    ends, out = np.zeros(len(limbs) + 1, np.int64), np.empty(len(limbs) * most, np.uint8)
    work = np.zeros(limbs.shape[1] + 1 + power // 9, np.int64)
    _put_numerics(limbs, power, max(scale, 0), work, ends, out)
    validity = pa.py_buffer(np.packbits(array_of(column.is_valid()), bitorder="little"))
    return pa.Array.from_buffers(_BINARY, len(column), [validity, pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])])


@kernel
def _put_numerics(limbs: Integers, power: int, scale: int, work: Integers, ends: Integers, out: Bytes) -> None:
    """Write numbers, times 10 to a power that makes their fractions whole digits to base 10000."""
    at = 0
    digits = np.empty(work.shape[0] * 3, np.int64)
    fraction = (scale + 3) // 4
    for row in range(limbs.shape[0]):
        used = limbs.shape[1]
        negative = limbs[row, used - 1] >= 1 << 31
        carry = 1 if negative else 0
        work[:] = 0
        for index in range(used):
            limb = limbs[row, index]
            if negative:
                limb = (limb ^ 0xFFFFFFFF) + carry
                carry = limb >> 32
            work[index] = limb & 0xFFFFFFFF
        for _ in range(power):
            carry = 0
            for index in range(work.shape[0]):
                carry += work[index] * 10
                work[index] = carry & 0xFFFFFFFF
                carry >>= 32
        used = work.shape[0]
        count, lowest = 0, 0
        while True:
            while used and work[used - 1] == 0:
                used -= 1
            if not used:
                break
            rest = 0
            for index in range(used - 1, -1, -1):
                rest = (rest << 32) | work[index]
                work[index] = rest // NUMERIC_BASE
                rest -= work[index] * NUMERIC_BASE
            digits[count] = rest
            count += 1
        while lowest < count and digits[lowest] == 0:
            lowest += 1
        weight = count - 1 - fraction if count else 0
        if scale <= 63 and -64 <= weight <= 63:
            head = NUMERIC_SHORT | (0x2000 if negative else 0) | (scale << 7) | (weight & 0x7F)
        else:
            head = (NUMERIC_NEGATIVE if negative else 0) | scale
        out[at], out[at + 1] = head & 255, head >> 8
        at += 2
        if head < NUMERIC_SHORT:
            out[at], out[at + 1] = weight & 255, (weight >> 8) & 255
            at += 2
        for index in range(count - 1, lowest - 1, -1):
            out[at], out[at + 1] = digits[index] & 255, digits[index] >> 8
            at += 2
        ends[row + 1] = at


def from_stored(attribute: Attribute, stored: Stored, count: int, values: Values) -> pa.Array:
    """The reverse: an array of the attribute's type, of `count` values."""
    kind, types = attribute.kind, pa.types
    column = array_from(stored.attribute, count, values)
    if types.is_null(kind):
        if column.null_count < count:
            raise DamagedFileError(f"column {attribute.name} has a value")
        return pa.nulls(count)
    try:
        if types.is_date(kind):
            return pc.add_checked(column, pa.scalar(FIRST_DAY, pa.int32())).cast(pa.date32()).cast(kind)
        if types.is_timestamp(kind):
            return pc.add_checked(column, pa.scalar(FIRST_MICROSECOND, pa.int64())).cast(pa.timestamp("us", kind.tz)).cast(kind)
        return _decimals(attribute, values, column).cast(kind) if stored.type == "numeric" else column.cast(kind)
    except pa.ArrowInvalid as problem:
        raise DamagedFileError(f"column {attribute.name} has a value beyond its type: {str(problem).splitlines()[0]}") from None


def _decimals(attribute: Attribute, values: Values, column: pa.Array) -> pa.Array:
    """What numeric's bytes stand for."""
    kind = attribute.kind if pa.types.is_decimal(attribute.kind) else pa.decimal128(20, 0)
    try:
        return decimals(values.data, np.where(array_of(column.is_valid()), values.ends[:-1], -1), np.diff(values.ends), kind)
    except ValueError as problem:
        raise pa.ArrowInvalid(str(problem)) from None
