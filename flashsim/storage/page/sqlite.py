"""SQLite's table-leaf pages: where the tuples of a heap file lie, byte by byte.

    0     1                3       5              7        8
    +-----+----------------+-------+--------------+--------+------------------+--------------+------------+-----+
    | 13  | free block (0) | cells | cell content | 0      | pointer of cell  | unused space | cell n - 1 | ... |
    |     | 2 bytes        | 2 b.  | starts 2 b.  |        | 0 .. n - 1, 2 b. | (zeros)      | ... cell 0 |     |
    +-----+----------------+-------+--------------+--------+------------------+--------------+------------+-----+

    cell      bytes of the record (varint) | row id + 1 (varint) | record (flashsim.storage.record)

Cells fill the page from its end, in row order; 65536 is written as 0.  A base file is a whole database (`write_database`): page 1 holds
header and schema, leaf p is page p + 2, or p + 3 beyond the page that holds byte 2**30, which SQLite keeps for locks; interior pages come
last.  A temporary file is leaves only, from byte 0 on.
Source: "Database File Format", sections 1.3, 1.6 (sqlite.org/fileformat2.html).
"""

import os
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError, FlashsimError, InvalidParameterError, SchemaError
from flashsim.core.kernel import kernel
from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.page._sqlite_database import (
    LARGEST_PAGE,
    LEAF_HEADER,
    LOCAL_MARGIN,
    SMALLEST_PAGE,
    database_header,
    leaf_offset,
    leaf_pages,
    lock_page,
    page_numbers,
    schema_record,
    write_interior_pages,
    write_schema,
)
from flashsim.storage.page.base import file_name
from flashsim.storage.record import Bytes, byte_at, get_varint, put_varint, varint_size
from flashsim.storage.rows import RowFormat, Tuples, key_tuples

__all__ = ["LARGEST_PAGE", "LOCAL_MARGIN", "SMALLEST_PAGE", "leaf_offset", "leaf_pages"]

LEAF = 13
_BYTES_AT_ONCE = 16 << 20


def check_page_size(page_size: int) -> None:
    if page_size & (page_size - 1) or not SMALLEST_PAGE <= page_size <= LARGEST_PAGE:
        raise InvalidParameterError("page size", f"{page_size} B", "it must be a power of two from 512 B to 64 KiB")


def leaf_room(page_size: int) -> int:
    """Bytes of cells, their pointers included, that a leaf holds."""
    return page_size - LEAF_HEADER


def room(row_format: RowFormat, page_size: int) -> int:
    return leaf_room(page_size)


def largest_record(row_format: RowFormat, page_size: int) -> int:
    """Bytes of the largest record that stays on its leaf."""
    return page_size - LOCAL_MARGIN


def reserved_places(page_size: int) -> tuple[int, ...]:
    """The header, and the page that SQLite keeps for locks."""
    return 0, lock_page(page_size) - 1


def cell_size(record: int | Integers, numbers: int | Integers) -> Integers:
    """Bytes of cells with their pointers: payload size, row id (from 1), record and pointer.

    Examples
    --------
    >>> cell_size(100, [0, 127]).tolist()
    [104, 105]
    """
    return varint_size(np.asarray(numbers) + 1) + (varint_size(record) + record + 2)


def cell_sizes(row_format: RowFormat, tuples: Tuples) -> Integers:
    return cell_size(row_format.record_sizes(tuples), row_format.numbers(tuples))


def encode_pages(row_format: RowFormat, tuples: Tuples, page_size: int) -> Bytes:
    records, starts = row_format.encode(tuples)
    out = np.zeros((len(tuples.pages) - 1, page_size), np.uint8)
    numbers = np.asarray(row_format.numbers(tuples), np.int64)
    sizes = np.asarray(cell_size(np.diff(starts), numbers), np.int64) - 2
    overfull = _put_leaves(out, records, starts, numbers, sizes, np.asarray(tuples.pages, np.int64))
    if overfull >= 0:
        raise CapacityError(f"page size: {page_size} B, but page {overfull} of those written would hold more of {row_format.title}")
    return out


def decode_pages(row_format: RowFormat, columns: tuple[str, ...], data: Bytes) -> Tuples:
    pages, *cells = _cells(row_format, data)
    return Tuples(row_format.decode(data.reshape(-1), *cells), pages).only(columns)


def decode_values(row_format: RowFormat, attributes: tuple[str, ...], data: Bytes) -> pa.Table:
    _, *cells = _cells(row_format, data)
    return row_format.decode_values(attributes, data.reshape(-1), *cells)


