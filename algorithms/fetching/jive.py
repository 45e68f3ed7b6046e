"""Jive join: in the order of R each page of R is fetched once, and what was found is put aside by ranges of S, each then fetched once.

Source: Li and Ross, "Fast Joins Using Join Indices", VLDB Journal 8(1), 1999.
"""

import numpy as np

from algorithms.fetching._put_aside import LEAST_MEMORY, DividedRows, instructions
from algorithms.fetching.base import FetchParameters, fetch_in_order
from algorithms.files import folders
from algorithms.late_fetch.join_index import IndexSort, JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.execution.requests import Algorithm
from flashsim.storage.rows import key_tuples


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
        yield from by_r.append(key_tuples(entries.r_rows, entries.s_rows))
    reading = max(1, room // 4)
    yield from by_r.settle(room, reading, reading)
    divided = DividedRows(cache, folder, of_pages, room, room - reading, of_s=False, page_io=page_io)
    yield from by_r.merge(reading, divided.take)
    yield from divided.join()
