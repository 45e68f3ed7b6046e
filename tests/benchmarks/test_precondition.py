"""Drives of 64 GiB and 1 TiB with 4 KiB pages come into their steady states in seconds, and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from flashsim.core.kernel import is_compiled
from flashsim.core.units import GIB
from tests.peak_memory import PEAK_MEMORY

#: Runs in a process of its own, whose peak memory is then that of the whole work; prints seconds, bytes and what was done.
_PROGRAM = (
    PEAK_MEMORY
    + """
import json, sys, time
from flashsim.core.host_queue import one_command_each
from flashsim.core.parameters import build
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.precondition import Precondition, precondition
from models.occupancy import occupancy
from models.write_amplification import greedy
from tests.benchmarks.test_engines import DRIVE

fill, capacity, blocks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
changes = {"capacity": capacity, "pages_per_block": 256, "blocks_per_plane": blocks + 2}
parameters = build(SsdParameters, {**DRIVE, **changes})
alpha = 1 + parameters.effective_overprovisioning
engine = SsdEngine(parameters)
state = engine.state
begin, cpu = time.perf_counter(), time.process_time()
shares = occupancy("greedy", alpha, 256) if fill == "steady" else None
done = precondition(state, Precondition(fill, occupancy=shares))
seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
engine.find_pointers()


def a_second(operation):
    # Requests at random places that a second of the processor serves.
    pages = generator(operation, "pages").integers(0, parameters.logical_pages, 200_000)
    requests = make_requests(operation, pages * 4096, 4096)
    before = time.process_time()
    engine.submit(requests, one_command_each(requests), engine.now)
    engine.advance(every=True)
    return len(requests) / (time.process_time() - before)


rates = {name: max(a_second(operation) for _ in range(3)) for name, operation in (("reads", READ), ("writes", WRITE))}
print(json.dumps({
    **rates, "seconds": seconds, "cpu_seconds": cpu_seconds,
    "memory": peak_memory(), "steady": done.steady,
    "write_amplification": done.write_amplification, "predicted": greedy(alpha, 256),
}))
"""
)


def _measured(fill: str, capacity: int, blocks: int) -> dict[str, float]:
    command = [sys.executable, "-c", _PROGRAM, fill, str(capacity), str(blocks)]
    told: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
@pytest.mark.parametrize(("fill", "alpha"), [("steady", 1.07), ("steady", 1.15), ("steady", 1.28), ("random", 1.15), ("sequential", 1.15)])
def test_a_drive_of_64_gib(fill: str, alpha: float) -> None:
    """Processor time of the one core that it uses, so that other work on the machine does not count."""
    _measured(fill, GIB // 16, 20)  # compiles
    told = _measured(fill, 64 * GIB, round(2048 * alpha))
    assert told["cpu_seconds"] <= 10
    assert told["memory"] <= 1.5 * GIB
    if fill == "steady":
        assert told["steady"]
        assert told["write_amplification"] == pytest.approx(told["predicted"], rel=0.01)


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_a_drive_of_1_tib() -> None:
    _measured("steady", GIB // 16, 20)  # compiles
    small, large = (_measured("steady", size * GIB, round(size * 32 * 1.07)) for size in (32, 1024))
    print(f"32 GiB: {small}, 1 TiB: {large}")
    assert large["cpu_seconds"] <= 60
    assert large["memory"] <= 8 * GIB
    assert large["steady"]
    assert large["write_amplification"] == pytest.approx(large["predicted"], rel=0.01)
    assert large["reads"] >= small["reads"] / 3
    assert large["writes"] >= small["writes"] / 3
