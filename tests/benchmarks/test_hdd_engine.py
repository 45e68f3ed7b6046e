"""How much faster the compiled engine of hard disks is than the SimPy specification, measured in turn in the same run."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.request import READ, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.device.striped import Striping
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from tests.flashsim.hdd.deep_disks import array_of

ROUNDS = 5
ENGINE_REQUESTS, SPECIFICATION_REQUESTS = 100_000, 1_000


def _requests(workload: str, drive: DeviceModel, count: int, seed: int) -> Requests:
    if "sequential" in workload:
        return make_requests(READ, np.arange(count) * 128 * KIB % (drive.capacity // 2), 128 * KIB, serial=True)
    offsets = generator(seed, workload).integers(0, drive.capacity // (8 * KIB), count) * 8 * KIB
    return make_requests(WRITE if "writes" in workload else READ, offsets, 8 * KIB, serial="queue" not in workload)


def _rate(drive: DeviceModel, requests: Requests) -> float:
    """Requests a second of processor time."""
    commands = one_command_each(requests)
    begin = time.process_time()
    drive.submit(requests, commands, drive.now)
    assert len(drive.advance(every=True)) == len(requests)
    return len(requests) / (time.process_time() - begin)


@pytest.mark.parametrize(
    ("workload", "changes", "least_ratio"),
    [
        ("8 KiB random reads", {}, 60),
        ("8 KiB random writes", {}, 60),
        ("128 KiB sequential reads", {}, 30),
        ("8 KiB random reads, queue of 32, SPTF", {"scheduler": "sptf", "queue_depth": 32}, 30),
        ("8 KiB random reads, 18 drives", {"drives": 18}, 60),
    ],
)
def test_engine_against_specification(
    workload: str, changes: dict[str, str | int], least_ratio: float, rates: list[tuple[str, float, float, tuple[float, float, float]]]
) -> None:
    parameters = presets.load("toshiba-5400-320gb").parameters
    drives = int(changes.get("drives", 1))
    drive = dataclasses.replace(parameters, **{name: value for name, value in changes.items() if name != "drives"})
    kinds: tuple[type[HddEngine], type[HddSpecification]] = (HddEngine, HddSpecification)
    engine, specification = (array_of(kind, drive, Striping(drives=drives)) if drives > 1 else kind(drive) for kind in kinds)
    _rate(engine, _requests(workload, engine, 100, 0))  # loads what was compiled
    pairs = [
        (
            _rate(engine, _requests(workload, engine, ENGINE_REQUESTS, seed)),
            _rate(specification, _requests(workload, engine, SPECIFICATION_REQUESTS, seed)),
        )
        for seed in range(ROUNDS)
    ]
    ratios = np.array([fast / slow for fast, slow in pairs])
    spread = (float(ratios.min()), float(np.median(ratios)), float(ratios.max()))
    fast, slow = np.median(pairs, axis=0)
    rates.append((f"disk: {workload}", float(fast), float(slow), spread))
    assert spread[1] >= least_ratio
