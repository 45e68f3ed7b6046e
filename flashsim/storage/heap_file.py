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
        first_rows = pack(relation, np.arange(rows), page_size)
    else:
        first_rows = np.arange(pages + 1) * rows // pages if pages else np.zeros(1, np.int64)
        sizes = np.diff(np.concatenate([[0], np.cumsum(relation.cell_sizes(np.arange(rows)))])[first_rows])
        if len(sizes) and sizes.max() > page_size - LEAF_HEADER:
            raise CapacityError(f"page size: {page_size} B, but {pages} pages of relation {relation.name} need {sizes.max() + LEAF_HEADER} B each")
    return HeapFile(relation.name, relation, page_size, temporary=False, pages=len(first_rows) - 1, first_rows=first_rows)


def pack(relation: Relation, rows: Integers, page_size: int) -> Integers:
    """The first tuple of each page when tuples are packed in order, each page filled before the next; shape (pages + 1,).

    Raises
    ------
    CapacityError
        A tuple is larger than a page.
    """
    sizes = relation.cell_sizes(rows)
    room = page_size - LEAF_HEADER
    if len(sizes) and sizes.max() > room:
        raise CapacityError(f"page size: {page_size} B, but a row of {relation.name} takes {sizes.max()} B of the {room} B that a page holds")
    return _pack(sizes, room)


@kernel
def _pack(sizes: Integers, room: int) -> Integers:
    starts = np.empty(sizes.shape[0] + 1, np.int64)
    pages = 0
    left = 0
    for index in range(sizes.shape[0]):
        if sizes[index] > left:
            starts[pages] = index
            pages += 1
            left = room
        left -= sizes[index]
    starts[pages] = sizes.shape[0]
    return starts[: pages + 1].copy()
