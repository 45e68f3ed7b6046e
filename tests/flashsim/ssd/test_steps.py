"""Steps of programs and erases."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.ssd.timing import timing_of, work_left_at_stop
from flashsim.testing.flash_drives import drive
from tests.cases import with_each


@with_each("share", [0, 0.2, 0.4, 0.7])
def test_so_much_of_a_programs_time_passes_in_longer_steps(share: float) -> None:
    steps = {"program_step": 1_000, "program_long_step": 2_500 * (share > 0), "program_long_share": share}
    timing = timing_of(drive(program=40_000, write_latency=50_000, read_priority=True, suspend="program", **steps))
    ends = [work_left_at_stop(number, left, 1_000, 2_500, timing.long_chance) for number in range(40) for left in range(40_000, -1, -250)]
    falls = -np.diff(np.array(ends).reshape(40, -1), axis=1)  # what is left falls from one end of a step to the next
    lengths = falls[falls > 0]
    assert set(lengths.tolist()) == {1_000, 2_500} - {2_500 * (share == 0), 1_000 * (share == 1)}
    assert np.sum(lengths[lengths == 2_500]) / np.sum(lengths) == pytest.approx(share, abs=0.06)


def test_a_stop_is_at_the_end_of_a_step_and_never_before_now() -> None:
    for number in range(20):
        ends = {work_left_at_stop(number, left, 30, 70, 2**31) for left in range(0, 2000)}
        for most in range(-50, 2000, 7):
            left = work_left_at_stop(number, most, 30, 70, 2**31)
            assert left == max((end for end in ends if end <= most), default=0)
        assert work_left_at_stop(number, 1999, 30, 0, 0) == 1980


@with_each(
    ("changes", "message"),
    [
        ({"program": 50_000, "write_latency": 60_000, "program_step": 49}, "program_step: 49"),
        ({"erase": 100_000, "erase_step": 99}, "erase_step: 99"),
        ({"program_long_step": 10}, "program_long_step: 10"),
        ({"program_step": 10, "program_long_step": 10, "program_long_share": 0.5}, "program_long_step: 10"),
        ({"program_long_share": 0.5}, "program_long_step: 0"),
    ],
)
def test_steps_that_cannot_be_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        drive(**changes)


def test_a_drive_that_does_not_say_has_ten_steps() -> None:
    timing = timing_of(drive())
    assert (timing.program_step, timing.erase_step, timing.long_chance, timing.suspend_progress) == (4, 10, 0, 1)
