"""Histograms: exact where they say so, close elsewhere."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.summary.histogram import Histogram


@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=300), st.sampled_from([0, 50, 90, 99.9, 100]))
def test_percentiles_are_near_the_exact_ones(values: list[int], share: float) -> None:
    times = Histogram()
    times.add(np.array(values, np.int64))
    assert min(values) <= times.percentile(share) <= max(values)
    exact = int(np.percentile(values, share, method="inverted_cdf"))
    assert abs(times.percentile(share) - exact) <= exact / 500 + 1
    assert (times.count, times.maximum) == (len(values), max(values))
    assert abs(times.mean - sum(values) / len(values)) < 1e-6 * max(1, max(values))
    shown, shares = times.distribution()
    assert shares[-1] == 1 and (np.diff(shown) > 0).all()


def test_percentiles_of_equal_values_are_those_values() -> None:
    one, other = Histogram(), Histogram()
    one.add(np.full(9, 10**9))
    other.merge(one)
    assert [times.percentile(share) for times in (one, other) for share in (0, 50, 100)] == [10**9] * 6
    assert one.distribution()[0].tolist() == [10**9]


def test_merged_histograms_count_what_both_counted() -> None:
    both, one, other = Histogram(), Histogram(), Histogram()
    for times, values in ((one, np.arange(50)), (other, np.arange(50, 2000)), (both, np.arange(2000))):
        times.add(values)
    one.merge(other)
    assert (one.count, one.mean, one.maximum, one.percentile(90)) == (both.count, both.mean, both.maximum, both.percentile(90))
