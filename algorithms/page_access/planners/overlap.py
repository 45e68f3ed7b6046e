"""Blocks of pages that must meet the same others, each block in the order in which its pages come to an end soonest (flashsim's own).

A block grows by the page of which the greatest share of partners is needed by the block already.  It takes up to twice the frames: within
it, the page with the fewest partners to come goes first, so that pages are done with at different times and never all there at once.  What
stays in memory from block to block is Belady's choice.  Time grows with the edges, times the blocks that need a page.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.belady import belady, polish
from algorithms.page_access.graph import EDGE, NEIGHBOUR, PageGraph, Pages
from algorithms.page_access.plan import NONE, FetchPlan
from algorithms.page_access.planners.blocks import plan as block_nested_loop
from algorithms.page_access.queues import COLUMNS, LIST, join, leave
from algorithms.page_access.segments import by_segments
from flashsim.core.kernel import lean_kernel

#: Pages of a block, over the frames that hold them beside one partner.  What is best depends on pages over frames; a large graph, of many
#: times as many pages, takes the first only.
_BLOCKS = (2.0, 1.5, 1.0, 0.5, 3.0)
_SMALL = 200_000  #: Edges of a graph for which all are tried.
#: Squares of degrees, all together, of a graph whose segments are tried: these count all partners of a page at each of its fetches.
_SQUARES = 1 << 27
#: Edges of a graph whose plan is polished, and how many edges are looked at for it: some milliseconds.
_TINY, _POLISH = 300, 200_000

#: Columns of a page as a candidate: its edges that no block has, how many of these lead to pages that the block does not need, the block
#: for which that was counted, and the list that it is in.  Every look at a partner touches them, so they are kept small.
_DEGREE, _MISSING, _COUNTED, _SHARE = range(4)
#: Columns of a page among the blocks: that which it belongs to, and the last one that needs it.
_BLOCK_OF, _NEEDED = range(2)
#: Columns of the pool of candidates: the page, and the place of the next one of its list.
_CANDIDATE, _AFTER = range(2)
#: Columns of a page within its block: its number, where its edges begin, whether it is in memory, whether it belongs to the block, and how
#: many of its edges have been laid down.
_PAGE, _BEGIN, _HERE, _MEMBER, _LAID = range(5)
_SHARES = 64  #: Lists of candidates, by their share of partners that are missing.


class _Ends(NamedTuple):
    """Both pages of each edge."""

    first: Pages
    second: Pages


class _Growth(NamedTuple):
    """The partners of each page that no block has, both tables of pages, and candidates by their share of partners that are missing.

    Candidates are chained in a pool; one whose share changes is put in front of another list, and passed over where it was.
    """

    offsets: Pages
    ends: Pages
    neighbours: Pages
    candidates: Pages
    pages: Pages
    heads: Pages
    pool: Pages
    pooled: Pages


class _GraphBlock(NamedTuple):
    """A block's own small graph: its pages, their edges one after another, the lists, each page's number, and which edges have met."""

    pages: Pages
    adjacency: Pages
    heads: Pages
    numbers: Pages
    met: npt.NDArray[np.bool_]


def plan(graph: PageGraph, frames: int) -> FetchPlan:
    """Edges by blocks, and within them by the pages that end soonest; for a small graph, the best of several sizes, and of segments."""
    best = min((belady(graph, order, frames) for order in _orders(graph, frames)), key=lambda candidate: candidate.fetches)
    if _most_of_loop(graph, frames) < best.fetches:  # where most pages must meet most others, none of a large block ends early
        best = block_nested_loop(graph, frames)
    return polish(best, _POLISH) if graph.edges <= _TINY else best


def _most_of_loop(graph: PageGraph, frames: int) -> int:
    """Fetches that a block nested loop cannot exceed: every block meets all pages that are the second of an edge."""
    first, second = (np.zeros(graph.pages, np.bool_) for _ in range(2))
    first[graph.first] = second[graph.second] = True
    outer = int(np.count_nonzero(first))
    return outer + -(-outer // (frames - 1)) * int(np.count_nonzero(second))


def _orders(graph: PageGraph, frames: int) -> Iterator[Pages]:
    small = graph.edges <= _SMALL
    for block in _BLOCKS if small else _BLOCKS[:1]:
        yield edge_order(graph, max(1, round(block * (frames - 1))))
    if small and int(np.square(graph.degrees, dtype=np.int64).sum()) <= _SQUARES:
        yield by_segments(graph, frames).edges


def edge_order(graph: PageGraph, block: int) -> Pages:
    """The edges in the order in which they should meet, int32, shape (edges,).  `block` is pages of a block, at least 1."""
    pages, candidates = np.full((graph.pages, 2), NONE, np.int32), np.full((graph.pages, 4), NONE, np.int32)
    candidates[:, _DEGREE] = graph.degrees
    first_choice = np.argsort(-graph.degrees, kind="stable").astype(np.int32)
    room = np.empty((2 * graph.edges, 2), np.int32)  # mostly never touched
    lists, pooled = np.full(_SHARES, NONE, np.int32), np.zeros(1, np.int32)
    growth = _Growth(graph.offsets, graph.offsets[1:].copy(), graph.neighbours(), candidates, pages, lists, room, pooled)
    blocks = _grow(growth, first_choice, block)
    del growth, room, candidates
    begins, by_block = np.zeros(blocks + 2, np.int32), np.empty(graph.edges, np.int32)
    _sort_by_block(_Ends(graph.first, graph.second), pages, begins, by_block)
    begins = begins[:-1]
    most = int(np.diff(begins).max(initial=0))
    order = np.empty(graph.edges, np.int32)
    local = _GraphBlock(
        np.empty((2 * most + 2, COLUMNS), np.int32),
        np.empty((2 * most, 2), np.int32),
        np.empty(most + 1, np.int32),
        np.full(graph.pages, NONE, np.int32),
        np.empty(most, np.bool_),
    )
    _arrange(_Ends(graph.first, graph.second), by_block, begins, pages, local, order)
    return order


@lean_kernel
def _need(growth: _Growth, page: int, block: int) -> None:
    """Count that a block needs a page now: its partners miss one less.  Pages without an edge left, as members are, are passed over."""
    candidates, neighbours = growth.candidates, growth.neighbours
    growth.pages[page, _NEEDED] = block
    write = growth.offsets[page]
    for place in range(growth.offsets[page], growth.ends[page]):
        other = neighbours[place]
        if candidates[other, _DEGREE] == 0:
            continue
        neighbours[write] = other
        write += 1
        if candidates[other, _COUNTED] != block:
            candidates[other, _COUNTED], candidates[other, _MISSING], candidates[other, _SHARE] = block, candidates[other, _DEGREE], NONE
        candidates[other, _MISSING] -= 1
        share = candidates[other, _MISSING] * (_SHARES - 1) // candidates[other, _DEGREE]
        if candidates[other, _SHARE] != share:
            candidates[other, _SHARE] = share
            at = growth.pooled[0]
            growth.pooled[0] += 1
            growth.pool[at, _CANDIDATE], growth.pool[at, _AFTER] = other, growth.heads[share]
            growth.heads[share] = at
    growth.ends[page] = write


@lean_kernel
def _best(growth: _Growth) -> int:
    """Take the candidate that misses the smallest share of its partners, if there is one."""
    for share in range(_SHARES):
        while growth.heads[share] >= 0:
            at = growth.heads[share]
            growth.heads[share] = growth.pool[at, _AFTER]
            page = growth.pool[at, _CANDIDATE]
            if growth.candidates[page, _SHARE] == share and growth.candidates[page, _DEGREE] > 0:
                return page
    return NONE


@lean_kernel
def _grow(growth: _Growth, first_choice: Pages, size: int) -> int:
    """Divide pages into blocks until each edge has a page in one; returns how many there are.

    A block begins with the best candidate that the one before it left, so that they share partners, or else with the page of most edges.
    """
    pages, candidates, neighbours = growth.pages, growth.candidates, growth.neighbours
    pending, blocks, rank, following = neighbours.shape[0] // 2, 0, 0, NONE
    while pending > 0:
        members = 0
        while members < size and pending > 0:
            page = _best(growth)
            if page < 0 and following >= 0:
                page, following = following, NONE
            elif page < 0:
                page = first_choice[rank]
                rank += 1
            if candidates[page, _DEGREE] == 0:
                continue
            pages[page, _BLOCK_OF], candidates[page, _DEGREE] = blocks, 0
            members += 1
            if pages[page, _NEEDED] != blocks:
                _need(growth, page, blocks)
            for place in range(growth.offsets[page], growth.ends[page]):
                other = neighbours[place]
                if candidates[other, _DEGREE] == 0:
                    continue
                candidates[other, _DEGREE] -= 1
                pending -= 1
                if pages[other, _NEEDED] != blocks:
                    _need(growth, other, blocks)
        following = _best(growth)
        growth.heads[:] = NONE
        growth.pooled[0] = 0
        blocks += 1
    return blocks


@lean_kernel
def _sort_by_block(ends: _Ends, pages: Pages, begins: Pages, by_block: Pages) -> None:
    """Sort edges by the block that takes them, the first one that has one of their pages; `begins` are zeros, two more than blocks."""
    for turn in range(2):
        for edge in range(by_block.shape[0]):
            one, other = pages[ends.first[edge], _BLOCK_OF], pages[ends.second[edge], _BLOCK_OF]
            block = one if other < 0 or 0 <= one < other else other
            if turn == 0:
                begins[block + 2] += 1
            else:
                by_block[begins[block + 1]] = edge
                begins[block + 1] += 1
        if turn == 0:
            for block in range(2, begins.shape[0]):
                begins[block] += begins[block - 1]


@lean_kernel
def _arrange(ends: _Ends, by_block: Pages, begins: Pages, pages: Pages, block: _GraphBlock, order: Pages) -> None:
    """Put the edges of each block into the order of `edge_order`."""
    place_in_order = 0
    for number in range(begins.shape[0] - 1):
        edges = by_block[begins[number] : begins[number + 1]]
        count = _lay_down(ends, edges, pages, number, block)
        heads = block.heads[: edges.shape[0] + 1]
        heads[:] = NONE
        for page in range(count - 1, -1, -1):
            if block.pages[page, _MEMBER] == 1:
                join(block.pages, page, heads, block.pages[page + 1, _BEGIN] - block.pages[page, _BEGIN])
        least = 0
        while least < heads.shape[0]:
            page = heads[least]
            if page < 0:
                least += 1
                continue
            leave(block.pages, page, heads)
            for place in range(block.pages[page, _BEGIN], block.pages[page + 1, _BEGIN]):
                if block.pages[block.adjacency[place, NEIGHBOUR], _HERE] == 0:
                    place_in_order, least = _bring(block, heads, block.adjacency[place, NEIGHBOUR], edges, order, place_in_order, least)
        for page in range(count):
            block.numbers[block.pages[page, _PAGE]] = NONE


@lean_kernel
def _lay_down(ends: _Ends, edges: Pages, pages: Pages, number: int, block: _GraphBlock) -> int:
    count = 0
    for place in range(edges.shape[0]):
        block.met[place] = False
        for side in range(2):
            page = ends.first[edges[place]] if side == 0 else ends.second[edges[place]]
            own = block.numbers[page]
            if own < 0:
                own, count = count, count + 1
                block.numbers[page] = own
                block.pages[own, :] = 0
                block.pages[own, _PAGE], block.pages[own, LIST] = page, NONE
                block.pages[own, _MEMBER] = pages[page, _BLOCK_OF] == number
            block.pages[own, _LAID] += 1
    begin = 0
    for own in range(count):
        block.pages[own, _BEGIN], begin = begin, begin + block.pages[own, _LAID]
        block.pages[own, _LAID] = 0
    block.pages[count, _BEGIN] = begin
    for place in range(edges.shape[0]):
        one, other = block.numbers[ends.first[edges[place]]], block.numbers[ends.second[edges[place]]]
        for _ in range(2):
            at = block.pages[one, _BEGIN] + block.pages[one, _LAID]
            block.adjacency[at, NEIGHBOUR], block.adjacency[at, EDGE] = other, place
            block.pages[one, _LAID] += 1
            one, other = other, one
    return count


@lean_kernel
def _bring(block: _GraphBlock, heads: Pages, page: int, edges: Pages, order: Pages, place_in_order: int, least: int) -> tuple[int, int]:
    """Let a page meet all its partners in the block; returns how many edges are ordered now, and the first list that may hold a page."""
    block.pages[page, _HERE] = 1
    for place in range(block.pages[page, _BEGIN], block.pages[page + 1, _BEGIN]):
        other, edge = block.adjacency[place, NEIGHBOUR], block.adjacency[place, EDGE]
        if block.pages[other, _MEMBER] == 0:
            continue
        if not block.met[edge]:
            block.met[edge] = True
            order[place_in_order] = edges[edge]
            place_in_order += 1
        coming = block.pages[other, LIST]
        if coming >= 0:
            leave(block.pages, other, heads)
            join(block.pages, other, heads, coming - 1)
            least = min(least, coming - 1)
    return place_in_order, least
