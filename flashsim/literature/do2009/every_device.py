"""Joins executed on every device that there is a preset of, at a twentieth of the other exhibits' scale."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.core.units import MIB, SECONDS
from flashsim.device import presets
from flashsim.literature.do2009.runs import DEVICES, PAGE_SIZE, Setup, laid_out, too_small
from flashsim.storage.heap_file import HeapFile
from flashsim.studies.runs.drives import DriveInUse
from flashsim.studies.runs.joining import CPU, JoinSetting, divide, simulate_join

#: Some four hundred executions on nineteen devices: relations and memory are a twentieth of the other exhibits'.
SHARE = 0.05
#: Files lie packed: what a file system adds is the same for any division.
PLACEMENT = "packed"
#: Files lie in so many places of a drive, at whole MiB: anywhere on a disk, and within the first 64 MiB of flash, whose blocks are smaller.
#: Places of the files: the platter's angle at a disk's next piece depends on the lengths of pieces and tracks, so that a join can be lucky.
PLACES, FLASH_PLACES = 5, 64 * MIB
#: The lessons are tried with the buffer pool of figures 2 and 3.
LESSONS_MEMORY = 500


def with_divisions(
    join: str, memory: int, divisions: Sequence[tuple[dict[str, int], Sequence[str]]], scale: float, seed: int
) -> list[dict[str, list[float]]]:
    """I/O seconds of a join with given divisions of its buffers, each on some devices; JSON-ready: by device, a place each."""
    files, setting = laid_out(Setup(join, memory), scale, seed)
    setting = JoinSetting(join, setting.memory, placement=PLACEMENT, cpu=None)
    by_device = []
    for buffers, names in divisions:
        allocation = type(divide(setting, files, presets.load(names[0]))[1])(**buffers)
        drives = [drive for name in names for drive in places(name, files, seed)]
        times = [run.total().io_time / SECONDS for run in simulate_join(setting, files, drives, allocation=allocation).runs]
        by_device.append({name: times[PLACES * index :][:PLACES] for index, name in enumerate(names)})
    return by_device


def on_every_device(join: str, page_io: bool, scale: float, seed: int) -> dict[str, Any]:
    """I/O and CPU seconds by device, JSON-ready; empty where the pool is too small, and without the devices that are."""
    files, setting = laid_out(Setup(join, LESSONS_MEMORY), scale, seed)
    names = [name for name in presets.names() if presets.load(name).capacity >= bytes_needed(files)]
    setting = JoinSetting(join, setting.memory, page_io, buffers_for=DEVICES["HDD"], cpu=CPU)
    try:
        runs = simulate_join(setting, files, [in_use(name, files) for name in names]).runs
    except InvalidParameterError as problem:
        too_small(problem)
        return {}
    totals = {name: run.total() for name, run in zip(names, runs, strict=True)}
    return {name: {"io": total.io_time / SECONDS, "cpu": total.cpu_time / SECONDS} for name, total in totals.items()}


def bytes_needed(files: tuple[HeapFile, HeapFile]) -> int:
    """Bytes that relations and temporaries take at most."""
    return 2 * sum(file.pages * PAGE_SIZE for file in files) + 16 * MIB


def in_use(name: str, files: tuple[HeapFile, HeapFile]) -> DriveInUse:
    """The device; of flash only as many blocks as the join can touch, and a tenth more than its capacity asks for, are laid out.

    A drive that merges blocks is full.
    """
    parameters = presets.load(name).flash
    if parameters is None:
        return DriveInUse(name)
    size = 2 * bytes_needed(files) + 1024 * MIB
    if parameters.log_blocks or parameters.capacity < size:
        return DriveInUse(name, full=bool(parameters.log_blocks))
    blocks = parameters.blocks_per_plane * size // parameters.capacity + parameters.spare_blocks + parameters.gc_reserve + 8
    return DriveInUse(name, {"capacity": size, "blocks_per_plane": min(blocks, parameters.blocks_per_plane)})


def places(name: str, files: tuple[HeapFile, HeapFile], seed: int) -> list[DriveInUse]:
    """The device with the files in places drawn under a seed, at whole MiB as partitions begin."""
    drive, preset = in_use(name, files), presets.load(name)
    room = preset.capacity - bytes_needed(files)
    if preset.kind == "ssd":
        room = min(room, FLASH_PLACES)
    return [
        replace(drive, start=MIB * int(generator(seed, "place", number).integers(1 + room // MIB)), seed=seed + number)
        for number in range(PLACES)
    ]
