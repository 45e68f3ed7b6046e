"""The demerit figure of response times: exact on any numbers of them, and the same of histograms within their precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError
from flashsim.experiments.replaying.device_report import demerit, histogram_demerit
from traces.summary.histogram import Histogram

TIMES = st.lists(st.integers(0, 10**10), min_size=1, max_size=30)


def naive(first: list[int], second: list[int]) -> float:
    """Each set repeated until both are equally long, and compared pair by pair."""
    long, other = sorted(first * len(second)), sorted(second * len(first))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(long, other, strict=True)) / len(long))


@given(TIMES, TIMES)
def test_it_is_the_distance_of_sets_repeated_to_equal_length(first: list[int], second: list[int]) -> None:
    assert demerit(np.array(first), np.array(second)) == pytest.approx(naive(first, second), rel=1e-9, abs=1e-3)
    assert demerit(second, first) == pytest.approx(demerit(first, second))
    assert demerit(first, first) == 0


@given(TIMES, TIMES)
def test_histograms_give_it_within_their_precision(first: list[int], second: list[int]) -> None:
    counted = []
    for times in (first, second):
        counted.append(Histogram())
        counted[-1].add(np.array(times))
    assert histogram_demerit(*counted) == pytest.approx(demerit(first, second), abs=max(first + second) / 256)


def test_nothing_has_no_distribution() -> None:
    with pytest.raises(InvalidParameterError, match="response times"):
        demerit([], [1])
