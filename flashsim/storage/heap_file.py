"""Heap files: pages of tuples of any row format, in any page format.

A base file holds a relation in row order; a temporary file (a run, a bucket, a list of digests) holds tuples in the order written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flashsim.core.errors import CapacityError
from flashsim.core.request import Integers
from flashsim.storage.layout import PAGE_FORMAT, Layout, fill_pages
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Columns, Tuples, key_tuples

#: Rows that are laid out at a time, which bounds the memory that this takes.
_CHUNK = 1 << 20


@dataclass(eq=False)
class File:
    """A file of pages that hold tuples."""

    #: Unique on its volume; traces and reports use it.
    name: str
    #: What its tuples and pages are.
    layout: Layout
    #: A run or bucket, rather than a base relation.
    temporary: bool = True
    #: How long a temporary file will about be, for placements that reserve room.
    expected_pages: int = 0
    pages: int = 0
    #: How many were put on its pages.
    tuples: int = 0

    @property
    def page_size(self) -> int:
        return self.layout.page_size


@dataclass(eq=False)
class HeapFile(File):
    """A base relation: page p holds rows ``first_rows[p] .. first_rows[p + 1] - 1``; `first_rows` has shape (pages + 1,)."""

    first_rows: Integers = field(default_factory=lambda: np.zeros(1, np.int64))
    #: The file of its digests, if they were stored with it.
    digests: TupleFile | None = None

    def __post_init__(self) -> None:
        self.tuples = int(self.first_rows[-1])

    @property
    def relation(self) -> Relation:
        assert isinstance(self.layout.row_format, Relation)
        return self.layout.row_format

    def run(self, begin: int, end: int) -> Tuples:
        """The tuples of pages `begin` to `end`, without the last, as they were loaded."""
        first, last = int(self.first_rows[begin]), int(self.first_rows[end])
        return Tuples(self._load_columns(slice(first, last)), self.first_rows[begin : end + 1] - first)

    def read(self, numbers: Integers) -> Tuples:
        sizes = self.first_rows[numbers + 1] - self.first_rows[numbers]
        return Tuples(self._load_columns(ranges(self.first_rows[numbers], sizes)), np.concatenate([[0], np.cumsum(sizes)]))

    def _load_columns(self, which: Integers | slice) -> Columns:
        rows = np.arange(which.start, which.stop) if isinstance(which, slice) else which
        return {"key": self.relation.keys(which), "row": rows}


@dataclass(eq=False)
class TupleFile(HeapFile):
    """A base file of any row format, such as digests that were stored earlier; `loaded` are its tuples, in order."""

    loaded: Tuples = field(default_factory=lambda: Tuples({}))

    def _load_columns(self, which: Integers | slice) -> Columns:
        return self.loaded.select(which).columns


def tuple_file(name: str, layout: Layout, tuples: Tuples) -> TupleFile:
    """A base file of given tuples, each page filled before the next."""
    first_rows = layout.pack(tuples)
    return TupleFile(name, layout, temporary=False, pages=len(first_rows) - 1, first_rows=first_rows, loaded=tuples)


def ranges(starts: Integers, counts: Integers) -> Integers:
    """``starts[i] .. starts[i] + counts[i] - 1`` for every i, one after the other: the pages of extents, or the tuples of pages."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def in_order(parts: Sequence[Tuples], order: Integers) -> Tuples:
    """Tuples of pages in another order: the numbers of the pages, part after part, shape (pages,)."""
    sizes = np.concatenate([np.diff(part.pages) for part in parts])
    firsts, sizes = (np.cumsum(sizes) - sizes)[order], sizes[order]
    which, names = ranges(firsts, sizes), parts[0].columns
    columns = {name: np.concatenate([part.columns[name] for part in parts])[which] for name in names}
    return Tuples(columns, np.concatenate([[0], np.cumsum(sizes)]))


def heap_file(relation: Relation, page_size: int, pages: int | None = None, page_format: str = PAGE_FORMAT) -> HeapFile:
    """Lay a relation out on pages in row order.

    Rows are spread evenly over `pages` pages; without it, each is filled before the next.  `page_format` is a member's name, or the
    path of a Python file that is one.

    Raises
    ------
    CapacityError
        A row does not fit on a page, or the rows not on `pages` pages; for other errors see `flashsim.storage.layout.Layout`.
    """
    layout = Layout(relation, page_size, page_format)
    rows = len(relation)
    if pages is None:
        first_rows = _page_starts(layout, relation)
    else:
        first_rows = np.arange(pages + 1) * rows // pages if pages else np.zeros(1, np.int64)
        fullest = _fullest_page(layout, relation, first_rows)
        if fullest > layout.room:
            raise CapacityError(
                f"page size: {page_size} B, but relation {relation.name} on {pages} pages needs {fullest + page_size - layout.room} B "
                "for the fullest"
            )
        if first_rows[-1] != rows:
            raise CapacityError(f"pages: {pages}, but relation {relation.name} has {rows} rows")
    return HeapFile(relation.name, layout, temporary=False, pages=len(first_rows) - 1, first_rows=first_rows)


def _rows(relation: Relation, begin: int, end: int) -> Tuples:
    return key_tuples(relation.keys(slice(begin, end)), np.arange(begin, end))


def _page_starts(layout: Layout, relation: Relation) -> Integers:
    """Pages of all rows, some at a time (`Layout.pack`)."""
    rest, starts, rows = 0, [np.zeros(0, np.int64)], len(relation)
    for begin in range(0, rows, _CHUNK):
        firsts, rest = fill_pages(layout.cell_sizes(_rows(relation, begin, min(rows, begin + _CHUNK))), layout.room, rest)
        starts.append(firsts + begin)
    return np.append(np.concatenate(starts), rows)


def _fullest_page(layout: Layout, relation: Relation, first_rows: Integers) -> int:
    pages = len(first_rows) - 1
    fullest = 0
    page = 0
    while page < pages:
        end = max(page + 1, min(pages, int(np.searchsorted(first_rows, first_rows[page] + _CHUNK))))
        sizes = layout.cell_sizes(_rows(relation, int(first_rows[page]), int(first_rows[end])))
        before = np.concatenate([[0], np.cumsum(sizes)])
        fullest = max(fullest, int(np.diff(before[first_rows[page : end + 1] - first_rows[page]]).max()))
        page = end
    return fullest
