"""Attributes: the values of one column as pages of columns store them, made from Arrow arrays and turned back into them.

Numbers, truth values, dates and times take the bytes of their type, little-endian, and decimals as many as their digits need; texts and
bytes take what they are long; a value of a column that mixes several types takes a byte that says which, and then its own.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import Integers
from flashsim.storage.columns import array_of, binary_array, mixed_array, one_array, text_array, validity
from flashsim.storage.record import Bytes

#: Bytes of a number in a column that mixes types.
_NUMBER = 8
_MIXED_KINDS = (pa.int64(), pa.float64(), pa.large_string(), pa.large_binary())


@dataclass(frozen=True)
class Attribute:
    """A column as it is stored."""

    #: The column's; None for row ids, which are no column of a relation.
    name: str | None
    kind: pa.DataType
    #: Bytes of the longest value.
    size: int
    varies: bool = False
    nullable: bool = False


class Values(NamedTuple):
    """Bytes of some values of an attribute."""

    #: Which are not NULL, shape (n,); empty if the attribute has none.
    valid: npt.NDArray[np.bool_]
    #: Where each begins in `data`, and the end, shape (n + 1,); empty if all are equally long.
    ends: Integers
    #: One after the other.
    data: Bytes


def attribute(name: str, column: pa.Array | pa.ChunkedArray) -> Attribute:
    kind, nullable = column.type, column.null_count > 0
    if pa.types.is_null(kind):
        return Attribute(name, kind, 0)
    if pa.types.is_union(kind):
        lengths = np.diff(_mixed_bytes(one_array(column)).ends)
        return Attribute(name, kind, int(lengths.max(initial=0)), varies=True, nullable=True)
    if _is_long(kind):
        bounds = pc.min_max(pc.binary_length(column)).as_py()
        return Attribute(name, kind, bounds["max"] or 0, varies=nullable or bounds["min"] != bounds["max"], nullable=nullable)
    return Attribute(name, kind, _width(column), nullable=nullable)


def _width(column: pa.ChunkedArray) -> int:
    kind = column.type
    if pa.types.is_boolean(kind):
        return 1
    if pa.types.is_decimal(kind):
        with suppress(pa.ArrowInvalid):  # a value has more digits than its type says
            column.validate(full=True)
            return (10**kind.precision - 1).bit_length() // 8 + 1
    return int(kind.bit_width) // 8


def values_of(attribute: Attribute, column: pa.Array) -> Values:
    """The bytes of values, shape (n,); those of NULL are zero."""
    ends, valid = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    if pa.types.is_union(attribute.kind):
        return _mixed_bytes(column)
    if attribute.nullable:
        valid = array_of(column.is_valid()).copy()
    if not attribute.size:
        return Values(valid, np.zeros(len(column) + 1, np.int64) if attribute.varies else ends, np.zeros(0, np.uint8))
    if _is_long(attribute.kind):
        offsets, data = _long_bytes(column)
        return Values(valid, offsets if attribute.varies else ends, data)
    if pa.types.is_boolean(attribute.kind):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // 8
    data = _buffer(column.buffers()[1])[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)
    if attribute.nullable:
        data = np.where(valid[:, None], data, 0).astype(np.uint8)
    return Values(valid, ends, np.ascontiguousarray(data[:, : attribute.size]).reshape(-1))


def array_from(attribute: Attribute, count: int, values: Values) -> pa.Array:
    """The reverse: an array of the attribute's type, of `count` values."""
    kind, data = attribute.kind, values.data
    if pa.types.is_null(kind):
        return pa.nulls(count)
    if pa.types.is_union(kind):
        return _mixed_values(values)
    if _is_long(kind):
        offsets = values.ends if attribute.varies else np.arange(count + 1) * attribute.size
        pieces = binary_array(offsets, data, values.valid if attribute.nullable else None)
        return text_array(pieces) if pa.types.is_large_string(kind) else pieces
    bits = validity(values.valid) if attribute.nullable else None
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(pa.uint8(), count, [bits, pa.py_buffer(data)]).cast(kind)
    if attribute.size < kind.bit_width // 8:
        data = data.reshape(-1, attribute.size)
        wide = np.empty((count, kind.bit_width // 8), np.uint8)
        wide[:, : attribute.size] = data
        wide[:, attribute.size :] = data[:, -1:].view(np.int8) >> 7  # the sign
        data = wide.reshape(-1)
    return pa.Array.from_buffers(kind, count, [bits, pa.py_buffer(data)])


def _is_long(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _buffer(buffer: pa.Buffer | None) -> Bytes:
    return np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _long_bytes(column: pa.Array) -> tuple[Integers, Bytes]:
    """Begins of texts or bytes, NULL as empty, and their bytes."""
    column = column.cast(pa.large_binary())
    column = column.fill_null(b"") if column.null_count else column
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    return offsets - offsets[0], _buffer(column.buffers()[2])[offsets[0] : offsets[-1]]


def _mixed_bytes(column: pa.UnionArray) -> Values:
    classes, offsets = array_of(column.type_codes), array_of(column.offsets)
    pieces, order, before = [pa.array([], pa.large_binary())], np.zeros(len(column), np.int64), 0
    for class_ in range(column.type.num_fields):
        (mine,) = np.nonzero(classes == class_)
        values = column.field(class_).take(pa.array(offsets[mine]))
        order[mine] = before + np.arange(len(mine))
        before += len(mine)
        pieces.append(_with_mark(values, _MIXED_KINDS.index(values.type)))
    array = pa.concat_arrays(pieces).take(pa.array(order))
    return Values(array_of(array.is_valid()).copy(), *_long_bytes(array))


def _with_mark(values: pa.Array, mark: int) -> pa.Array:
    """Values of one type as bytes, a byte before each."""
    if _is_long(values.type):
        return pc.binary_join_element_wise(
            pa.scalar(bytes([mark]), pa.large_binary()), values.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary())
        )
    marked = np.full((len(values), 1 + _NUMBER), mark, np.uint8)
    marked[:, 1:] = array_of(values, 0).view(np.uint8).reshape(-1, _NUMBER)
    bounds = np.arange(len(values) + 1) * (1 + _NUMBER)
    return binary_array(bounds, marked, array_of(values.is_valid()))


def _mixed_values(values: Values) -> pa.Array:
    valid, lengths, starts = values.valid, np.diff(values.ends), values.ends[:-1]
    if (lengths[valid] < 1).any():
        raise DamagedFileError("a value of several types has none of them")
    classes = np.zeros(len(valid), np.int8)
    classes[valid] = values.data[starts[valid]]
    numbers = valid & (classes < 2)
    if not 0 <= classes.min(initial=0) <= classes.max(initial=0) < len(_MIXED_KINDS) or (lengths[numbers] != 1 + _NUMBER).any():
        raise DamagedFileError("a value of several types has none of them")
    wide = np.zeros((len(valid), _NUMBER), np.uint8)
    wide[numbers] = values.data[starts[numbers][:, None] + np.arange(1, 1 + _NUMBER)]
    unmarked = np.ones(len(values.data), np.bool_)
    unmarked[starts[valid]] = False
    ends = values.ends - np.concatenate([[0], np.cumsum(valid)])
    pieces = binary_array(ends, values.data[unmarked])
    texts, blobs = (pc.if_else(pa.array(classes == class_), pieces, pa.scalar(None, pa.large_binary())) for class_ in (2, 3))
    integers = pa.array(wide.view("<i8").reshape(-1), mask=~valid)
    return mixed_array(classes, integers, pa.array(wide.view("<f8").reshape(-1)), text_array(texts), blobs)
