"""Simulated times of a plan's run: pages to the host over the link, or programs in sessions inside the drives; and prices of their work."""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.programs.projection import COMPUTE
from flashsim.apps.smart.plans import EXTENT, READ_COLUMNS, DrivePart, PlanRun, StoredTable
from flashsim.core.errors import CapacityError, InvalidParameterError, RefusedError
from flashsim.core.request import READ, SECTOR, Integers, Requests, make_requests
from flashsim.core.units import JOULES, SECONDS, WATTS, transfer_time
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.smart import client
from flashsim.device.smart.inside import HOST_BYTE, MACHINE_IDLE, Inside, energy_of
from flashsim.device.smart.protocol import ProgramSteps, Status, Task
from flashsim.device.smart.runtime import SmartDrive
from flashsim.execution.cpu import DEFAULT, CpuModel, kernel_times
from flashsim.execution.requests import HOST, Work
from flashsim.ssd.energy import in_joules

#: Extents that a host reads at once.
OUTSTANDING = 8
#: A function of a value costs a core inside a drive as much as so many tuples that qualify (estimate).
_FUNCTION = 0.1


@dataclass(frozen=True)
class SmartMachine:
    """A host and its drives, all of one preset."""

    preset: Preset
    cpu: CpuModel | None
    drives: int = 1

    @property
    def host_cores(self) -> int:
        return self.cpu.cores[HOST] if self.cpu else 1

    @property
    def inside(self) -> Inside:
        """The inside of a drive; it is refused of drives without."""
        if self.preset.inside is None:
            raise RefusedError(f"device: {self.preset.name} has no [inside] to run programs in, only where='host'; samsung-smart-400gb has")
        return self.preset.inside

    @property
    def host_prices(self) -> Mapping[str, float]:
        """Time of a core of the host by kind of work, ns; none without a CPU."""
        return {DEFAULT: 0.0, **(self.cpu.user if self.cpu else {})}

    @property
    def drive_prices(self) -> Mapping[str, float]:
        """Time of a core of a drive by kind of work, ns; whatever is done with a tuple that qualifies costs as much as its copy."""
        inside, function = self.inside, self.inside.match_work * _FUNCTION
        scan = {Work.PAGE: inside.page_work, Work.READ_TUPLE: inside.tuple_work, READ_COLUMNS: inside.column_work}
        return {**scan, Work.COMPARE: function, COMPUTE: function, DEFAULT: inside.match_work}

    @property
    def room(self) -> int:
        """Bytes of a drive's memory for programs' tables: what extents and results leave."""
        return max(0, self.inside.memory - 2 * OUTSTANDING * EXTENT)


def price_work(work: Mapping[str, int], prices: Mapping[str, float]) -> float:
    return sum(prices.get(kind, prices[DEFAULT]) * count for kind, count in work.items())


def _times(works: Iterable[Mapping[str, int]], prices: Mapping[str, float]) -> Integers:
    return np.array([round(price_work(each, prices)) for each in works], np.int64)


def _lengths(part: DrivePart, page_size: int) -> Integers:
    return np.array(part.pages, np.int64) * page_size


def check_capacity(machine: SmartMachine, tables: Collection[StoredTable]) -> None:
    """Refuse tables of which a drive does not hold its parts."""
    size = max(map(sum, zip(*([pages * each.file.page_size for pages in each.pages_on(machine.drives)] for each in tables), strict=True)))
    if size > machine.preset.capacity:
        raise CapacityError(f"device: {machine.preset.name} holds {machine.preset.capacity} B, but the tables take {size} B of a drive")


def host_seconds(machine: SmartMachine, run: PlanRun, page_size: int) -> float:
    """Time of a run whose pages the host reads: each extent's work begins when it has come and a core is free."""
    ready, work, prices = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], machine.host_prices
    for part in run.parts:
        if not part.pages:
            continue
        device, requests = host_reads(machine, part, page_size)
        ready.append(device.serve(requests, settle=False)["completed"])
        work.append(_times(part.work, prices) + kernel_times(machine.cpu, device, requests["length"]))
    first = _times((part.first for part in run.parts), prices)
    end = on_cores(np.concatenate(ready), np.concatenate(work), machine.host_cores)
    end += on_cores(np.zeros_like(first), first, machine.host_cores)
    return (end + price_work(sum((part.last for part in run.parts), run.host), prices)) / SECONDS


