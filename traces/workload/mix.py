"""Mix: two patterns in turn (uFLIP 7, parameter Ratio: so many requests of the first for one of the second)."""

from collections.abc import Iterator

from traces.workload.base import WorkloadRun, WorkloadSpace

PARAMETER = "Ratio"
UNIT = "count"

_PAIRS = (("SR", "RR"), ("SR", "RW"), ("RR", "RW"), ("SR", "SW"), ("RR", "SW"), ("SW", "RW"))


def runs(setting: WorkloadSpace) -> Iterator[WorkloadRun]:
    """The six pairs of different baselines at ratios from 1 to 64."""
    for first, second in _PAIRS:
        if not setting.write and "W" in first + second:
            continue
        for number, ratio in enumerate(setting.doubles(1, 64, quick=3)):
            patterns = (setting.pattern(first, number), setting.pattern(second, number))
            yield WorkloadRun(f"{first}/{second}", ratio, patterns, setting.count, ratio=ratio)
