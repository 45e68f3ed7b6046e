"""Tuples of one relation put aside: its pages are read once, in order, and what joins is written to partitions by pages of the other one.

Each partition is then read back, and the other relation's pages are read once, in order, too.  So does `jive` (Li and Ross, "Fast joins
using join indices", The VLDB Journal 8, 1999).  Here the shorter tuples are put aside, each once a partition; the join index stays in
memory, and so does the first partition, as large as that allows.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from algorithms.fetching._put_aside import cells, fetched_rows
from algorithms.files import Output, drop, folders, pairs, read_block, spans, temporary_files
from algorithms.late_fetch.join_index import Entries
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES, reading_cost
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Request
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

#: Bytes of an entry of the join index in memory: two row ids, or a tuple's place in its partition and a row id.
ENTRY_BYTES = 8
#: Least pages with which tuples can be put aside.
_LEAST = 4


class Sides:
    """The outer relation, whose tuples are put aside, and the inner one, whose pages then come by."""

    def __init__(self, cache: PageCache) -> None:
        self.cache = cache
        layouts = [fetched_rows(file) for file in (cache.r, cache.s)]
        #: True if S is the outer relation, which is the one of which more tuples lie on a page.
        self.swapped = cells(layouts[1]) > cells(layouts[0])
        self.layout = layouts[self.swapped]
        self.outer, self.inner = (cache.s, cache.r) if self.swapped else (cache.r, cache.s)

    def turn(self, one: Integers, other: Integers) -> tuple[Integers, Integers]:
        """Rows of R and of S as those of the outer and of the inner relation, or the other way round."""
        return (other, one) if self.swapped else (one, other)

    def rows_of(self, entries: Entries) -> tuple[Integers, Integers]:
        """Rows of the outer and of the inner relation that join."""
        return self.turn(entries.r_rows, entries.s_rows)

    def costs(self, outer: Integers, inner: Integers, latency_ratio: float) -> tuple[float, float]:
        """Costs of reading the pages of outer and of inner rows once, in order (`reading_cost`)."""
        pages = self.turn(*self.cache.pages_of(*self.turn(outer, inner)))
        return reading_cost(np.unique(pages[0]), latency_ratio), reading_cost(np.unique(pages[1]), latency_ratio)

    def entries(self, outer: Integers, inner: Integers) -> Entries:
        return Entries(*self.turn(outer, inner))


class PutAside:
    """Tuples of the outer relation that are put aside, in memory and in temporary files.

    The join index stays in memory, with `inner` rows of the inner relation, one an entry; `free` is pages beside it.
    """

    def __init__(self, sides: Sides, inner: Integers, free: int, *, page_io: bool) -> None:
        self._sides, self._page_io = sides, page_io
        self._a_page = cells(sides.layout)
        self._pages = len(inner) / self._a_page
        self.possible = free >= _LEAST
        self._at_once = max(1, free // 8)
        self._room = max(1, free - LEAST_FRAMES)
        most = max(1, self._room - self._at_once)
        parts = min(most, math.ceil(self._pages / self._room))
        #: The share that stays in memory, as partition 0; the others are written.
        self._memory_share = min(1.0, (most - parts) / max(1.0, self._pages))
        parts = min(parts, math.ceil((1 - self._memory_share) * self._pages / self._room))
        begins = self._memory_share + (1 - self._memory_share) * np.arange(parts) / max(1, parts)
        self._bounds = np.sort(inner)[(begins * len(inner)).astype(np.int64)]
        if not self._memory_share:
            self._bounds[:1] = 0
        name = folders("planned", sides.outer, sides.inner)[sides.swapped]
        self._tuples = temporary_files(name, "part", parts, sides.layout, int(self._pages / max(1, parts)) + 1)
        self._outputs = [Output(self._tuples, 1, page_io=page_io)] if parts else []
        self._counts = np.zeros(parts + 1, np.int64)
        self._rows = [np.zeros(0, np.int64)]
        self._joins = [np.zeros((3, 0), np.int64)]

    def cost(self, outer: Integers, inner: Integers, latency_ratio: float) -> float:
        """Cost of putting aside all of the join index and of joining it (`reading_cost`)."""
        pages = (1 - self._memory_share) * self._pages
        rounds = max(1, math.ceil(pages / max(1, len(self._tuples)) / self._room))
        costs = self._sides.costs(outer, inner, latency_ratio)
        return costs[0] + rounds * costs[1] + (2 + latency_ratio) * pages  # pages of partitions are written one at a time

    def put(self, outer: Integers, inner: Integers) -> Algorithm:
        """Read the pages of outer rows, which ascend, and put aside what joins the inner rows."""
        part = np.searchsorted(self._bounds, inner, side="right")
        at_once = self._at_once * self._a_page
        for begin in range(0, len(outer), at_once):
            chunk = slice(begin, begin + at_once)
            rows = yield from self._sides.cache.collect(outer[chunk], of_s=self._sides.swapped)
            order = np.argsort(part[chunk], kind="stable")
            yield from self._divide(rows[order], inner[chunk][order], part[chunk][order])

    def _divide(self, outer: Integers, inner: Integers, part: Integers) -> Algorithm:
        """Write tuples to their partitions, those that come several times in a row once, and note the inner rows that they join."""
        first = (np.diff(part, prepend=-1) != 0) | (np.diff(outer, prepend=-1) != 0)
        added = np.bincount(part[first], minlength=len(self._counts))
        places = np.cumsum(first) - 1 - (np.cumsum(added) - added - self._counts)[part]
        self._counts += added
        on_disk = part > 0
        self._rows.append(outer[first & ~on_disk])
        for output in self._outputs:
            selection = first & on_disk
            yield from output.append(Tuples({"row": outer[selection]}), part[selection] - 1)
        self._joins.append(np.stack([part, places, inner]))

    def join(self) -> Algorithm:
        """Join what was put aside, one partition after another."""
        for output in self._outputs:
            yield from output.finish()
        part, places, inner = np.concatenate(self._joins, axis=1)
        for number in range(len(self._counts)):
            reader = _PartitionReader(
                self._tuples[number - 1] if number else None, np.concatenate(self._rows), max(1, self._room // 4), page_io=self._page_io
            )
            yield from self._join_some(reader, places[part == number], inner[part == number])
            if number:
                yield from drop(self._tuples[number - 1])

    def _join_some(self, reader: _PartitionReader, places: Integers, inner: Integers) -> Algorithm:
        """Join tuples of a partition, at their places, which ascend, with inner rows; as many at a time as memory holds."""
        step = self._room * self._a_page
        for begin in range(0, len(places), step):
            entries, rows = places[begin : begin + step], inner[begin : begin + step]
            outer = yield from reader.tuples(int(entries[0]), int(entries[-1]) + 1)
            order = np.argsort(rows, kind="stable")
            partners = yield from self._sides.cache.collect(rows[order], of_s=not self._sides.swapped)
            own = outer[entries[order] - entries[0]]
            yield from pairs(*self._sides.turn(own, partners))


class _PartitionReader:
    """Reads a partition's tuples from its beginning on; without a file, they are in memory."""

    def __init__(self, file: File | None, rows: Integers, at_once: int, *, page_io: bool) -> None:
        self._file, self._begin, self._page_io = file, 0, page_io
        self._rows = rows[:0] if file else rows
        self._spans = spans(file.pages if file else 0, at_once)

    def tuples(self, begin: int, end: int) -> Generator[Request, Answer, Integers]:
        """Row ids of the tuples from `begin`, which never goes back, to `end`, without it."""
        while self._begin + len(self._rows) < end:
            assert self._file is not None
            first, pages = next(self._spans)
            tuples = yield from read_block(self._file, first, pages, page_io=self._page_io)
            skip = min(max(0, begin - self._begin), len(self._rows))
            self._rows = np.concatenate([self._rows[skip:], tuples.rows])
            self._begin += skip
        return self._rows[begin - self._begin : end - self._begin]
