"""A second process compiles nothing, whatever policies it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flashsim.core.kernel import compiled

#: Runs engine and specification, and prints how many kernels were compiled rather than read from the cache.
PROGRAM = """
import sys
from numba.core.dispatcher import Dispatcher
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from tests.flashsim.ssd.drives import drive, random_workload, served
for model in (SsdEngine, SsdSpecification):
    parameters = drive()
    requests, at = random_workload(1, parameters, 50)
    device = model(parameters)
    device.load(0, parameters.capacity)
    served(device, requests, at)
    device.power_cut(device.now)
modules = [module for name, module in sys.modules.items() if name.startswith("flashsim")]
stats = {id(thing): thing.stats for module in modules for thing in vars(module).values() if isinstance(thing, Dispatcher)}.values()
print(sum(sum(each.cache_misses.values()) for each in stats), sum(bool(each.cache_hits) for each in stats))
"""


@pytest.mark.skipif(not compiled(), reason="nothing is compiled")
def test_a_second_process_compiles_nothing() -> None:
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=250)
    misses, hits = map(int, result.stdout.split())
    assert misses == 0
    assert hits > 3
