"""The kernels of PostgreSQL's heap pages: tuples are laid out on pages, and found again (`flashsim.storage.page.postgresql`)."""

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.page._postgresql import (
    COLUMN_COUNT,
    COLUMNS,
    COMMAND,
    DELETE_ABORTED,
    FLAGS,
    FROZEN,
    FROZEN_TRANSACTION,
    HAS_NULL,
    HAS_VARIABLE,
    INSERTER,
    LAYOUT,
    LINE_POINTER,
    NEXT_VERSION,
    NORMAL,
    PAGE,
    PAGE_HEADER,
    TUPLE_HEADER,
    VALUES_AT,
    WIDEST_ALIGNMENT,
)
from flashsim.storage.record import Bytes, byte_at

#: Where a value stands that is NULL, or that a tuple has not because it is older than the column.
NULL, MISSING = -1, -2
#: Why values are not found: one is in another table, one is compressed, or tuples have other columns.
TOASTED, COMPRESSED, _UNFIT = 1, 2, 3
#: The longest value whose length takes one byte, and the bytes of a longer one's length.
_SHORT, _LONG_HEADER = 126, 4
#: Places in a page's header.
_PLACES = [PAGE.fields[name][1] for name in ("lower", "upper", "special", "size_and_layout")]  # type: ignore[index]
_LOWER, _UPPER, _SPECIAL, _SIZE = _PLACES
_ITEM = NEXT_VERSION + 4
#: A line pointer's first bits: where the tuple is.
_OFFSET = 0x7FFF


@kernel
def advance(sizes: Integers, length: int, alignment: int, valid: npt.NDArray[np.bool_], ends: Integers) -> None:
    """Add a column's values, where there are some, to what tuples take."""
    for row in range(sizes.shape[0]):
        if valid.shape[0] == 0 or valid[row]:
            size = length if length >= 0 else ends[row + 1] - ends[row]
            if length < 0 and size <= _SHORT:
                sizes[row] += 1 + size
            else:
                sizes[row] += -sizes[row] % alignment + size + (_LONG_HEADER if length < 0 else 0)


@kernel
def _put_number(out: Bytes, at: int, value: int, size: int) -> None:
    for index in range(size):
        out[at + index] = (value >> (8 * index)) & 255


@kernel
def _get_number(data: Bytes, at: int, size: int) -> int:
    value = 0
    for index in range(size):
        value |= byte_at(data, at + index) << (8 * index)
    return value


@kernel
def put_tuples(
    out: Bytes,
    pages: Integers,
    columns: int,
    rows: Integers,
    nulls: npt.NDArray[np.bool_],
    heads: Integers,
    sizes: Integers,
    starts: Integers,
) -> int:
    """Headers of pages and tuples, and line pointers; returns the first page that has no room for its tuples, or -1."""
    page_size = out.shape[1]
    for page in range(out.shape[0]):
        first, data = pages[page], out[page]
        end, lower = page_size, PAGE_HEADER + LINE_POINTER * (pages[page + 1] - first)
        for item in range(pages[page + 1] - first):
            row = first + item
            end -= sizes[row] + -sizes[row] % WIDEST_ALIGNMENT
            if end < lower:
                return page
            starts[row] = page * page_size + end
            _put_number(data, PAGE_HEADER + LINE_POINTER * item, end | (NORMAL << 15) | (sizes[row] << 17), LINE_POINTER)
            _put_number(data, end + INSERTER, FROZEN_TRANSACTION, 4)
            _put_number(data, end + COMMAND, rows[row], 4)
            _put_number(data, end + _ITEM, item + 1, 2)
            _put_number(data, end + COLUMNS, columns, 2)
            _put_number(data, end + FLAGS, FROZEN | DELETE_ABORTED | (HAS_NULL if nulls[row] else 0), 2)
            data[end + VALUES_AT] = heads[row]
        _put_number(data, _LOWER, lower, 2)
        _put_number(data, _UPPER, end, 2)
        _put_number(data, _SPECIAL, page_size, 2)
        _put_number(data, _SIZE, page_size | LAYOUT, 2)
    return -1


@kernel
def put_values(
    out: Bytes,
    starts: Integers,
    at: Integers,
    number: int,
    length: int,
    alignment: int,
    valid: npt.NDArray[np.bool_],
    ends: Integers,
    data: Bytes,
) -> None:
    """A column's values, each where the one before ends; `at` becomes where they end."""
    for row in range(starts.shape[0]):
        start, place = starts[row], at[row]
        if valid.shape[0] and not valid[row]:
            continue
        flags = byte_at(out, start + FLAGS)
        if flags & HAS_NULL:
            out[start + TUPLE_HEADER + (number >> 3)] |= 1 << (number & 7)
        begin, size = row * length, length
        if length < 0:
            out[start + FLAGS] = flags | HAS_VARIABLE
            begin, size = ends[row], ends[row + 1] - ends[row]
        if length < 0 and size <= _SHORT:
            out[place] = (size + 1) << 1 | 1
            place += 1
        else:
            place += -place % alignment
            if length < 0:
                _put_number(out, place, (size + _LONG_HEADER) << 2, _LONG_HEADER)
                place += _LONG_HEADER
        out[place : place + size] = data[begin : begin + size]
        at[row] = place + size


