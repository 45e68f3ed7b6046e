"""A SQLite database around the leaves of one table: header and schema, interior pages, and the page that is kept for locks.

    page 1          2 .. n + 1      n + 2 ..
    +---------------+---------------+-------------------------------------+-------------------------------------------+
    | header 100 b. | n leaves, in  | interior pages, lowest level first; | schema leaf and its overflow pages, where |
    | schema        | row order     | the root is the last                | the schema does not fit on page 1         |
    +---------------+---------------+-------------------------------------+-------------------------------------------+

    interior page   5 | 0 0 | cells (2) | content starts (2) | 0 | right-most child (4) | pointers (2 each) | ... cells
    interior cell   child page (4) | largest row id below it (varint)

The page that holds byte 2**30 is left out of all numbering.
Source: "Database File Format", sections 1.2 to 1.6 (sqlite.org/fileformat2.html).
"""

import struct
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.request import Integers
from flashsim.storage.columns import declared_type
from flashsim.storage.page.base import quote_name
from flashsim.storage.record import encode_records, put_varint
from flashsim.storage.relation import Records

SMALLEST_PAGE, LARGEST_PAGE = 512, 65536
#: Bytes of a table-leaf page's header.
LEAF_HEADER = 8
#: A leaf page keeps records of up to so many bytes less than the page size; the rest of a larger one goes to overflow pages, which heap
#: files do not have ("Database File Format", section 1.6).
LOCAL_MARGIN = 35
#: The byte that SQLite locks; its page holds nothing.
LOCK_BYTE = 1 << 30
FIRST_LEAF_PAGE = 2
HEADER = 100
_INTERIOR, _INTERIOR_HEADER, _LARGEST_INTERIOR_CELL = 5, 12, 4 + 9 + 2
_LEAF = 13
#: The SQLite release whose format the header claims: 3.40.1.
_WRITER = 3_040_001


def lock_page(page_size: int) -> int:
    """SQLite's number of the page that holds the lock byte."""
    return LOCK_BYTE // page_size + 1


def page_numbers(places: npt.ArrayLike, page_size: int) -> Integers:
    """SQLite's numbers (from 1) of the pages at some places (from 0) in a file that leaves out the lock-byte page."""
    numbers = np.asarray(places, np.int64) + 1
    return numbers + (numbers >= lock_page(page_size))


def leaf_pages(leaves: npt.ArrayLike, page_size: int) -> Integers:
    """SQLite's page numbers of some leaves of a base file."""
    return page_numbers(np.asarray(leaves, np.int64) + FIRST_LEAF_PAGE - 1, page_size)


def leaf_offset(leaf: int, page_size: int) -> int:
    """The byte at which a leaf of a base file begins.

    Examples
    --------
    >>> leaf_offset(0, 8192), leaf_offset(131070, 8192), leaf_offset(131071, 8192)
    (8192, 1073733632, 1073750016)
    """
    return int(leaf_pages(leaf, page_size) - 1) * page_size


