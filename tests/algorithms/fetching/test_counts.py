"""Fetches of strategies whose number can be told beforehand."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from algorithms.fetching.base import FETCHING, FetchParameters
from algorithms.late_fetch.join_index import Entries, GivenIndex
from algorithms.late_fetch.page_cache import PageCache
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Phase
from flashsim.execution.run import PhaseCost
from flashsim.testing.strict_driver import relation_file

#: Pages of each relation, rows on each, and entries of the join indexes.
PAGES, ROWS, ENTRIES = 80, 4, 300


@pytest.fixture(params=[0, 1])
def entries(request: pytest.FixtureRequest) -> Entries:
    """Random rows, of which some come often."""
    random = np.random.default_rng(request.param)
    return Entries(*(np.minimum(random.geometric(0.01, ENTRIES), PAGES * ROWS) - 1 for _ in range(2)))


def run(strategy: str, entries: Entries, memory: int) -> tuple[int, PhaseCost]:
    """Fetches, and all that was counted."""
    files = relation_file("r", np.arange(PAGES * ROWS)), relation_file("s", np.arange(PAGES * ROWS))
    cache = PageCache(*files, memory)

    def algorithm() -> Algorithm:
        yield Phase("fetch")
        yield from FETCHING.load(strategy).fetch(GivenIndex(entries.r_rows, entries.s_rows, 50), cache, FetchParameters(memory))

    total = trace_only(algorithm(), files).total()
    return cache.fetches, total


@pytest.mark.parametrize("memory", [2, 3, 20])
@pytest.mark.parametrize("strategy", ["naive", "page-based", "jive", "blocks"])
def test_least_recently_used(strategy: str, memory: int, entries: Entries) -> None:
    """As an ordered dictionary has it: what naive fetching does, and others in the least memory."""
    held: OrderedDict[tuple[str, int], None] = OrderedDict()
    missed = 0
    for r_row, s_row in zip(entries.r_rows.tolist(), entries.s_rows.tolist(), strict=True):
        for page in (("r", r_row // ROWS), ("s", s_row // ROWS)):
            missed += page not in held
            held[page] = None
            held.move_to_end(page)
            if len(held) > memory:
                held.popitem(last=False)
    if strategy == "naive" or memory < 5:
        assert run(strategy, entries, memory)[0] == missed


@pytest.mark.parametrize("memory", [5, 8, 40])
def test_page_based_fetches_each_page_once(memory: int, entries: Entries) -> None:
    """What it writes it reads again; each row of an entry is written as an instruction, and twice or more as a candidate."""
    fetches, total = run("page-based", entries, memory)
    assert fetches == needed(entries.r_rows) + needed(entries.s_rows)
    assert total.pages_read - fetches == total.pages_written
    assert total.pages_written * 512 > 2 * ENTRIES * (12 + 2 * 100)


@pytest.mark.parametrize("memory", [16, 40])
def test_jive_fetches_each_page_once(memory: int, entries: Entries) -> None:
    """As long as the ranges fit in memory, and what it writes it reads again."""
    fetches, total = run("jive", entries, memory)
    assert fetches == needed(entries.r_rows) + needed(entries.s_rows)
    assert total.pages_read - fetches == total.pages_written
    assert total.pages_written * 512 > ENTRIES * (8 + 100)


@pytest.mark.parametrize("memory", [5, 9, 40])
def test_blocks_fetch_past_each_block_what_it_needs(memory: int, entries: Entries) -> None:
    r_pages, s_pages = entries.r_rows // ROWS, entries.s_rows // ROWS
    order = np.unique(r_pages)
    blocks = np.searchsorted(order, r_pages) // (memory - max(1, memory // 64) - 1)
    expected = len(order) + sum(needed(ROWS * s_pages[blocks == block]) for block in np.unique(blocks))
    assert run("blocks", entries, memory)[0] == expected


def needed(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """How many pages some rows lie on."""
    return len(np.unique(rows // ROWS))
