"""What a request costs does not grow with the drive."""

from __future__ import annotations

import time

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.kernel import is_compiled
from flashsim.core.parameters import build
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import GB, GIB, MIB
from flashsim.device import presets
from flashsim.device.scaling import part_of
from flashsim.device.smart.client import run
from flashsim.device.smart.protocol import ProgramSteps, Task
from flashsim.device.smart.runtime import SmartDrive
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.precondition import Precondition, precondition
from models.occupancy import occupancy
from tests.benchmarks.test_engines import DRIVE

REQUESTS = 200_000


def cost_of_a_request(capacity: int, operation: int) -> tuple[float, float, float]:
    """Events, steps to victims, and processor seconds a 4 KiB request at random places of a drive in its steady state."""
    blocks = round(capacity / (32 * 64 * 4096) * 1.15) + 2
    parameters = build(SsdParameters, {**DRIVE, "capacity": capacity, "blocks_per_plane": blocks})
    engine = SsdEngine(parameters)
    shares = occupancy("greedy", 1 + parameters.effective_overprovisioning, 64)
    precondition(engine.state, Precondition("steady", occupancy=shares))
    costs = []
    for seed in range(3):
        pages = generator(seed, "pages").integers(0, parameters.logical_pages, REQUESTS)
        requests = make_requests(operation, pages * 4096, 4096)
        steps, events = engine.statistics()["victim_steps"], engine.events
        begin = time.process_time()
        engine.submit(requests, one_command_each(requests), engine.now)
        engine.advance(every=True)
        seconds = time.process_time() - begin
        costs.append(((engine.events - events) / REQUESTS, (engine.statistics()["victim_steps"] - steps) / REQUESTS, seconds / REQUESTS))
    return tuple(np.median(costs, axis=0).tolist())


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_request_costs_the_same_on_1_and_on_64_gib(operation: int) -> None:
    cost_of_a_request(GIB // 4, operation)  # compiles
    small, large = cost_of_a_request(GIB, operation), cost_of_a_request(64 * GIB, operation)
    print(f"1 GiB: {small}, 64 GiB: {large} (events, steps to victims, seconds a request)")
    assert large[0] == pytest.approx(small[0], rel=0.05)
    assert large[1] <= 1.05 * small[1]  # fewer where a plane has more blocks: the lowest count is found sooner
    assert large[2] <= 2 * small[2]


@pytest.mark.deep
def test_a_scan_of_100_gb_inside_a_drive_takes_less_than_a_minute() -> None:
    """Of processor time on one core, without loading."""
    drive = SmartDrive.of(part_of(presets.load("samsung-smart-400gb"), 3))
    size, count = MIB, 100 * GB // MIB
    drive.model.load(0, count * size)
    each, none = np.full(count, size), np.zeros(count, np.int64)
    begin = time.process_time()
    (share,) = run([drive], [Task(ProgramSteps(np.arange(count) * size, each, none + 900_000, none + 100), threads=2, ahead=15)])
    assert time.process_time() - begin < 60
    assert share.results == 100 * count
