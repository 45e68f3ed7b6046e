"""Pause: whether a device recovers while nobody asks for anything (uFLIP 8, parameter Pause)."""

from collections.abc import Iterator

from flashsim.core.units import MICROSECONDS
from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "Pause"
UNIT = "ns"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines with 0.1 ms to 25.6 ms between requests."""
    values = setting.doubles(100 * MICROSECONDS, 25600 * MICROSECONDS)
    for name, pause, pattern in baseline_runs(setting, values):
        yield WorkloadRun(name, pause, (pattern,), setting.count, pause=pause)