@kernel
def number_tuples(data: Bytes, numbers: Integers) -> None:
    """Where each tuple's next version is: where it is itself, as there is none."""
    for page in range(data.shape[0]):
        for pointer in range(PAGE_HEADER, _get_number(data[page], _LOWER, 2), LINE_POINTER):
            start = _get_number(data[page], pointer, LINE_POINTER) & _OFFSET
            _put_number(data[page], start + NEXT_VERSION, numbers[page] >> 16, 2)
            _put_number(data[page], start + NEXT_VERSION + 2, numbers[page] & 0xFFFF, 2)


@kernel
def count_tuples(data: Bytes, pages: Integers) -> int:
    """Running sum of the tuples of each page; returns the first page that is none of this format, or -1."""
    page_size = data.shape[1]
    for page in range(data.shape[0]):
        lower, upper = _get_number(data[page], _LOWER, 2), _get_number(data[page], _UPPER, 2)
        sized = _get_number(data[page], _SIZE, 2) == page_size | LAYOUT and _get_number(data[page], _SPECIAL, 2) == page_size
        if not sized or not PAGE_HEADER <= lower <= upper <= page_size or (lower - PAGE_HEADER) % LINE_POINTER:
            return page
        pages[page + 1] = pages[page] + (lower - PAGE_HEADER) // LINE_POINTER
    return -1


@kernel
def find_tuples(data: Bytes, pages: Integers, columns: int, rows: Integers, starts: Integers, lengths: Integers) -> int:
    """Row ids, and where tuples of all columns begin and their bytes; returns the first damaged page, or -1."""
    page_size, flat = data.shape[1], data.reshape(-1)
    for page in range(data.shape[0]):
        for item in range(pages[page + 1] - pages[page]):
            pointer, row = _get_number(data[page], PAGE_HEADER + LINE_POINTER * item, LINE_POINTER), pages[page] + item
            start, size = pointer & _OFFSET, pointer >> 17
            if (pointer >> 15) & 3 != NORMAL or start % WIDEST_ALIGNMENT or start + size > page_size or size < TUPLE_HEADER:
                return page
            start += page * page_size
            head = byte_at(flat, start + VALUES_AT)
            flags, nulls = _get_number(flat, start + FLAGS, 2), 0
            if flags & HAS_NULL:
                nulls = (columns + 7) >> 3
            whole = flags & ~(HAS_NULL | HAS_VARIABLE) == FROZEN | DELETE_ABORTED
            if not whole or head % WIDEST_ALIGNMENT or not TUPLE_HEADER + nulls <= head <= size:
                return page
            if _get_number(flat, start + COLUMNS, 2) != columns:
                return page
            rows[row], starts[row], lengths[row] = _get_number(flat, start + COMMAND, 4), start, size
    return -1


@kernel
def locate_values(data: Bytes, starts: Integers, lengths: Integers, stored: Integers, at: Integers, size: Integers) -> tuple[int, int, int]:
    """Where the values of tuples begin and their bytes, shape (columns, tuples); returns a problem with its tuple and column, or 0.

    Length and alignment of each column stand in `stored`.  A tuple that has no more columns ends where its last value does.
    """
    columns = stored.shape[0]
    for row in range(starts.shape[0]):
        begin, end = starts[row], starts[row] + lengths[row]
        count = _get_number(data, begin + COLUMNS, 2) & COLUMN_COUNT
        has_null = byte_at(data, begin + FLAGS) & HAS_NULL
        place = begin + byte_at(data, begin + VALUES_AT)
        for column in range(columns):
            size[column, row] = -1
            if column >= count:
                at[column, row] = MISSING
                continue
            if has_null and not (byte_at(data, begin + TUPLE_HEADER + (column >> 3)) >> (column & 7)) & 1:
                at[column, row] = NULL
                continue
            length, alignment = stored[column, 0], stored[column, 1]
            if length >= 0:
                place = (place + alignment - 1) & -alignment
                at[column, row], size[column, row] = place, length
                place += length
            else:
                if place < end and data[place] == 0:
                    place = (place + alignment - 1) & -alignment
                if place >= end:
                    return _UNFIT, row, column
                head = byte_at(data, place)
                if head == 1:
                    return TOASTED, row, column
                if head & 1:
                    length, skipped = head >> 1, 1
                else:
                    if place & (alignment - 1) or place + _LONG_HEADER > end:
                        return _UNFIT, row, column
                    if head & 2:
                        return COMPRESSED, row, column
                    length, skipped = _get_number(data, place, _LONG_HEADER) >> 2, _LONG_HEADER
                if length < skipped:
                    return _UNFIT, row, column
                at[column, row], size[column, row] = place + skipped, length - skipped
                place += length
            if place > end:
                return _UNFIT, row, column
        if place != end and count <= columns:
            return _UNFIT, row, columns - 1
    return 0, 0, 0