def write_interior_pages(out: IO[bytes], first_rows: Integers, size: int) -> int:
    """Write the levels above the leaves; return the place after the last page."""
    children = leaf_pages(np.arange(len(first_rows) - 1), size)
    largest = first_rows[1:]
    place = FIRST_LEAF_PAGE - 1 + len(children)
    fan_out = (size - _INTERIOR_HEADER) // _LARGEST_INTERIOR_CELL + 1
    while len(children) > 1:
        pages = -(-len(children) // fan_out)
        bounds = np.arange(pages + 1) * len(children) // pages
        numbers = page_numbers(np.arange(place, place + pages), size)
        for index in range(pages):
            mine = slice(bounds[index], bounds[index + 1])
            out.seek(int(numbers[index] - 1) * size)
            out.write(_interior_page(children[mine], largest[mine], size))
        children, largest = numbers, largest[bounds[1:] - 1]
        place += pages
    return place


def _interior_page(children: Integers, largest: Integers, size: int) -> bytes:
    page = np.zeros(size, np.uint8)
    end = size
    for index in range(len(children) - 1):
        cell = np.zeros(13, np.uint8)
        cell[:4] = np.frombuffer(struct.pack(">I", children[index]), np.uint8)
        length = put_varint(cell, 4, largest[index])
        end -= length
        page[end : end + length] = cell[:length]
        page[_INTERIOR_HEADER + 2 * index : _INTERIOR_HEADER + 2 * index + 2] = end >> 8, end & 255
    head = struct.pack(">BHHHBI", _INTERIOR, 0, len(children) - 1, end & 0xFFFF, 0, children[-1])
    page[:_INTERIOR_HEADER] = np.frombuffer(head, np.uint8)
    return page.tobytes()


def schema_record(records: Records, name: str, root: int) -> bytes:
    """The row of sqlite_schema that describes the table."""
    table = records.take(np.zeros(0, np.int64))
    columns = [f"{quote_name(column.name)} {declared_type(column.type)}".rstrip() for column in table.schema]
    statement = f"CREATE TABLE {quote_name(name)} ({', '.join(columns)})"
    row = {"type": ["table"], "name": [name], "tbl_name": [name], "rootpage": [root], "sql": [statement]}
    kinds = [pa.int64() if column == "rootpage" else pa.large_string() for column in row]
    data, _ = encode_records(pa.table([pa.array(values, kind) for values, kind in zip(row.values(), kinds, strict=True)], names=list(row)))
    return data.tobytes()


def write_schema(out: IO[bytes], record: bytes, place: int, size: int) -> int:
    """Write page 1's tree, which holds one row, and return the place after the last page.

    A row that does not fit beside the header stands on a leaf of its own, with overflow pages if need be.
    """
    head = np.zeros(18, np.uint8)
    cell_head = head[: put_varint(head, int(put_varint(head, 0, len(record))), 1)].tobytes()
    cell = cell_head + record
    if len(record) <= size - LOCAL_MARGIN and HEADER + LEAF_HEADER + 2 + len(cell) <= size:
        out.seek(HEADER)
        out.write(_leaf_with(cell, size, HEADER))
        return place
    local = _local_bytes(len(record), size)
    overflow = [record[start : start + size - 4] for start in range(local, len(record), size - 4)]
    numbers = page_numbers(np.arange(place, place + 1 + len(overflow)), size).tolist()
    out.seek(HEADER)
    out.write(struct.pack(">BHHHBI", _INTERIOR, 0, 0, size & 0xFFFF, 0, numbers[0]))
    cell = cell_head + record[:local] + (struct.pack(">I", numbers[1]) if overflow else b"")
    out.seek((numbers[0] - 1) * size)
    out.write(_leaf_with(cell, size, 0))
    for index, piece in enumerate(overflow):
        following = numbers[index + 2] if index + 1 < len(overflow) else 0
        out.seek((numbers[index + 1] - 1) * size)
        out.write(struct.pack(">I", following) + piece.ljust(size - 4, b"\0"))
    return place + len(numbers)


def _leaf_with(cell: bytes, size: int, start: int) -> bytes:
    """A leaf with one cell, from byte `start` of its page on."""
    at = size - len(cell)
    head = struct.pack(">BHHHBH", _LEAF, 0, 1, at, 0, at)
    return head.ljust(at - start, b"\0") + cell


def _local_bytes(length: int, size: int) -> int:
    """Bytes of a record that stay on its leaf ("Database File Format", section 1.6)."""
    most = size - LOCAL_MARGIN
    if length <= most:
        return length
    least = (size - 12) * 32 // 255 - 23
    local = least + (length - least) % (size - 4)
    return local if local <= most else least


def database_header(size: int, pages: int) -> bytes:
    """The first 100 bytes of a database ("Database File Format", section 1.3)."""
    text = b"SQLite format 3\0"
    # page size; file formats; reserved bytes; payload fractions; change counter; pages; first free page; free pages; schema cookie;
    # schema format; cache size; largest root page (autovacuum); text encoding (UTF-8); user version; incremental vacuum; application
    values = (1 if size == 65536 else size, 1, 1, 0, 64, 32, 32, 1, pages, 0, 0, 1, 4, 0, 0, 1, 0, 0, 0)
    return text + struct.pack(">H6B12I20xII", *values, 1, _WRITER)
