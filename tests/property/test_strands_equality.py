"""The driver of strands and its SimPy specification agree to the nanosecond on drawn programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.request import REQUEST
from flashsim.execution.backend import drive
from flashsim.execution.concurrent import ConcurrentDriver
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Psync, Read
from flashsim.execution.run import ConcurrentRun
from flashsim.execution.simulated import SimulatedBackend
from flashsim.storage.heap_file import HeapFile
from tests.flashsim.execution.strand_programs import LAYOUT, PAGE, PAGES, Places, Program, machine, outcome, station
from tests.flashsim.execution.strands_specification import ConcurrentSpecification
from tests.tiers import seeds


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
        assert found[0].strands[0].outstanding.as_dict() == found[1].strands[0].outstanding.as_dict()  # type: ignore[union-attr]
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


@pytest.mark.deep
def test_both_agree_on_a_thousand_drawn_programs() -> None:
    for seed in range(60, 1060):
        check(seed)


def alone(seed: int) -> bool:
    """One strand costs what the serial driver says, and asks the same at the same times; whether a set was of several devices."""
    found = []
    for serial in (True, False):
        on, places = machine(seed), Places()
        algorithm = Program(seed, len(on.devices), 1).alone()
        backend: Any = SimulatedBackend(places, places, [on]) if serial else ConcurrentDriver(places, places, on)  # type: ignore[arg-type]
        run = drive(algorithm, backend)[0] if serial else backend.run(algorithm).strands[0]
        costs = [replace(phase, seeks=0, seek_time=0) for phase in run.phases]  # a strand does not know the head's movements
        found.append((costs, run.outstanding.as_dict(), on.now, list(_requests(on.sink.rows))))  # type: ignore[union-attr]
    assert found[0] == found[1]
    return any(len({request[0] for request in rows}) > 1 for rows, *_ in on.sink.rows)  # type: ignore[union-attr]


def _requests(recorded: list[Any]) -> Iterator[Any]:
    """Each request without what it waited for, its times, and its label."""
    for rows, times, label, _ in recorded:
        names = [label] * len(rows) if isinstance(label, str) else label
        yield from ((row[:8], when, name) for row, when, name in zip(rows, times, names, strict=True))


@pytest.mark.parametrize("first", seeds(0, 1, deep=3))
def test_one_strand_costs_what_the_serial_driver_says(first: int) -> None:
    assert sum(alone(15 * first + number) for number in range(15)) > 5


@pytest.mark.deep
def test_many_programs_of_one_strand_cost_what_the_serial_driver_says() -> None:
    for seed in range(60, 560):
        alone(seed)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, PAGES - 4), st.integers(1, 3)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 500)), min_size=3, max_size=3),
    st.sampled_from([0, 10**9, 10**11]),
)
def test_a_set_ends_as_queues_of_servers_say(reads: list[tuple[int, int, int]], servers: list[tuple[int, int]], rate: int) -> None:
    """With the last device; each takes at least its longest request and its share, and at most what list scheduling may take.

    R. L. Graham, "Bounds for certain multiprocessing anomalies", Bell System Technical Journal 45(9), 1966.
    """
    on, places = Machine([station(count, service, rate) for count, service in servers]), Places()
    files = [HeapFile(f"{number}.0", LAYOUT, temporary=False, pages=PAGES) for number in range(3)]
    requests = [Read(files[device], np.array([start]), np.array([count])) for device, start, count in reads]

    def algorithm() -> Algorithm:
        yield Psync(requests)

    (run,) = drive(algorithm(), SimulatedBackend(places, places, [on]))  # type: ignore[arg-type]
    least, most = [0.0], [0.0]
    for number, (count, service) in enumerate(servers):
        times = [service + (-(-pages * PAGE * 10**9 // rate) if rate else 0) for device, _, pages in reads if device == number]
        longest, share = max(times, default=0), sum(times) / count
        least.append(max(longest, share))
        most.append(share + longest * (1 - 1 / count) + len(times))  # times are rounded up to whole ns
    assert max(least) - len(reads) <= on.now <= max(most)
    told = run.outstanding.as_dict()
    assert told is None or (told["max"] <= len(reads) and told["idle"] == 0)


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


@pytest.mark.parametrize("first", seeds(0, 1, deep=3))
def test_a_trace_keeps_the_overlaps(first: int) -> None:
    for number in range(10):
        replayed(10 * first + number)


@pytest.mark.deep
def test_traces_of_many_programs_keep_the_overlaps() -> None:
    for seed in range(40, 540):
        replayed(seed)
