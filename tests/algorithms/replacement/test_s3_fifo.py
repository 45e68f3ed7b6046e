"""S3-FIFO: the paper's algorithm 1 over lists, as its authors' simulator has it, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.core.replacement import Numbers
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import page_trace, zipf_stream


def misses(policy: str, pages: Numbers, frames: int) -> int:
    pool = Simulation(replacement_policy(policy), frames)
    pool.refer(pages)
    return pool.counts.misses


def by_lists(pages: Numbers, frames: int) -> int:
    """Misses of algorithm 1: the oldest page stands first."""
    small: list[int] = []
    main: list[int] = []
    ghosts: list[int] = []
    count: dict[int, int] = {}
    missed = 0
    share = max(1, frames // 10)
    for page in pages.tolist():
        if page in small or page in main:
            count[page] = min(count[page] + 1, 3)
            continue
        missed += 1
        known = page in ghosts
        if known:
            ghosts.remove(page)
        while len(small) + len(main) == frames:
            queue = main if len(main) > frames - share or not small else small
            while queue:
                oldest = queue.pop(0)
                if queue is small and count[oldest] > 1:
                    main.append(oldest)
                    count[oldest] = 0
                elif queue is main and count[oldest]:
                    main.append(oldest)
                    count[oldest] -= 1
                else:
                    if queue is small:
                        ghosts.append(oldest)
                    break
            ghosts = ghosts[-(frames * 9 // 10) :] if frames * 9 // 10 else []
        (main if known else small).append(page)
        count[page] = 0
    return missed


@pytest.mark.parametrize("exponent", [0.5, 0.9, 1.3])
def test_as_lists_tell(exponent: float) -> None:
    pages = zipf_stream(300, 6_000, exponent, 1)
    for frames in (1, 2, 9, 40, 150):
        assert misses("s3-fifo", pages, frames) == by_lists(pages, frames)


def test_misses_on_sprite(test_data: Path) -> None:
    """By the same lists, which take a while; the later version's are compared with libCacheSim's."""
    assert misses("s3-fifo", page_trace(test_data, "sprite"), 600) == 22_369


def test_a_scan_leaves_the_main_queue_alone() -> None:
    """Pages that were referenced three times move to the main queue when a scan pushes them through the small one, and stay there."""
    often = np.tile(np.arange(8, 48, dtype=np.int32), 3)
    pages = np.concatenate([often, np.arange(100, 400, dtype=np.int32), often[:40]])
    assert (misses("lru", pages, 50), misses("s3-fifo", pages, 50)) == (380, 340)
