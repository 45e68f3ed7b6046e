"""Energy of a query: each drive's by state, and the system's, above what it takes when idle and in all."""

from collections.abc import Mapping, Sequence
from typing import Any

from flashsim.core.units import JOULES, SECONDS, WATTS, transfer_time
from flashsim.device.smart.inside import energy_of
from flashsim.device.smart.runtime import SmartDrive
from flashsim.ssd.energy import in_joules
from flashsim.studies.smart.plans import PlanRun
from flashsim.studies.smart.timing import Machine

#: Power of a machine with a drive when idle, W (do2012, section 5.4.1.2), and energy of its host to take in and scan a byte, J: solved from
#: the thesis's energies over idle of the SSD and the disk.
IDLE, HOST_BYTE = 235.0, 82.6e-9


def energies(
    machine: Machine, run: PlanRun, page_size: int, drives: Sequence[SmartDrive], scan: float, builds: float
) -> tuple[list[dict[str, Any]], dict[str, float] | None]:
    """Shares of the time in which bus and cores of each drive with pages were busy, and its energy, J; and that of host and drives by part.

    Nothing, and None, of drives without powers.  `drives` are those that ran a program; without them the host read the pages, each of which
    passed the bus once.  The scan and all behind it took `scan` s, and the build sides before `builds` s.
    """
    if machine.preset.inside is None or machine.preset.flash is None:
        return [], None
    inside, rate, elapsed = machine.preset.inside, machine.preset.flash.bus_rate, max(1, round(scan * SECONDS))
    counters: list[Mapping[str, Any]] = [drive.statistics() for drive in drives] or [
        {"bus_busy_ns": transfer_time(sum(part.pages) * page_size, rate), "core_busy_ns": 0} for part in run.parts if part.pages
    ]
    rows = []
    for each in counters:
        shares = {"bus": each["bus_busy_ns"] / elapsed, "cores": each["core_busy_ns"] / elapsed / inside.cores}
        energy = energy_of(inside, each, elapsed)
        rows.append({"busy": shares, "energy": in_joules(energy._asdict()) | {"over_idle": energy.over_idle / JOULES}})
    built = _built(run, run.own if drives else ()) * page_size
    reading = sum(each["energy"]["over_idle"] for each in rows) + built / rate * inside.active / WATTS
    idle = (IDLE + (machine.drives - 1) * inside.idle / WATTS) * (scan + builds)
    host = HOST_BYTE * (built + (run.results if drives else run.pages * page_size))
    return rows, {"idle": idle, "drives": reading, "host": host, "over_idle": reading + host, "total": idle + reading + host}


def _built(run: PlanRun, own: Sequence[int]) -> int:
    """Pages of build sides that the host reads: all but those that each drive has of its own."""
    return sum(build.pages + _built(build, ()) for stage, build in run.builds.items() if stage not in own)
