"""LRU-K: published hit ratios, the paper's rule in a few lines of lists, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.core.replacement import Numbers
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import page_trace, zipf_stream


def hits(policy: str, pages: Numbers, frames: int) -> int:
    pool = Simulation(replacement_policy(policy), frames)
    pool.refer(pages)
    return pool.counts.hits


@pytest.mark.parametrize("frames, ratio", [(60, 0.286), (80, 0.378), (100, 0.456), (120, 0.493)])
def test_hit_ratios_of_lru_2_on_two_pools(test_data: Path, frames: int, ratio: float) -> None:
    """As the third-party data's description has them."""
    pages = page_trace(test_data, "2_pools")
    assert round(hits("lru-k", pages, frames) / len(pages), 3) == ratio


def lists(pages: Numbers, frames: int, k: int, correlated: int, retained: int) -> int:
    """Figure 2.1 of the paper over whole histories: hits."""
    history: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    pool: list[int] = []
    count = 0
    for now, page in enumerate(pages.tolist(), 1):
        if page in pool:
            count += 1
            if now - last[page] > correlated:
                period = last[page] - history[page][0]
                history[page] = [now] + [time + period for time in history[page]]
        else:
            if len(pool) == frames:
                past = [each for each in pool if now - last[each] > correlated]
                known = {each: history[each][k - 1] if len(history[each]) >= k else 0 for each in pool}
                victim = min(
                    past, key=lambda each: (known[each], each if known[each] else last[each]), default=min(pool, key=last.__getitem__)
                )
                pool.remove(victim)
            pool.append(page)
            forgotten = page not in last or now - last[page] > retained
            history[page] = [now] if forgotten else [now, *history[page]]
        last[page] = now
    return count


@pytest.mark.parametrize(
    "k, correlated, retained", [(2, 0, 1 << 30), (2, 8, 1 << 30), (2, 5, 90), (3, 0, 200), (3, 12, 1 << 30), (1, 0, 0)]
)
def test_as_whole_histories_tell(k: int, correlated: int, retained: int) -> None:
    pages = zipf_stream(150, 4_000, 0.8, k)
    for frames in (1, 7, 60):
        policy = f"lru-k:k={k},correlated={correlated},retained={retained}"
        assert hits(policy, pages, frames) == lists(pages, frames, k, correlated, retained)


def test_k_of_one_is_lru() -> None:
    pages = zipf_stream(500, 5_000, 0.9, 1)
    assert all(hits("lru-k:k=1", pages, frames) == hits("lru", pages, frames) for frames in (1, 10, 100, 400))


def test_a_scan_leaves_pages_that_were_referenced_twice() -> None:
    """10 pages twice, a scan of 100 and the 10 pages again: with 20 frames LRU has lost them, LRU-2 has not."""
    often = np.tile(np.arange(8, 18, dtype=np.int32), 2)
    pages = np.concatenate([often, np.arange(18, 118, dtype=np.int32), often[:10]])
    assert (hits("lru", pages, 20), hits("lru-k", pages, 20)) == (10, 20)


def test_references_in_one_period_are_one() -> None:
    """Pages of a scan that are each referenced three times at once push nothing out where such references count as one."""
    often = np.tile(np.arange(8, 18, dtype=np.int32), 3)
    pages = np.concatenate([often, np.repeat(np.arange(18, 118, dtype=np.int32), 3), often[:10]])
    assert hits("lru-k:correlated=4", pages, 20) - hits("lru-k", pages, 20) == 10