def _cells(row_format: RowFormat, data: Bytes) -> tuple[Integers, Integers, Integers, Integers]:
    """The first cell of each page; row id, begin and end of each record."""
    counts = data[:, 3].astype(np.int64) << 8 | data[:, 4]
    wrong = (data[:, 0] != LEAF) | (LEAF_HEADER + 2 * counts > data.shape[1])
    if wrong.any():
        raise DamagedFileError(f"{row_format.title}: page {wrong.argmax()} of those read is not a table leaf")
    pages = np.concatenate([[0], np.cumsum(counts)])
    numbers, starts, ends = (np.empty(int(pages[-1]), np.int64) for _ in range(3))
    damaged = _find_cells(data, pages, numbers, starts, ends)
    if damaged >= 0:
        raise DamagedFileError(f"{row_format.title}: page {damaged} of those read holds a cell of no row")
    return pages, numbers, starts, ends


def write_files(heap_file: HeapFile, folder: Path, progress: Progress | None = None) -> None:
    write_database(heap_file, folder / f"{file_name(heap_file.name)}.sqlite", progress=progress)


def write_database(heap_file: HeapFile, path: Path, table: str | None = None, progress: Progress | None = None) -> None:
    """Write a base relation as a database file that SQLite opens: its pages become the leaves, one by one.

    The file is written beside and renamed; what stood there is replaced.  The table has the heap file's name if none is given.
    """
    name = heap_file.name if table is None else table
    if not name or name.lower().startswith("sqlite_") or "\0" in name:
        raise SchemaError(f"table: {name!r}, but SQLite takes no empty name, and none that starts with sqlite_")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
            try:
                _write(out, heap_file, name, progress)
                os.replace(out.name, path)
            except BaseException:
                os.unlink(out.name)
                raise
    except OSError as problem:
        raise FlashsimError(f"{path}: it cannot be written: {problem.strerror}") from None


def _write(out: IO[bytes], heap_file: HeapFile, name: str, progress: Progress | None) -> None:
    size = heap_file.page_size
    first_rows = heap_file.first_rows if heap_file.pages else np.zeros(2, np.int64)
    leaves = len(first_rows) - 1
    step = max(1, _BYTES_AT_ONCE // size)
    for start in range(0, leaves, step):
        bounds = first_rows[start : min(start + step, leaves) + 1]
        rows = np.arange(bounds[0], bounds[-1])
        pages = encode_pages(heap_file.relation, key_tuples(heap_file.relation.keys(rows), rows, bounds - bounds[0]), size)
        numbers = leaf_pages(np.arange(start, start + len(pages)), size)
        beyond_lock = int(np.searchsorted(numbers, lock_page(size)))
        for part in (slice(None, beyond_lock), slice(beyond_lock, None)):
            if len(numbers[part]):
                out.seek(int(numbers[part][0] - 1) * size)
                out.write(pages[part].tobytes())
        if progress is not None:
            progress(start + len(pages), leaves, heap_file.name)
    place = write_interior_pages(out, first_rows, size)
    root = int(page_numbers(place - 1, size))
    place = write_schema(out, schema_record(heap_file.relation.records, name, root), place, size)
    pages_in_all = int(page_numbers(place - 1, size))
    out.seek(0)
    out.write(database_header(size, pages_in_all))
    out.truncate(pages_in_all * size)


@kernel
def _put_leaves(out: Bytes, records: Bytes, starts: Integers, rows: Integers, sizes: Integers, pages: Integers) -> int:
    """Lay cells out from the end of each page; returns the first page that has no room for its, or -1."""
    page_size = out.shape[1]
    for page in range(out.shape[0]):
        count = pages[page + 1] - pages[page]
        end = page_size
        for index in range(count):
            tuple_ = pages[page] + index
            length = starts[tuple_ + 1] - starts[tuple_]
            at = end - sizes[tuple_]
            pointer = LEAF_HEADER + 2 * index
            if at < LEAF_HEADER + 2 * count:
                return page
            out[page, pointer] = at >> 8
            out[page, pointer + 1] = at & 255
            at = put_varint(out[page], at, length)
            at = put_varint(out[page], at, rows[tuple_] + 1)
            for byte in range(length):
                out[page, at + byte] = records[starts[tuple_] + byte]
            end -= sizes[tuple_]
        out[page, 0] = LEAF
        out[page, 3] = count >> 8
        out[page, 4] = count & 255
        out[page, 5] = (end >> 8) & 255
        out[page, 6] = end & 255
    return -1


@kernel
def _find_cells(data: Bytes, pages: Integers, rows: Integers, starts: Integers, ends: Integers) -> int:
    """Row id and record of every cell; returns the first damaged page, or -1."""
    page_size = data.shape[1]
    for page in range(data.shape[0]):
        for index in range(pages[page + 1] - pages[page]):
            pointer = LEAF_HEADER + 2 * index
            at = (byte_at(data[page], pointer) << 8) | byte_at(data[page], pointer + 1)
            length, at = get_varint(data[page], at, page_size)
            if at < 0:
                return page
            key, at = get_varint(data[page], at, page_size)
            if at < 0 or length < 0 or at + length > page_size:
                return page
            tuple_ = pages[page] + index
            rows[tuple_] = key - 1
            starts[tuple_] = page * page_size + at
            ends[tuple_] = starts[tuple_] + length
    return -1
