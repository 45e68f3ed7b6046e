"""PostgreSQL's pages as reading and writing them share: places, flags, how types are stored, and the checksum.

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

from flashsim.core.request import Integers
from flashsim.storage.record import Bytes

PAGE_SIZE, LAYOUT = 8192, 4
PAGE_HEADER, LINE_POINTER, TUPLE_HEADER = 24, 4, 23
#: Tuples and their values begin at multiples of so many bytes.
WIDEST_ALIGNMENT = 8

#: A page's header; what `dtype.fields` tells of each is its place.
PAGE = np.dtype(
    [
        ("wal_high", "<u4"),
        ("wal_low", "<u4"),
        ("checksum", "<u2"),
        ("flags", "<u2"),
        ("lower", "<u2"),
        ("upper", "<u2"),
        ("special", "<u2"),
        ("size_and_layout", "<u2"),
        ("oldest_deleter", "<u4"),
    ]
)
#: All flags that a page may have: it has unused line pointers, is full, or all of its tuples are visible to everybody.
PAGE_FLAGS = 0x0007

#: The states of a line pointer.
UNUSED, NORMAL, REDIRECT, DEAD = range(4)

#: Places in a tuple.
INSERTER, DELETER, COMMAND, NEXT_VERSION, COLUMNS, FLAGS, VALUES_AT = 0, 4, 8, 12, 18, 20, 22
#: How many columns a tuple has, among its first flags.
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
    """How values of a type are stored.

    Attributes
    ----------
    number
        The type's in PostgreSQL's catalogue (pg_type).
    length
        Bytes of a value; -1 where each has its own length, which then stands before it.
    alignment
        A value begins at a multiple of so many bytes; one with a length of its own that is short does not.
    """

    number: int
    length: int
    alignment: int


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

    Parameters
    ----------
    pages
        Shape (n, page size); the size is a multiple of 128 bytes.
    numbers
        Of the pages in their relation, over all segments, shape (n,), or of the first if they follow one another: a page elsewhere has
        another checksum.

    Returns
    -------
    Integers
        From 1 to 65,535, shape (n,).
    """
    found = np.empty(len(pages), np.int64)
    places = np.arange(numbers, numbers + len(pages)) if isinstance(numbers, int) else numbers
    for start in range(0, len(pages), _AT_ONCE):
        part = np.ascontiguousarray(pages[start : start + _AT_ONCE]).view("<u4").reshape(-1, pages.shape[1] // 4 // _LANES, _LANES)
        sums = np.broadcast_to(_OFFSETS, (len(part), _LANES)).copy()
        kept = part[:, 0].copy()
        kept[:, 2] &= np.uint32(0xFFFF0000)  # the checksum itself counts as zero
        for words in (kept, *part.swapaxes(0, 1)[1:], *np.zeros((2, 1, _LANES), np.uint32)):
            np.bitwise_xor(sums, words, out=sums)
            shifted = sums >> np.uint32(17)
            sums *= _PRIME
            sums ^= shifted
        mixed = np.bitwise_xor.reduce(sums, axis=1).astype(np.int64) ^ places[start : start + len(part)]
        found[start : start + len(part)] = mixed % 0xFFFF + 1
    return found