def host_reads(machine: SmartMachine, part: DrivePart, page_size: int) -> tuple[Device, Requests]:
    """A fresh drive that holds a part's extents, and the host's reads of these."""
    device, lengths = Device(machine.preset), _lengths(part, page_size)
    offsets = np.arange(len(lengths)) * EXTENT
    device.load(0, int(offsets[-1] + lengths[-1]))
    requests = make_requests(READ, offsets, lengths)
    requests["dependency"] = np.maximum(np.arange(len(requests)) - OUTSTANDING, -1)
    return device, requests


def build_seconds(machine: SmartMachine, run: PlanRun, page_size: int, own: Sequence[int] = ()) -> float:
    """Time of the host to read and prepare what stages need first, one after another, except those whose build side is each drive's own."""
    builds = [build for stage, build in run.builds.items() if stage not in own]
    return sum((build_seconds(machine, build, page_size) + host_seconds(machine, build, page_size) for build in builds), 0.0)


def on_cores(ready: Integers, work: Integers, cores: int) -> int:
    """End of the last of some pieces of work, each of which begins once it is ready and a core is free, in order of readiness."""
    free = [0] * cores
    for row in np.argsort(ready, kind="stable").tolist():
        heapq.heapreplace(free, max(free[0], int(ready[row])) + int(work[row]))
    return max(free)


def drive_seconds(machine: SmartMachine, run: PlanRun, page_size: int, drives: Sequence[SmartDrive] = ()) -> float:
    """Time of a run whose first part is a program in each of the drives, or of fresh ones; the host takes results as it works on them."""
    tasks = [_task(machine, run, number, page_size) for number, part in enumerate(run.parts) if part.pages]
    devices = drives or fresh_drives(machine, run)
    for device, task in zip(devices, tasks, strict=True):
        device.model.load(0, int(np.max(task.steps.offsets + task.steps.lengths)))
    host = price_work(run.host, machine.host_prices)
    rate = max(1, int(run.results * SECONDS / host)) if run.results and host else 0
    shares = client.run(devices, tasks, client.Polling(rate=rate))
    for status in (share.status for share in shares):
        if status is Status.NO_MEMORY:
            bound = f"the program needs {max(task.memory for task in tasks)} B beside its extents"
            raise InvalidParameterError("memory", f"{machine.inside.memory} B in {machine.preset.name}", bound)
        if status is not Status.DONE:
            raise InvalidParameterError("program", status.name.lower().replace("_", " "), "it must end")
    return max((share.end for share in shares), default=0) / SECONDS


def fresh_drives(machine: SmartMachine, run: PlanRun) -> list[SmartDrive]:
    return [SmartDrive.of(machine.preset) for part in run.parts if part.pages]


def _task(machine: SmartMachine, run: PlanRun, number: int, page_size: int) -> Task:
    """A part as the drive sees it: extents of build sides of its own, and its tables; its extents, and what is left after them."""
    part, own, prices = run.parts[number], [run.builds[stage].parts[number] for stage in run.own], machine.drive_prices
    # A step without pages follows all before it; of two, the first is over when what follows the second begins.
    between = [_times([part.first, {}], prices)] if part.first else []
    blocks = [*own, *([None, None] if part.first else []), part, None]
    lengths = np.concatenate([[0] if block is None else _lengths(block, page_size) for block in blocks])
    work = np.concatenate([*(_times(build.work, prices) for build in own), *between, _times([*part.work, part.last], prices)])
    results = np.zeros(len(lengths), np.int64)
    results[-1 - len(part.results) :] = [*part.results, part.last_results]
    sent, room = SECTOR + run.sent_bytes, OUTSTANDING * max(EXTENT, int(results.max()))
    steps = ProgramSteps((np.cumsum(lengths > 0) - 1) * EXTENT * (lengths > 0), lengths, work, results)
    return Task(steps, part.memory, machine.inside.cores, -(-sent // SECTOR) * SECTOR, OUTSTANDING - 1, room)


def energies(
    machine: SmartMachine, run: PlanRun, page_size: int, drives: Sequence[SmartDrive], scan: float, builds: float
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
    built = _build_pages(run, run.own if drives else ()) * page_size
    reading = sum(each["energy"]["over_idle"] for each in rows) + built / rate * inside.active / WATTS
    idle = (MACHINE_IDLE + (machine.drives - 1) * inside.idle / WATTS) * (scan + builds)
    host = HOST_BYTE * (built + (run.results if drives else run.pages * page_size))
    return rows, {"idle": idle, "drives": reading, "host": host, "over_idle": reading + host, "total": idle + reading + host}


def _build_pages(run: PlanRun, own: Sequence[int]) -> int:
    """Pages of build sides that the host reads: all but those that each drive has of its own."""
    return sum(build.pages + _build_pages(build, ()) for stage, build in run.builds.items() if stage not in own)
