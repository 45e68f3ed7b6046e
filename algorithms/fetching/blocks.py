"""A block nested loop over page-sorted instructions: blocks of R's pages, as many as fit, against S's pages that each block needs.

Entries are written as they come, and sorted by block and by page of S once it is known which pages of R are needed at all.
"""

from itertools import pairwise

import numpy as np

from algorithms.fetching._put_aside import LEAST_MEMORY, instructions
from algorithms.fetching.base import FetchParameters, fetch_in_order
from algorithms.files import Output, drop, folders, read_block, spans
from algorithms.late_fetch.join_index import IndexSort, JoinIndex
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.page_access.plan import LEAST_FRAMES, NONE
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples, key_tuples

#: The part of memory that sorted instructions are read through.
_READING = 64


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Fetch blocks of R's pages in page order; where memory is too small to sort, fetch in the order of the join index."""
    memory = parameters.memory
    if memory < LEAST_MEMORY:
        yield from fetch_in_order(index, cache)
        return
    folder, _ = folders("blocks", cache.r, cache.s)
    table = File(f"{folder}/instructions", instructions(cache.r, cache.r.tuples, cache.s.tuples))
    output = Output([table], memory - LEAST_FRAMES, page_io=parameters.page_io)
    is_joined = np.zeros(cache.r.pages, np.bool_)
    while (entries := (yield from index.next())) is not None:
        is_joined[cache.pages_of(entries.r_rows, entries.s_rows)[0]] = True
        yield from output.append(key_tuples(entries.r_rows, entries.s_rows))
    yield from output.finish()
    reading = max(1, memory // _READING)
    cache.resize(memory - reading)
    loop = _BlockNestedLoop(cache, (np.cumsum(is_joined) - 1) // (cache.frames - 1), np.flatnonzero(is_joined))
    layout = instructions(cache.r, (cache.r.pages // (cache.frames - 1) + 1) * cache.s.tuples, cache.r.tuples)
    by_block = IndexSort(f"{folder}/by-block", layout, memory - LEAST_FRAMES, page_io=parameters.page_io)
    for first, pages in spans(table.pages, LEAST_FRAMES):
        yield from by_block.append(loop.by_block((yield from read_block(table, first, pages, parameters.page_io))))
    yield from drop(table)
    yield from by_block.settle(memory - LEAST_FRAMES, reading, 0)
    yield from by_block.merge(reading, loop.consume)


class _BlockNestedLoop:
    """Follows entries that are sorted by block and row of S.

    `block_of` is of each page of R, if it is needed; `needed` has the pages of R that are, ascending.
    """

    def __init__(self, cache: PageCache, block_of: Integers, pages: Integers) -> None:
        self._cache, self._block_of, self._pages = cache, block_of, pages
        self._block = self._last = NONE

    def by_block(self, entries: Tuples) -> Tuples:
        """Entries of R's rows as keys and S's as rows, by block and S's row as keys and R's as rows."""
        pages, _ = self._cache.pages_of(entries.keys, entries.rows)
        return key_tuples(self._block_of[pages] * self._cache.s.tuples + entries.rows, entries.keys)

    def consume(self, entries: Tuples, _: Integers) -> Algorithm:
        blocks, s_rows = np.divmod(entries.keys, self._cache.s.tuples)
        bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
        for begin, end in pairwise(bounds):
            outer = self._enter(int(blocks[begin]))
            yield from self._meet(outer, entries.rows[begin:end], s_rows[begin:end])

    def _enter(self, block: int) -> Integers:
        """The pages of R to fetch: none, if the block goes on, or its own, once all others have left."""
        if block == self._block:
            return self._pages[:0]
        self._cache.resize(self._cache.frames, np.flatnonzero(self._cache.resident()))
        self._block, self._last = block, NONE
        size = self._cache.frames - 1
        return self._pages[block * size : (block + 1) * size]

    def _meet(self, outer: Integers, r_rows: Integers, s_rows: Integers) -> Algorithm:
        """Fetch pages of R, and then past them, through one frame, the pages of these rows of S."""
        _, pages = self._cache.pages_of(r_rows, s_rows)
        others = np.diff(pages, prepend=self._last) != 0
        chain = np.concatenate([[self._last], pages[others]])
        chain_pages, victims = np.concatenate([outer, chain[1:]]), np.concatenate([np.full(len(outer), NONE), chain[:-1]])
        self._last = int(chain[-1])
        yield from self._cache.follow(Schedule(chain_pages, victims, r_rows, s_rows, len(outer) + np.cumsum(others)))
