"""PostgreSQL's pages as reading and writing them share: places, flags, how types are stored, the checksum, and kernels over tuples.

    0      8          10      12      14      16        18        20        24
    +------+----------+-------+-------+-------+---------+---------+---------+--------------+--------+-----------+---------+
    | WAL  | checksum | flags | lower | upper | special | size, 4 | oldest  | line pointer | unused | tuple n-1 | special |
    | 8 b. | 2 bytes  | 2 b.  | 2 b.  | 2 b.  | 2 bytes | 2 bytes | deleter | 0 .. n - 1   |        | ... 0     | (empty) |
    +------+----------+-------+-------+-------+---------+---------+---------+--------------+--------+-----------+---------+
                                  |       |        |                                       ^lower   ^upper      ^special

    line pointer   4 bytes: offset (15 bits), state (2 bits), length (15 bits) of a tuple
    tuple          inserter (4) | deleter (4) | command (4) | page and item of its next version (6) | columns and flags (2) | flags (2)
                   | where the values begin (1) | which columns have a value (a bit each, if some have none) | values

Numbers are little-endian.  A tuple begins at a multiple of 8, and so do its values; a value begins at a multiple of what its type asks for.
Source: src/include/storage/bufpage.h, itemid.h, checksum_impl.h and src/include/access/htup_details.h of PostgreSQL 15; the manual's
section "Database Page Layout".  Layout 4 is that of every release since 8.3.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.attributes import Values
from flashsim.storage.record import Bytes, byte_at

PAGE_SIZE, LAYOUT = 8192, 4
PAGE_HEADER, LINE_POINTER, TUPLE_HEADER = 24, 4, 23
#: Tuples and their values begin at multiples of so many bytes.
WIDEST_ALIGNMENT = 8

#: A page's header; what `dtype.fields` tells of each is its place.
_SHORT_FIELDS = ("checksum", "flags", "lower", "upper", "special", "size_and_layout")
PAGE = np.dtype([("wal_high", "<u4"), ("wal_low", "<u4"), *((name, "<u2") for name in _SHORT_FIELDS), ("oldest_deleter", "<u4")])
#: All flags that a page may have: it has unused line pointers, is full, or all of its tuples are visible to everybody.
PAGE_FLAGS = 0x0007

#: The states of a line pointer.
UNUSED, NORMAL, REDIRECT, DEAD = range(4)

#: Places in a tuple.
INSERTER, DELETER, COMMAND, NEXT_VERSION, COLUMNS, FLAGS, VALUES_AT = 0, 4, 8, 12, 18, 20, 22
#: Bits of the number of columns of a tuple, among its first flags.
COLUMN_COUNT = 0x07FF

#: A tuple's flags.
HAS_NULL, HAS_VARIABLE, HAS_EXTERNAL, HAS_ROW_ID = 0x0001, 0x0002, 0x0004, 0x0008
KEY_SHARE_LOCK, EXCLUSIVE_LOCK, ONLY_LOCKED = 0x0010, 0x0040, 0x0080
INSERT_COMMITTED, INSERT_ABORTED, DELETE_COMMITTED, DELETE_ABORTED = 0x0100, 0x0200, 0x0400, 0x0800
FROZEN = INSERT_COMMITTED | INSERT_ABORTED
DELETER_IS_MULTI, UPDATED, MOVED = 0x1000, 0x2000, 0xC000

#: Transactions that stand for the creation of the cluster, and for any that all can see; ordinary ones are numbered from 3.
BOOTSTRAP_TRANSACTION, FROZEN_TRANSACTION, FIRST_TRANSACTION = 1, 2, 3

#: The first day and microsecond of its dates and timestamps, counted from 1970.
FIRST_DAY, FIRST_MICROSECOND = 10_957, 946_684_800_000_000

#: A numeric's first two bytes: a short one has sign, scale and weight in them; a long one's weight follows.
NUMERIC_SHORT, NUMERIC_SPECIAL, NUMERIC_NEGATIVE = 0x8000, 0xC000, 0x4000
NUMERIC_BASE = 10_000


class StoredType(NamedTuple):
    """Storage of the values of a type."""

    #: The type's in PostgreSQL's catalogue (pg_type).
    number: int
    #: Bytes of a value; -1 where each has its own length, which then stands before it.
    length: int
    #: A value begins at a multiple of so many bytes; one with a length of its own that is short does not.
    alignment: int


#: The tuples that have a NULL, where the values of each tuple begin, and its bytes in all, shape (n,) each.
Measured = tuple[npt.NDArray[np.bool_], Integers, Integers]

#: The types whose values are read and written, by PostgreSQL's own names.
TYPES = {
    "bool": StoredType(16, 1, 1),
    "bytea": StoredType(17, -1, 4),
    "int8": StoredType(20, 8, 8),
    "int2": StoredType(21, 2, 2),
    "int4": StoredType(23, 4, 4),
    "text": StoredType(25, -1, 4),
    "float4": StoredType(700, 4, 4),
    "float8": StoredType(701, 8, 8),
    "bpchar": StoredType(1042, -1, 4),
    "varchar": StoredType(1043, -1, 4),
    "date": StoredType(1082, 4, 4),
    "timestamp": StoredType(1114, 8, 8),
    "timestamptz": StoredType(1184, 8, 8),
    "numeric": StoredType(1700, -1, 4),
    "uuid": StoredType(2950, 16, 1),
}

_LANES, _PRIME = 32, np.uint32(16_777_619)
# fmt: off
_OFFSETS = np.array([
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
    0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
    0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
    0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
], np.uint32)
# fmt: on
#: Pages whose checksums are computed side by side: so many stay in a core's cache.
_AT_ONCE = 64


def checksums(pages: Bytes, numbers: int | Integers = 0) -> Integers:
    """Checksums of pages, whatever stands where theirs is kept.

    Pages have shape (n, page size), a multiple of 128 bytes.  `numbers` are theirs in their relation, over all segments, shape (n,), or
    that of the first if they follow one another: a page elsewhere has another checksum.

    Returns
    -------
    Integers
        From 1 to 65,535, shape (n,).
    """
    results = np.empty(len(pages), np.int64)
    places = np.arange(numbers, numbers + len(pages)) if isinstance(numbers, int) else numbers
    for start in range(0, len(pages), _AT_ONCE):
        part = np.ascontiguousarray(pages[start : start + _AT_ONCE]).view("<u4").reshape(-1, pages.shape[1] // 4 // _LANES, _LANES)
        sums = np.broadcast_to(_OFFSETS, (len(part), _LANES)).copy()
        first_part = part[:, 0].copy()
        first_part[:, 2] &= np.uint32(0xFFFF0000)  # the checksum itself counts as zero
        for words in (first_part, *part.swapaxes(0, 1)[1:], *np.zeros((2, 1, _LANES), np.uint32)):
            np.bitwise_xor(sums, words, out=sums)
            shifted = sums >> np.uint32(17)
            sums *= _PRIME
            sums ^= shifted
        mixed = np.bitwise_xor.reduce(sums, axis=1).astype(np.int64) ^ places[start : start + len(part)]
        results[start : start + len(part)] = mixed % 0xFFFF + 1
    return results


#: Places of values that are NULL, or that a tuple has not because it is older than the column.
NULL, MISSING = -1, -2
#: Reasons why values are not at hand: one is in another table, one is compressed, or tuples have other columns.
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
def advance(sizes: Integers, kind: StoredType, values: Values) -> None:
    """Add a column's values, where there are some, to what tuples take."""
    for row in range(sizes.shape[0]):
        if values.valid.shape[0] == 0 or values.valid[row]:
            size = kind.length if kind.length >= 0 else values.ends[row + 1] - values.ends[row]
            if kind.length < 0 and size <= _SHORT:
                sizes[row] += 1 + size
            else:
                sizes[row] += -sizes[row] % kind.alignment + size + (_LONG_HEADER if kind.length < 0 else 0)


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
def put_tuples(out: Bytes, pages: Integers, columns: int, rows: Integers, measured: Measured, starts: Integers) -> int:
    """Headers of pages and tuples, and line pointers; returns the first page that has no room for its tuples, or -1."""
    page_size = out.shape[1]
    nulls, heads, sizes = measured
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
def put_values(out: Bytes, starts: Integers, at: Integers, number: int, kind: StoredType, values: Values) -> None:
    """A column's values, each where the one before ends; `at` becomes where they end."""
    for row in range(starts.shape[0]):
        start, place = starts[row], at[row]
        if values.valid.shape[0] and not values.valid[row]:
            continue
        flags = byte_at(out, start + FLAGS)
        if flags & HAS_NULL:
            out[start + TUPLE_HEADER + (number >> 3)] |= 1 << (number & 7)
        begin, size = row * kind.length, kind.length
        if kind.length < 0:
            out[start + FLAGS] = flags | HAS_VARIABLE
            begin, size = values.ends[row], values.ends[row + 1] - values.ends[row]
        if kind.length < 0 and size <= _SHORT:
            out[place] = (size + 1) << 1 | 1
            place += 1
        else:
            place += -place % kind.alignment
            if kind.length < 0:
                _put_number(out, place, (size + _LONG_HEADER) << 2, _LONG_HEADER)
                place += _LONG_HEADER
        out[place : place + size] = values.data[begin : begin + size]
        at[row] = place + size


@kernel
def number_tuples(data: Bytes, numbers: Integers) -> None:
    """Place of each tuple's next version: its own, as there is none."""
    for page in range(data.shape[0]):
        for pointer in range(PAGE_HEADER, _get_number(data[page], _LOWER, 2), LINE_POINTER):
            start = _get_number(data[page], pointer, LINE_POINTER) & _OFFSET
            _put_number(data[page], start + NEXT_VERSION, numbers[page] >> 16, 2)
            _put_number(data[page], start + NEXT_VERSION + 2, numbers[page] & 0xFFFF, 2)


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
    """Find begins and bytes of the values of tuples, shape (columns, tuples); returns a problem with its tuple and column, or 0.

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
