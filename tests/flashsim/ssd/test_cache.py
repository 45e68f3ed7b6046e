"""A second process compiles nothing, whatever policies it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flashsim.core.kernel import is_compiled
from tests.yardstick import seconds

#: Runs engine and specification, and prints how many kernels were compiled rather than read from the cache.
PROGRAM = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    from flashsim.ssd.engine.drive import SsdEngine
    from flashsim.ssd.specification.drive import SsdSpecification
    from flashsim.testing.flash_drives import drive, random_workload, serve_all
    for model in (SsdEngine, SsdSpecification):
        parameters = drive()
        requests, at = random_workload(1, parameters, 50)
        device = model(parameters)
        device.load(0, parameters.capacity)
        serve_all(device, requests, at)
        device.power_cut(device.now)
print(len(recorder.buffer))
"""


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
def test_a_second_process_compiles_nothing() -> None:
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=seconds(250))
    assert result.stdout.split() == ["0"]
