"""Blocks of pages that must meet the same others, each block in the order in which its pages come to an end soonest (flashsim's own).

A block grows by the page of which the greatest share of partners is needed by the block already.  It takes up to twice the frames: within
it, the page with the fewest partners to come goes first, so that pages are done with at different times and never all there at once.  What
stays in memory from block to block is Belady's choice.  Time grows with the edges, times the blocks that need a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from algorithms.page_access.belady import belady
from algorithms.page_access.graph import EDGE, NEIGHBOUR, PageGraph, Pages
from algorithms.page_access.lists import COLUMNS, LIST, NONE, join, leave
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.polish import polished
from algorithms.page_access.segments import by_segments
from flashsim.core.kernel import lean_kernel

#: Pages of a block, over the frames that hold them beside one partner.  What is best depends on pages over frames; a large graph, of many
#: times as many pages, takes the first only.
_BLOCKS = (2.0, 1.5, 1.0, 0.5, 3.0)
#: Edges of a graph for which all are tried.
_SMALL = 200_000
#: Edges of a graph whose plan is polished, and how many edges are looked at for it: some milliseconds.
_TINY, _POLISH = 300, 200_000

#: Columns of a page while blocks grow: the block that it belongs to, the last block that needs it, its edges that are in no block, how many
#: of these lead to pages that the block does not need, and the block for which that was counted.
_BLOCK_OF, _NEEDED, _DEGREE, _MISSING, _COUNTED = range(5)
#: Columns of a page within its block: its number, where its edges begin, whether it is in memory, whether it belongs to the block, and how
#: many of its edges have been laid down.
_PAGE, _BEGIN, _HERE, _MEMBER, _LAID = range(5)
#: Lists of candidates, by their share of partners that are missing.
_SHARES = 64


class _Ends(NamedTuple):
    """Both pages of each edge."""

    first: Pages
    second: Pages


class _Block(NamedTuple):
    """A block's own small graph: its pages, their edges one after another, the lists, each page's number, and which edges have met."""

    pages: Pages
    adjacency: Pages
    heads: Pages
    numbers: Pages
    met: npt.NDArray[np.bool_]


def plan(graph: PageGraph, frames: int) -> FetchPlan:
    """Edges by blocks, and within them by the pages that end soonest; for a small graph, the best of several sizes, and of segments."""
    best = min((belady(graph, order, frames) for order in _orders(graph, frames)), key=lambda made: made.fetches)
    return polished(best, _POLISH) if graph.edges <= _TINY else best


def _orders(graph: PageGraph, frames: int) -> Iterator[Pages]:
    small = graph.edges <= _SMALL
    for block in _BLOCKS if small else _BLOCKS[:1]:
        yield ordered(graph, max(1, round(block * (frames - 1))))
    if small:
        yield by_segments(graph, frames).edges


def ordered(graph: PageGraph, block: int) -> Pages:
    """The edges in the order in which they should meet, int32, shape (edges,).

    Parameters
    ----------
    block
        Pages of a block, at least 1.
    """
    pages = np.full((graph.pages, COLUMNS), NONE, np.int32)
    pages[:, _DEGREE] = graph.degrees
    block_of = np.full(graph.edges, NONE, np.int32)
    first_choice = np.argsort(-graph.degrees, kind="stable").astype(np.int32)
    lists = np.full(_SHARES, NONE, np.int32)
    blocks = _grow(graph.offsets, graph.offsets[1:].copy(), graph.adjacency.copy(), pages, block_of, first_choice, lists, block)
    by_block = np.argsort(block_of, kind="stable").astype(np.int32)
    begins = np.searchsorted(block_of[by_block], np.arange(blocks + 1)).astype(np.int32)
    most = int(np.diff(begins).max(initial=0))
    order = np.empty(graph.edges, np.int32)
    local = _Block(
        np.empty((2 * most + 2, COLUMNS), np.int32),
        np.empty((2 * most, 2), np.int32),
        np.empty(most + 1, np.int32),
        np.full(graph.pages, NONE, np.int32),
        np.empty(most, np.bool_),
    )
    _arrange(_Ends(graph.first, graph.second), by_block, begins, pages, local, order)
    return order


@lean_kernel
def _need(
    offsets: Pages, ends: Pages, adjacency: Pages, pages: Pages, block_of: Pages, heads: Pages, page: int, block: int, least: int
) -> int:
    """Count that a block needs a page now: its partners miss one less.  Edges that are in a block are passed over for good.

    Returns the first list that may hold a candidate.
    """
    pages[page, _NEEDED] = block
    kept = offsets[page]
    for place in range(offsets[page], ends[page]):
        edge = adjacency[place, EDGE]
        if block_of[edge] >= 0:
            continue
        other = adjacency[place, NEIGHBOUR]
        adjacency[kept, NEIGHBOUR], adjacency[kept, EDGE] = other, edge
        kept += 1
        if pages[other, _BLOCK_OF] >= 0:
            continue
        if pages[other, _COUNTED] != block:
            pages[other, _COUNTED], pages[other, _MISSING] = block, pages[other, _DEGREE]
        pages[other, _MISSING] -= 1
        share = pages[other, _MISSING] * (_SHARES - 1) // max(1, pages[other, _DEGREE])
        if pages[other, LIST] != share:
            if pages[other, LIST] >= 0:
                leave(pages, other, heads)
            join(pages, other, heads, share)
            least = min(least, share)
    ends[page] = kept
    return least


@lean_kernel
def _grow(
    offsets: Pages, ends: Pages, adjacency: Pages, pages: Pages, block_of: Pages, first_choice: Pages, heads: Pages, size: int
) -> int:
    """Divide all edges into blocks; returns how many there are.

    A block begins with the best candidate that the one before it left, so that they share partners, or else with the page of most edges.
    """
    left, blocks, tried, following = block_of.shape[0], 0, 0, NONE
    while left > 0:
        members, least = 0, 0
        while members < size and left > 0:
            while least < _SHARES and heads[least] < 0:
                least += 1
            if least < _SHARES:
                page = heads[least]
                leave(pages, page, heads)
            elif following >= 0:
                page, following = following, NONE
            else:
                page = first_choice[tried]
                tried += 1
            if pages[page, _DEGREE] == 0 or pages[page, _BLOCK_OF] >= 0:
                continue
            pages[page, _BLOCK_OF] = blocks
            members += 1
            if pages[page, _NEEDED] != blocks:
                least = _need(offsets, ends, adjacency, pages, block_of, heads, page, blocks, least)
            for place in range(offsets[page], ends[page]):
                if block_of[adjacency[place, EDGE]] >= 0:
                    continue
                other = adjacency[place, NEIGHBOUR]
                block_of[adjacency[place, EDGE]] = blocks
                pages[other, _DEGREE] -= 1
                left -= 1
                if pages[other, _NEEDED] != blocks:
                    least = _need(offsets, ends, adjacency, pages, block_of, heads, other, blocks, least)
        following = NONE
        for share in range(_SHARES):
            while heads[share] >= 0:
                if following < 0:
                    following = heads[share]
                leave(pages, heads[share], heads)
        blocks += 1
    return blocks


@lean_kernel
def _arrange(ends: _Ends, by_block: Pages, begins: Pages, pages: Pages, block: _Block, order: Pages) -> None:
    """Put the edges of each block into the order of `ordered`."""
    done = 0
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
                    done, least = _bring(block, heads, block.adjacency[place, NEIGHBOUR], edges, order, done, least)
        for page in range(count):
            block.numbers[block.pages[page, _PAGE]] = NONE


@lean_kernel
def _lay_down(ends: _Ends, edges: Pages, pages: Pages, number: int, block: _Block) -> int:
    """Make a block's own graph of its edges; returns how many pages it has."""
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
def _bring(block: _Block, heads: Pages, page: int, edges: Pages, order: Pages, done: int, least: int) -> tuple[int, int]:
    """Let a page meet all its partners in the block; returns how many edges are ordered now, and the first list that may hold a page."""
    block.pages[page, _HERE] = 1
    for place in range(block.pages[page, _BEGIN], block.pages[page + 1, _BEGIN]):
        other, edge = block.adjacency[place, NEIGHBOUR], block.adjacency[place, EDGE]
        if block.pages[other, _MEMBER] == 0:
            continue
        if not block.met[edge]:
            block.met[edge] = True
            order[done] = edges[edge]
            done += 1
        coming = block.pages[other, LIST]
        if coming >= 0:
            leave(block.pages, other, heads)
            join(block.pages, other, heads, coming - 1)
            least = min(least, coming - 1)
    return done, least
