"""Times of a join's requests: of each, or, where they overlap, of the phases in which any is under way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flashsim.apps.calibration.validation.joins import RequestTimes, under_way
from flashsim.core.outstanding import OutstandingLevel

REQUESTS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30)


@given(REQUESTS)
def test_under_way_is_the_time_at_which_any_is_outstanding(requests: list[tuple[int, int]]) -> None:
    begun, lasted = np.array(requests, np.int64).reshape(-1, 2).T
    level = OutstandingLevel()
    level.add(begun, begun + lasted)
    assert under_way(begun, begun + lasted) == level.times()[1:].sum()


def test_phases_are_told_apart() -> None:
    times = RequestTimes()
    times.add(np.array([0, 5, 100]), np.array([10, 20, 130]), np.array([512, 512, 1024]))
    assert times.bytes == 2048
    assert times.seconds([("one", 0), ("none", 2), ("two", 2)], overlap=True).tolist() == [20e-9, 0, 30e-9]
    assert times.seconds([("one", 0)], overlap=False).tolist() == [10e-9, 15e-9, 30e-9]
