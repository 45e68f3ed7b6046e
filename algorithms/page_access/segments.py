"""Segments: the page with the fewest partners that are not in memory meets all of them, then the next one.

Source: Chan and Ooi, "Efficient scheduling of page access in index-based join processing", IEEE TKDE 9(6), 1997, as Li et al. (MDM 2009,
section III D) tell it, with their rules for what is loaded first and what is replaced.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.graph import EDGE, NEIGHBOUR, PageGraph, Pages
from algorithms.page_access.plan import NONE, FetchPlan, check_frames
from algorithms.page_access.queues import COLUMNS, NEXT, join, leave
from flashsim.core.kernel import lean_kernel

#: Columns of a page: whether it is in memory, its edges that are left, and how many of these lead to pages that are not in memory.
_HERE, _DEGREE, _MISSING = range(3)
_IN, _OUT = range(2)  #: Rows of lists: pages in memory and all others, by partners missing.
_USED, _FETCHES, _MET = range(3)  #: Counts of a schedule: frames in use, fetches, edges met.


class _RemainingGraph(NamedTuple):
    """The graph that is left: each page's edges (those that have met are passed over for good), the lists, and which edges have met."""

    offsets: Pages
    ends: Pages
    adjacency: Pages
    pages: Pages
    heads: Pages
    met: npt.NDArray[np.bool_]


class _SegmentSchedule(NamedTuple):
    """Arrays from which a plan is made."""

    fetched: Pages
    victims: Pages
    edges: Pages
    after: Pages
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """A page with all its partners, by name, and how many of these are not in memory."""

    page: Any
    partners: tuple[Any, ...]
    missing: int


def candidates(graph: PageGraph, resident: Collection[Any] = ()) -> list[Segment]:
    """The segments of a graph, one a page that has partners; those with the fewest partners missing, which may be chosen, come first.

    `resident` has the names of the pages in memory.

    >>> candidates(PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4]))[0]
    Segment(page=3, partners=(0,), missing=1)
    """
    segments = []
    for page in np.flatnonzero(graph.degrees).tolist():
        partners = [graph.name(each) for each in graph.adjacency[graph.offsets[page] : graph.offsets[page + 1], NEIGHBOUR].tolist()]
        segments.append(Segment(graph.name(page), tuple(partners), sum(each not in resident for each in partners)))
    return sorted(segments, key=lambda segment: segment.missing)


def by_segments(graph: PageGraph, frames: int) -> FetchPlan:
    """Plan by segments, with all of the graph in memory beside the frames; each fetch takes time in proportion to the page's partners.

    Of a segment's pages that with the most edges to pages in memory is loaded first, and replaces the page in memory with the fewest edges
    to pages that are not; the page that the segment belongs to stays, since otherwise two pages may replace one another for ever.
    """
    check_frames(frames)
    pages = np.full((graph.pages, COLUMNS), NONE, np.int32)
    pages[:, _HERE] = 0
    pages[:, _DEGREE] = pages[:, _MISSING] = graph.degrees
    heads = np.full((2, int(graph.degrees.max(initial=0)) + 1), NONE, np.int32)
    memory = _RemainingGraph(graph.offsets, graph.offsets[1:].copy(), graph.adjacency.copy(), pages, heads, np.zeros(graph.edges, np.bool_))
    fetched, victims = np.empty((2, 2 * graph.edges), np.int32)
    edges, after = np.empty((2, graph.edges), np.int32)
    schedule = _SegmentSchedule(fetched, victims, edges, after, np.zeros(3, np.int64))
    _fill(memory, frames, schedule)
    fetches = int(schedule.counts[_FETCHES])
    return FetchPlan(graph, frames, fetched[:fetches].copy(), victims[:fetches].copy(), edges, after)


