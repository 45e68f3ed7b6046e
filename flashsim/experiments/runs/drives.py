"""Drives that joins run on: nominal figures, drives with a history or in miniature, and drawn histories in the place of repeated runs.

A simulated drive repeats itself exactly; a real one does not, since it was left in another state, which papers hardly tell.  Of any drive
is drawn where on it the volume begins; a flash drive also is full, and random pages were written again since.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.large_arrays import Original
from flashsim.core.request import READ, WRITE, Completions, Integers, Requests, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import MIB, MILLISECONDS
from flashsim.device import presets, scaling
from flashsim.device.device import Device
from flashsim.execution.cpu import CpuModel
from flashsim.execution.requests import Work
from flashsim.ssd.timing import timing_of
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.volume import Volume
from models.allocation import buffers
from models.disk import Disk

Drive = TypeVar("Drive", bound=Device)

#: The volume begins within the first so many blocks of 4 KiB: 64 MiB hold any alignment to the flash drive's superblocks.
_STARTS = 16_384
#: Drives that were copied last, by class, preset and extents loaded, offset and length each; and how many are kept.
_originals: list[tuple[type[Device], presets.Preset, list[tuple[int, int]], Original[Any]]] = []
_MOST = 2
#: Random pages written before a run: some tens of log blocks are in use, or none.
_OVERWRITES = 256


def disk_of(preset: presets.Preset, page_size: int) -> Disk:
    """A preset's nominal figures: mean seek, latency of a request, sequential rates; of flash also what one of many writes takes."""
    nominal = preset.nominal
    disk = Disk.from_rates(nominal.seek / MILLISECONDS, nominal.latency / MILLISECONDS, page_size, nominal.read_rate, nominal.write_rate)
    if not (drive := preset.flash):
        return disk
    # what a write of a page that is handed over with others takes besides its transfer: see `models.psync`
    send = disk.page_write_ms or disk.page_transfer_ms
    alone, command = timing_of(drive).write_overhead / MILLISECONDS, drive.link_write_command / MILLISECONDS
    return replace(disk, together_ms=max(alone - send, command, (disk.latency_ms + send) / drive.queue_depth - send))


@dataclass(frozen=True)
class ShipsModel:
    """A ship's model of a join: relations and memory of a part, on drives and under a file system that shrink with them.

    A run then takes nearly that part of the time of the large one, by phase and device: requests are as many, and each of them takes the
    part (`flashsim.device.scaling`).  Two things are set right that would not follow: memory is divided as for the large relations, and
    sorting fewer tuples takes fewer comparisons a tuple, so that each stands for more.  `scale` is that of relations and memory, at most 1;
    `page` the bytes of a page, where every request is one, and 0 where requests are longer.
    """

    scale: float
    page: int = 0

    @property
    def of_drives(self) -> float:
        """The scale of the drives and of the file system: whole `STEPS`, so that all of their lengths keep their proportions."""
        return max(scaling.LEAST, round(self.scale / scaling.STEP)) * scaling.STEP

    def preset(self, preset: presets.Preset) -> presets.Preset:
        return scaling.miniature(preset, self.of_drives, page=self.page)

    def disk(self, disk: Disk) -> Disk:
        """A drive as the formulas see it: a request of many pages stands for one of more, but of a page for several."""
        return disk if self.page else replace(disk, seek_ms=disk.seek_ms * self.scale, latency_ms=disk.latency_ms * self.scale)

    def sorting(self, cpu: CpuModel, tuples: int) -> CpuModel:
        """Prices of a join that sorts `tuples` tuples: a comparison is one of those that the large relations take, n log2 n in all."""
        dearer = math.log2(tuples / self.scale) / math.log2(max(2, tuples))
        return replace(cpu, user={**cpu.user, Work.COMPARE: cpu.user[Work.COMPARE] * dearer})

    def buffers(self, large: buffers.Allocation, large_r: int, memory: int, r_pages: int) -> buffers.Allocation | None:
        """`memory` pages divided as for large relations: as many chunks of R or buckets, and buffers in proportion; None if that cannot be.

        What rounding leaves belongs to the hash table or the tree.
        """
        if isinstance(large, buffers.NestedLoopsAllocation):
            outer = math.ceil(r_pages * buffers.exact(buffers.FUDGE) / large.chunks(large_r))
            return _valid(buffers.NestedLoopsAllocation(outer, memory - outer), memory)
        if not getattr(large, "buckets", 1):
            return None  # all of R stays in memory, at any scale
        parts = {name: pages if name == "buckets" else math.floor(pages * self.scale) for name, pages in vars(large).items()}
        names = [name for name in ("workspace", "phase2_workspace") if parts.get(name)]
        for name, pages in zip(names, type(large)(**parts).phases()[-len(names) :], strict=True):
            parts[name] += memory - pages
        return _valid(type(large)(**parts), memory)


def _valid(allocation: buffers.Allocation, memory: int) -> buffers.Allocation | None:
    try:
        buffers.check(allocation, memory)
    except InvalidParameterError:
        return None
    return allocation


