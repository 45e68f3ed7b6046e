"""Bursts: requests in groups with 100 ms between (uFLIP 9, parameter Burst)."""

from collections.abc import Iterator

from flashsim.core.units import MILLISECONDS
from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "Burst"
UNIT = "count"

_PAUSE = 100 * MILLISECONDS


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The four baselines in bursts of 8 to 512 requests."""
    for name, burst, pattern in baseline_runs(setting, setting.doubles(8, 512, quick=2)):
        yield WorkloadRun(name, burst, (pattern,), setting.count, pause=_PAUSE, burst=burst)
