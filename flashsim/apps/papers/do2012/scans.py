"""Scans of chapter 5: LINEITEM on the disk, on the SSD and inside the Smart SSD, at the thesis's size, with their times and energies."""

from dataclasses import replace
from typing import Any

import numpy as np

from flashsim.core.request import READ, make_requests
from flashsim.core.units import JOULES, KIB, MB, SECONDS, WATTS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.scaling import part_of
from flashsim.device.smart.client import Polling, run
from flashsim.device.smart.inside import HOST_BYTE, MACHINE_IDLE, energy_of
from flashsim.device.smart.protocol import ProgramSteps, Task
from flashsim.device.smart.runtime import SmartDrive

DISK, SSD, SMART = "sas-10k-146gb", "samsung-sas-400gb", "samsung-smart-400gb"
#: LINEITEM of TPC-H at scale factor 100 (its specification, section 4.2.5), and the bytes of the key that the query returns.
ROWS, KEY = 600_037_902, 4
PAGE, REQUEST = 8 * KIB, 256 * KIB  # the thesis reads 32 pages at once
#: Rows of 148 bytes a page: of SQL Server's format 158 bytes of 8,096 each, and as columns without a row's overhead.
ROWS_A_PAGE = {"NSM": 51, "PAX": 54}
#: Pages of a step inside the drive, and requests that the host has outstanding.
_STEP, _OUTSTANDING, _TOGETHER = 128, 8, 1 << 14
#: A third of the SSD, which holds the table and is as fast.
_PARTS = 3
#: Power of the disk at work, W, solved from the energies over idle of the SSD and the disk.
DISK_POWER = 6.5


def _outcome(seconds: float, over_idle: float, **parts: float) -> dict[str, float]:
    return {"seconds": seconds, "over_idle": over_idle, "joules": over_idle + seconds * MACHINE_IDLE, **parts}


def on_host(name: str, rows: int) -> dict[str, float]:
    """Read the table's pages and scan them on the host, which is faster than the disk and the SSD."""
    preset = presets.load(name)
    drive = Device(part_of(preset, _PARTS) if preset.flash else preset, maximum_command=REQUEST)
    count = -(-rows * PAGE // (ROWS_A_PAGE["NSM"] * REQUEST))
    drive.load(0, count * REQUEST)
    for first in range(0, count, _TOGETHER):
        each = np.arange(min(_TOGETHER, count - first))
        requests = make_requests(READ, (first + each) * REQUEST, REQUEST)
        requests["dependency"] = np.maximum(each - _OUTSTANDING, -1)
        drive.serve(requests)
    seconds, size = drive.now / SECONDS, count * REQUEST
    # the SSD is the Smart SSD without programs: what reading takes, per byte that passes its channels
    power = DISK_POWER
    if preset.flash:
        smart = presets.load(SMART)
        assert smart.flash and smart.inside
        power = smart.inside.active / WATTS * size / smart.flash.bus_rate / seconds
    return _outcome(seconds, power * seconds + HOST_BYTE * size, mb_s=size / seconds / MB)


def inside(rows: int, layout: str, selectivity: float, average: bool, cores: int = 0) -> dict[str, float]:
    """Run the query in the Smart SSD, with as many cores as it has or another number; an average returns no rows."""
    preset = part_of(presets.load(SMART), _PARTS)
    assert preset.inside and preset.flash
    own = replace(preset.inside, cores=cores or preset.inside.cores)
    drive = SmartDrive.of(replace(preset, inside=own))
    steps = -(-rows // (ROWS_A_PAGE[layout] * _STEP))
    drive.model.load(0, steps * _STEP * PAGE)
    of_step = np.minimum(rows - np.arange(steps) * ROWS_A_PAGE[layout] * _STEP, ROWS_A_PAGE[layout] * _STEP)
    matches = np.diff(np.rint(np.cumsum(of_step) * selectivity), prepend=0).astype(np.int64)
    visit = own.column_work if layout == "PAX" else own.tuple_work
    size = np.full(steps, _STEP * PAGE)
    results = matches * (0 if average else KEY)
    task = Task(
        ProgramSteps(np.arange(steps) * size, size, of_step * visit + matches * own.match_work, results), threads=own.cores, ahead=15
    )
    (share,) = run([drive], [task], Polling())
    elapsed, statistics = share.end - share.begin, drive.statistics()
    energy = energy_of(own, statistics, elapsed)
    busy = {name: statistics[f"{name}_busy_ns"] / elapsed for name in ("bus", "link")}
    return _outcome(elapsed / SECONDS, energy.over_idle / JOULES, core=statistics["core_busy_ns"] / elapsed / own.cores, **busy)


def bandwidth(name: str, size: int) -> dict[str, float]:
    """Read `size` bytes in sequence, 256 KiB at once; from inside the Smart SSD without any work on them."""
    if name != SMART:
        return on_host(name, size // PAGE * ROWS_A_PAGE["NSM"])
    drive = SmartDrive.of(part_of(presets.load(SMART), _PARTS))
    count = size // REQUEST
    drive.model.load(0, count * REQUEST)
    each, none = np.full(count, REQUEST), np.zeros(count, np.int64)
    (share,) = run([drive], [Task(ProgramSteps(np.arange(count) * each, each, none, none), threads=2, ahead=31)])
    return {"mb_s": count * REQUEST / MB * SECONDS / (share.end - share.begin)}


def smart_run(where: str, rows: int, **parameters: Any) -> dict[str, float]:
    """A scan: on the host with the data on a device, or inside the Smart SSD."""
    return inside(rows, **parameters) if where == SMART else on_host(where, rows)
