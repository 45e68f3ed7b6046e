"""Values as PostgreSQL stores them, made columns: of Arrow's types, exactly.

    numeric, short   1 0 sign (1 bit) scale (6) weight (7)          | digits to the base of 10,000, 2 bytes each
    numeric, long    0 sign (1 bit) scale (14) | weight (2 bytes)   | digits

The first digit counts 10,000 ** weight.
Source: src/backend/utils/adt/numeric.c and src/include/datatype/timestamp.h of PostgreSQL 15.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.columns import array_of
from flashsim.storage.page._postgresql import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    NUMERIC_BASE,
    NUMERIC_NEGATIVE,
    NUMERIC_SHORT,
    NUMERIC_SPECIAL,
)
from flashsim.storage.record import Bytes, byte_at, copy_pieces

#: Where a value stands that is NULL, or that a row has not because it is older than the column.
NULL, MISSING = -1, -2

_DIRECT = {"int2": "<i2", "int4": "<i4", "int8": "<i8", "float4": "<f4", "float8": "<f8", "date": "<i4", "timestamp": "<i8"}
_DIRECT |= {"timestamptz": "<i8", "bool": "|u1"}
_ARROW = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "bytea": pa.large_binary(),
    "uuid": pa.large_binary(),
    "text": pa.large_string(),
    "varchar": pa.large_string(),
    "bpchar": pa.large_string(),
}
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")
#: The most digits of a number in Arrow, by the 32-bit words that it takes.
_DIGITS = {4: 38, 8: 76}


@dataclass(frozen=True)
class Column:
    """A column as rows hold it.

    Parameters
    ----------
    name
        As PostgreSQL keeps it.
    kind
        PostgreSQL's own name of its type; empty for one that was dropped and of which no more is known.
    length, alignment
        As of its type (`flashsim.storage.page._postgresql.StoredType`).
    modifier
        The numbers that limit its values, such as precision and scale.
    nullable
        Whether values may be NULL.
    missing
        The value of rows that are older than the column; None is NULL.
    problem
        Why that value is not known, if it is not.
    dropped
        Whether it only takes room.
    """

    name: str
    kind: str
    length: int
    alignment: int
    modifier: tuple[int, ...] = ()
    nullable: bool = True
    missing: pa.Scalar | None = None
    problem: str = ""
    dropped: bool = False


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """The narrowest of Arrow's types for numbers of so many digits, so many of them after the point.

    Raises
    ------
    SchemaError
        They are too many.
    """
    if precision > _DIGITS[8]:
        raise SchemaError(f"values of {precision} digits, but only {_DIGITS[8]} are read")
    return (pa.decimal128 if precision <= _DIGITS[4] else pa.decimal256)(max(precision, 1), scale)


def column_type(column: Column) -> pa.DataType | None:
    """The Arrow type of a column; None for numbers of any precision, whose type follows from the values."""
    if column.kind != "numeric":
        return _ARROW[column.kind]
    if not column.modifier:
        return None
    precision, scale = (*column.modifier, 0)[:2]
    return decimal_type(max(precision - min(scale, 0), scale), max(scale, 0))


def constant(column: Column, text: str) -> pa.Scalar:
    """What a constant of SQL is as a value of a column.

    Raises
    ------
    ValueError, ArithmeticError, pyarrow.ArrowException
        It is no such value, or not in a form that is understood.
    """
    kind, arrow = column.kind, column_type(column)
    if kind == "numeric":
        return pa.scalar(Decimal(text), arrow)
    if kind == "bool":
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError("no truth value")
        return pa.scalar(text.lower() in _TRUE)
    if kind == "uuid":
        return pa.scalar(UUID(text).bytes, arrow)
    if kind == "bytea":
        if not text.startswith("\\x"):
            raise ValueError("not in hexadecimal digits")
        return pa.scalar(bytes.fromhex(text[2:]), arrow)
    if kind == "bpchar" and column.modifier:
        text = text.ljust(column.modifier[0])
    if kind in ("float4", "float8"):
        return pa.scalar(float(text), arrow)
    return pa.scalar(text, pa.large_string()).cast(arrow)


def decode(column: Column, data: Bytes, at: Integers, size: Integers) -> pa.Array:
    """The values of a column.

    Parameters
    ----------
    data
        Bytes that hold them.
    at, size
        Where each begins, or NULL or MISSING, and its bytes; shape (n,).

    Raises
    ------
    DamagedFileError, SchemaError
        A value is none of the column's type, or one that Arrow does not have.
    """
    valid = at >= 0
    if column.kind in _DIRECT:
        found = _direct(column.kind, data, at, valid)
    elif column.kind == "numeric":
        found = _numerics(column, data, at, size)
    else:
        found = _pieces(column, data, at, np.where(valid, size, 0), valid)
    late = at == MISSING
    if late.any():
        if column.problem:
            raise SchemaError(f"rows are older than it, and {column.problem}")
        if column.missing is not None:
            found = _beside(found, column.missing, late)
    if not column.nullable and found.null_count:
        raise SchemaError("it has no value in some row, but its definition says NOT NULL")
    return found


def joined_chunks(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """Arrays of one type, or of numbers of several precisions, as one column."""
    kinds = {chunk.type for chunk in chunks}
    if len(kinds) == 1:
        return pa.chunked_array(chunks)
    return pa.chunked_array([chunk.cast(_common(kinds)) for chunk in chunks])


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    scale = max(kind.scale for kind in kinds)
    return decimal_type(scale + max(kind.precision - kind.scale for kind in kinds), scale)


def _beside(found: pa.Array, missing: pa.Scalar, late: npt.NDArray[np.bool_]) -> pa.Array:
    if found.type != missing.type:
        common = _common({found.type, missing.type})
        found, missing = found.cast(common), missing.cast(common)
    return pc.if_else(pa.array(late), missing, found)


def _validity(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _direct(kind: str, data: Bytes, at: Integers, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers that Arrow keeps as PostgreSQL does, but for the day that is counted from."""
    dtype = np.dtype(_DIRECT[kind])
    values: npt.NDArray[Any] = data.view(dtype)[np.where(valid, at, 0) // dtype.itemsize]
    values[~valid] = 0
    if kind == "bool":
        if (values > 1).any():
            raise DamagedFileError("a truth value is neither true nor false")
        return pa.Array.from_buffers(pa.uint8(), len(at), [_validity(valid), pa.py_buffer(values)]).cast(pa.bool_())
    if kind in ("date", "timestamp", "timestamptz"):
        bounds, first = np.iinfo(dtype), FIRST_DAY if kind == "date" else FIRST_MICROSECOND
        if (values == bounds.max).any() or (values == bounds.min).any():
            raise SchemaError("a value is infinity, but only days and times are read")
        if (values > bounds.max - first).any():
            raise SchemaError("a time is after the year 294246, where Arrow's end")
        values += first
    return pa.Array.from_buffers(_ARROW[kind], len(at), [_validity(valid), pa.py_buffer(values)])


def _pieces(column: Column, data: Bytes, at: Integers, lengths: Integers, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Texts and bytes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    out = np.empty(offsets[-1], np.uint8)
    copy_pieces(data, at, out, offsets)
    buffers = [_validity(valid), pa.py_buffer(offsets), pa.py_buffer(out)]
    found = pa.Array.from_buffers(pa.large_binary(), len(at), buffers)
    if column.kind in ("bytea", "uuid"):
        return found
    try:
        found = found.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise DamagedFileError("a text is not valid UTF-8, the only encoding that is read") from None
    if column.modifier:
        bounds = pc.min_max(pc.utf8_length(found)).as_py()
        least, most = bounds["min"], bounds["max"]
        if most is not None and (most > column.modifier[0] or (column.kind == "bpchar" and least < column.modifier[0])):
            raise SchemaError(
                f"a text of {most if most > column.modifier[0] else least} characters, but its definition says {column.modifier[0]}"
            )
    return found


def _numerics(column: Column, data: Bytes, at: Integers, size: Integers) -> pa.Array:
    """Exact numbers: of the column's precision and scale, or of as many digits as the longest needs."""
    extent = np.zeros(2, np.int64)
    problem = _numeric_extent(data, at, size, extent)
    if problem == _NOT_FINITE:
        raise SchemaError("a value is NaN or infinity, but only numbers are read")
    whole, scale = extent.tolist()
    kind = column_type(column) or decimal_type(whole + scale, scale)
    if problem == _NO_NUMERIC:
        raise DamagedFileError("a value is no numeric")
    if scale > kind.scale or whole > kind.precision - kind.scale:
        raise SchemaError(f"a value of {whole} digits before and {scale} after the point, but its definition says numeric{column.modifier}")
    words = np.zeros((len(at), kind.bit_width // 32), np.uint32)
    if _numeric_values(data, at, size, kind.scale, words):
        raise DamagedFileError("a value has more digits than its scale")
    return pa.Array.from_buffers(kind, len(at), [_validity(array_of(pa.array(at >= 0))), pa.py_buffer(words)])


_NO_NUMERIC, _NOT_FINITE = 1, 2


@kernel
def _pair(data: Bytes, at: int) -> int:
    return byte_at(data, at) | (byte_at(data, at + 1) << 8)


@kernel
def _numeric_head(data: Bytes, at: int) -> tuple[int, int, int]:
    """Weight and scale of a number, and bytes before its digits."""
    head = _pair(data, at)
    if head & NUMERIC_SHORT:
        weight = head & 0x3F
        return (weight - 0x40 if head & 0x40 else weight), (head >> 7) & 0x3F, 2
    weight = _pair(data, at + 2)
    return (weight - 0x10000 if weight & 0x8000 else weight), head & 0x3FFF, 4


@kernel
def _numeric_extent(data: Bytes, at: Integers, size: Integers, extent: Integers) -> int:
    """The most digits before and after the point; returns what is wrong with some value, or 0."""
    for row in range(at.shape[0]):
        if at[row] < 0:
            continue
        if size[row] < 2 or size[row] & 1:
            return _NO_NUMERIC
        head = _pair(data, at[row])
        if head & NUMERIC_SPECIAL == NUMERIC_SPECIAL:
            return _NOT_FINITE
        if not head & NUMERIC_SHORT and size[row] < 4:
            return _NO_NUMERIC
        weight, scale, skipped = _numeric_head(data, at[row])
        for place in range(at[row] + skipped, at[row] + size[row], 2):
            if _pair(data, place) >= NUMERIC_BASE:
                return _NO_NUMERIC
        if size[row] > skipped:
            first, digits = _pair(data, at[row] + skipped), 0
            while first:
                first //= 10
                digits += 1
            extent[0] = max(extent[0], digits + 4 * weight)
        extent[1] = max(extent[1], scale)
    return 0


@kernel
def _times(limbs: Integers, used: int, factor: int, addend: int) -> int:
    """Multiply a number of 32-bit words and add to it; returns how many words it has."""
    carry = addend
    for index in range(used):
        carry += limbs[index] * factor
        limbs[index] = carry & 0xFFFFFFFF
        carry >>= 32
    if carry:
        limbs[used] = carry
        return used + 1
    return used


@kernel
def _numeric_values(data: Bytes, at: Integers, size: Integers, scale: int, out: npt.NDArray[np.uint32]) -> bool:
    """Fill in numbers times 10 ** scale, in words of 32 bits; returns whether one has digits beyond."""
    limbs = np.zeros(out.shape[1] + 1, np.int64)
    for row in range(at.shape[0]):
        if at[row] < 0:
            continue
        weight, _, skipped = _numeric_head(data, at[row])
        limbs[:] = 0
        used, power = 0, scale + 4 * weight
        for place in range(at[row] + skipped, at[row] + size[row], 2):
            digit, divisor = _pair(data, place), 1
            for _ in range(min(max(-power, 0), 4)):
                divisor *= 10
            if digit % divisor:
                return True
            used = _times(limbs, used, NUMERIC_BASE // divisor, digit // divisor)
            power -= 4
        if size[row] > skipped:
            for _ in range(power + 4):
                used = _times(limbs, used, 10, 0)
        head = _pair(data, at[row])
        negative = head & 0x2000 if head & NUMERIC_SHORT else head & NUMERIC_NEGATIVE
        carry = 1
        for index in range(out.shape[1]):
            if negative:
                carry += limbs[index] ^ 0xFFFFFFFF
                out[row, index] = carry & 0xFFFFFFFF
                carry >>= 32
            else:
                out[row, index] = limbs[index]
    return False
