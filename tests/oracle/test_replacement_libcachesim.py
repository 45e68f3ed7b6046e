"""Eight policies miss as often as libCacheSim's, on the LIRS authors' traces and on generated ones.

Its other policies are no oracles: its LIRS misses 25,491 times where its authors' own program misses 25,605 times (sprite, 600 pages),
and its LRU-K is its LFU.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.core.replacement import Numbers
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import page_trace, zipf_stream

TRACES = {"2_pools": (40, 127, 2_000), "sprite": (7, 600, 1_001)}
#: Pages, exponent and seed of generated traces, and sizes of pools.
STREAMS = list(product((50, 1_000, 20_000), (0.6, 1.0), (1,)))
SIZES = (4, 23, 250, 3_999)
POLICIES = {
    "lru": "LRU",
    "arc": "ARC",
    "2q": "TwoQ",
    "fifo": "FIFO",
    "clock": "Clock",
    "sieve": "Sieve",
    "lfu:average=0": "LFU",
    "s3-fifo:fill=1": "S3FIFO",
}
#: Frames below which the small queue of its S3-FIFO takes no page.
FEWEST = {"s3-fifo:fill=1": 20}


@pytest.fixture(scope="module")
def libcachesim() -> Any:
    # some of what it imports warns that it will be removed
    return pytest.importorskip(
        "libcachesim", reason=f"{(sum(map(len, TRACES.values())) + len(STREAMS)) * len(POLICIES)} comparisons with libCacheSim"
    )


def misses(policy: str, pages: Numbers, frames: int) -> int:
    pool = Simulation(replacement_policy(policy), frames)
    pool.refer(pages)
    return pool.counts.misses


def its_misses(libcachesim: Any, policy: str, pages: Numbers, frames: int) -> int:
    """Objects of one byte are pages; its table begins small, since the usual one of 2 ** 24 entries is most of a short run's time."""
    cache, request, hits = getattr(libcachesim, POLICIES[policy])(cache_size=frames, hashpower=13), libcachesim.Request(), 0
    request.obj_size = 1
    for page in pages.tolist():
        request.obj_id = page
        hits += cache.get(request)
    return len(pages) - hits


@pytest.mark.parametrize(
    "policy, trace, frames",
    [
        (policy, trace, frames)
        for policy in POLICIES
        for trace, sizes in TRACES.items()
        for frames in sizes
        if frames >= FEWEST.get(policy, 1)
    ],
)
def test_misses_on_public_traces(test_data: Path, libcachesim: Any, policy: str, trace: str, frames: int) -> None:
    pages = page_trace(test_data, trace)
    assert misses(policy, pages, frames) == its_misses(libcachesim, policy, pages, frames)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pages, exponent, seed", STREAMS)
def test_misses_on_generated_traces(libcachesim: Any, policy: str, pages: int, exponent: float, seed: int) -> None:
    stream = zipf_stream(pages, 10_000, exponent, seed)
    for frames in [each for each in SIZES if each >= FEWEST.get(policy, 1)]:
        assert misses(policy, stream, frames) == its_misses(libcachesim, policy, stream, frames), frames
