"""The engine's compiled code is found again by the next process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from flashsim.core.kernel import compiled
from flashsim.core.request import READ, make_requests
from flashsim.hdd.engine import HddEngine
from tests.flashsim.hdd.drives import serve, small_drive

PROGRAM = """
from flashsim.core.request import READ, make_requests
from flashsim.hdd import engine
from tests.flashsim.hdd.drives import serve, small_drive
serve(engine.HddEngine(small_drive()), make_requests(READ, 0, 512))
print(sum(engine._run.stats.cache_hits.values()), sum(engine._run.stats.cache_misses.values()))
"""


@pytest.mark.skipif(not compiled(), reason="kernels run as plain Python")
def test_a_second_process_compiles_nothing() -> None:
    serve(HddEngine(small_drive()), make_requests(READ, 0, 512))
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["1", "0"]


def test_queued_requests_are_served_first_come_first_served() -> None:
    requests = make_requests(READ, np.array([900, 3, 700, 10, 1]) * 512, 512)
    completions = serve(HddEngine(small_drive(queue_depth=8)), requests)
    assert completions["id"].tolist() == [0, 1, 2, 3, 4]
    assert completions["started"].tolist() == [0] * 5
