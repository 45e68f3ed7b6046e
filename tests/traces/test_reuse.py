"""Reuse distances equal those of a list that is searched, in the memory and time that a trace's pages allow."""

from __future__ import annotations

import gzip
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.kernel import is_compiled
from flashsim.core.request import Integers
from tests.benchmarks.yardstick import loop_slowness
from tests.tiers import examples
from traces.summary.reuse import FIRST, ReuseDistances


def naive(pages: list[int]) -> list[int]:
    recent: list[int] = []
    found = []
    for page in pages:
        found.append(len(recent) - 1 - recent.index(page) if page in recent else FIRST)
        if page in recent:
            recent.remove(page)
        recent.append(page)
    return found


def in_batches(pages: Integers, size: int) -> tuple[list[int], ReuseDistances]:
    distances = ReuseDistances()
    parts = [distances.add(pages[begin : begin + size]) for begin in range(0, len(pages), size)]
    return np.concatenate([*parts, np.zeros(0, np.int64)]).tolist(), distances


@settings(max_examples=examples(60))
@given(pages=st.lists(st.integers(0, 40) | st.integers(0, 2**62), max_size=300), size=st.integers(1, 90))
def test_distances_are_those_of_a_list(pages: list[int], size: int) -> None:
    found, distances = in_batches(np.array(pages, np.int64), size)
    assert found == naive(pages)
    assert distances.distinct == len(set(pages))
    assert distances.pages().tolist() == list(dict.fromkeys(reversed(pages)))[::-1]


@pytest.mark.parametrize(("distinct", "count"), [(300, 12000), (2500, 9000)])
def test_the_line_moves_together_and_the_table_grows(distinct: int, count: int) -> None:
    """More references than the line has places, and more pages than the first table has room for."""
    pages = np.random.default_rng(distinct).zipf(1.2, count) % distinct
    assert in_batches(pages, 1000)[0] == naive(pages.tolist())


def test_misses_of_caches_of_any_size_are_those_of_an_lru_cache(test_data: Path) -> None:
    """2_pools, whose hit ratios with LRU O'Neil, O'Neil and Weikum (1993) state: 0.140, 0.181, 0.220 and 0.255."""
    words = gzip.decompress((test_data / "lirs" / "2_pools.trace.gz").read_bytes()).decode().split()
    pages = np.array([int(word) for word in words if word.isdigit()])
    distances = np.array(in_batches(pages, 1 << 12)[0])
    for size, published in ((60, 0.140), (80, 0.181), (100, 0.220), (120, 0.255)):
        cache: OrderedDict[int, None] = OrderedDict()
        hits = 0
        for page in pages.tolist():
            hits += page in cache
            cache[page] = None
            cache.move_to_end(page)
            if len(cache) > size:
                cache.popitem(last=False)
        assert ((distances >= 0) & (distances < size)).sum() == hits
        assert hits / len(pages) == pytest.approx(published, abs=0.001)


@pytest.mark.skipif(not is_compiled(), reason="plain Python is slower")
def test_a_reference_takes_a_microsecond_and_a_page_64_bytes_at_most() -> None:
    """Pages at random, the worst that can be asked for; memory at its most, while the table grows."""
    pages = np.random.default_rng(3).integers(0, 1 << 40, 1 << 18)
    both = np.concatenate([pages, np.random.default_rng(4).permutation(pages)])
    distances = ReuseDistances()
    distances.add(pages[:10])  # compiles
    begin = process_time()
    for part in np.array_split(both, 64):
        distances.add(part)
    assert (process_time() - begin) / len(both) < 1e-6 * loop_slowness()
    tracemalloc.start()
    distances, most = ReuseDistances(), 0.0
    for part in np.array_split(pages, 256):
        tracemalloc.reset_peak()
        before = distances.distinct
        distances.add(part)
        if before > 8 * len(part):
            most = max(most, (tracemalloc.get_traced_memory()[1] - 20 * len(part)) / distances.distinct)
    tracemalloc.stop()
    assert 26 < most < 64
