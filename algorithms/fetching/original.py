"""The original heuristic: segments of the whole join graph, which takes all memory that it needs but for two frames.

While it is full, the pages of each further entry are fetched for that one alone; at the end of the join index its segments are fetched.

Source: Chan and Ooi, IEEE TKDE 9(6), 1997, as Li et al. ran it for comparison (MDM 2009, section IV D: "we have to load the pages on
demand").
"""

import math

import numpy as np

from algorithms.fetching._join_graph import JoinGraph
from algorithms.fetching.base import FetchParameters, pool_of, schedule_in_order
from algorithms.late_fetch.join_index import Entries, JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.execution.requests import Algorithm


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Insert entries until memory is full, then take them as they come."""
    graph = JoinGraph(cache, parameters, parameters.memory - LEAST_FRAMES, math.inf)
    frames = pool_of(cache, LEAST_FRAMES)
    while (entries := (yield from index.next())) is not None:
        room = graph.room
        yield from graph.insert(Entries(entries.r_rows[:room], entries.s_rows[:room]))
        yield from cache.follow(schedule_in_order(Entries(entries.r_rows[room:], entries.s_rows[room:]), cache, frames))
    cache.resize(LEAST_FRAMES, np.flatnonzero(cache.resident()))
    yield from graph.drain()
