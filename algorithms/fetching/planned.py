"""Planned fetching (flashsim's own): as much of the join index as memory can plan is planned as a page graph, then fetched by that plan.

Memory holds the graph while a plan is made, and frames and what is left of the join index while it is followed.
"""

from __future__ import annotations

import numpy as np

from algorithms.fetching.base import FetchParameters
from algorithms.join_index import Entries, EntryStream, JoinIndex
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import LEAST_FRAMES
from algorithms.page_access.planners.base import plan
from algorithms.page_cache import PageCache, Schedule
from flashsim.execution.requests import Algorithm

#: Bytes an entry of the join index takes while it is planned (`tests/benchmarks/test_page_access.py` measures it), and while a plan is
#: followed: two row ids, and its share of fetches and victims.
PLANNING, FOLLOWING = 64, 16


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Plan and fetch, as many entries at a time as memory can plan."""
    size = parameters.memory * cache.r.page_size
    room = _Gathering(index, max(1, size // PLANNING))
    while (entries := (yield from room.next())) is not None:
        held = -(-len(entries) * FOLLOWING // cache.r.page_size)
        cache.resize(max(LEAST_FRAMES, parameters.memory - held))
        yield from cache.follow(planned_schedule(entries, cache))
        cache.resize(LEAST_FRAMES, np.flatnonzero(cache.resident()))


def planned_schedule(entries: Entries, cache: PageCache) -> Schedule:
    """The plan of some entries, for the frames that an empty cache has."""
    r_pages, s_pages = cache.pages_of(entries.r_rows, entries.s_rows)
    graph = PageGraph.of(r_pages, s_pages, cache.pages)
    made = plan(graph, cache.frames)
    edge_of = np.searchsorted(graph.first.astype(np.int64) * cache.pages + graph.second, r_pages * cache.pages + s_pages)
    after = np.empty(graph.edges, np.int64)
    after[made.edges] = made.after
    due = after[edge_of]
    order = np.argsort(due, kind="stable")
    return Schedule(made.pages, made.victims, entries.r_rows[order], entries.s_rows[order], due[order])


class _Gathering:
    """A join index, so many entries at a time."""

    def __init__(self, index: JoinIndex, most: int) -> None:
        self._index, self._most = index, most
        self._waiting: list[Entries] = []
        self._count = 0

    def next(self) -> EntryStream:
        """The next entries, or None at the end."""
        while self._count < self._most:
            entries = yield from self._index.next()
            if entries is None:
                break
            self._waiting.append(entries)
            self._count += len(entries)
        if not self._count:
            return None
        r_rows = np.concatenate([each.r_rows for each in self._waiting])
        s_rows = np.concatenate([each.s_rows for each in self._waiting])
        most = self._most
        self._waiting = [Entries(r_rows[most:], s_rows[most:])]
        self._count = len(self._waiting[0])
        return Entries(r_rows[:most], s_rows[:most])
