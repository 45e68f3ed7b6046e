"""Locality: how the size of the area that requests fall into matters (uFLIP 3, parameter TargetSize)."""

from collections.abc import Iterator
from dataclasses import replace

from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "TargetSize"
UNIT = "bytes"

#: Requests that the largest areas hold: sequential ones repeat sooner.
_RANDOM, _SEQUENTIAL = 2**16, 2**8


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines in areas from one request to 65,536 (sequential: 256)."""
    for names, most in ((("SR",), _SEQUENTIAL), (("RR", "RW"), _RANDOM), (("SW",), _SEQUENTIAL)):
        values = setting.doubles(setting.block, min(most * setting.block, setting.size // 2))
        for name, size, pattern in baseline_runs(setting, values, names):
            yield WorkloadRun(name, size, (replace(pattern, target_size=min(size, pattern.target_size)),), setting.count)
