"""Alignment: what it costs that requests are moved off their boundaries (uFLIP 2, parameter IOShift)."""

from collections.abc import Iterator
from dataclasses import replace

from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "IOShift"
UNIT = "bytes"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines, moved by nothing up to half a request."""
    values = [0, *setting.doubles(setting.least, setting.block // 2, quick=3)]
    for name, shift, pattern in baseline_runs(setting, values):
        yield WorkloadRun(name, shift, (replace(pattern, shift=shift),), setting.count)
