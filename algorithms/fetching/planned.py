"""Planned fetching (flashsim's own): a join index is planned as a page graph, or tuples are put aside, whichever should cost less.

Pages that many results join, or that few others join, are planned (`algorithms.page_access`).  Where every page joins many others, pages
would be fetched again and again; it is cheaper to read each once and to write some tuples.  A join index that is larger than half of
memory is sorted by pages first, and planned a range at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from algorithms.fetching._partitions import ENTRY_BYTES, PutAside, Sides
from algorithms.fetching._put_aside import DividedRows, cells, instructions
from algorithms.fetching.base import FetchParameters
from algorithms.files import folders, gather
from algorithms.late_fetch.join_index import Entries, EntryStream, IndexSort, JoinIndex
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import LEAST_FRAMES, FetchPlan, in_blocks, in_windows, reading_cost
from algorithms.page_access.planners.base import plan
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Work
from flashsim.storage.rows import Tuples, key_tuples

#: Bytes that planning takes of an edge (`tests/benchmarks/test_page_access.py` measures them), and a fetch of a plan: its page, what that
#: replaces, and how many entries are then joined.
_EDGE_BYTES, _FETCH_BYTES = 64, 12
#: Least pages of memory with which a join index is sorted; in less, it is planned as it comes.
_LEAST_TO_SORT = 16


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    gathering, planning = _Gathering(index), _Planning(cache, parameters)
    sorts = parameters.memory >= _LEAST_TO_SORT
    memory, each = parameters.memory, 2 * ENTRY_BYTES
    if not sorts:  # whole pages are the entries', and the graph that is planned fits in the others
        memory, each = memory - math.ceil(memory * ENTRY_BYTES / (ENTRY_BYTES + _EDGE_BYTES)), _EDGE_BYTES
    most = max(1, memory * cache.r.page_size // each)
    entries = yield from gathering.next(most)
    if entries is not None and gathering.at_end:
        yield from planning.whole(entries, gathering, most if sorts else 0)
    elif entries is not None and sorts:
        yield from _SortedIndex(planning).fetch(entries, gathering, most)
    else:
        while entries is not None:
            yield from planning.follow(entries, planning.plan(entries))
            entries = yield from gathering.next(most)


class _Planning:
    """Plans parts of a join index, and fetches them."""

    def __init__(self, cache: PageCache, parameters: FetchParameters) -> None:
        self.cache, self.parameters = cache, parameters
        self.sides = Sides(cache)
        #: Pages of memory that plans leave to others.
        self.index_pages = 0

    def cost(self, plan: FetchPlan) -> float:
        """See `reading_cost`."""
        return reading_cost(plan.pages, self.parameters.latency_ratio)

    def plan(self, entries: Entries) -> FetchPlan:
        cache, page = self.cache, self.cache.r.page_size
        graph = PageGraph.of(*cache.pages_of(entries.r_rows, entries.s_rows), cache.pages)
        spare = self.parameters.memory - self.index_pages - -(-ENTRY_BYTES * len(entries) // page)
        block_plan = in_blocks(graph, max(LEAST_FRAMES, spare), of_lower=not self.sides.swapped)  # its fetches follow from the entries
        if _EDGE_BYTES * graph.edges > spare * page:
            return block_plan
        fetches, frames = graph.needed_pages, spare
        while True:
            frames = max(LEAST_FRAMES, min(frames, spare - -(-_FETCH_BYTES * fetches // page)))
            best = min(_plans(graph, frames), key=self.cost)
            if frames == LEAST_FRAMES or frames + -(-_FETCH_BYTES * best.fetches // page) <= spare:
                return min(best, block_plan, key=self.cost)
            fetches = best.fetches

    def follow(self, entries: Entries, plan: FetchPlan) -> Algorithm:
        self.cache.resize(plan.frames)
        yield from self.cache.follow(_schedule(entries, plan, self.cache))
        self.cache.resize(LEAST_FRAMES, np.flatnonzero(self.cache.resident()))

    def whole(self, entries: Entries, gathering: _Gathering, most: int) -> Algorithm:
        outer, inner = self.sides.rows_of(entries)
        order = np.lexsort((inner, outer))
        outer, inner = outer[order], inner[order]
        entries = self.sides.entries(outer, inner)
        yield Cpu({Work.COMPARE: int(len(order) * np.log2(max(2, len(order))))})
        free = self.parameters.memory - -(-ENTRY_BYTES * len(order) // self.cache.r.page_size)
        parts, plan, plan_cost = self._parts(entries, free)
        aside = PutAside(self.sides, inner, free, page_io=self.parameters.page_io)
        aside_cost = aside.cost(outer, inner, self.parameters.latency_ratio) if aside.possible else math.inf
        if most and _SortedIndex(self).cost(entries) < min(plan_cost, aside_cost):
            self.index_pages = 0
            yield from _SortedIndex(self).fetch(entries, gathering, most)
        elif aside_cost < plan_cost:
            self.cache.resize(LEAST_FRAMES)
            yield from aside.put(outer, inner)
            yield from aside.join()
        else:
            for part in parts:
                yield from self.follow(part, plan if len(parts) == 1 else self.plan(part))

    def _parts(self, entries: Entries, free: int) -> tuple[list[Entries], FetchPlan, float]:
        """All entries, or ranges of which each can be planned, whichever costs less; the first one's plan, and the cost of all."""
        plan = self.plan(entries)
        ends = self._ends(entries, max(1, free * self.cache.r.page_size // _EDGE_BYTES))
        if len(ends) > 1:
            ranges = [Entries(entries.r_rows[begin:end], entries.s_rows[begin:end]) for begin, end in pairwise([0, *ends])]
            self.index_pages = self.parameters.memory - free
            first = self.plan(ranges[0])
            cost = self.cost(first) * len(entries) / len(ranges[0])
            if cost < self.cost(plan):
                return ranges, first, cost
            self.index_pages = 0
        return [entries], plan, self.cost(plan)

    def _ends(self, entries: Entries, edges: int) -> list[int]:
        """Ends of ranges of so many edges into which entries that ascend by outer rows are cut."""
        r_pages, s_pages = self.cache.pages_of(entries.r_rows, entries.s_rows)
        first = np.zeros(len(entries), np.bool_)
        first[np.unique(r_pages * self.cache.pages + s_pages, return_index=True)[1]] = True
        distinct = np.cumsum(first)
        return np.append(np.searchsorted(distinct, np.arange(edges, distinct[-1], edges), side="right"), len(entries)).tolist()


class _SortedIndex:
    """A join index that is sorted in temporary files, and fetched in ranges as their runs are merged.

    What is decided for the first range, planned or put aside, holds for all.
    """

    def __init__(self, planning: _Planning) -> None:
        self._planning, self._sides = planning, planning.sides
        cache, parameters = planning.cache, planning.parameters
        self._cache, self._room, self._page_io = cache, parameters.memory - LEAST_FRAMES, parameters.page_io
        self._folder = folders("planned", cache.r, cache.s)[self._sides.swapped]
        self._layout = instructions(self._sides.outer, self._sides.outer.tuples, self._sides.inner.tuples)
        self._of_pages = [np.zeros(file.pages, np.int64) for file in (self._sides.outer, self._sides.inner)]
        self._waiting = list[Tuples]()
        self._aside: DividedRows | None = None
        self._decided = False

    def cost(self, entries: Entries) -> float:
        sides, planning = self._sides, self._planning
        self._count(entries)
        index = -(-len(entries) // cells(self._layout))
        planning.index_pages = self._reading(-(-index // self._room))
        outer = int(np.count_nonzero(self._of_pages[0]))
        frames = (self._room - planning.index_pages) / (1 + ENTRY_BYTES * len(entries) / self._cache.r.page_size / max(1, outer))
        graph = PageGraph.of(*self._cache.pages_of(entries.r_rows, entries.s_rows), self._cache.pages)
        blocks = in_blocks(graph, max(LEAST_FRAMES, int(frames) + 1), of_lower=not sides.swapped)
        return min(planning.cost(blocks), self._aside_cost(self._divide())) + 2 * index * (index > planning.index_pages)

    def fetch(self, entries: Entries, gathering: _Gathering, most: int) -> Algorithm:
        by_outer = IndexSort(f"{self._folder}/by-page", self._layout, self._room, page_io=self._page_io)
        some: Entries | None = entries
        while some is not None:
            self._count(some)
            yield from by_outer.append(key_tuples(*self._sides.rows_of(some)))
            some = yield from gathering.next(most)
        reading = self._reading(len(by_outer.runs) + 1)
        yield from by_outer.settle(self._room, reading, reading)
        self._planning.index_pages = reading
        yield from by_outer.merge(reading, self._take)
        yield from self._fetch_ranges(end=True)
        if self._aside is not None:
            yield from self._aside.join()

    def _reading(self, runs: int) -> int:
        return max(1, min(self._room // 4, 2 * runs))

    def _count(self, entries: Entries) -> None:
        pages = self._sides.turn(*self._cache.pages_of(entries.r_rows, entries.s_rows))
        of_s = self._sides.swapped, not self._sides.swapped
        for counts, numbers, second in zip(self._of_pages, pages, of_s, strict=True):
            counts += np.bincount(numbers - self._cache.r.pages * second, minlength=len(counts))

    def _take(self, tuples: Tuples, sources: Integers) -> Algorithm:
        if self._aside is not None:
            yield from self._aside.take(tuples, sources)
        else:
            self._waiting.append(tuples)
            yield from self._fetch_ranges(end=False)

    def _fetch_ranges(self, *, end: bool) -> Algorithm:
        tuples, self._waiting = gather(self._waiting), []
        keys, rows = tuples.keys, tuples.rows
        limit = self._room - self._planning.index_pages
        while len(keys):
            pages = np.searchsorted(self._sides.outer.first_rows, keys, side="right")
            size = np.cumsum(np.diff(pages, prepend=-1) != 0) + ENTRY_BYTES / self._cache.r.page_size * np.arange(1, len(keys) + 1)
            count = max(1, int(np.searchsorted(size, limit, side="right")))
            if count == len(keys) and not end:
                break
            yield from self._range(key_tuples(keys[:count], rows[:count]))
            keys, rows = keys[count:], rows[count:]
        if len(keys):
            self._waiting = [key_tuples(keys, rows)]

    def _range(self, tuples: Tuples) -> Algorithm:
        entries = self._sides.entries(tuples.keys, tuples.rows)
        if self._aside is None:
            plan = self._planning.plan(entries)
            if not self._decided:
                self._decide(self._planning.cost(plan) * int(self._of_pages[0].sum()) / len(tuples))
        if self._aside is None:
            yield from self._planning.follow(entries, plan)
        else:
            yield from self._aside.take(tuples, np.zeros(0, np.int64))

    def _decide(self, plan_cost: float) -> None:
        """Put tuples aside if that should cost less than plans."""
        aside, self._decided = self._divide(), True
        if self._aside_cost(aside) < plan_cost:
            self._aside = aside
            self._cache.resize(LEAST_FRAMES)

    def _divide(self) -> DividedRows:
        most = self._room - self._planning.index_pages
        of_s = self._sides.swapped
        return DividedRows(self._cache, self._folder, self._of_pages[1], self._room, most, of_s=of_s, page_io=self._page_io)

    def _aside_cost(self, aside: DividedRows) -> float:
        ratio = self._planning.parameters.latency_ratio
        outer, inner = (reading_cost(np.flatnonzero(counts), ratio) for counts in self._of_pages)
        return outer + aside.rounds * inner + (2 + ratio) * aside.pages


def _plans(graph: PageGraph, frames: int) -> Iterator[FetchPlan]:
    yield plan(graph, frames)
    if frames >= 2 * LEAST_FRAMES:
        yield in_windows(plan(graph, frames - frames // 2), frames // 2)


def _schedule(entries: Entries, plan: FetchPlan, cache: PageCache) -> Schedule:
    graph = plan.graph
    r_pages, s_pages = cache.pages_of(entries.r_rows, entries.s_rows)
    edges = np.searchsorted(graph.first.astype(np.int64) * cache.pages + graph.second, r_pages * cache.pages + s_pages)
    after = np.empty(graph.edges, np.int64)
    after[plan.edges] = plan.after
    times = after[edges]
    order = np.argsort(times, kind="stable")
    return Schedule(plan.pages, plan.victims, entries.r_rows[order], entries.s_rows[order], times[order])


class _Gathering:
    """A join index, so many entries at a time; `at_end` once there are no more."""

    def __init__(self, index: JoinIndex) -> None:
        self._index = index
        self._waiting: list[Entries] = []
        self.at_end = False

    def next(self, most: int) -> EntryStream:
        """The next entries, or None at the end."""
        while not self.at_end and sum(len(each) for each in self._waiting) <= most:
            entries = yield from self._index.next()
            self.at_end = entries is None
            self._waiting += [entries] if entries else []
        if not self._waiting:
            return None
        r_rows = np.concatenate([each.r_rows for each in self._waiting])
        s_rows = np.concatenate([each.s_rows for each in self._waiting])
        self._waiting = [Entries(r_rows[most:], s_rows[most:])] if len(r_rows) > most else []
        self.at_end = self.at_end and not self._waiting
        return Entries(r_rows[:most], s_rows[:most])
