"""Belady's rule: the plan with the fewest fetches that takes the edges of a page graph in a given order, and a search for better orders.

Source: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.graph import PageGraph, Pages
from algorithms.page_access.plan import LEAST_FRAMES, NONE, FetchPlan, check_frames
from algorithms.page_access.queues import PAGE, sift, top_but
from flashsim.core.draws import mix_bits
from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel

_LONGEST = 4  #: Edges of the longest run that a search moves.


class EdgeReplay(NamedTuple):
    """Arrays for going through an order of edges, and the results (`fetched`, `victims`, `after`: see `FetchPlan`)."""

    first: Pages
    second: Pages
    #: Steps of the order in which each page is needed next, and after each edge its two pages, a row an edge.
    next_use: Pages
    uses: Pages
    #: Place of each page in the heap of pages in memory by their next use, or `NONE`, and the heap's items, shape (frames, 2).
    places: Pages
    heap: Pages
    fetched: Pages
    victims: Pages
    after: Pages


def replay(graph: PageGraph, frames: int) -> EdgeReplay:
    """Room to go through orders of a graph's edges."""
    room = min(frames, max(LEAST_FRAMES, graph.needed_pages))
    next_use, places = np.empty((2, graph.pages), np.int32)
    uses, heap = np.empty((graph.edges, 2), np.int32), np.empty((room, 2), np.int32)
    fetched, victims = np.empty((2, 2 * graph.edges), np.int32)
    return EdgeReplay(graph.first, graph.second, next_use, uses, places, heap, fetched, victims, np.empty(graph.edges, np.int32))


def belady(graph: PageGraph, order: npt.ArrayLike, frames: int) -> FetchPlan:
    """The plan with the fewest fetches that takes the edges in a given order: the page replaced is the one needed again last.

    `order` is all edges, by their numbers in the graph.

    Raises InvalidParameterError: fewer than 2 frames; an order that is none of all edges.

    >>> graph = PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4])
    >>> belady(graph, [1, 0, 2, 4, 3], 2).pages.tolist()
    [0, 3, 2, 4, 1, 2]
    """
    check_frames(frames)
    numbers = np.asarray(order, np.int32)
    is_used = np.zeros(graph.edges, np.bool_)
    is_used[numbers[(numbers >= 0) & (numbers < graph.edges)]] = True
    if len(numbers) != graph.edges or not is_used.all():
        raise InvalidParameterError("order", f"{len(numbers)} edges", f"it must hold each of the graph's {graph.edges} once")
    room = replay(graph, frames)
    fetches = go_through(numbers, room)
    return FetchPlan(graph, frames, room.fetched[:fetches].copy(), room.victims[:fetches].copy(), numbers, room.after)


@lean_kernel
def go_through(order: Pages, room: EdgeReplay) -> int:
    """Let the edges of an order meet, and replace by Belady's rule; returns the number of fetches."""
    room.next_use[:] = order.shape[0]
    room.places[:] = NONE
    for step in range(order.shape[0] - 1, -1, -1):
        one, other = room.first[order[step]], room.second[order[step]]
        room.uses[step, 0], room.uses[step, 1] = room.next_use[one], room.next_use[other]
        room.next_use[one] = room.next_use[other] = step
    size = fetches = 0
    for step in range(order.shape[0]):
        page, other = room.first[order[step]], room.second[order[step]]
        for side in range(2):
            place = room.places[page]
            if place < 0:
                if size < room.heap.shape[0]:
                    place, size = size, size + 1
                    room.victims[fetches] = NONE
                else:
                    place = top_but(room.heap, size, other)
                    room.victims[fetches] = room.heap[place, PAGE]
                    room.places[room.heap[place, PAGE]] = NONE
                room.fetched[fetches] = page
                fetches += 1
            sift(room.heap, room.places, size, place, page, room.uses[step, side])
            page, other = other, page
        room.after[step] = fetches
    return fetches


def polish(plan: FetchPlan, effort: int) -> FetchPlan:
    """A plan of no more fetches: short runs of its edges are moved elsewhere, and stay there unless that takes more; for small graphs.

    `effort` is how many edges may be looked at, over all moves.
    """
    graph, order = plan.graph, plan.edges.copy()
    if graph.edges < 2 or plan.fetches <= graph.needed_pages:
        return plan
    _move_runs(order, np.empty_like(order), replay(graph, plan.frames), graph.needed_pages, effort // graph.edges)
    return min(plan, belady(graph, order, plan.frames), key=lambda candidate: candidate.fetches)


@lean_kernel
def _move_runs(order: Pages, moved: Pages, room: EdgeReplay, enough: int, moves: int) -> None:
    """Move runs of an order, forwards or turned round, as long as more than enough pages are fetched."""
    edges = order.shape[0]
    fewest = go_through(order, room)
    for move in range(moves):
        if fewest <= enough:
            break
        length = 1 + mix_bits(4 * move) % min(_LONGEST, edges - 1)
        begin = mix_bits(4 * move + 1) % (edges - length + 1)
        target = mix_bits(4 * move + 2) % (edges - length + 1)
        turned = mix_bits(4 * move + 3) & 1
        read = 0
        for place in range(edges):
            if target <= place < target + length:
                run = place - target
                moved[place] = order[begin + length - 1 - run] if turned else order[begin + run]
            else:
                moved[place] = order[read + length if read >= begin else read]
                read += 1
        fetches = go_through(moved, room)
        if fetches <= fewest:
            fewest = fetches
            for place in range(edges):
                order[place] = moved[place]
