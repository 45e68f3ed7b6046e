"""Jive join: in the order of R each page of R is fetched once, and what was found is put aside by ranges of S, each then fetched once.

Source: Li and Ross, "Fast Joins Using Join Indices", VLDB Journal 8(1), 1999.
"""

from __future__ import annotations

import numpy as np

from algorithms.blocks import read_block, spans
from algorithms.fetching._in_order import fetch_in_order
from algorithms.fetching._put_aside import LEAST_MEMORY, cells, fetched_rows, instructions
from algorithms.fetching.base import FetchParameters
from algorithms.index_sort import IndexSort
from algorithms.join_index import JoinIndex
from algorithms.joins.base import folders
from algorithms.page_access.plan import LEAST_FRAMES
from algorithms.page_cache import PageCache
from algorithms.results import BATCH
from algorithms.temporaries import Output, drop, temporary_files
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Emit, Work
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples, keyed


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Sort the join index by R, and divide what was fetched by S; where memory is too small, fetch in the order of the join index."""
    room, page_io = parameters.memory - LEAST_FRAMES, parameters.page_io
    if parameters.memory < LEAST_MEMORY:
        yield from fetch_in_order(index, cache)
        return
    cache.resize(LEAST_FRAMES)
    folder, _ = folders("jive", cache.r, cache.s)
    layout = instructions(cache.r, cache.r.tuples, cache.s.tuples)
    by_r = IndexSort(f"{folder}/by-r", layout, room, page_io=page_io)
    of_pages = np.zeros(cache.s.pages, np.int64)
    while (entries := (yield from index.next())) is not None:
        pages = cache.pages_of(entries.r_rows, entries.s_rows)[1] - cache.r.pages
        of_pages += np.bincount(pages, minlength=cache.s.pages)
        yield from by_r.append(keyed(entries.r_rows, entries.s_rows))
    reading = max(1, room // 4)
    yield from by_r.settle(room, reading, reading)
    kept = fetched_rows(cache.r, cache.parts[0], cache.s.tuples)
    numbers, ranges = _ranges(of_pages, room * cells(kept), room - reading)
    files = temporary_files(folder, "range", ranges, kept, 0)
    output = Output(files, 1, page_io=page_io)

    def put_aside(entries: Tuples, _: Integers) -> Algorithm:
        found = yield from cache.collect(entries.keys, of_s=False)
        _, pages = cache.pages_of(found, entries.rows)
        yield from output.append(keyed(entries.rows, found), numbers[pages - cache.r.pages])

    yield from by_r.merged(reading, put_aside)
    yield from output.finish()
    for file in files:
        yield from _join(file, cache, room, page_io=page_io)


def _ranges(of_pages: Integers, capacity: int, most: int) -> tuple[Integers, int]:
    """The range that each page of S belongs to, and how many there are: none of more entries than fit, unless a page alone has more.

    Parameters
    ----------
    of_pages
        Entries of each page of S.
    capacity
        Entries of a range that fit.
    most
        Ranges, at least 1; if more were needed, all are of about as many entries.
    """
    sums = np.cumsum(of_pages)
    ends = [0]
    while ends[-1] < len(sums) and len(ends) <= most + 1:
        begun = sums[ends[-1]] - of_pages[ends[-1]]
        ends.append(max(ends[-1] + 1, int(np.searchsorted(sums, begun + capacity, side="right"))))
    if len(ends) > most + 1:
        return (sums - of_pages) * most // sums[-1], most
    return np.searchsorted(ends[1:], np.arange(len(sums)), side="right"), max(1, len(ends) - 1)


def _join(file: File, cache: PageCache, room: int, *, page_io: bool) -> Algorithm:
    """Sort a range, or in parts what does not fit, fetch its pages of S and join."""
    for first, pages in spans(file.pages, room):
        tuples = yield from read_block(file, first, pages, page_io)
        rows = tuples.chosen(np.argsort(tuples.keys, kind="stable"))
        yield Cpu({Work.COMPARE: len(rows) * len(rows).bit_length()})
        for begin in range(0, len(rows), BATCH):
            part = rows.chosen(slice(begin, begin + BATCH))
            found = yield from cache.collect(part.keys, of_s=True)
            yield Emit(part.rows, found)
            yield Cpu({Work.EMIT: len(part)})
    yield from drop(file)
