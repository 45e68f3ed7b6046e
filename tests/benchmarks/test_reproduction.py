"""Time and memory of a paper's runs grow with the scale, and no faster."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from flashsim.core.kernel import is_compiled
from tests.peak_memory import PEAK_MEMORY

_RUN = (
    PEAK_MEMORY
    + """
import sys, time
from flashsim.experiments.runs.jobs import Settings
from flashsim.apps.papers.do2009.runs import Setup
Setup(sys.argv[1], 600).job(Settings(0.002)).make()  # compiles
begin = time.process_time()
Setup(sys.argv[1], 600).job(Settings(float(sys.argv[2]))).make()
print(time.process_time() - begin, peak_memory())
"""
)


def measured(join: str, scale: float) -> tuple[float, float]:
    """Processor seconds of a run on three states of both machines, and the process's peak in MiB."""
    done = subprocess.run([sys.executable, "-c", _RUN, join, str(scale)], capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak / 2**20


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
@pytest.mark.parametrize("join", ["bnl", "sort-merge", "grace-hash", "hybrid-hash"])
def test_time_and_memory_grow_no_faster_than_the_scale(join: str) -> None:
    scales = (0.01, 0.1, 1.0)
    found = {scale: measured(join, scale) for scale in scales}
    for scale, (seconds, peak) in found.items():
        print(f"{join} scale {scale:g}: {seconds:.2f} s, {peak:.0f} MiB")
    for small, large in itertools.pairwise(scales):
        for quantity in (0, 1):
            assert found[large][quantity] <= 1.5 * large / small * found[small][quantity]
    assert found[1.0][1] < 4096
