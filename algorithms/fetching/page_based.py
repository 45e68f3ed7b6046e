"""Page-based fetching: each relation's rows are fetched in page order, put aside, and joined again.

Source: Li et al., "DigestJoin" (MDM 2009), algorithm 2.
"""

import numpy as np

from algorithms.fetching._put_aside import LEAST_MEMORY, fetched_rows, instructions
from algorithms.fetching.base import FetchParameters, fetch_in_order
from algorithms.files import Output, drop, folders
from algorithms.late_fetch.join_index import IndexSort, JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES
from algorithms.sorting.external import join_sorted
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, rename_phases, swap_sides
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples, key_tuples
from models.allocation.divisions import external_sort_merge

#: Entries are numbered below this.
_MOST = 1 << 62


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Fetch by two tables of instructions; where memory is too small to sort them, fetch in the order of the join index.

    Entries are numbered as they come, and the rows that were fetched are joined by these numbers, since rows with equal keys need not be
    an entry.
    """
    room, page_io = parameters.memory - LEAST_FRAMES, parameters.page_io
    if parameters.memory < LEAST_MEMORY:
        yield from fetch_in_order(index, cache)
        return
    cache.resize(LEAST_FRAMES)
    names = folders("page-based", cache.r, cache.s)
    tables = []
    for file, folder in zip((cache.r, cache.s), names, strict=True):
        layout = instructions(file, file.tuples, _MOST)
        tables.append(IndexSort(f"{folder}/instructions", layout, (room - 1) // 2, page_io=page_io))
    count = 0
    while (entries := (yield from index.next())) is not None:
        cache.pages_of(entries.r_rows, entries.s_rows)
        numbers = np.arange(count, count + len(entries))
        count += len(entries)
        for table, rows in zip(tables, (entries.r_rows, entries.s_rows), strict=True):
            yield from table.append(key_tuples(rows, numbers))
    candidates = []
    for side, (table, file) in enumerate(zip(tables, (cache.r, cache.s), strict=True)):
        candidates.append(File(f"{names[side]}/candidates", fetched_rows(file, _MOST)))
        yield from table.settle(room, room - 1, 0)
        yield from _put_aside(table, cache, candidates[side], room - 1, of_s=side == 1, page_io=page_io)
    cache.resize(LEAST_FRAMES, np.flatnonzero(cache.resident()))
    smaller, larger = sorted(candidates, key=lambda file: file.pages)
    joined = join_sorted(smaller, larger, external_sort_merge(room), room, page_io=page_io)  # as in the paper
    yield from rename_phases(joined if smaller is candidates[0] else swap_sides(joined), "{} candidates")
    for candidate in candidates:
        yield from drop(candidate)


def _put_aside(table: IndexSort, cache: PageCache, file: File, reading: int, *, of_s: bool, page_io: bool) -> Algorithm:
    """Fetch the rows of sorted instructions, and write them with the entries' numbers."""
    output = Output([file], 1, page_io=page_io, in_series=cache.in_series)

    def take(instructions: Tuples, _: Integers) -> Algorithm:
        rows = yield from cache.collect(instructions.keys, of_s=of_s)
        yield from output.append(key_tuples(instructions.rows, rows))

    yield from table.merge(reading, take)
    yield from output.finish()
