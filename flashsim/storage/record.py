"""Records: the values of a row as SQLite stores them, made from Arrow columns and turned back into them.

    record   header size (varint) | serial type of each column (varints) | values, one after the other

    serial type   0      1..6                           7                   8, 9          12 + 2n      13 + 2n
    value         NULL   integer of 1 2 3 4 6 8 bytes   double of 8 bytes   0 and 1       n bytes      text of n bytes

Numbers are big-endian.  As in SQLite, a double without a fraction is stored as an integer in a column declared REAL.
Source: "Database File Format", sections 1.6 and 2.1 (sqlite.org/fileformat2.html).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.columns import array_of, binary_array, mixed_array, text_array
from flashsim.storage.texts import stored_column

Bytes = npt.NDArray[np.uint8]

#: Bytes of a number by serial type, for types below 12.
_WIDTHS = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0], np.int64)
_BIT_BOUNDS = np.array([1 << 7, 1 << 15, 1 << 23, 1 << 31, 1 << 47], np.int64)
_BATCH = 1 << 16


def varint_size(values: npt.ArrayLike) -> Integers:
    """Bytes of SQLite's variable-length integers, for values from 0 to 2**56.

    Examples
    --------
    >>> varint_size([127, 128, 16384]).tolist()
    [1, 2, 3]
    """
    numbers = np.asarray(values, np.int64)
    sizes = np.ones(numbers.shape, np.int64)
    for length in range(1, 9):
        longer = numbers >= 1 << 7 * length
        if not longer.any():
            break
        sizes += longer
    return sizes[()]


@dataclass
class Cells:
    """A column as it is stored: serial types, numbers, and where texts and bytes begin in `data`; shape (rows,) each."""

    types: Integers
    numbers: Integers
    starts: Integers
    data: Bytes


def column_cells(stored: pa.Array) -> Cells:
    rows = len(stored)
    empty = np.zeros(0, np.uint8)
    zeros = np.zeros(rows, np.int64)
    kind = stored.type
    if pa.types.is_null(kind):
        return Cells(zeros, zeros, zeros, empty)
    if pa.types.is_union(kind):
        return _union_cells(stored)
    valid = array_of(stored.is_valid())
    if pa.types.is_int64(kind):
        numbers = array_of(stored, 0)
        return Cells(np.where(valid, _integer_types(numbers), 0), numbers, zeros, empty)
    if pa.types.is_floating(kind):
        return _real_cells(array_of(stored, 0.0), valid, declared_real=True)
    offsets = np.frombuffer(stored.buffers()[1], np.int64)[stored.offset : stored.offset + rows + 1] if rows else np.zeros(1, np.int64)
    data = np.frombuffer(stored.buffers()[2], np.uint8) if rows and stored.buffers()[2] else empty
    types = 2 * np.diff(offsets) + (13 if pa.types.is_large_string(kind) else 12)
    return Cells(np.where(valid, types, 0), zeros, offsets[:-1], data)


def _integer_types(numbers: Integers) -> Integers:
    types = np.searchsorted(_BIT_BOUNDS, np.where(numbers < 0, ~numbers, numbers), side="right") + 1
    return np.where((numbers == 0) | (numbers == 1), 8 + numbers, types)


def _real_cells(doubles: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_], declared_real: bool) -> Cells:
    types = np.where(valid, 7, 0)
    numbers = doubles.view(np.int64).copy()
    if declared_real:
        whole = valid & (np.abs(doubles) < 2.0**47) & (np.floor(doubles) == doubles) & ~((doubles == 0) & np.signbit(doubles))
        numbers[whole] = doubles[whole].astype(np.int64)
        types[whole] = _integer_types(numbers[whole])
    zeros = np.zeros(len(doubles), np.int64)
    return Cells(types, numbers, zeros, np.zeros(0, np.uint8))


def _union_cells(stored: pa.Array) -> Cells:
    classes, offsets = array_of(stored.type_codes), array_of(stored.offsets)
    types, numbers, starts = (np.zeros(len(stored), np.int64) for _ in range(3))
    pieces, length = [], 0
    for class_ in range(stored.type.num_fields):
        child = stored.field(class_)
        if pa.types.is_floating(child.type):
            part = _real_cells(array_of(child, 0.0), array_of(child.is_valid()), declared_real=False)
        else:
            part = column_cells(child)
        mine = classes == class_
        at = offsets[mine]
        types[mine], numbers[mine], starts[mine] = part.types[at], part.numbers[at], part.starts[at] + length
        pieces.append(part.data)
        length += len(part.data)
    return Cells(types, numbers, starts, np.concatenate(pieces))


def _lengths(types: Integers) -> Integers:
    return np.where(types >= 12, (types - 12) >> 1, _WIDTHS[np.minimum(types, 11)])


def _layout(columns: list[Cells], rows: int) -> tuple[Integers, Integers]:
    """Bytes of the header, and of the record, of every row."""
    header = np.zeros(rows, np.int64)
    body = np.zeros(rows, np.int64)
    for column in columns:
        header += varint_size(column.types)
        body += _lengths(column.types)
    size = varint_size(header + 1)
    header += np.maximum(size, varint_size(header + size))
    return header, header + body


def record_sizes(table: pa.Table) -> npt.NDArray[Any]:
    """Bytes of every row of a table of plain types, shape (rows,), as the narrowest of int32 and int64."""
    sizes = [np.zeros(0, np.int64)]
    for batch in table.to_batches(max_chunksize=_BATCH):
        sizes.append(_layout([column_cells(stored_column(column)) for column in batch.columns], len(batch))[1])
        if sizes[-1].max(initial=0) < 2**31:
            sizes[-1] = sizes[-1].astype(np.int32)
    return np.concatenate(sizes[1:] or sizes)


def encode_records(table: pa.Table) -> tuple[Bytes, Integers]:
    """The records of all rows of a table of plain types, one after the other, and where each begins, shape (rows + 1,)."""
    columns = [column_cells(stored_column(column)) for column in table.columns]
    header, sizes = _layout(columns, table.num_rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(starts[-1], np.uint8)
    types_at, values_at = starts[:-1].copy(), starts[:-1] + header
    _put_varints(out, types_at, header)
    for column in columns:
        _put_varints(out, types_at, column.types)
        _put_values(out, values_at, column.types, column.numbers, column.starts, column.data)
    return out, starts


@kernel
def byte_at(data: Bytes, at: int) -> int:
    """A byte as a signed number, which compiled code does not mix with unsigned ones."""
    return np.int64(data[at])  # type: ignore[return-value]  # a plain int once compiled


@kernel
def put_varint(out: Bytes, at: int, value: int) -> int:
    """Write a variable-length integer below 2**56; return where it ends."""
    length = 1
    while value >> (7 * length):
        length += 1
    for index in range(length):
        more = 128 if index < length - 1 else 0
        out[at + index] = ((value >> (7 * (length - 1 - index))) & 127) | more
    return at + length


@kernel
def get_varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """A variable-length integer and where it ends; the end is -1 if it runs past `end`."""
    value = 0
    for index in range(9):
        if at + index >= end:
            return 0, -1
        byte = byte_at(data, at + index)
        if index == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 127)
        if byte < 128:
            return value, at + index + 1
    return 0, -1


@kernel
def _put_varints(out: Bytes, at: Integers, values: Integers) -> None:
    for row in range(at.shape[0]):
        at[row] = put_varint(out, at[row], values[row])


@kernel
def _put_values(out: Bytes, at: Integers, types: Integers, numbers: Integers, starts: Integers, data: Bytes) -> None:
    for row in range(at.shape[0]):
        kind = types[row]
        place = at[row]
        if kind >= 12:
            length = (kind - 12) >> 1
            out[place : place + length] = data[starts[row] : starts[row] + length]
        else:
            length = _WIDTHS[kind]
            for index in range(length):
                out[place + index] = (numbers[row] >> (8 * (length - 1 - index))) & 255
        at[row] = place + length


@kernel
def locate_values(data: Bytes, starts: Integers, ends: Integers, types: Integers, at: Integers) -> int:
    """Fill in serial type and place of every value of records, shape (rows, columns); return the first damaged row or -1.

    A record with fewer values than columns (a column was added later) gets serial type -1 for the rest.
    """
    columns = types.shape[1]
    for row in range(starts.shape[0]):
        end = ends[row]
        header, place = get_varint(data, starts[row], end)
        header_end = starts[row] + header
        if place < 0 or header < 1 or header_end > end or header_end < place:
            return row
        value = header_end
        column = 0
        while place < header_end:
            kind, place = get_varint(data, place, header_end)
            if place < 0 or column >= columns or kind < 0 or kind == 10 or kind == 11:
                return row
            types[row, column] = kind
            at[row, column] = value
            value += (kind - 12) >> 1 if kind >= 12 else _WIDTHS[kind]
            if value > end:
                return row
            column += 1
        if value != end:
            return row
        for missing in range(column, columns):
            types[row, missing] = -1
    return -1


@kernel
def _get_numbers(data: Bytes, types: Integers, at: Integers, numbers: Integers) -> None:
    for row in range(types.shape[0]):
        kind = types[row]
        if kind == 9:
            numbers[row] = 1
        elif 1 <= kind <= 7:
            length = _WIDTHS[kind]
            value = byte_at(data, at[row])
            if value >= 128:
                value -= 256
            for index in range(1, length):
                value = (value << 8) | byte_at(data, at[row] + index)
            numbers[row] = value


@kernel
def copy_pieces(data: Bytes, at: Integers, out: Bytes, offsets: Integers) -> None:
    """Copy pieces that begin at `at` to ``out[offsets[i]:offsets[i + 1]]``."""
    for row in range(at.shape[0]):
        length = offsets[row + 1] - offsets[row]
        out[offsets[row] : offsets[row + 1]] = data[at[row] : at[row] + length]


def stored_values(data: Bytes, types: Integers, at: Integers) -> pa.Array:
    """One column of records in some bytes, as a stored column; serial types and places as of `locate_values`, shape (rows,)."""
    numbers = np.zeros(len(types), np.int64)
    _get_numbers(data, types, at, numbers)
    null, real, long = types == 0, types == 7, types >= 12
    text, blob = long & (types & 1 == 1), long & (types & 1 == 0)
    whole = ~(null | real | long)
    present = [bool(mask.any()) for mask in (whole, real, text, blob)]
    if not any(present):
        return pa.nulls(len(types))
    integers = pa.array(numbers, mask=~whole) if present[0] or null.any() else None
    reals = pa.array(numbers.view(np.float64), mask=~real) if present[1] else None
    texts = text_array(_pieces(data, types, at, text)) if present[2] else None
    blobs = _pieces(data, types, at, blob) if present[3] else None
    if sum(present) == 1:
        return (integers, reals, texts, blobs)[present.index(True)]
    return mixed_array((1 * real + 2 * text + 3 * blob).astype(np.int8), integers, reals, texts, blobs)


def _pieces(data: Bytes, types: Integers, at: Integers, mask: npt.NDArray[np.bool_]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(np.where(mask, (types - 12) >> 1, 0))])
    out = np.empty(offsets[-1], np.uint8)
    copy_pieces(data, at, out, offsets)
    return binary_array(offsets, out, mask)
