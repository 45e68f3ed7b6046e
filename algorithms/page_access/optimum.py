"""Exact page-access scheduling of small graphs, by search: the fewest fetches with given frames (OPAS2), and the fewest frames (OPAS1)."""

import heapq
from itertools import count

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import check_frames
from flashsim.core.errors import InvalidParameterError

#: Sets of pages and of edges are the bits of a number; beyond some fifteen pages the search takes minutes or more anyway.
MOST_PAGES = 64


def fewest_fetches(graph: PageGraph, frames: int, most: int | None = None) -> int | None:
    """The least number of fetches with which all pairs meet (OPAS2), by a best-first search over what is in memory and left to meet.

    None if it takes more than `most`.  Raises InvalidParameterError: fewer than 2 frames, or more than 64 pages.

    >>> graph = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4])
    >>> [fewest_fetches(graph, frames) for frames in (2, 3, 4)]
    [6, 5, 5]
    """
    check_frames(frames)
    if graph.pages > MOST_PAGES:
        raise InvalidParameterError("pages", graph.pages, f"the optimum is searched for up to {MOST_PAGES}")
    edges = [(1 << u) | (1 << v) for u, v in zip(graph.first.tolist(), graph.second.tolist(), strict=True)]
    number = count()
    begin = (0, (1 << len(edges)) - 1)
    waiting = [(graph.needed_pages, 0, next(number), begin)]
    costs = {begin: 0}
    while waiting:
        bound, _, _, (resident, pending) = heapq.heappop(waiting)
        fetches = costs[resident, pending]
        if not pending:
            return fetches
        if bound > fetches + _least(edges, pending, resident, frames):
            continue  # reached by fewer fetches since
        for page in _bits(_missing(edges, pending, resident)):
            for victim in _bits(resident) if resident.bit_count() == frames else [0]:
                memory = resident ^ victim | page
                after = sum(1 << edge for edge in _numbers(pending) if edges[edge] & ~memory)
                useful = _useful(edges, after)
                state = (memory & useful, after)  # a page that is done with is as good as a free frame
                cost = fetches + 1
                least = cost + _least(edges, after, memory, frames)
                if (most is None or least <= most) and cost < costs.get(state, 1 << 62):
                    costs[state] = cost
                    heapq.heappush(waiting, (least, -cost, next(number), state))
    return None


def fewest_frames(graph: PageGraph) -> int:
    """The least number of frames with which no page is fetched twice (OPAS1): the graph's pathwidth and one.

    Raises InvalidParameterError: more than 64 pages.

    >>> fewest_frames(PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4]))
    3
    """
    frames = 2
    while fewest_fetches(graph, frames, most=graph.needed_pages) is None:
        frames += 1
    return frames


def _bits(number: int) -> list[int]:
    bits = []
    while number:
        bits.append(number & -number)
        number &= number - 1
    return bits


def _numbers(number: int) -> list[int]:
    return [bit.bit_length() - 1 for bit in _bits(number)]


def _useful(edges: list[int], pending: int) -> int:
    pages = 0
    for edge in _numbers(pending):
        pages |= edges[edge]
    return pages


def _least(edges: list[int], pending: int, resident: int, frames: int) -> int:
    """Least fetches to come: one a page that is not resident, and one for each ``frames - 1`` pairs that meet."""
    return max(_missing(edges, pending, resident).bit_count(), -(-pending.bit_count() // (frames - 1)))


def _missing(edges: list[int], pending: int, resident: int) -> int:
    return _useful(edges, pending) & ~resident
