"""Parallelism: several processes at a time, each in an area of its own (uFLIP 6, parameter ParallelDegree)."""

from collections.abc import Iterator

from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "ParallelDegree"
UNIT = "count"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines in 1 to 16 processes."""
    values = setting.doubles(1, min(16, setting.count), quick=2)
    for name, degree, pattern in baseline_runs(setting, values):
        yield WorkloadRun(name, degree, tuple(pattern.part(number, degree) for number in range(degree)), setting.count)
