"""Granularity: how the size of requests matters (uFLIP 1, parameter IOSize)."""

from collections.abc import Iterator

from flashsim.core.units import KIB
from traces.workload.base import WorkloadRun, WorkloadSpace

PARAMETER = "IOSize"
UNIT = "bytes"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines at sizes from the smallest to 512 KiB."""
    values = setting.doubles(setting.least, min(512 * KIB, setting.size // 8), quick=3)
    for name in setting.baselines():
        for number, size in enumerate(values):
            yield WorkloadRun(name, size, (setting.pattern(name, number, size),), setting.count)
