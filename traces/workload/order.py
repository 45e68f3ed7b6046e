"""Order: requests backwards, in place, or with gaps, as for a column of a table in rows (uFLIP 5, parameter Incr)."""

from collections.abc import Iterator
from dataclasses import replace

from traces.workload.base import WorkloadRun, WorkloadSpace, baseline_runs

PARAMETER = "Incr"
UNIT = "count"


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """Sequential reads and writes with increments -1, 0, and 1 to 256 requests; writes in the whole area."""
    for name, increment, pattern in baseline_runs(setting, [-1, 0, *setting.doubles(1, 256)], ("SR", "SW")):
        whole = setting.size // setting.block * setting.block
        moved = replace(pattern, increment=increment, target_offset=0, target_size=whole)
        yield WorkloadRun(name, increment, (moved if abs(increment) > 1 else replace(pattern, increment=increment),), setting.count)
