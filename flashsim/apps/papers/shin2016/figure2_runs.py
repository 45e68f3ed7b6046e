"""Runs of the benchmark of section 2.4."""

from typing import Any

from flashsim.apps.papers.shin2016.runs import DEVICES
from flashsim.core.units import KIB, MIB
from flashsim.device.device import Device
from flashsim.studies.bench import aio
from flashsim.studies.bench.aio import FILE, Grid
from flashsim.studies.bench.targets import SimulatedTarget
from flashsim.studies.bench.uflip import Method

#: Sizes of 4 KB to 2 MB, and levels of 1 to 512; beyond 64 at once those sizes only that need them.
_SIZES = [4 * KIB << power for power in range(10)]
_GRIDS = [Grid.of(_SIZES, [1 << power for power in range(7)]), Grid.of(_SIZES[:5], [128, 256, 512])]
#: Measurements that suffice to judge the claim, at small scales.
_FEW = [Grid.of([4 * KIB, 8 * KIB, 32 * KIB, 64 * KIB], [1, 512]), Grid.of([MIB], [1])]


def bandwidths(drive: str, whole: bool, seed: int) -> list[dict[Any, Any]]:
    """Every size with every level on one drive, JSON-ready: a record a run (`flashsim.studies.bench.uflip.COLUMNS`)."""
    target = SimulatedTarget(Device.open(DEVICES[drive]), FILE)
    grids = _GRIDS if whole else _FEW
    return [run for grid in grids for run in aio.run_all(target, grid, Method(seed=seed), ["write"])[2].to_dict("records")]
