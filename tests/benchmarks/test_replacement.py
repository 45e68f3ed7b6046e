"""Replacement policies: 0.3 or 0.6 microseconds a reference, numbering and knowledge of the future included, in 64 bytes a page."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.core.kernel import is_compiled
from flashsim.core.replacement import NEVER_AGAIN
from flashsim.core.transactions import BATCH, References
from flashsim.storage.pool.simulation import Counts, PlainSimulation, Simulation
from tests.peak_memory import PEAK_MEMORY

pytestmark = pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")

#: Microseconds a reference that each policy may take, and its class in libCacheSim (whose LRU-K is its LFU).
LIMITS = {"lru": 0.3, "clock": 0.3, "lru-k": 0.3, "sieve": 0.3, "opt": 0.3, "lirs": 0.6, "arc": 0.6, "2q": 0.6, "w-tinylfu": 0.6}
CLASSES = {
    "lru": "LRU", "clock": "Clock", "sieve": "Sieve", "opt": "Belady", "lirs": "LIRS", "arc": "ARC", "2q": "TwoQ", "w-tinylfu": "WTinyLFU"
}  # fmt: skip
#: Policies whose memory is measured: with a row a page alone, with the longest rows, with a heap, with a sketch.
MEASURED = ("lru", "lru-k", "opt", "w-tinylfu")
#: Share of the pages that a pool holds, in percent, and references that the plain form is given.
SHARES, PLAIN_REFERENCES = (1, 10, 50), 5_000
#: A trace, microseconds a reference to number its pages and to look ahead, and a file of it for libCacheSim.
AtScale = tuple[NumberedTrace, float, float, Path]
#: A record of an oracleGeneral trace.
RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])


def ids(kind: str, references: int, pages: int) -> np.ndarray:
    """Pages drawn evenly, or by Zipf's law with exponent 0.99."""
    draw = np.random.default_rng(1)
    if kind == "uniform":
        return draw.integers(0, pages, references)
    weights = np.cumsum(np.arange(1, pages + 1) ** -0.99)
    return draw.permutation(pages)[np.searchsorted(weights, weights[-1] * draw.random(references))]


def numbered(kind: str, references: int, pages: int) -> tuple[NumberedTrace, float, float]:
    """A trace whose future is known, and processor seconds to number its pages and to look ahead."""
    asked = ids(kind, references, pages)

    def batches() -> Iterator[References]:
        for begin in range(0, references, BATCH):
            yield References(asked[begin : begin + BATCH], None)

    begin = time.process_time()
    trace = NumberedTrace(kind, batches())
    between = time.process_time()
    trace.look_ahead()
    return trace, between - begin, time.process_time() - between


def refer(pool: Simulation, trace: NumberedTrace, references: int, future: bool) -> Counts:
    for begin in range(0, references, BATCH):
        end = min(begin + BATCH, references)
        pool.refer(*trace.part(begin, end), trace.next_uses(begin, end) if future else None)
    return pool.counts


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a thing done, and what came of it."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def policy_seconds(name: str, trace: NumberedTrace, frames: int) -> tuple[float, Counts]:
    """Of a pool's references alone."""
    policy = replacement_policy(name)
    return seconds_of(lambda: refer(Simulation(policy, frames, pages=trace.pages), trace, trace.references, policy.future))


