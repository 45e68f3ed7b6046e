"""W-TinyLFU: its sketch never counts too little, and what enters its main part is what is referenced often."""

from __future__ import annotations

from collections import Counter

import numpy as np

from algorithms.replacement.base import replacement_policy
from algorithms.replacement.w_tinylfu import Plain
from flashsim.storage.pool.plain import PlainPool
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import zipf_stream


def test_the_sketch_counts_at_least_the_references() -> None:
    """The least of a page's four counters, which others may share, against a counter of its own that is halved with them."""
    pool = PlainPool(replacement_policy("w-tinylfu"), 40)
    policy, exact, more, seen = pool.policy, Counter[int](), 0, 0
    assert isinstance(policy, Plain)
    for page in zipf_stream(200, 3_000, 0.9, 1).tolist():
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
