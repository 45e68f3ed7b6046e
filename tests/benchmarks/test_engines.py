"""How much faster the compiled engine is than the SimPy specification, measured in turn in the same run."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import build
from flashsim.core.request import READ, WRITE, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification

ROUNDS = 7
CAPACITY = 112 * MIB
ENGINE_REQUESTS, SPECIFICATION_REQUESTS = 200_000, 2_000

#: Eight channels of four dies, 14 % over-provisioned: small, so that the specification reaches a steady state in seconds.
DRIVE: dict[str, Any] = {
    "capacity": CAPACITY, "page_size": "4KiB", "pages_per_block": 64, "blocks_per_plane": 18, "planes_per_die": 1, "dies_per_package": 2,
    "packages_per_channel": 2, "channels": 8, "read": "40us", "program": "200us", "erase": "1.5ms", "channel_rate": "400MB/s",
    "link_read_rate": "3GB/s", "link_write_rate": "3GB/s", "read_latency": "60us", "write_latency": "220us", "queue_depth": 32,
    "gc_reserve": 2,
}  # fmt: skip


def _requests(workload: str, count: int, seed: int) -> Requests:
    if workload == "256 KiB sequential reads":
        return make_requests(READ, np.arange(count) * 256 * KIB % CAPACITY, 256 * KIB)
    offsets = generator(seed, workload).integers(0, CAPACITY // 4096, count) * 4096
    return make_requests(READ if workload == "4 KiB random reads" else WRITE, offsets, 4096)


def _serve(drive: DeviceModel, requests: Requests) -> float:
    """Seconds that it takes to serve requests that are all submitted at once."""
    commands = one_command_each(requests)
    begin = time.perf_counter()
    drive.submit(requests, commands, drive.now)
    assert len(drive.advance(every=True)) == len(requests)
    return time.perf_counter() - begin


@pytest.mark.parametrize(
    ("workload", "least_ratio"), [("256 KiB sequential reads", 1), ("4 KiB random reads", 60), ("4 KiB overwrites under GC", 60)]
)
def test_engine_against_specification(
    workload: str, least_ratio: float, benchmark: BenchmarkFixture, rates: list[tuple[str, float, float, tuple[float, float, float]]]
) -> None:
    parameters = build(SsdParameters, DRIVE)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    engine_count, specification_count = ENGINE_REQUESTS, SPECIFICATION_REQUESTS
    if workload == "256 KiB sequential reads":
        engine_count, specification_count = engine_count // 64, specification_count // 32
    for drive in (engine, specification):
        drive.load(0, CAPACITY)
        if workload == "4 KiB overwrites under GC":  # until every die collects garbage
            _serve(drive, _requests(workload, CAPACITY // 4096 // 3, seed=0))
            assert drive.statistics()["flash_erases"] > 0
    engine_rates: list[float] = []
    specification_rates: list[float] = []

    def specification_first() -> tuple[tuple[int], dict[str, Any]]:
        seed = len(specification_rates) + 1
        specification_rates.append(specification_count / _serve(specification, _requests(workload, specification_count, seed)))
        return (seed,), {}

    def engine_round(seed: int) -> None:
        engine_rates.append(engine_count / _serve(engine, _requests(workload, engine_count, seed)))

    engine_round(0)  # compiles, or loads what was compiled
    engine_rates.clear()
    benchmark.pedantic(engine_round, setup=specification_first, rounds=ROUNDS)
    ratios = np.array(engine_rates) / np.array(specification_rates[: len(engine_rates)])
    spread = (float(ratios.min()), float(np.median(ratios)), float(ratios.max()))
    rates.append((workload, float(np.median(engine_rates)), float(np.median(specification_rates)), spread))
    assert spread[1] >= least_ratio


_SECOND_START = """
from numba.core import event
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.device.device import Device
with event.install_recorder("numba:compile") as recorder:
    for name in ("ocz-core-60gb", "toshiba-5400-320gb"):
        drive = Device.open(name)
        drive.load(0, 1 << 20)
        drive.serve(make_requests([READ, WRITE], 0, 1 << 20))
print(len(recorder.buffer))
"""


def test_a_second_start_compiles_nothing() -> None:
    counts = [
        int(subprocess.run([sys.executable, "-c", _SECOND_START], capture_output=True, text=True, check=True).stdout) for _ in range(2)
    ]
    assert counts[1] == 0
