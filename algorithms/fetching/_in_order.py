"""Fetching in the order of the join index: what naive fetching does, and others where they have no memory to do better."""

from __future__ import annotations

from algorithms.join_index import Entries, JoinIndex
from algorithms.page_access.lru import LeastRecentlyUsed
from algorithms.page_cache import PageCache, Schedule
from flashsim.execution.requests import Algorithm


def fetch_in_order(index: JoinIndex, cache: PageCache) -> Algorithm:
    """Fetch the pages of each entry as it comes, and replace the page that was needed longest ago."""
    frames = LeastRecentlyUsed(cache.pages, cache.frames)
    while (entries := (yield from index.next())) is not None:
        yield from cache.follow(schedule_in_order(entries, cache, frames))


def schedule_in_order(entries: Entries, cache: PageCache, frames: LeastRecentlyUsed) -> Schedule:
    """The schedule of some entries, of which the frames are told."""
    fetched, victims, after = frames.meet(*cache.pages_of(entries.r_rows, entries.s_rows))
    return Schedule(fetched, victims, entries.r_rows, entries.s_rows, after)
