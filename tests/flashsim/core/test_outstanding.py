"""The outstanding level against a naive sweep, Little's law, and in whatever order requests are told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from flashsim.core import outstanding
from flashsim.core.outstanding import OutstandingLevel, level_steps

REQUESTS = some.lists(some.tuples(some.integers(0, 60), some.integers(0, 20)), min_size=1, max_size=60)


def _naive(requests: list[tuple[int, int]]) -> list[int]:
    """Nanosecond by nanosecond."""
    ends = [begin + time for begin, time in requests]
    times = [0] * (len(requests) + 1)
    for now in range(min(begin for begin, _ in requests), max(ends)):
        times[sum(begin <= now < end for (begin, _), end in zip(requests, ends, strict=True))] += 1
    while len(times) > 1 and not times[-1]:
        times.pop()
    return times


def _level(requests: list[tuple[int, int]], chunk: int) -> OutstandingLevel:
    level, table = OutstandingLevel(), np.array(requests, np.int64)
    for first in range(0, len(table), chunk):
        part = table[first : first + chunk]
        level.add(part[:, 0], part[:, 0] + part[:, 1])
    return level


@given(REQUESTS, some.integers(1, 70), some.integers(1, 60))
def test_it_is_what_a_naive_sweep_finds(requests: list[tuple[int, int]], chunk: int, places: int) -> None:
    """However few requests are kept back, if they are told in order; in any order, if all are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outstanding, "_PLACES", places)
        assert _level(sorted(requests), chunk).times().tolist() == _naive(requests)
    assert _level(requests, chunk).times().tolist() == _naive(requests)


@given(REQUESTS)
def test_littles_law_holds_exactly(requests: list[tuple[int, int]]) -> None:
    """The mean level is the rate times the mean response time."""
    told = _level(requests, 7).as_dict()
    begin, end = min(begin for begin, _ in requests), max(begin + time for begin, time in requests)
    if begin == end:
        assert told is None
        return
    assert told is not None
    rate, response = len(requests) / (end - begin), sum(time for _, time in requests) / len(requests)
    assert told["mean"] == pytest.approx(rate * response)
    assert told["duration"] == end - begin
    assert sum(told["shares"]) == pytest.approx(1)
    times = np.repeat(told["levels"], np.rint(np.array(told["shares"]) * (end - begin)).astype(int))
    assert [told[name] for name in ("p50", "p90", "p99", "max")] == np.percentile(times, [50, 90, 99, 100], method="inverted_cdf").tolist()
    assert told["idle"] == (times == 0).mean()


def test_what_comes_too_late_counts_from_where_the_sweep_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outstanding, "_PLACES", 2)
    requests = [(0, 10), (20, 10), (40, 10), (60, 10), (80, 10), (100, 10), (5, 200)]
    assert _level(requests, 1).times().sum() == 205
    assert _level(requests, 1).times().max() < 205


def test_more_may_follow() -> None:
    level = _level([(0, 4), (2, 10)], 1)
    assert level.times().tolist() == [0, 10, 2]
    assert level.times().tolist() == [0, 10, 2]
    level.add(np.array([20]), np.array([21]))
    assert level.times().tolist() == [8, 11, 2]


def test_nothing_is_told_of_nothing() -> None:
    assert OutstandingLevel().as_dict() is None


def test_steps_are_those_of_a_set_handed_over_at_once() -> None:
    times, levels = level_steps(np.array([5, 5, 5]), np.array([9, 7, 8]))
    assert times.tolist() == [5, 5, 5, 7, 8, 9] and levels.tolist() == [1, 2, 3, 2, 1, 0]
