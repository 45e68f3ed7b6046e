"""Fetching in the order of the join index: what naive fetching does, and others where they have no memory to do better."""

import numpy as np

from algorithms.fetching.base import POLICY
from algorithms.late_fetch.join_index import Entries, JoinIndex
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.replacement.base import replacement_policy
from flashsim.execution.requests import Algorithm
from flashsim.storage.pool.buffer_pool import BufferPool


def fetch_in_order(index: JoinIndex, cache: PageCache, policy: str = POLICY) -> Algorithm:
    """Fetch the pages of each entry as it comes, first R's and then S's; which is replaced for them is the policy's choice."""
    pool = pool_of(cache, cache.frames, policy)
    while (entries := (yield from index.next())) is not None:
        yield from cache.follow(schedule_in_order(entries, cache, pool))


def pool_of(cache: PageCache, frames: int, policy: str = POLICY) -> BufferPool:
    """A buffer pool that decides which of both relations' pages are in so many frames."""
    return BufferPool(replacement_policy(policy), min(frames, max(1, cache.pages)), (cache.r, cache.s))


def schedule_in_order(entries: Entries, cache: PageCache, pool: BufferPool) -> Schedule:
    """The schedule of some entries: each row is taken from its page when that is referenced."""
    misses = pool.refer(np.column_stack(cache.pages_of(entries.r_rows, entries.s_rows)).reshape(-1))
    return Schedule(misses.pages, misses.victims, entries.r_rows, entries.s_rows, misses.after.reshape(-1, 2))
