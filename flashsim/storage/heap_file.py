"""Heap files: the pages of a relation, or of part of one, in SQLite's table-leaf format.

A base file holds a relation in row order; a temporary file (a run, a bucket) holds tuples of one relation in the order written, as
leaves only.  Which tuples lie on which page follows from the tuples' sizes, so that the elided form (row ids a page) and the byte form
agree page for page.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.storage.relation import Relation

#: Bytes of a table-leaf page's header.
LEAF_HEADER = 8
SMALLEST_PAGE, LARGEST_PAGE = 512, 65536
#: A leaf page keeps records of up to so many bytes less than the page size.
LOCAL_MARGIN = 35
#: Rows that are laid out at a time, which bounds the memory that this takes.
_CHUNK = 1 << 20


def check_page_size(page_size: int) -> int:
    """The page size, if it is one that SQLite knows."""
    if page_size & (page_size - 1) or not SMALLEST_PAGE <= page_size <= LARGEST_PAGE:
        raise InvalidParameterError("page size", f"{page_size} B", "it must be a power of two from 512 B to 64 KiB")
    return page_size


@dataclass(eq=False)
class File:
    """A file of pages that hold tuples of one relation.

    Parameters
    ----------
    name
        Unique on its volume; traces and reports use it.
    relation
        Whose tuples it holds.
    page_size
        Bytes.
    temporary
        A run or bucket, rather than a base relation.
    expected_pages
        How long a temporary file will about be, for placements that reserve room.
    """

    name: str
    relation: Relation
    page_size: int
    temporary: bool = True
    expected_pages: int = 0
    pages: int = 0


@dataclass(eq=False)
class HeapFile(File):
    """A base relation: page p holds rows ``first_rows[p] .. first_rows[p + 1] - 1``; `first_rows` has shape (pages + 1,)."""

    first_rows: Integers = field(default_factory=lambda: np.zeros(1, np.int64))


def heap_file(relation: Relation, page_size: int, pages: int | None = None) -> HeapFile:
    """Lay a relation out on pages in row order.

    Parameters
    ----------
    pages
        Spread the rows evenly over so many pages; without it, fill each page before the next.

    Raises
    ------
    CapacityError
        A row does not fit on a page, or the rows not on so many pages.
    """
    check_page_size(page_size)
    rows = len(relation)
    if pages is None:
        first_rows = pack(relation, range(rows), page_size)
    else:
        first_rows = np.arange(pages + 1) * rows // pages if pages else np.zeros(1, np.int64)
        fullest = _fullest_page(relation, first_rows, page_size) + LEAF_HEADER
        if fullest > page_size:
            raise CapacityError(
                f"page size: {page_size} B, but relation {relation.name} on {pages} pages needs {fullest} B for the fullest"
            )
        if first_rows[-1] != rows:
            raise CapacityError(f"pages: {pages}, but relation {relation.name} has {rows} rows")
    return HeapFile(relation.name, relation, page_size, temporary=False, pages=len(first_rows) - 1, first_rows=first_rows)


def pack(relation: Relation, rows: Integers | range, page_size: int) -> Integers:
    """The first tuple of each page when tuples are packed in order, each page filled before the next; shape (pages + 1,).

    Raises
    ------
    CapacityError
        A tuple is larger than SQLite keeps on one page.
    """
    room = page_size - LEAF_HEADER
    left = 0
    starts = []
    for start in range(0, len(rows), _CHUNK):
        sizes = _cell_sizes(relation, rows[start : start + _CHUNK], page_size)
        firsts, left = _pack(sizes, room, left)
        starts.append(firsts + start)
    return np.concatenate([*starts, [len(rows)]]).astype(np.int64)


def _cell_sizes(relation: Relation, rows: Integers | range, page_size: int) -> Integers:
    """Bytes of some rows on a page.

    SQLite keeps at most page size - 35 bytes of a record on a leaf and moves the rest of a larger one to overflow pages, which heap
    files do not have ("Database File Format", section 1.6).
    """
    wanted = np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows
    largest = int(relation.record_sizes(wanted).max(initial=0))
    if largest > page_size - LOCAL_MARGIN:
        bound = f"a row of relation {relation.name} takes {largest} B of the {page_size - LOCAL_MARGIN} B that a page holds of one row"
        raise CapacityError(f"page size: {page_size} B, but {bound}")
    return relation.cell_sizes(wanted)


def _fullest_page(relation: Relation, first_rows: Integers, page_size: int) -> int:
    """Bytes of the cells on the page that holds most."""
    pages = len(first_rows) - 1
    fullest = 0
    page = 0
    while page < pages:
        end = max(page + 1, min(pages, int(np.searchsorted(first_rows, first_rows[page] + _CHUNK))))
        sizes = _cell_sizes(relation, range(int(first_rows[page]), int(first_rows[end])), page_size)
        before = np.concatenate([[0], np.cumsum(sizes)])
        fullest = max(fullest, int(np.diff(before[first_rows[page : end + 1] - first_rows[page]]).max()))
        page = end
    return fullest


@kernel
def _pack(sizes: Integers, room: int, left: int) -> tuple[Integers, int]:
    """Where pages begin among tuples of these sizes, while `left` bytes of the page before are free; and what is left at the end."""
    starts = np.empty(sizes.shape[0], np.int64)
    pages = 0
    for index in range(sizes.shape[0]):
        if sizes[index] > left:
            starts[pages] = index
            pages += 1
            left = room
        left -= sizes[index]
    return starts[:pages].copy(), left