@dataclass(frozen=True)
class ReadyDrive:
    """A drive as it stands: a join runs on a copy of it, so that it stays so, and several may run on the same.

    A `full` one holds data everywhere, so that relations need not be loaded; the join's volume begins `start` bytes from its begin.
    The copies are of the drive as it was at the first one, and share its large arrays.
    """

    drive: Device
    full: bool = False
    start: int = 0
    scale: float = 1.0

    def load(self) -> presets.Preset:
        return self.drive.preset

    @cached_property
    def _original(self) -> Original[Device]:
        return Original(self.drive, self.drive.arrays, goes_on=True)

    def device(self, size: int) -> Device:
        """A copy of the drive, of which a join touches `size` bytes."""
        return self._original.copy()


@dataclass(frozen=True)
class DriveInUse:
    """A drive when a join begins: a preset by name or TOML file, with `changes` of its parameters, perhaps of a ship's `model`.

    A `full` one holds data everywhere, written in order; the join's volume begins `start` bytes from the drive's begin; `overwrites` random
    pages of 4 KiB were written again since, as `seed` draws them.
    """

    preset: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    full: bool = False
    start: int = 0
    overwrites: int = 0
    seed: int = 0
    model: ShipsModel | None = None

    @property
    def scale(self) -> float:
        return self.model.of_drives if self.model else 1.0

    def in_model(self, model: ShipsModel | None) -> DriveInUse:
        return self if model is None else replace(self, model=model, start=int(self.start * model.of_drives) // 4096 * 4096)

    def load(self) -> presets.Preset:
        preset = presets.load(self.preset)
        if self.changes:
            preset = replace(preset, parameters=replace(preset.parameters, **self.changes))
        return preset if self.model is None else self.model.preset(preset)

    def device(self, size: int) -> Device:
        """The drive; its content beyond the bytes that a join touches changes nothing, and is not laid out."""
        preset = self.load()
        size = min(size, preset.capacity - self.start)
        device = _full(preset, size, self.start) if self.full else Device(preset)
        if self.overwrites:
            pages = generator(self.seed, "overwrites").integers(0, size // 4096, self.overwrites)
            device.serve(make_requests(WRITE, self.start + pages * 4096, 4096, serial=True))
        return device


def _full(preset: presets.Preset, size: int, start: int) -> Device:
    """A drive that holds data, written in order, up to `size` behind a volume's begin.

    Of one that merges blocks, and so is at rest once it is loaded, those of a size share what they have in common.
    """
    common = size // MIB * MIB if preset.flash is not None and preset.flash.log_blocks else 0
    device = _copy(Device, preset, [(0, common)]) if common else Device(preset)
    if start + size > common:
        device.load(common, start + size - common)
    return device


def _copy(kind: type[Drive], preset: presets.Preset, extents: list[tuple[int, int]]) -> Drive:
    """A drive that is loaded with these extents, one after the other; it shares what does not change with others of its kind."""
    original = next((each[3] for each in _originals if each[:3] == (kind, preset, extents)), None)
    if original is None:
        device = kind(preset)
        for extent in extents:
            device.load(*extent)
        original = Original(device, device.arrays)
        _originals[:] = [*_originals[1 - _MOST :], (kind, preset, extents, original)]
    copy: Drive = original.copy()
    return copy


class HeldDrive(Protocol):
    """A drive that a join is to run on: `ReadyDrive` and `DriveInUse` say what its properties mean."""

    @property
    def full(self) -> bool: ...
    @property
    def start(self) -> int: ...
    @property
    def scale(self) -> float: ...

    def load(self) -> presets.Preset:
        """The preset of the drive."""

    def device(self, size: int) -> Device:
        """The drive, of which a join touches `size` bytes."""


def states(devices: Mapping[str, str], count: int, seed: int) -> dict[str, list[DriveInUse]]:
    """A number of states of each machine's drive, drawn under a seed."""
    drives: dict[str, list[DriveInUse]] = {machine: [] for machine in devices}
    for number in range(count):
        draw = generator(seed, "state", number)
        start, overwrites = int(draw.integers(_STARTS)) * 4096, int(draw.integers(_OVERWRITES))
        for machine, preset in devices.items():
            writes = overwrites if presets.load(preset).kind == "ssd" else 0
            drives[machine].append(DriveInUse(preset, {}, True, start, writes, seed + number))
    return drives


class TimedDrive(Device):
    """A drive that also adds up what reads and writes take, ns; those that are handed over at once are one."""

    def __init__(self, preset: presets.Preset) -> None:
        super().__init__(preset)
        self.read_time = self.write_time = 0

    def serve(self, requests: Requests, at: int | Integers | None = None, *, settle: bool = True) -> Completions:
        completions = super().serve(requests, at, settle=settle)
        reads = requests["operation"] == READ
        times = response_times(completions)
        if len(requests) > 1 and requests["dependency"][1] < 0:
            times = np.where(np.arange(len(times)) == 0, completions["completed"].max() - completions["submitted"].min(), 0)
        self.read_time += int(times[reads].sum())
        self.write_time += int(times[~reads].sum())
        return completions


def timed_drives(drives: Sequence[presets.Preset], files: Sequence[HeapFile]) -> list[TimedDrive]:
    """A drive a preset, fresh but for base relations that it holds, as `flashsim.execution.drivers.run` lays them out by default."""
    volume = Volume([min(preset.capacity for preset in drives)])
    placed = [volume.add(file) for file in files]
    extents = [pair for each in placed for pair in zip(each.offsets.tolist(), each.lengths.tolist(), strict=True)]
    return [_copy(TimedDrive, preset, extents) for preset in drives]
