"""ARC, CAR, LIRS and CLOCK-Pro miss as often as their papers' pseudo-code written down once more, and as their authors' own programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.replacement.base import replacement_policy
from flashsim.core.replacement import FIRST_PAGE, Numbers
from flashsim.storage.pool.simulation import Simulation
from tests.algorithms.replacement.page_traces import page_trace, zipf_stream


def misses(policy: str, pages: Numbers, frames: int) -> int:
    pool = Simulation(replacement_policy(policy), frames)
    pool.refer(pages)
    return pool.counts.misses


def arc(stream: list[int], c: int) -> int:
    """Figure 4 of Megiddo and Modha 2003, line by line, on lists whose ends are the most recently used pages."""
    t1: list[int] = []
    t2: list[int] = []
    b1: list[int] = []
    b2: list[int] = []
    p, count = 0.0, 0

    def replace(x: int) -> None:
        if t1 and (len(t1) > p or (x in b2 and len(t1) == p)):
            b1.append(t1.pop(0))
        else:
            b2.append(t2.pop(0))

    for x in stream:
        count += x not in t1 and x not in t2
        if x in t1 or x in t2:  # case I
            (t1 if x in t1 else t2).remove(x)
            t2.append(x)
        elif x in b1:  # case II
            p = min(p + (1 if len(b1) >= len(b2) else len(b2) / len(b1)), c)
            replace(x)
            b1.remove(x)
            t2.append(x)
        elif x in b2:  # case III
            p = max(p - (1 if len(b2) >= len(b1) else len(b1) / len(b2)), 0)
            replace(x)
            b2.remove(x)
            t2.append(x)
        else:  # case IV
            if len(t1) + len(b1) == c:
                if len(t1) < c:
                    b1.pop(0)
                    replace(x)
                else:
                    t1.pop(0)
            elif len(t1) + len(b1) < c and len(t1) + len(t2) + len(b1) + len(b2) >= c:
                if len(t1) + len(t2) + len(b1) + len(b2) == 2 * c:
                    b2.pop(0)
                replace(x)
            t1.append(x)
    return count


def car(stream: list[int], c: int) -> int:
    """Figure 2 of Bansal and Modha 2004, line by line; a clock is a list whose first page is at the hand."""
    t1: list[int] = []
    t2: list[int] = []
    b1: list[int] = []
    b2: list[int] = []
    bit: dict[int, int] = {}
    p, count = 0.0, 0
    for x in stream:
        if x in t1 or x in t2:
            bit[x] = 1
            continue
        count += 1
        if len(t1) + len(t2) == c:
            found = False
            while not found:
                if len(t1) >= max(1, p):
                    head = t1.pop(0)
                    found = not bit[head]
                    (b1 if found else t2).append(head)
                else:
                    head = t2.pop(0)
                    found = not bit[head]
                    (b2 if found else t2).append(head)
                bit[head] = 0
            if x not in b1 and x not in b2 and len(t1) + len(b1) == c:
                b1.pop(0)
            elif len(t1) + len(t2) + len(b1) + len(b2) == 2 * c and x not in b1 and x not in b2:
                b2.pop(0)
        if x not in b1 and x not in b2:
            t1.append(x)
        elif x in b1:
            p = min(p + max(1, len(b2) / len(b1)), c)
            b1.remove(x)
            t2.append(x)
        else:
            p = max(p - max(1, len(b1) / len(b2)), 0)
            b2.remove(x)
            t2.append(x)
        bit[x] = 0
    return count


def lirs(stream: list[int], frames: int) -> int:
    """Jiang and Zhang 2002 without a stack: a page is in it if it was referenced later than the LIR page referenced longest ago."""
    most = frames - max(frames // 100, 2)
    lirs: dict[int, None] = {}  # in the order of their last references, as the queue is in that of its entries
    queue: dict[int, None] = {}
    last: dict[int, int] = {}
    count = 0
    for now, page in enumerate(stream):
        if now and page == stream[now - 1]:
            continue
        stacked = page in last and bool(lirs) and last[page] >= last[next(iter(lirs))]
        resident = page in lirs or page in queue
        count += not resident
        if not resident and len(lirs) + len(queue) == frames:
            del queue[next(iter(queue))]
        low = page in lirs or stacked or (len(lirs) < most and not resident)
        lirs.pop(page, None)
        queue.pop(page, None)
        (lirs if low else queue)[page] = None
        last[page] = now
        if len(lirs) > most:
            lowest = next(iter(lirs))
            del lirs[lowest]
            queue[lowest] = None
    return count


ORACLES: dict[str, Callable[[list[int], int], int]] = {"arc": arc, "car": car, "lirs": lirs}


@pytest.mark.parametrize("policy", ORACLES)
@given(seed=st.integers(0, 1 << 32), frames=st.integers(3, 14), skew=st.sampled_from([1, 2, 3]), pages=st.integers(2, 40))
def test_misses_of_the_papers(policy: str, seed: int, frames: int, skew: int, pages: int) -> None:
    stream = (FIRST_PAGE + pages * np.random.default_rng(seed).random(400) ** skew).astype(np.int32)
    assert misses(policy, stream, frames) == ORACLES[policy](stream.tolist(), frames)


@pytest.mark.parametrize("policy", ORACLES)
@pytest.mark.parametrize("pages, frames", [(300, 30), (2_000, 210)])
def test_misses_of_the_papers_on_longer_streams(policy: str, pages: int, frames: int) -> None:
    stream = zipf_stream(pages, 20_000, 0.8, 3)
    assert misses(policy, stream, frames) == ORACLES[policy](stream.tolist(), frames)


@pytest.mark.parametrize("trace", ["2_pools", "sprite"])
@pytest.mark.parametrize("frames", [10, 100, 450, 1_000, 3_000])
def test_lirs_on_its_authors_traces(test_data: Path, trace: str, frames: int) -> None:
    pages = page_trace(test_data, trace)
    assert misses("lirs", pages, frames) == lirs(pages.tolist(), frames)


def test_lirs_misses_as_its_authors_program(test_data: Path) -> None:
    """The program of 2002 of Jiang and Zhang, on its own trace."""
    pages = page_trace(test_data, "sprite")
    assert len(pages) == 133_996
    assert misses("lirs", pages, 600) == 25_605


@pytest.mark.parametrize(
    "trace, published", [("2_pools", {500: 48_078, 1_000: 45_665, 2_000: 40_856}), ("sprite", {500: 31_061, 1_000: 15_534, 2_000: 10_384})]
)
def test_clock_pro_misses_as_its_authors_program(test_data: Path, trace: str, published: dict[int, int]) -> None:
    """The program of 2005 of Jiang, whose page faults Caffeine's simulator has for a test (ClockProReferenceTest, 2026)."""
    pages = page_trace(test_data, trace)
    assert {frames: misses("clock-pro:cold=5,most=5,spare=0", pages, frames) for frames in published} == published
