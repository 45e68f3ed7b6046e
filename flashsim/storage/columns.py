"""Columns of Arrow types, and the few types that SQLite stores them as."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import Integers


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def column_of(values: npt.NDArray[Any]) -> pa.Array:
    """Numbers as a column, not copied; Arrow's own way loads pandas first, which takes as long as a small join."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def array_of(column: pa.Array, null: float | None = None) -> npt.NDArray[Any]:
    """The reverse: numbers or truth values as an array, numbers not copied unless some are NULL, for which `null` then stands."""
    if null is not None and column.null_count:
        column = column.fill_null(null)
    if pa.types.is_boolean(column.type):
        return array_of(column.cast(pa.uint8())).view(np.bool_)
    values: npt.NDArray[Any] = np.from_dlpack(column)
    return values


def validity(valid: npt.NDArray[np.bool_]) -> pa.Buffer:
    """Arrow's bits of the values that are not NULL."""
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def binary_array(offsets: Integers, data: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Pieces ``data[offsets[i]:offsets[i + 1]]`` as an array of bytes, not copied; `valid` tells those that are not NULL."""
    buffers = [None if valid is None else validity(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def text_array(pieces: pa.Array) -> pa.Array:
    try:
        return pieces.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise DamagedFileError("a text is not valid UTF-8") from None


def plain_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column without dictionaries, extensions or views, as one array; texts and bytes with 64-bit offsets."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain_array(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return plain_array(column.cast(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.large_binary())
    elif pa.types.is_fixed_size_binary(kind):
        column = column.cast(pa.binary()).cast(pa.large_binary())
    return one_array(column)


def is_flat(kind: pa.DataType) -> bool:
    """True if values of a type can be stored in a column."""
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind)) or pa.types.is_union(kind)


def declared_type(kind: pa.DataType) -> str:
    """The type in CREATE TABLE under which SQLite keeps stored values as they are."""
    if pa.types.is_uint64(kind) or pa.types.is_union(kind) or pa.types.is_null(kind):
        return ""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_duration(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "BLOB" if pa.types.is_large_binary(kind) else "TEXT"


def mixed_array(
    classes: npt.NDArray[np.int8], integers: pa.Array | None, reals: pa.Array | None, texts: pa.Array | None, blobs: pa.Array | None
) -> pa.Array:
    """A column of several storage classes: a dense union of integers (with NULLs), doubles, texts and bytes.

    Classes, 0..3 a row, are from which of the four arrays, each of shape (rows,), the value is taken.
    """
    children = []
    offsets = np.zeros(len(classes), np.int32)
    kinds = (pa.int64(), pa.float64(), pa.large_string(), pa.large_binary())
    for class_, (source, kind) in enumerate(zip((integers, reals, texts, blobs), kinds, strict=True)):
        (at,) = np.nonzero(classes == class_)
        offsets[at] = np.arange(len(at))
        children.append(pa.array([], kind) if source is None else source.take(pa.array(at)))
    return pa.UnionArray.from_dense(pa.array(classes, pa.int8()), pa.array(offsets), children, ["integer", "real", "text", "blob"])
