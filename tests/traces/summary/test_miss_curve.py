"""Curves of misses by size: exact ones are those of pools of every size, and sampled ones within the error that is told with them."""

from __future__ import annotations

import gzip
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from algorithms.replacement.base import replacement_policy
from flashsim.core.kernel import is_compiled
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.storage.pool.simulation import Simulation
from tests.benchmarks.yardstick import loop_slowness
from tests.tiers import examples
from traces.summary.miss_curve import LruCurve, MissCurve
from traces.summary.reuse import sampled_rows


def curve_of(pages: Integers, rate: float = 1.0, least_pages: int = 0, batch: int = 1 << 18) -> MissCurve:
    curve = LruCurve(rate, least_pages)
    for begin in range(0, len(pages), batch):
        curve.add(pages[begin : begin + batch])
    return curve.curve()


def zipf(count: int, distinct: int, skew: float, seed: int) -> Integers:
    """References drawn independently of each other, the page of rank i with a probability in proportion to i to the power of -skew."""
    rng = np.random.default_rng(seed)
    until = np.cumsum(np.arange(1, distinct + 1) ** -skew)
    ranks = np.searchsorted(until / until[-1], rng.random(count))
    return rng.permutation(distinct)[ranks].astype(np.int64)


@settings(max_examples=examples(25))
@given(pages=st.lists(st.integers(0, 30), min_size=1, max_size=250), batch=st.integers(1, 90))
def test_misses_are_those_of_lru_pools_of_every_size(pages: list[int], batch: int) -> None:
    numbers = np.array(pages, np.int32) + FIRST_PAGE
    curve = curve_of(np.array(pages), batch=batch)
    sizes = np.arange(1, 33)
    simulated = []
    for frames in sizes.tolist():
        pool = Simulation(replacement_policy("lru"), frames)
        pool.refer(numbers)
        simulated.append(pool.counts.misses)
    assert curve.misses(sizes).tolist() == simulated
    assert (curve.references, curve.pages, curve.rate) == (len(pages), len(set(pages)), 1)
    assert not curve.error(sizes).any()


def test_pages_drawn_evenly_miss_as_often_as_they_are_not_resident() -> None:
    """Any c of m pages are resident: the miss ratio is 1 - c / m once the pool is full; four standard deviations are allowed."""
    pages = np.random.default_rng(5).integers(0, 2000, 200_000)
    warm = 50_000
    sizes = np.arange(100, 2000, 100)
    misses = curve_of(pages).misses(sizes) - curve_of(pages[:warm]).misses(sizes)
    expected = 1 - sizes / 2000
    count = len(pages) - warm
    assert np.all(np.abs(misses / count - expected) < 4 * np.sqrt(expected * (1 - expected) / count))


@pytest.mark.parametrize("skew", [0.7, 1.0])
def test_independent_references_are_as_che_has_it(skew: float) -> None:
    """Che, Tung and Wang (2002): a page stays for a time T that is the same for all, and c = sum(1 - exp(-p T)).

    Fricker, Robert and Roberts (2012) show why the error vanishes as the pool grows: for Zipf's law it is below half a point from
    some hundred frames on.
    """
    distinct, count, warm = 5000, 400_000, 150_000
    pages = zipf(count, distinct, skew, 3)
    weights = np.arange(1, distinct + 1) ** -skew
    shares = weights / weights.sum()
    sizes = np.array([250, 500, 1000, 2000, 4000])
    misses = (curve_of(pages).misses(sizes) - curve_of(pages[:warm]).misses(sizes)) / (count - warm)
    for frames, ratio in zip(sizes.tolist(), misses.tolist(), strict=True):
        stays = brentq(lambda time, c=frames: (1 - np.exp(-shares * time)).sum() - c, 1, 1e9)
        assert ratio == pytest.approx((shares * np.exp(-shares * stays)).sum(), abs=0.005)


@pytest.mark.parametrize("skew", [0.0, 0.7, 1.0, 1.2])
@pytest.mark.parametrize(("rate", "least_pages"), [(0.05, 0), (0.05, 2000), (0.0, 1500)])
def test_a_sample_is_within_the_error_that_it_tells(skew: float, rate: float, least_pages: int) -> None:
    """Intervals of 95 % hold at nine sizes of ten in eight streams each, and the mean error over sizes is at most a point."""
    within, off = [], []
    for seed in range(8):
        pages = zipf(100_000, 20_000, skew, seed)
        exact, sampled = curve_of(pages), curve_of(pages, rate, least_pages)
        assert sampled.rate < 0.3 and abs(sampled.pages / exact.pages - 1) < 0.1
        sizes = np.linspace(200, exact.pages * 0.95, 40).astype(np.int64)
        difference = np.abs(sampled.ratio(sizes) - exact.ratio(sizes))
        within.append(difference <= sampled.error(sizes))
        off.append(difference)
    assert np.mean(within) >= 0.9
    assert np.mean(off) < 0.01


def test_a_sample_of_a_hundredth_of_real_traces_is_within_a_point(test_data: Path) -> None:
    """2_pools and sprite, with their 9,939 and 7,075 pages: 80 pages by rate alone are 1.3 points off at most."""
    for name in ("2_pools", "sprite"):
        words = gzip.decompress((test_data / "lirs" / f"{name}.trace.gz").read_bytes()).decode().split()
        pages = np.array([int(word) for word in words if word.isdigit()])
        exact = curve_of(pages)
        sizes = np.arange(1, exact.pages)
        for sampled, most in ((curve_of(pages, 0.01), 0.013), (curve_of(pages, 0.01, 1 << 12), 0.01)):
            assert np.abs(sampled.ratio(sizes) - exact.ratio(sizes)).mean() < most


def test_a_sample_of_pages_in_a_row_is_even() -> None:
    """As many of each 16,384 pages as the rate says, the same pages wherever they are asked for, and a thinner sample is part of it."""
    pages = np.arange(1 << 17)
    for power in range(1, 12):
        sample = sampled_rows(pages, 2.0**-power)
        assert np.unique(sample >> 14, return_counts=True)[1].tolist() == [1 << 14 - power] * 8
        assert set(sampled_rows(pages, 2.0 ** -(power + 1)).tolist()) <= set(sample.tolist())
    mixed = np.random.default_rng(2).permutation(np.repeat(pages, 3))
    assert sorted(mixed[sampled_rows(mixed, 0.01)].tolist()) == np.repeat(sampled_rows(pages, 0.01), 3).tolist()


@pytest.mark.skipif(not is_compiled(), reason="plain Python is slower")
def test_a_curve_takes_a_microsecond_a_reference_and_64_bytes_a_page_and_a_sample_a_tenth() -> None:
    """A million pages, drawn evenly, each four times: processor time."""
    pages = np.random.default_rng(8).integers(0, 1 << 20, 1 << 22)

    def taken(rate: float) -> tuple[float, LruCurve]:
        curve = LruCurve(rate)
        begin = process_time()
        for part in np.array_split(pages, 8):
            curve.add(part)
        return process_time() - begin, curve

    (_, sample), (exact, curve) = taken(0.01), taken(1)  # the first compiles
    assert exact / len(pages) < 1e-6 * loop_slowness()
    assert min(taken(0.01)[0] for _ in range(5)) < exact / 10
    assert curve.memory < 64 * curve.curve().pages
    sizes = np.arange(1000, 1 << 20, 1000)
    assert np.abs(sample.curve().ratio(sizes) - curve.curve().ratio(sizes)).mean() < 0.01
