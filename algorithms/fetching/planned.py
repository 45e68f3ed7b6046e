"""Planned fetching (flashsim's own): a join index is planned as a page graph, or tuples are put aside, whichever should cost less.

Pages that many results join, or that few others join, are planned (`algorithms.page_access`).  Where every page joins many others, pages
would be fetched again and again; it is cheaper to read each once and to write some tuples.  A join index that is larger than half of
memory is sorted by pages first, and planned a range at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from algorithms.fetching._partitions import ENTRY_BYTES, PutAside, Sides
from algorithms.fetching._put_aside import instructions
from algorithms.fetching.base import FetchParameters
from algorithms.index_sort import IndexSort
from algorithms.join_index import Entries, EntryStream, JoinIndex
from algorithms.joins.base import folders
from algorithms.page_access.ascending import in_blocks, in_windows, reading_cost
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import LEAST_FRAMES, FetchPlan
from algorithms.page_access.planners.base import plan
from algorithms.page_cache import PageCache, Schedule
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Work
from flashsim.storage.rows import Tuples, keyed

#: Bytes that planning takes of an edge (`tests/benchmarks/test_page_access.py` measures them), and a fetch of a plan: its page, what that
#: replaces, and how many entries are then joined.
_EDGE_BYTES, _FETCH_BYTES = 64, 12
#: Least pages of memory with which a join index is sorted; in less, it is planned as it comes.
_LEAST_TO_SORT = 16


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Fetch by plans, or put tuples aside."""
    gathering, fetching = _Gathering(index), _Fetching(cache, parameters)
    sorts = parameters.memory >= _LEAST_TO_SORT
    each = 2 * ENTRY_BYTES if sorts else ENTRY_BYTES + _EDGE_BYTES
    most = max(1, parameters.memory * cache.r.page_size // each)
    entries = yield from gathering.next(most)
    if entries is not None and gathering.ended:
        yield from fetching.all_of(entries)
    elif entries is not None and sorts:
        yield from fetching.sorted_by_pages(entries, gathering, most)
    else:
        while entries is not None:
            yield from fetching.by_plan(entries, fetching.plan(entries))
            entries = yield from gathering.next(most)


class _Fetching:
    """Fetches a join index a range at a time; what is decided for the first one holds for all.

    Parameters
    ----------
    cache, parameters
        As the strategy is told.
    """

    def __init__(self, cache: PageCache, parameters: FetchParameters) -> None:
        self._cache, self._parameters = cache, parameters
        self._sides = Sides(cache)
        #: Entries of the join index, those of a range, pages of memory that plans leave to others, and entries that are merged.
        self._total = self._most = self._taken = 0
        self._waiting = list[Tuples]()
        #: How tuples would be put aside; none once it is decided that pages are planned.
        self._aside: PutAside | None = None
        self._decided = False

    def all_of(self, entries: Entries) -> Algorithm:
        """Fetch what a join index in memory holds."""
        outer, inner = self._sides.ordered(entries)
        order = np.lexsort((inner, outer))
        outer, inner, self._total = outer[order], inner[order], len(order)
        yield Cpu({Work.COMPARE: int(self._total * np.log2(max(2, self._total)))})
        free = self._parameters.memory - self._pages(ENTRY_BYTES * self._total)
        self._propose(inner, (free, free), spills=False)
        cuts = self._cuts(outer, inner, free * self._cache.r.page_size // _EDGE_BYTES)
        for begin, end in pairwise([0, *cuts, self._total]):
            self._taken = self._pages(ENTRY_BYTES * (self._total - end + begin))
            yield from self._range(outer[begin:end], inner[begin:end])
        if self._aside is not None:
            yield from self._aside.join()

    def sorted_by_pages(self, entries: Entries, gathering: _Gathering, most: int) -> Algorithm:
        """Sort a join index in temporary files, and fetch it as their runs are merged."""
        memory, sides = self._parameters.memory, self._sides
        sample = sides.ordered(entries)[1]
        layout = instructions(sides.outer, sides.outer.tuples, sides.inner.tuples)
        by_outer = IndexSort(
            folders("planned", sides.outer, sides.inner)[sides.swapped], layout, memory // 2, page_io=self._parameters.page_io
        )
        some: Entries | None = entries
        while some is not None:
            self._total += len(some)
            yield from by_outer.append(keyed(*sides.ordered(some)))
            some = yield from gathering.next(most)
        reading = memory // 4
        yield from by_outer.settle(memory, reading, 0)
        self._taken = reading
        self._most = memory // 4 * self._cache.r.page_size // (ENTRY_BYTES + _EDGE_BYTES)
        self._propose(sample, (memory - reading - memory // 4, memory - reading), spills=True)
        yield from by_outer.merged(reading, self._merged)
        yield from self._merged(None, None)
        if self._aside is not None:
            yield from self._aside.join()

    def _propose(self, inner: Integers, free: tuple[int, int], *, spills: bool) -> None:
        """How tuples may be put aside, if there is memory for it."""
        aside = PutAside(self._sides, inner, self._total, free, spills=spills, page_io=self._parameters.page_io)
        self._aside = aside if aside.possible else None

    def plan(self, entries: Entries) -> FetchPlan:
        """The plan of some entries that costs least, in as many frames as memory has beside it and the entries."""
        graph = PageGraph.of(*self._cache.pages_of(entries.r_rows, entries.s_rows), self._cache.pages)
        frames, fetches, chosen = self._parameters.memory, graph.needed_pages, None
        while True:
            held = self._taken + self._pages(ENTRY_BYTES * len(entries) + _FETCH_BYTES * fetches)
            spare = max(LEAST_FRAMES, self._parameters.memory - held)
            if chosen and chosen.frames <= spare:
                return chosen
            frames = min(frames, spare)
            chosen = min(_plans(graph, frames), key=lambda made: reading_cost(made.pages, self._parameters.latency_ratio))
            fetches = chosen.fetches

    def by_plan(self, entries: Entries, chosen: FetchPlan) -> Algorithm:
        """Fetch some entries by a plan."""
        self._cache.resize(chosen.frames)
        yield from self._cache.follow(_schedule(entries, chosen, self._cache))
        self._cache.resize(LEAST_FRAMES, np.flatnonzero(self._cache.resident()))

    def _range(self, outer: Integers, inner: Integers) -> Algorithm:
        """Fetch, or put aside, entries that ascend by outer rows."""
        entries = self._sides.entries(outer, inner)
        chosen = None if self._decided and self._aside is not None else self.plan(entries)
        if chosen and self._aside is not None:
            self._decided, scale, ratio = True, self._total / len(outer), self._parameters.latency_ratio
            if not self._aside.cost(outer, inner, scale, ratio) < scale * reading_cost(chosen.pages, ratio):
                self._aside = None
        if self._aside is not None:
            self._cache.resize(LEAST_FRAMES)
            yield from self._aside.put(outer, inner)
        elif chosen:
            yield from self.by_plan(entries, chosen)

    def _merged(self, tuples: Tuples | None, sources: Integers | None) -> Algorithm:
        """Take merged entries, or at the end none, and fetch those that make a range."""
        self._waiting += [tuples] if tuples else []
        count = sum(len(each) for each in self._waiting)
        if count and (count >= self._most or tuples is None):
            outer = np.concatenate([each.keys for each in self._waiting])
            inner = np.concatenate([each.rows for each in self._waiting])
            last = count if tuples is None else count // self._most * self._most
            self._waiting = [keyed(outer[last:], inner[last:])] if last < count else []
            for begin in range(0, last, self._most):
                yield from self._range(outer[begin : min(last, begin + self._most)], inner[begin : min(last, begin + self._most)])

    def _cuts(self, outer: Integers, inner: Integers, edges: int) -> list[int]:
        """Where entries that ascend by outer rows are cut into ranges of so many edges."""
        r_pages, s_pages = self._cache.pages_of(*self._sides.turned(outer, inner))
        first = np.zeros(len(outer), np.bool_)
        first[np.unique(r_pages * self._cache.pages + s_pages, return_index=True)[1]] = True
        counted = np.cumsum(first)
        cuts = np.searchsorted(counted, np.arange(max(1, edges), counted[-1], max(1, edges)), side="right")
        return [int(cut) for cut in cuts]

    def _pages(self, size: float) -> int:
        return -(-int(size) // self._cache.r.page_size)


def _plans(graph: PageGraph, frames: int) -> Iterator[FetchPlan]:
    """What may be best: few fetches, a block nested loop, and few fetches that are made ahead and sorted."""
    yield plan(graph, frames)
    yield in_blocks(graph, frames)
    if frames >= 2 * LEAST_FRAMES:
        yield in_windows(plan(graph, frames - frames // 2), frames // 2)


def _schedule(entries: Entries, chosen: FetchPlan, cache: PageCache) -> Schedule:
    """A plan's fetches, and the entries in the order in which their pages meet."""
    graph = chosen.graph
    r_pages, s_pages = cache.pages_of(entries.r_rows, entries.s_rows)
    edges = np.searchsorted(graph.first.astype(np.int64) * cache.pages + graph.second, r_pages * cache.pages + s_pages)
    after = np.empty(graph.edges, np.int64)
    after[chosen.edges] = chosen.after
    due = after[edges]
    order = np.argsort(due, kind="stable")
    return Schedule(chosen.pages, chosen.victims, entries.r_rows[order], entries.s_rows[order], due[order])


class _Gathering:
    """A join index, so many entries at a time; `ended` once there are no more."""

    def __init__(self, index: JoinIndex) -> None:
        self._index = index
        self._waiting: list[Entries] = []
        self.ended = False

    def next(self, most: int) -> EntryStream:
        """The next entries, or None at the end."""
        while not self.ended and sum(len(each) for each in self._waiting) <= most:
            entries = yield from self._index.next()
            self.ended = entries is None
            self._waiting += [entries] if entries else []
        if not self._waiting:
            return None
        r_rows = np.concatenate([each.r_rows for each in self._waiting])
        s_rows = np.concatenate([each.s_rows for each in self._waiting])
        self._waiting = [Entries(r_rows[most:], s_rows[most:])] if len(r_rows) > most else []
        self.ended = self.ended and not self._waiting
        return Entries(r_rows[:most], s_rows[:most])
