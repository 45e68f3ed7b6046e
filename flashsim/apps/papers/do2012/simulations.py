"""The thesis's runs beyond those of `flashsim.pools.setup`: on eight disks and an SSD that are simulated, and the tests of TPC-H."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from flashsim.core.errors import FlashsimError
from flashsim.core.model import CompiledModel
from flashsim.core.records import RecordArray
from flashsim.core.request import READ, WRITE, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import GIB, HOURS, KIB, MICROSECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.engines import finish
from flashsim.device.scaling import part_of
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.system import DISK, SSD
from flashsim.experiments.runs.drives import DriveInUse
from flashsim.hdd.engine.drive import HddEngine
from flashsim.pools.devices import STRIPE, WORN
from flashsim.pools.setup import PoolSetup
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.precondition import Precondition, precondition

#: The preset nearest to SATA disks of 1 TB and 7200 rpm, eight of them; and the thesis's own SSD.
DISKS, DRIVES, FLASH = "seagate-barracuda-7200.12", 8, "iodrive-slc-160gb"
#: The thesis measured with the disks' write caches turned off (table 3.1).
NO_CACHE = {"write_behind": 0}
_PAGE = 8 * KIB
#: The share of the time, at its end, over which response times are told: the last two of ten hours.
_LAST = 0.2
#: Parts of which the SSD alone is one.
PARTS = 100
#: Drives to measure with random requests: the preset, other values of its parameters, how many parts it is divided into, drives, bytes of
#: each that are asked for (0: all), and requests outstanding at each.
_MEASURED: dict[str, tuple[str, dict[str, Any], int, int, int, int]] = {
    "8 disks, all of them": (DISKS, NO_CACHE, 1, DRIVES, 0, 8),
    "8 disks, the outer 200 GB": (DISKS, NO_CACHE, 1, DRIVES, 200 * GIB // DRIVES, 8),
    "SSD, one at a time": (FLASH, {}, PARTS, 1, 0, 1),
    "SSD, 64 outstanding": (FLASH, {}, PARTS, 1, 0, 64),
}


def preset_of(name: str, changes: Mapping[str, Any], parts: int) -> presets.Preset:
    """One of `parts` parts of a drive with other values of its parameters."""
    return part_of(DriveInUse(name, changes).load(), parts)


def _steady(occupancy: Sequence[Any], seed: int) -> Precondition:
    return Precondition("steady", occupancy=np.array(occupancy), seed=seed)


class _Responses:
    """Response times of requests that are recorded, from a time on, of some devices by operation; they are the first of the system's."""

    def __init__(self, begin: int, devices: Collection[int]) -> None:
        self._begin, self._devices = begin, devices
        self._samples: dict[tuple[int, int], list[Integers]] = {}

    def record(self, _: int, rows: RecordArray) -> None:
        completed = rows[(rows.time >= self._begin) & (rows.completed >= 0)]
        for device, operation in product(self._devices, (READ, WRITE)):
            mine = completed[(completed.device_number == device) & (completed.operation == operation)]
            self._samples.setdefault((device, operation), []).append(mine.completed - mine.time)

    def statistics(self) -> dict[str, list[float]]:
        """Mean, median, 99 and 99.9 % in microseconds."""
        statistics = {}
        for (device, operation), parts in self._samples.items():
            times = np.concatenate(parts) / MICROSECONDS
            if len(times):
                name = f"{'SSD' if device == SSD else 'disk'} {'read' if operation == READ else 'write'}"
                statistics[name] = [float(times.mean()), *np.quantile(times, (0.5, 0.99, 0.999)).tolist()]
        return statistics


def parts_at(scale: float) -> int:
    return round(1 / scale)


def run_on_drives(
    setup: Mapping[str, Any], disks: Mapping[str, Any], ssd: Mapping[str, Any], occupancy: Sequence[Any] | None
) -> dict[str, Any]:
    """Run a system, whose devices are replaced, on such a part of each drive as its scale says, with other values of presets; JSON-ready.

    The SSD's steady state starts from an `occupancy` (`flashsim.ssd.precondition.Precondition`); None: it is empty at the beginning.
    """
    system = PoolSetup.of(setup)
    parts = parts_at(system.scale)
    disk, flash = preset_of(DISKS, NO_CACHE | dict(disks), parts), preset_of(FLASH, ssd, parts)
    assert disk.disk is not None and flash.flash is not None
    for preset in (disk, flash):
        finish(preset)
    drives: dict[int, CompiledModel | Striped] = {DISK: Striped([HddEngine(disk.disk) for _ in range(DRIVES)], STRIPE)}
    if system.design != "none":
        drive = drives[SSD] = SsdEngine(flash.flash)
        if occupancy is not None:
            precondition(drive.state, _steady(occupancy, system.seed))
    responses = _Responses(round((1 - _LAST) * system.time * system.scale), drives)
    devices = {"disk": f"{DRIVES}x{DISKS}/{parts}", "ssd": f"{FLASH}/{parts}"}
    result = replace(system, devices=devices).build(devices=drives, record=responses.record).result()
    empty = {name: np.zeros(system.intervals, np.int64) for name in WORN}
    return replace(result, counts=empty | dict(result.counts)).as_dict() | {"responses": responses.statistics()}


def measure_rates(occupancy: Sequence[Any], seed: int) -> dict[str, list[float]]:
    """Random reads and writes of a page a second, by what is measured; an SSD is in its steady state, which starts from an occupancy."""
    by_drive = {}
    for name, (of, changes, parts, drives, span, depth) in _MEASURED.items():
        rates, preset = [], preset_of(of, changes, parts)
        finish(preset)
        for operation in (READ, WRITE):
            device = Device(preset)
            if device.preset.flash:
                device.precondition(_steady(occupancy, seed))
            rates.append(drives * _rate(device, operation, span or device.capacity, depth, seed))
        by_drive[name] = rates
    return by_drive


def _rate(device: Device, operation: int, span: int, depth: int, seed: int) -> float:
    count = 40_000 if device.preset.flash else 1_000
    requests = make_requests(operation, generator(seed, "rates", operation).integers(0, span // _PAGE, count) * _PAGE, _PAGE)
    requests["dependency"] = np.maximum(np.arange(count) - depth, -1)
    ends = np.sort(device.serve(requests)["completed"])
    return float((count // 2) * SECONDS / (ends[3 * count // 4] - ends[count // 4]))


def run_tests(setup: Mapping[str, Any]) -> dict[str, Any]:
    """Run TPC-H's power test and throughput test: figures, when each kind of transaction ended, and what was counted; JSON-ready."""
    whole = PoolSetup.of(setup)
    run, now, until = whole.build(), 0, whole.time * whole.scale
    while not run.is_over:
        if now >= until:
            raise FlashsimError(f"{whole.workload}: it has not ended after {whole.time / HOURS:g} h")
        now += round(HOURS * whole.scale)
        run.run(now)
    ends = {kind: time / SECONDS for kind, time in run.end_times.items()}
    return {"figures": run.figures(), "ended": ends, "counts": run.counts}
