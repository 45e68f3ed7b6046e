"""The driver of strands and its SimPy specification agree to the nanosecond on drawn programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.request import REQUEST
from flashsim.execution.concurrent import ConcurrentDriver
from flashsim.execution.run import ConcurrentRun
from flashsim.execution.specification import ConcurrentSpecification
from tests.flashsim.execution.strand_programs import Places, machine, outcome


def check(seed: int) -> ConcurrentRun | str:
    """Both give the same; the specification on specified drives too, every other time."""
    found, recorded = [], []
    for kind, model in ((ConcurrentDriver, "engine"), (ConcurrentSpecification, "specification" if seed % 2 else "engine")):
        on, places = machine(seed, model), Places()
        driver: Any = kind(places, places, on)  # type: ignore[arg-type]
        found.append(outcome(driver, len(on.devices), seed))
        recorded.append(on.sink.rows)  # type: ignore[union-attr]
    assert recorded[0] == recorded[1]
    assert found[0] == found[1]
    if isinstance(found[0], ConcurrentRun):
        for run in found[0].strands:
            for phase in run.phases:
                assert min(phase.io_time, phase.user_time, phase.kernel_time, phase.wait_time) >= 0
        assert found[0].strands[0].total().total_time <= found[0].elapsed
        assert all(0 <= share <= 1 for share in [*found[0].core_shares.values(), *found[0].device_shares])
    return found[0]


def test_both_agree_on_drawn_programs() -> None:
    found = [check(seed) for seed in range(60)]
    ended = [run for run in found if isinstance(run, ConcurrentRun)]
    assert len(ended) > 40
    assert any(len(run.strands) == 8 for run in ended)
    assert any(max(run.core_shares.values()) > 0.5 for run in ended)


@pytest.mark.slow
def test_both_agree_on_a_thousand_drawn_programs() -> None:
    for seed in range(60, 1060):
        check(seed)


def replayed(seed: int) -> None:
    """A trace of a drawn program asks the same of a fresh device at the same times, by its dependencies and think times alone."""
    on, places = machine(seed, most=1), Places()
    driver: Any = ConcurrentDriver(places, places, on)  # type: ignore[arg-type]
    outcome(driver, 1, seed)
    requests, arrivals, times = [], [], []
    for rows, completed, _, after in on.sink.rows:  # type: ignore[union-attr]
        part = np.array(rows, REQUEST)
        part["dependency"] = after
        requests.append(part)
        arrivals += [begun for begun, _, _ in completed]
        times += completed
    if not requests:
        return
    fresh = machine(seed, most=1).devices[0]
    completions = fresh.serve(np.concatenate(requests), np.array(arrivals), settle=False)
    assert completions[["submitted", "started", "completed"]].tolist() == times


def test_a_trace_keeps_the_overlaps() -> None:
    for seed in range(40):
        replayed(seed)


@pytest.mark.slow
def test_traces_of_many_programs_keep_the_overlaps() -> None:
    for seed in range(40, 540):
        replayed(seed)
