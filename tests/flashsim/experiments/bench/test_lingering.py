"""The pause between runs is as long as random writes disturb reads, and longer."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import COMPLETION, WRITE, Completions, Requests
from flashsim.core.units import MIB, MILLISECONDS, SECONDS
from flashsim.device.device import Device
from flashsim.experiments.bench.targets import SimulatedTarget
from flashsim.experiments.bench.uflip import LEAST_PAUSE, MARGIN, probed_pause
from traces.workload.base import WorkloadSpace

SMALL = WorkloadSpace(64 * MIB, count=128)
READ_TIME, DISTURBED_TIME = MILLISECONDS, 5 * MILLISECONDS


class Cleaning:
    """A device that reads five times as slowly for so long after a write."""

    name, size, least = "cleaning", SMALL.size, 512

    def __init__(self, lingers: int) -> None:
        self.lingers, self.now, self.busy_until, self.written = lingers, 0, 0, 0

    def enforce_state(self, share: float, seed: int) -> str:
        return "new"

    def serve(self, requests: Requests, pause: int) -> Completions:
        self.now += pause
        completions = np.zeros(len(requests), COMPLETION)
        for row, request in enumerate(requests):
            completions["submitted"][row] = self.now
            self.now += DISTURBED_TIME if self.now < self.busy_until else READ_TIME
            if request["operation"] == WRITE:
                self.busy_until = self.now + self.lingers
                self.written += 1
            completions["completed"][row] = self.now
        return completions

    measure = serve


@pytest.mark.parametrize("lingers", [700 * MILLISECONDS, 2 * SECONDS, 6 * SECONDS])
def test_the_pause_is_twice_what_lingers(lingers: int) -> None:
    pause = probed_pause(Cleaning(lingers), SMALL, 0)
    assert MARGIN * lingers <= pause <= MARGIN * (lingers + DISTURBED_TIME)


def test_a_device_that_never_recovers_is_watched_for_some_runs() -> None:
    device = Cleaning(10**6 * SECONDS)
    assert 10 * SECONDS < probed_pause(device, SMALL, 0) < 60 * SECONDS


def test_what_only_reads_is_not_written() -> None:
    device = Cleaning(SECONDS)
    assert probed_pause(device, WorkloadSpace(SMALL.size, count=128, write=False), 0) == LEAST_PAUSE
    assert device.written == 0


def test_a_simulated_drive_without_background_work_needs_no_more_than_the_least() -> None:
    drive = Device.open("ocz-core-60gb")
    drive.load(0, SMALL.size)
    assert probed_pause(SimulatedTarget(drive, SMALL.size), SMALL, 0) == LEAST_PAUSE
