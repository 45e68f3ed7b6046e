"""Simulated times of a plan's run: pages to the host over the link, or programs in sessions inside the drives."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import READ, SECTOR, Integers, Requests, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.smart import client
from flashsim.device.smart.protocol import Status
from flashsim.device.smart.runtime import SmartDrive
from flashsim.device.smart.steps import Steps, Task
from flashsim.execution.cpu import CpuModel, kernel_times
from flashsim.execution.requests import HOST
from flashsim.studies.smart.prices import drive_prices, host_prices, inside_of, priced
from flashsim.studies.smart.running import DrivePart, PlanRun
from flashsim.studies.smart.tables import EXTENT, StoredTable

#: Extents that a host reads at once.
OUTSTANDING = 8


@dataclass(frozen=True)
class Machine:
    """A host and its drives, all of one preset."""

    preset: Preset
    cpu: CpuModel | None
    drives: int = 1

    @property
    def host_cores(self) -> int:
        return self.cpu.cores[HOST] if self.cpu else 1

    @property
    def host(self) -> Mapping[str, float]:
        """Prices of the host."""
        return host_prices(self.cpu)

    @property
    def room(self) -> int:
        """Bytes of a drive's memory for programs' tables: what extents and results leave."""
        return max(0, inside_of(self.preset).memory - 2 * OUTSTANDING * EXTENT)


def _lengths(part: DrivePart, page_size: int) -> Integers:
    return np.array(part.pages, np.int64) * page_size


def check_capacity(machine: Machine, tables: Collection[StoredTable]) -> None:
    """Refuse tables of which a drive does not hold its parts."""
    size = max(map(sum, zip(*([pages * each.file.page_size for pages in each.pages_on(machine.drives)] for each in tables), strict=True)))
    if size > machine.preset.capacity:
        raise CapacityError(f"device: {machine.preset.name} holds {machine.preset.capacity} B, but the tables take {size} B of a drive")


def host_seconds(machine: Machine, run: PlanRun, page_size: int) -> float:
    """Time of a run whose pages the host reads: each extent's work begins when it has come and a core is free."""
    ready, work = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for part in run.parts:
        if not part.pages:
            continue
        device, requests = host_reads(machine, part, page_size)
        ready.append(device.serve(requests, settle=False)["completed"])
        work.append(_times(part, machine.host) + kernel_times(machine.cpu, device, requests["length"]))
    end = on_cores(np.concatenate(ready), np.concatenate(work), machine.host_cores) + first_time(machine, run)
    return (end + priced(sum((part.last for part in run.parts), run.host), machine.host)) / SECONDS


def host_reads(machine: Machine, part: DrivePart, page_size: int) -> tuple[Device, Requests]:
    """A fresh drive that holds a part's extents, and the host's reads of these."""
    device, lengths = Device(machine.preset), _lengths(part, page_size)
    offsets = np.arange(len(lengths)) * EXTENT
    device.load(0, int(offsets[-1] + lengths[-1]))
    requests = make_requests(READ, offsets, lengths)
    requests["dependency"] = np.maximum(np.arange(len(requests)) - OUTSTANDING, -1)
    return device, requests


def first_time(machine: Machine, run: PlanRun) -> int:
    """Time of the host for all parts' work before their first extents."""
    work = np.array([round(priced(part.first, machine.host)) for part in run.parts], np.int64)
    return on_cores(np.zeros(len(work), np.int64), work, machine.host_cores)


def build_seconds(machine: Machine, run: PlanRun, page_size: int, own: Sequence[int] = ()) -> float:
    """Time of the host to read and prepare what stages need first, one after another, except those whose build side is each drive's own."""
    builds = [build for stage, build in run.builds.items() if stage not in own]
    return sum(build_seconds(machine, build, page_size) + host_seconds(machine, build, page_size) for build in builds)


def _times(part: DrivePart, prices: Mapping[str, float]) -> Integers:
    return np.array([round(priced(each, prices)) for each in part.work], np.int64)


def on_cores(ready: Integers, work: Integers, cores: int) -> int:
    """End of the last of some pieces of work, each of which begins once it is ready and a core is free, in order of readiness."""
    free = [0] * cores
    for row in np.argsort(ready, kind="stable").tolist():
        heapq.heapreplace(free, max(free[0], int(ready[row])) + int(work[row]))
    return max(free)


def drive_seconds(machine: Machine, run: PlanRun, page_size: int, drives: Sequence[SmartDrive] = ()) -> float:
    """Time of a run whose first part is a program in each drive; the host takes results as fast as it works on them.

    Parameters
    ----------
    drives
        Drives to run on; fresh ones without it.
    """
    prices, tasks, devices = drive_prices(inside_of(machine.preset)), [], list(drives)
    for number, part in enumerate(run.parts):
        if part.pages:
            tasks.append(task_of(machine, run, number, prices, page_size))
    devices = devices or fresh_drives(machine, run)
    for device, task in zip(devices, tasks, strict=True):
        device.model.load(0, int(np.max(task.steps.offsets + task.steps.lengths)))
    host = priced(run.host, machine.host)
    rate = max(1, int(run.results * SECONDS / host)) if run.results and host else 0
    shares = client.run(devices, tasks, client.Polling(rate=rate))
    for share in shares:
        if share.status is Status.NO_MEMORY:
            bound = f"the program needs {max(task.memory for task in tasks)} B beside its extents"
            raise InvalidParameterError("memory", f"{inside_of(machine.preset).memory} B in {machine.preset.name}", bound)
        if share.status is not Status.DONE:
            raise InvalidParameterError("program", share.status.name.lower().replace("_", " "), "it must end")
    return max((share.end for share in shares), default=0) / SECONDS


def fresh_drives(machine: Machine, run: PlanRun) -> list[SmartDrive]:
    """A drive for each part of a run that has extents."""
    return [SmartDrive.of(machine.preset) for part in run.parts if part.pages]


def task_of(machine: Machine, run: PlanRun, number: int, prices: Mapping[str, float], page_size: int) -> Task:
    """A part as the drive sees it: extents of build sides of its own, and its tables; its extents, and what is left after them."""
    part, own = run.parts[number], [run.builds[stage].parts[number] for stage in run.own]
    # A step without pages follows all before it; of two, the first is over when what follows the second begins.
    between = [[round(priced(part.first, prices))], [0]] if part.first else []
    blocks = [*own, *([None] * len(between)), part, None]
    lengths = np.concatenate([[0] if block is None else _lengths(block, page_size) for block in blocks])
    work = np.concatenate([*(_times(build, prices) for build in own), *between, _times(part, prices), [round(priced(part.last, prices))]])
    results = np.zeros(len(lengths), np.int64)
    results[-1 - len(part.results) :] = [*part.results, part.last_results]
    sent, room = SECTOR + run.sent, OUTSTANDING * max(EXTENT, int(results.max()))
    steps = Steps((np.cumsum(lengths > 0) - 1) * EXTENT * (lengths > 0), lengths, work, results)
    return Task(steps, part.memory, inside_of(machine.preset).cores, -(-sent // SECTOR) * SECTOR, OUTSTANDING - 1, room)
