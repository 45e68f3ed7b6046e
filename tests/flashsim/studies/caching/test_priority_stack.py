"""One stack tells the hits of pools of all sizes: for OPT those of Belady's rule, for MRU those of a list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.studies.caching.priority_stack import next_uses, stack_distances
from tests.tiers import examples
from traces.summary.reuse import FIRST, ReuseDistances

STREAMS = st.lists(st.integers(0, 12), min_size=1, max_size=120)


def belady(pages: list[int], frames: int) -> int:
    """Hits where the page leaves that is asked for last."""
    resident: set[int] = set()
    hits = 0
    for row, page in enumerate(pages):
        hits += page in resident
        if page not in resident and len(resident) == frames:
            ahead = pages[row:]
            resident.remove(max(resident, key=lambda each: ahead.index(each) if each in ahead else len(ahead)))
        resident.add(page)
    return hits


def most_recent_leaves(pages: list[int], frames: int) -> int:
    """Hits where the page leaves that was asked for last."""
    resident: list[int] = []
    hits = 0
    for page in pages:
        if page in resident:
            hits += 1
            resident.remove(page)
        elif len(resident) == frames:
            resident.pop()
        resident.append(page)
    return hits


@settings(max_examples=examples(60))
@given(pages=STREAMS)
def test_hits_are_those_of_pools_of_every_size(pages: list[int]) -> None:
    numbers = np.unique(pages, return_inverse=True)[1]
    rows = np.arange(len(pages))
    for ranks, naive in ((next_uses(numbers), belady), (rows, most_recent_leaves)):
        distances = stack_distances(numbers, ranks)
        assert (distances == FIRST).sum() == len(set(pages))
        for frames in range(1, len(set(pages)) + 2):
            assert ((distances != FIRST) & (distances < frames)).sum() == naive(pages, frames)


@settings(max_examples=examples(60))
@given(pages=STREAMS)
def test_the_page_unused_for_longest_leaving_is_lru(pages: list[int]) -> None:
    """Of all policies LRU ranks a page by the negative number of its last reference."""
    numbers = np.unique(pages, return_inverse=True)[1]
    expected = ReuseDistances().add(numbers.astype(np.int64))
    assert stack_distances(numbers, -np.arange(len(pages))).tolist() == expected.tolist()


def test_of_a_loop_lru_serves_nothing_and_opt_all_but_what_does_not_fit() -> None:
    """A loop over m pages: with c frames OPT, and MRU, serve c - 1 of each m - 1 references after the first round (m = 50, 40 rounds)."""
    pages = np.tile(np.arange(50), 40)
    assert ReuseDistances().add(pages).max() == 49
    for ranks in (next_uses(pages), np.arange(len(pages))):
        distances = stack_distances(pages, ranks)
        for frames in (2, 10, 49):
            hits = ((distances != FIRST) & (distances < frames)).sum()
            assert hits / (len(pages) - 50) == pytest.approx((frames - 1) / 49, abs=1 / 50)


def test_next_uses() -> None:
    assert next_uses(np.array([0, 1, 0, 0, 2])).tolist() == [2, 5, 3, 5, 5]
    assert next_uses(np.zeros(0, np.int64)).tolist() == []
