"""What policies' papers say always holds of their plain forms, pages pinned or dropped or not; kernels choose the same by contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.replacement.base import replacement_policy
from flashsim.core.replacement import FIRST_PAGE, NOW, OWN_NUMBER
from flashsim.storage.pool.reference import PlainPool
from flashsim.storage.pool.simulation import Simulation
from flashsim.testing.pools import next_uses
from tests.tiers import examples

REFER, PIN, UNPIN, DROP = range(4)
PAGES, STEPS = 24, 250


def two_q(plain: Any, size: int, held: bool) -> None:
    """At most Kout pages are remembered, and no page is in two queues."""
    assert len(plain.a1out) <= plain.kout
    assert len({*plain.a1in, *plain.a1out, *plain.am}) == len(plain.a1in) + len(plain.a1out) + len(plain.am)


def directory(plain: Any, size: int, held: bool) -> None:
    """I1 to I5 of ARC's section III and CAR's section III: what the directory holds, and the target."""
    t1, t2, b1, b2 = map(len, (plain.t1, plain.t2, plain.b1, plain.b2))
    assert len({*plain.t1, *plain.t2, *plain.b1, *plain.b2}) == t1 + t2 + b1 + b2
    assert t1 + t2 <= size and t1 + b1 <= size and t1 + t2 + b1 + b2 <= 2 * size
    assert 0.0 <= plain.p <= size
    if not held:
        assert t1 + t2 == size or not b1 + b2


def lirs(plain: Any, size: int, held: bool) -> None:
    """The lowest page of the stack is LIR, all LIR pages are in it, and the other resident ones are in the queue."""
    resident = set(plain.pool.resident)
    assert plain.lirs == resident - set(plain.queue)
    assert plain.lirs <= set(plain.stack)
    assert len(plain.lirs) <= plain.most_lirs
    assert not plain.stack or next(iter(plain.stack)) in plain.lirs


def clock_pro(plain: Any, size: int, held: bool) -> None:
    """Counts are right, shares keep their bounds, whoever is not resident is in its test, and hot pages are in none."""
    entries = list(plain.entries.values())
    assert {entry.page for entry in entries if entry.resident} == set(plain.pool.resident)
    assert plain.residents == len(plain.pool.resident)
    assert plain.hots == sum(entry.hot for entry in entries) <= size - plain.least
    assert plain.ghosts == sum(not entry.resident for entry in entries) <= plain.most_ghosts
    assert plain.least <= plain.target <= plain.most
    assert all(entry.in_test for entry in entries if not entry.resident)
    assert not any(entry.in_test and entry.hot for entry in entries)


def lru_k(plain: Any, size: int, held: bool) -> None:
    """Times of uncorrelated references fall, and the last of all is none of them or the first."""
    assert set(plain.last) == set(plain.pool.resident) and not set(plain.last) & set(plain.absent)
    for page, times in plain.history.items():
        known = [time for time in times if time]
        assert known == sorted(set(known), reverse=True) == times[: len(known)]
        assert known[0] <= {**plain.absent, **plain.last}[page]


def s3_fifo(plain: Any, size: int, held: bool) -> None:
    """Pages are in one queue, ghosts in none, and no more are remembered than there should be."""
    assert sorted([*plain.small, *plain.main]) == sorted(plain.pool.resident)
    assert not set(plain.ghosts) & set(plain.pool.resident)
    assert len(plain.ghosts) <= plain.most_ghosts
    assert all(0 <= references <= 3 for references in [*plain.small.values(), *plain.main.values()])


def w_tinylfu(plain: Any, size: int, held: bool) -> None:
    """Window and protected pages keep to their shares, and counters to 4 bits."""
    assert sorted([*plain.window, *plain.probation, *plain.protected]) == sorted(plain.pool.resident)
    assert len(plain.window) <= plain.most_window and len(plain.protected) <= plain.most_protected
    assert all(0 <= count <= 15 for count in plain.counters.values()) and plain.references < plain.sample


def known_future(plain: Any, size: int, held: bool) -> None:
    """All next uses of resident pages are to come."""
    assert set(plain.next_use) == set(plain.pool.resident)
    assert all(plain.next_use[page] > plain.pool.now for page in plain.next_use)


INVARIANTS: dict[str, Callable[[Any, int, bool], None]] = {
    "2q": two_q,
    "2q:kin=100,kout=0": two_q,
    "arc": directory,
    "car": directory,
    "lirs": lirs,
    "lirs:hir=30": lirs,
    "clock-pro": clock_pro,
    "clock-pro:most=5,spare=0": clock_pro,
    "clock-pro:cold=40,ghosts=30": clock_pro,
    "lru-k": lru_k,
    "lru-k:k=3,correlated=6,retained=40": lru_k,
    "s3-fifo": s3_fifo,
    "s3-fifo:small=40,ghosts=20,moves=1,fill=1": s3_fifo,
    "w-tinylfu": w_tinylfu,
    "w-tinylfu:window=40,protected=50,sample=1": w_tinylfu,
    "opt": known_future,
    "opt-write-back:price=500": known_future,
}
SHARES = {REFER: 0.8, PIN: 0.1, UNPIN: 0.07, DROP: 0.03}


@pytest.mark.parametrize("policy", INVARIANTS)
@given(seed=st.integers(0, 1 << 32), size=st.integers(1, 12), skew=st.sampled_from([1, 2, 3]), meddling=st.booleans())
@settings(max_examples=examples(50))
def test_invariants(policy: str, seed: int, size: int, skew: int, meddling: bool) -> None:
    """All frames are never pinned at once."""
    plain = PlainPool(replacement_policy(policy), size)
    held = False
    draw = np.random.default_rng(seed)
    steps = draw.choice(list(SHARES), STEPS, p=list(SHARES.values())) if meddling else np.full(STEPS, REFER)
    pages = FIRST_PAGE + (PAGES * draw.random(STEPS) ** skew).astype(int)
    asked = pages[steps == REFER].tolist()
    writes = (draw.random(len(asked)) < 0.3).tolist()
    references = iter(zip(writes, next_uses(asked, writes), strict=True))
    for step, page in zip(steps.tolist(), pages.tolist(), strict=True):
        if step == REFER:
            plain.refer(page, *next(references))
        elif step == PIN and page in plain.resident and len(plain.pins | {page}) < size:
            plain.pins.add(page)
            held = True
        elif step == UNPIN:
            plain.pins.discard(page)
        elif step == DROP and page in plain.resident and page not in plain.pins:
            plain.drop(page)
            held = True
        INVARIANTS[policy](plain.policy, size, held)


@pytest.mark.parametrize("policy", ["lirs", "lru-k", "lru-k:k=3,correlated=5,retained=900"])
def test_policies_count_on_when_their_numbers_of_references_are_used_up(policy: str) -> None:
    """Shortly before they are, and after."""
    draw = np.random.default_rng(5)
    pages = (FIRST_PAGE + 300 * draw.random(20_000) ** 2).astype(np.int32)
    pools = [Simulation(replacement_policy(policy), 40) for _ in range(2)]
    pools[1].state.numbers[NOW] = (1 << 31) - 10_000
    for pool in pools:
        pool.refer(pages)
    assert pools[0].counts == pools[1].counts
    assert pools[1].state.numbers[OWN_NUMBER:].max() == 1 << 30
