"""Late materialisation: columns of rows that a join index names are fetched after the join, each page that is needed at most once.

The index is sorted by the row ids of one relation, whose pages are then read in order.  Pages of another relation stay in memory if those
that are needed fit.  If not, FlashJoin sorts again, by the ids of that one; RARE-join distributes entries by ranges of its pages that
fit, as Jive join does.  What was fetched goes along.

Sources: Tsirogiannis et al., "Query Processing Techniques for Solid State Drives" (SIGMOD 2009), section 4.2; Shah et al., "Fast Scans and
Joins using Flash Drives" (DaMoN 2008); Li and Ross, "Fast Joins Using Join Indices", VLDB Journal 8(1), 1999.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from algorithms.files import Output, drop, read_block, spans, temporary_files, width_of
from algorithms.late_fetch.columns import Parts, extents_of, part_bytes
from algorithms.late_fetch.join_index import IndexSort
from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Emit, Phase, Read, Work
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples, key_tuples

#: The format in which columns lie apart.
PAGE_FORMAT = "pax"
#: Row ids of every relation, shape (n,) each.
Ids = tuple[Integers, ...]
#: Hands entries of an index on.
Stream = Callable[[Callable[[Tuples], Algorithm]], Algorithm]
#: Beyond this, row ids of several relations do not make one number.
_MOST_COMBINED = 1 << 62


@dataclass(eq=False)
class Side:
    """A relation whose columns are fetched."""

    #: What phases call it.
    label: str
    file: HeapFile
    #: The columns that results have of it; None for all of them, which are read as whole pages.
    attributes: tuple[str, ...] | None = None
    parts: Parts | None = field(init=False)
    page_mask: npt.NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.parts = None if self.attributes is None else self.file.layout.parts((), self.attributes)
        self.page_mask = np.zeros(self.file.pages, np.bool_)

    @property
    def page_bytes(self) -> int:
        """Bytes that are read of a page; 0 if no column is wanted."""
        return self.file.page_size if self.parts is None else part_bytes(self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.file.relation.records.names) if self.attributes is None else self.attributes

    def size_of(self, column: str) -> int:
        """Bytes of the longest value of a column."""
        return next(each.size for each in self.file.relation.attributes if each.name == column)

    @property
    def width(self) -> int:
        """Bytes of a result row."""
        return sum(map(self.size_of, self.columns))

    def pages_of(self, rows: Integers) -> Integers:
        """The pages that some rows lie on."""
        return np.searchsorted(self.file.first_rows, rows, side="right") - 1

    def read(self, pages: Integers, *, page_io: bool) -> Algorithm:
        if not len(pages):
            return
        if self.attributes is None:
            yield Read(self.file, *extents_of(pages, page_io=page_io))
        else:
            yield Read(self.file, *extents_of(pages, page_io=page_io), parts=self.parts, columns=(), attributes=self.attributes)


class LateFetch:
    """Takes a join index of two relations or three, and then fetches and emits its results.

    `memory` is pages for all of the fetch, at least 4, and `index_pages` those for the index until it is complete.
    """

    def __init__(self, folder: str, sides: Sequence[Side], memory: int, index_pages: int, *, page_io: bool) -> None:
        self._folder, self._sides, self._memory, self._page_io = folder, sides, memory, page_io
        combined = math.prod(max(1, side.file.tuples) for side in sides)
        if combined > _MOST_COMBINED:
            raise CapacityError(f"rows: {combined} combinations of them, but a join index tells {_MOST_COMBINED}")
        self._fetching = [number for number, side in enumerate(sides) if side.page_bytes]
        # A relation that fits in memory as a whole need not be sorted by.
        large = [number for number in self._fetching if sides[number].file.pages * sides[number].page_bytes > memory * self._page_size // 2]
        self._at = (large or self._fetching[-1:] or [0])[0]
        self._layout(self._at, sorted(self._fetching, key=lambda number: sides[number].width)[1:])  # the widest that may be written
        self._index = IndexSort(f"{folder}/index", self._layout(self._at, ()), index_pages, page_io=page_io)

    @property
    def _page_size(self) -> int:
        return self._sides[0].file.page_size

    def append(self, *ids: Integers) -> Algorithm:
        """Take entries: row ids of every relation, shape (n,) each."""
        for number in self._fetching:
            self._sides[number].page_mask[self._sides[number].pages_of(ids[number])] = True
        if self._fetching:
            yield from self._index.append(self._entries(ids, self._at))
        else:
            yield from self._emit(ids)

    def finish(self, *, sort_again: bool) -> Algorithm:
        """Fetch and emit.

        Where pages do not fit, entries are sorted again, as by FlashJoin, or distributed, as by RARE-join, which takes two relations.
        """
        index, at, others = self._index, self._at, [number for number in self._fetching if number != self._at]
        previous: list[int] = []
        while True:
            side = self._sides[at]
            yield Phase(f"fetch {side.label}")
            yield from index.settle(self._memory, self._fan_in)
            free = self._memory - 1 - (len(index.runs) or index.memory_pages)
            if sum(map(self._needed_bytes, others)) <= free * self._page_size:
                break
            previous.append(at)
            following = max(others, key=self._needed_bytes)
            other, rest = self._sides[following], self._memory - 1 - self._fan_in
            if not sort_again:
                # As many pages as fit beside one of a file of entries.
                ranges = (np.cumsum(other.page_mask) - 1) // ((self._memory - 1) * self._page_size // other.page_bytes)
                stream = self._by(index, at, following, self._fan_in)
                yield from self._distribute(stream, other, ranges, 0, int(ranges[-1]) + 1, rest, f"{self._folder}/by-{other.label}")
                return
            again = IndexSort(f"{self._folder}/by-{other.label}", self._layout(following, previous), rest, page_io=self._page_io)
            yield from self._by(index, at, following, self._fan_in)(again.append)
            others.remove(following)
            index, at = again, following
        for number in others:
            yield Phase(f"fetch {self._sides[number].label}")
            yield from self._sides[number].read(np.flatnonzero(self._sides[number].page_mask), page_io=self._page_io)
        yield Phase(f"fetch {side.label}")
        yield from self._by(index, at, at, len(index.runs))(lambda entries: self._emit(self._ids(entries, at)))

    @property
    def _fan_in(self) -> int:
        return (self._memory - 1) // 2

    def _by(self, index: IndexSort, at: int, to: int, pages: int) -> Stream:
        """The entries of an index, by another relation's row ids: its own relation's pages are fetched when their entries come.

        `pages` is memory for merging.
        """
        side, last = self._sides[at], -1

        def fetch_pages(entries: Tuples, take: Callable[[Tuples], Algorithm]) -> Algorithm:
            nonlocal last
            fresh = np.unique(side.pages_of(entries.keys))
            fresh = fresh[fresh > last]
            for begin, count in spans(len(fresh), self._page_size // side.page_bytes):
                yield from side.read(fresh[begin : begin + count], page_io=self._page_io)
                last = int(fresh[begin + count - 1])
            yield Cpu({Work.READ_TUPLE: len(entries)})
            yield from take(self._entries(self._ids(entries, at), to))

        return lambda take: index.merge(pages, lambda entries, _: fetch_pages(entries, take))

    def _distribute(self, stream: Stream, side: Side, numbers: Integers, first: int, end: int, most: int, folder: str) -> Algorithm:
        """Distribute entries, with what was fetched, over files by ranges of pages of the relation to fetch next, and go on with each file.

        The stream gives entries by that relation's row ids; `numbers` has the range of each of its pages, of which `first` to `end`,
        without the last, occur.  At most `most` files are written at once.
        """
        bounds = first + np.arange(min(end - first, most) + 1) * (end - first) // min(end - first, most)
        at = 1 - self._sides.index(side)
        output = Output(temporary_files(folder, "range", len(bounds) - 1, self._layout(1 - at, [at]), 0), 1, page_io=self._page_io)

        def take(entries: Tuples) -> Algorithm:
            yield from output.append(entries, np.searchsorted(bounds, numbers[side.pages_of(entries.keys)], side="right") - 1)

        yield from stream(take)
        yield from output.finish()
        yield Phase(f"fetch {side.label}")
        for file, begin, behind in zip(output.files, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if behind - begin > 1:
                yield from self._distribute(self._read_back(file), side, numbers, begin, behind, self._memory - 1, file.name)
            else:
                yield from side.read(np.flatnonzero(side.page_mask & (numbers == begin)), page_io=self._page_io)
                yield from self._read_back(file)(lambda entries: self._emit(self._ids(entries, 1 - at)))

    def _read_back(self, file: File) -> Stream:
        def stream(take: Callable[[Tuples], Algorithm]) -> Algorithm:
            for first, pages in spans(file.pages, 1):
                yield from take((yield from read_block(file, first, pages, self._page_io)))
            yield from drop(file)

        return stream

    def _emit(self, ids: Ids) -> Algorithm:
        yield Emit(ids[0], ids[1], ids[2:])
        yield Cpu({Work.EMIT: len(ids[0])})

    def _entries(self, ids: Ids, at: int) -> Tuples:
        """Entries by the row ids of one relation: those of the others are one number."""
        others = np.zeros(len(ids[at]), np.int64)
        for number, side in enumerate(self._sides):
            if number != at:
                others = others * max(1, side.file.tuples) + ids[number]
        return key_tuples(ids[at], others)

    def _ids(self, entries: Tuples, at: int) -> Ids:
        others, ids = entries.rows, [entries.keys] * len(self._sides)
        for number in reversed(range(len(self._sides))):
            if number != at:
                others, ids[number] = np.divmod(others, max(1, self._sides[number].file.tuples))
        return tuple(ids)

    def _layout(self, at: int, numbers: Sequence[int]) -> Layout:
        """Layout of entries by the row ids of one relation, with columns of the relations of some numbers."""
        rows = [max(1, side.file.tuples) for side in self._sides]
        widths = {"key": width_of(rows[at]), "row": width_of(math.prod(rows) // rows[at])}
        padding = sum(self._sides[number].width for number in numbers)
        return Layout(FixedRows("join index", widths, padding), self._page_size, self._sides[0].file.layout.page_format)

    def _needed_bytes(self, number: int) -> int:
        return int(self._sides[number].page_mask.sum()) * self._sides[number].page_bytes


def check_columns_apart(file: HeapFile, why: str) -> None:
    """Refuse pages on which columns do not lie apart."""
    if not file.layout.keeps_columns_apart:
        raise InvalidParameterError("page format", file.layout.page_format, f"{why}: {file.name} must be on pages such as {PAGE_FORMAT}")