def plain_microseconds(name: str, trace: NumberedTrace, frames: int) -> float:
    """Of a reference to the plain form in a pool that is full after half of the few that it is given."""
    policy = replacement_policy(name)
    pool = PlainSimulation(policy, min(frames, PLAIN_REFERENCES // 10))
    return 1e6 / PLAIN_REFERENCES * seconds_of(lambda: refer(pool, trace, PLAIN_REFERENCES, policy.future))[0]


def test_all_policies_keep_their_times_which_grow_with_references_and_pages() -> None:
    """At a tenth of the published scale and a tenth of that: ten times the work, but for what the processor's caches no longer hold."""
    times: dict[str, list[float]] = {name: [] for name in LIMITS}
    for references in (10_000, 100_000, 1_000_000):  # the first compiles
        trace, numbering, ahead = numbered("zipf", references, references // 10)
        with trace:
            for name, seconds in times.items():
                least = min(policy_seconds(name, trace, trace.pages // 10)[0] for _ in range(3))
                seconds.append(1e6 / references * (least + numbering + ahead * (name == "opt")))
    for name, (_, small, large) in times.items():
        print(f"{name:10}{small:6.3f}{large:6.3f} microseconds a reference")
        assert large <= min(LIMITS[name], 3 * small)


def write_for_libcachesim(path: Path, trace: NumberedTrace) -> None:
    """A trace with its future, as libCacheSim reads it."""
    records = np.zeros(trace.references, RECORD)
    for begin in range(0, trace.references, BATCH):
        end = min(begin + BATCH, trace.references)
        coming = trace.next_uses(begin, end).astype(np.int64)
        records["id"][begin:end], records["next"][begin:end] = trace.part(begin, end)[0], np.where(coming == NEVER_AGAIN, -1, coming)
    records["size"], records["time"] = 1, np.arange(trace.references) // 1000
    records.tofile(path)


@pytest.fixture(scope="module", params=["zipf", "uniform"])
def at_scale(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtScale]:
    """Ten million references over a million pages."""
    trace, numbering, ahead = numbered(request.param, 10_000_000, 1_000_000)
    path, each = tmp_path_factory.mktemp("references") / "trace.bin", 1e6 / trace.references
    with trace:
        write_for_libcachesim(path, trace)
        print(f"\n{request.param}: {numbering * each:.3f} us a reference to number pages, {ahead * each:.3f} to look ahead")
        yield trace, numbering * each, ahead * each, path
    path.unlink()


@pytest.mark.deep
@pytest.mark.parametrize("name", LIMITS)
def test_ten_million_references_over_a_million_pages(at_scale: AtScale, name: str) -> None:
    """Three sizes, beside libCacheSim's Python package, which goes through a file by itself, and beside the plain form."""
    libcachesim = pytest.importorskip("libcachesim", reason="times beside libCacheSim's")
    trace, numbering, ahead, path = at_scale
    policy, each, slow = replacement_policy(name), 1e6 / trace.references, []
    refer(Simulation(policy, 10), trace, 1000, policy.future)  # compiles
    for share in SHARES:
        frames, its = trace.pages * share // 100, np.inf
        seconds, counts = policy_seconds(name, trace, frames)
        microseconds = each * seconds + numbering + ahead * policy.future
        if name in CLASSES:
            reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
            pool = getattr(libcachesim, CLASSES[name])(frames)
            its, (ratio, _) = seconds_of(lambda pool=pool, reader=reader: pool.process_trace(reader))
            its *= each
            if name in ("lru", "opt"):
                assert round(ratio * trace.references) == counts.misses
        plain = plain_microseconds(name, trace, frames)
        print(f"{name:10}{share:3} %{microseconds:8.3f}, libCacheSim {its:6.3f}, plain {plain:6.1f}", flush=True)
        slow += [(share, microseconds)] * (microseconds > min(LIMITS[name], its))
    assert not slow


_MEMORY = PEAK_MEMORY + (
    """
import sys
import numpy as np
from algorithms.replacement.base import replacement_policy
from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.core.transactions import References
from flashsim.storage.pool.simulation import Simulation

STEP = 1 << 16

def spent(name, pages):
    random = np.random.default_rng(1)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = peak_memory()
    trace = NumberedTrace("", (References(random.integers(0, pages, STEP), None) for _ in range(3 * pages // STEP)))
    trace.look_ahead()
    policy = replacement_policy(name)
    pool = Simulation(policy, trace.pages // 2, 0, trace.pages)
    for begin in range(0, trace.references, STEP):
        end = min(begin + STEP, trace.references)
        pool.refer(*trace.part(begin, end), trace.next_uses(begin, end) if policy.future else None)
    return peak_memory() - before

for name in sys.argv[1:]:
    spent(name, 1 << 16)
    print(name, (spent(name, 1 << 20) - spent(name, 1 << 18)) / (3 << 18))
"""
)


def test_a_page_takes_at_most_64_bytes() -> None:
    """What more pages take at the peak, for their numbers and for a pool of half of them, of which nearly all are asked for."""
    at_once = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}  # memory is given back
    told = subprocess.run([sys.executable, "-c", _MEMORY, *MEASURED], capture_output=True, text=True, check=True, env=at_once).stdout
    print(told)
    taken = [float(line.split()[1]) for line in told.splitlines()]
    assert len(taken) == len(MEASURED) and all(16 <= each <= 64 for each in taken)
