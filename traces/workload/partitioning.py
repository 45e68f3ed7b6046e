"""Partitioning: sequential requests that take turns in several areas, as a sort merges runs (uFLIP 4, parameter Partitions)."""

from collections.abc import Iterator
from dataclasses import replace

from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "Partitions"
UNIT = "count"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """Sequential reads and writes in 1 to 256 areas."""
    values = setting.doubles(1, min(256, setting.size // 2 // setting.block, setting.count))
    for name, partitions, pattern in baseline_runs(setting, values, ("SR", "SW")):
        yield WorkloadRun(name, partitions, (replace(pattern, partitions=partitions),), setting.count)
