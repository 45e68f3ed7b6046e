"""Values as PostgreSQL stores them, made columns: of Arrow's types, exactly.

Source: src/include/datatype/timestamp.h of PostgreSQL 15.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, SchemaError
from flashsim.core.request import Integers
from flashsim.storage.page._postgresql import FIRST_DAY, FIRST_MICROSECOND
from flashsim.storage.page._postgresql_numerics import decimal_type, decimals
from flashsim.storage.page._postgresql_tuples import MISSING
from flashsim.storage.record import Bytes, copy_pieces

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
_EXACT = Context(100)
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")


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


def column_type(column: Column) -> pa.DataType | None:
    """The Arrow type of a column; None for numbers of any precision, whose type follows from the values."""
    if column.kind != "numeric":
        return _ARROW[column.kind]
    if not column.modifier:
        return None
    precision, scale = (*column.modifier, 0)[:2]
    return _decimal_type(max(precision - min(scale, 0), scale), max(scale, 0))


def _decimal_type(precision: int, scale: int) -> pa.DataType:
    try:
        return decimal_type(precision, scale)
    except ValueError as problem:
        raise SchemaError(str(problem)) from None


def constant(column: Column, text: str) -> pa.Scalar:
    """What a constant of SQL is as a value of a column."""
    kind, arrow = column.kind, column_type(column)
    if kind == "numeric":
        number = Decimal(text)
        return pa.scalar(number if arrow is None else number.quantize(Decimal(1).scaleb(-arrow.scale), ROUND_HALF_UP, _EXACT), arrow)
    if kind.startswith("timestamp") and column.modifier and len(text.partition(".")[2]) > column.modifier[0]:
        raise ValueError("a time that is rounded")
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


def joined_chunks(chunks: list[pa.Array]) -> pa.Array:
    """Arrays of one type, or of numbers of several precisions, as one column."""
    kinds = {chunk.type for chunk in chunks}
    if len(kinds) > 1:
        chunks = [chunk.cast(_common(kinds)) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    scale = max(kind.scale for kind in kinds)
    return _decimal_type(scale + max(kind.precision - kind.scale for kind in kinds), scale)


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
    try:
        return decimals(data, at, size, column_type(column))
    except ValueError as problem:
        raise SchemaError(str(problem)) from None
