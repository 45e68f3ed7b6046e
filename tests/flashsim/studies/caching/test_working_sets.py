"""Working sets by window are those that a set counts, and as theory has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.studies.caching.miss_curves import LruCurve
from flashsim.studies.caching.working_sets import WorkingSets
from tests.tiers import examples


@settings(max_examples=examples(60))
@given(pages=st.lists(st.integers(-4, 12), min_size=1, max_size=200), batch=st.integers(1, 70))
def test_windows_are_those_that_a_set_counts(pages: list[int], batch: int) -> None:
    sets = WorkingSets()
    for begin in range(0, len(pages), batch):
        sets.add(np.array(pages[begin : begin + batch]))
    windows, mean, misses = sets.curve()
    assert windows[-1] == len(pages) and windows[0] == 1
    for window, size, ratio in zip(windows.tolist(), mean.tolist(), misses.tolist(), strict=True):
        seen = [set(pages[max(0, end - window) : end]) for end in range(1, len(pages) + 1)]
        assert size == pytest.approx(np.mean([len(each) for each in seen]))
        missed = [page not in pages[max(0, row - window) : row] for row, page in enumerate(pages)]
        assert ratio == pytest.approx(np.mean(missed))


def test_pages_drawn_evenly() -> None:
    """A page is in a window of T references unless T draws missed it: m (1 - (1 - 1/m)^T) pages, and as large a share of misses (m = 500).

    The first windows, which are shorter, are a hundredth of all; four standard deviations of a mean of occupancies are below a page.
    """
    pages = np.random.default_rng(1).integers(0, 500, 200_000)
    sets = WorkingSets()
    sets.add(pages)
    windows, mean, misses = sets.curve()
    short = windows < 2000
    outside = (1 - 1 / 500) ** windows[short]
    assert mean[short] == pytest.approx(500 * (1 - outside), abs=4)
    assert misses[short] == pytest.approx(outside, abs=0.01)


def test_a_sample_of_pages_is_near_all() -> None:
    """A tenth of 20,000 pages: within a fiftieth of the pages, and within a point of the misses."""
    rng = np.random.default_rng(2)
    pages = np.where(rng.random(200_000) < 0.9, rng.integers(0, 5000, 200_000), rng.integers(5000, 20_000, 200_000))
    curves = []
    for rate in (1.0, 0.1):
        sets = WorkingSets(rate)
        for part in np.array_split(pages, 7):
            sets.add(part)
        curves.append(sets.curve())
    exact, sampled = curves
    long = exact.windows > 1000
    assert sampled.pages[long] == pytest.approx(exact.pages[long], rel=0.02)
    assert sampled.miss_ratio[long] == pytest.approx(exact.miss_ratio[long], abs=0.01)


def test_working_sets_and_lru_meet() -> None:
    """Denning: the share of misses is how fast the working set grows with the window, and a pool of its mean size misses about as often."""
    pages = np.random.default_rng(3).zipf(1.2, 100_000) % 5000
    sets, curve = WorkingSets(), LruCurve()
    sets.add(pages)
    curve.add(pages)
    windows, mean, misses = sets.curve()
    inside = (windows > 200) & (windows < 20_000)
    grown = np.diff(mean[inside]) / np.diff(windows[inside])
    ended = np.array([len(np.unique(pages[-window:])) for window in windows[inside]]) / len(pages)  # pages whose last windows are cut short
    assert np.all(grown <= misses[inside][:-1] + 1e-9) and np.all(grown >= misses[inside][1:] - ended[1:] - 1e-9)
    short = (windows > 100) & (windows < 2000)  # of longer ones too large a part of the trace is its cold begin
    assert curve.curve().ratio(mean[short]) == pytest.approx(misses[short], abs=0.01)