@lean_kernel
def _fill(memory: _RemainingGraph, frames: int, schedule: _SegmentSchedule) -> None:
    pages = memory.pages
    for page in range(pages.shape[0] - 1, -1, -1):
        if pages[page, _DEGREE] > 0:
            join(pages, page, memory.heads[_OUT], pages[page, _MISSING])
    while schedule.counts[_MET] < memory.met.shape[0]:
        owner = _choose(memory)
        if pages[owner, _HERE] == 0:
            _bring(memory, owner, owner, frames, schedule)
        while pages[owner, _DEGREE] > 0:
            most, partner = -1, owner
            for place in range(memory.offsets[owner], memory.ends[owner]):
                page = memory.adjacency[place, NEIGHBOUR]
                if not memory.met[memory.adjacency[place, EDGE]] and pages[page, _DEGREE] - pages[page, _MISSING] > most:
                    most, partner = pages[page, _DEGREE] - pages[page, _MISSING], page
            _bring(memory, partner, owner, frames, schedule)


@lean_kernel
def _choose(memory: _RemainingGraph) -> int:
    """The page with the fewest partners missing; one that is in memory goes before another with as many."""
    for missing in range(memory.heads.shape[1]):
        if missing > 0 and memory.heads[_IN, missing] >= 0:
            return memory.heads[_IN, missing]
        if memory.heads[_OUT, missing] >= 0:
            return memory.heads[_OUT, missing]
    return NONE


@lean_kernel
def _bring(memory: _RemainingGraph, page: int, owner: int, frames: int, schedule: _SegmentSchedule) -> None:
    """Fetch a page of the segment that belongs to `owner`; it meets what is there."""
    pages, counts = memory.pages, schedule.counts
    victim = NONE
    if counts[_USED] < frames:
        counts[_USED] += 1
    else:
        victim = _replace(memory, owner)
    schedule.fetched[counts[_FETCHES]], schedule.victims[counts[_FETCHES]] = page, victim
    counts[_FETCHES] += 1
    leave(pages, page, memory.heads[_OUT])
    pages[page, _HERE] = 1
    write = memory.offsets[page]
    for place in range(memory.offsets[page], memory.ends[page]):
        partner, edge = memory.adjacency[place, NEIGHBOUR], memory.adjacency[place, EDGE]
        if memory.met[edge]:
            continue
        row = memory.heads[_OUT if pages[partner, _HERE] == 0 else _IN]
        leave(pages, partner, row)
        pages[partner, _MISSING] -= 1
        join(pages, partner, row, pages[partner, _MISSING])
        if pages[partner, _HERE] == 0:
            memory.adjacency[write, NEIGHBOUR], memory.adjacency[write, EDGE] = partner, edge
            write += 1
            continue
        memory.met[edge] = True
        pages[page, _DEGREE] -= 1
        pages[partner, _DEGREE] -= 1
        schedule.edges[counts[_MET]], schedule.after[counts[_MET]] = edge, counts[_FETCHES]
        counts[_MET] += 1
    memory.ends[page] = write
    join(pages, page, memory.heads[_IN], pages[page, _MISSING])


@lean_kernel
def _replace(memory: _RemainingGraph, owner: int) -> int:
    """Free the frame of the page with the fewest partners missing, if it is not `owner`; pages that are done with miss none."""
    pages = memory.pages
    victim, missing = memory.heads[_IN, 0], 0
    while victim < 0 or victim == owner:
        if victim == owner:
            victim = pages[victim, NEXT]
        if victim < 0:
            missing += 1
            victim = memory.heads[_IN, missing]
    leave(pages, victim, memory.heads[_IN])
    pages[victim, _HERE] = 0
    for place in range(memory.offsets[victim], memory.ends[victim]):
        if memory.met[memory.adjacency[place, EDGE]]:
            continue
        partner = memory.adjacency[place, NEIGHBOUR]
        row = memory.heads[_OUT if pages[partner, _HERE] == 0 else _IN]
        leave(pages, partner, row)
        pages[partner, _MISSING] += 1
        join(pages, partner, row, pages[partner, _MISSING])
    if pages[victim, _DEGREE] > 0:
        join(pages, victim, memory.heads[_OUT], pages[victim, _MISSING])
    return victim
