"""W-TinyLFU: its sketch never counts too little, and what enters its main part is what is referenced often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from algorithms.replacement.base import replacement_policy
from algorithms.replacement.w_tinylfu import Plain
from flashsim.core.replacement import Numbers
from flashsim.storage.pool.reference import PlainPool
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import zipf_stream


@pytest.mark.parametrize("count", [1_000, pytest.param(3_000, marks=pytest.mark.deep)])
def test_the_sketch_counts_at_least_the_references(count: int) -> None:
    """The least of a page's four counters, which others may share, against a counter of its own that is halved with them."""
    pool = PlainPool(replacement_policy("w-tinylfu"), 40)
    policy, exact, more, seen = pool.policy, Counter[int](), 0, 0
    assert isinstance(policy, Plain)
    for page in zipf_stream(200, count, 0.9, 1).tolist():
        before = policy.references
        pool.refer(page)
        exact[page] = min(exact[page] + 1, 15)
        if policy.references < before:
            exact = Counter({each: count // 2 for each, count in exact.items()})
        estimates = {each: policy._frequency(each) for each in exact}
        assert all(estimates[each] >= exact[each] for each in exact)
        more, seen = more + sum(estimates[each] > exact[each] for each in exact), seen + len(exact)
    assert more < seen / 4


def test_a_scan_stays_in_the_window() -> None:
    """100 frames are full of pages referenced six times; of 1,000 others, once each, few are taken for pages of more references."""
    often, once = np.tile(np.arange(8, 107, dtype=np.int32), 6), np.arange(107, 1107, dtype=np.int32)
    hits = []
    for name in ("lru", "w-tinylfu"):
        pool = Simulation(replacement_policy(name), 100)
        pool.refer(np.concatenate([often, once]))
        before = pool.counts.hits
        pool.refer(often[:99])
        hits.append(pool.counts.hits - before)
    assert hits[0] == 0 and hits[1] > 80


def by_lists(pages: Numbers, frames: int) -> int:
    """Hits of the paper's policy with a counter for every page instead of a sketch: the page referenced longest ago stands first."""
    main = frames * 99 // 100
    window: list[int] = []
    probation: list[int] = []
    protected: list[int] = []
    counts, references, hits = Counter[int](), 0, 0
    for page in pages.tolist():
        references += counts[page] < 15
        counts[page] = min(counts[page] + 1, 15)
        if references == 10 * frames:
            references = (references - sum(count % 2 for count in counts.values())) // 2
            counts = Counter({each: count // 2 for each, count in counts.items()})
        segment = next((each for each in (window, probation, protected) if page in each), None)
        hits += segment is not None
        if segment is not None:
            segment.remove(page)
            (protected if segment is probation else segment).append(page)
            if len(protected) > main * 80 // 100:
                probation.append(protected.pop(0))
            continue
        window.append(page)
        if len(window) > frames - main:
            candidate = window.pop(0)
            if len(window) + len(probation) + len(protected) < frames:
                probation.append(candidate)
            else:
                rival = (probation or protected)[0]
                if counts[candidate] > counts[rival]:
                    (probation or protected).pop(0)
                    probation.append(candidate)
    return hits


@pytest.mark.parametrize("exponent", [0.6, 0.9, 1.2])
def test_a_sketch_instead_of_counters_costs_little(exponent: float) -> None:
    """Within one point of the hit ratio."""
    pages = zipf_stream(2_000, 20_000, exponent, 1)
    for frames in (100, 400):
        pool = Simulation(replacement_policy("w-tinylfu"), frames)
        pool.refer(pages)
        assert abs(pool.counts.hits - by_lists(pages, frames)) <= 0.01 * len(pages)
