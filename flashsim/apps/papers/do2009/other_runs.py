"""Other runs than the paper's: with one assumption on the flash drive changed, with given buffers, and on every device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flashsim.apps.papers.do2009.runs import CPU, DEVICES, FLASH_PAGE, PAGE_SIZE, RECORDING, Setup, buffers, lay_out_setup, reason
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.core.units import GIB, MIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.runs.drives import DriveInUse, ReadyDrive, ShipsModel, states
from flashsim.experiments.runs.joining import JoinSetting, divide, simulate_join
from flashsim.storage.heap_file import HeapFile
from models.allocation.buffers import HybridAllocation

#: Some four hundred executions on nineteen devices: relations and memory are a twentieth of the other exhibits'.
SHARE = 0.05
#: Files lie in so many places of a drive, at whole MiB: anywhere on a disk, and within the first 64 MiB of flash, whose blocks are smaller.
#: The platter's angle at a disk's next piece depends on the lengths of pieces and tracks, so that a join can be lucky.
PLACES, FLASH_PLACES = 5, 64 * MIB
#: The lessons are tried with the buffer pool of figures 2 and 3.
LESSONS_MEMORY = 500

#: A change of the flash drive's parameters, and of what it held before.
Change = tuple[dict[str, Any], dict[str, Any]]
_NEW, _PAGE_MAP = {"full": False, "overwrites": 0}, {"ftl": "page", "gc": "greedy", "log_blocks": 0}
VARIANTS: dict[str, Change] = {
    "as assumed": ({}, {}),
    "a new drive": ({}, _NEW),
    "no overwrites before": ({}, {"overwrites": 0}),
    "a volume that begins on a superblock": ({}, {"start": 0}),
    "4 log blocks a plane": ({"log_blocks": 4}, {}),
    "8 log blocks a plane": ({"log_blocks": 8}, {}),
    "32 log blocks a plane": ({"log_blocks": 32}, {}),
    "superblocks of 1 MiB": ({"pages_per_block": 32, "blocks_per_plane": 61_440}, {}),
    "superblocks of 4 MiB": ({"pages_per_block": 128, "blocks_per_plane": 15_360}, {}),
    "fully associative log blocks (fast)": ({"ftl": "fast"}, {}),
    "a page map, full in order": (_PAGE_MAP, {}),
    "a page map, new": (_PAGE_MAP, _NEW),
}
#: Under other placements: the file system's part, and what is left of the translation layer's.
_OTHERWISE_PLACED = ("as assumed", "a page map, full in order")
PLACEMENTS = {"ext3": tuple(VARIANTS), **dict.fromkeys(("ext3-interleaved", "packed", "spread"), _OTHERWISE_PLACED)}
#: With pages that are parts of a flash page.  A drive that joins them holds one that waits for its other half, and one that is programmed.
SMALL_PAGES: dict[str, Change] = {
    "as assumed": ({}, {}),
    "parts of flash pages joined": ({"write_buffer": 2 * FLASH_PAGE, "write_buffer_mode": "coalescing"}, {}),
}


def io_seconds(placement: str, scale: float, seed: int, ships_model: bool, **join: Any) -> dict[str, float]:
    """I/O seconds of a join on the HDD and on each variant of the flash drive, JSON-ready; too small a pool leaves it empty."""
    setup = Setup(**join)
    files, setting = lay_out_setup(setup, scale, seed)
    model = ShipsModel(scale, setup.page_size * setup.page_io) if ships_model else None
    hdd, ssd = (by_state[0].in_model(model) for by_state in states(DEVICES, 1, seed).values())
    variants = SMALL_PAGES if setup.page_size < FLASH_PAGE else {name: VARIANTS[name] for name in PLACEMENTS[placement]}
    drives = {"HDD": hdd} | {name: replace(ssd, changes=changes, **history) for name, (changes, history) in variants.items()}
    try:
        allocation = buffers(setup, scale, *(file.pages for file in files), ships_model=ships_model)
        setting = replace(setting, placement=placement)
        runs = simulate_join(setting, files, list(drives.values()), allocation=allocation, recording=RECORDING).runs
    except InvalidParameterError as problem:
        reason(problem)
        return {}
    return {name: run.total().io_time / SECONDS for name, run in zip(drives, runs, strict=True)}


def with_buffers(memory: int, rules: Mapping[str, Mapping[str, int]], scale: float, seed: int) -> dict[str, Any]:
    """I/O seconds of hybrid hash by rule, JSON-ready, on two disks, as TR 1148 assumes: temporary files move no relation's arm.

    As the formula sees them, nothing hides a latency, and a request is one command, however long; or there is read-ahead and write-behind.
    """
    files, setting = lay_out_setup(Setup("hybrid-hash", memory), scale, seed)
    setting, disk = replace(setting, placement="two-disks", cpu=None), presets.load(DEVICES["HDD"])
    plain = replace(disk, parameters=replace(disk.parameters, read_ahead=0, write_behind=0))  # type: ignore[arg-type]
    drives = [ReadyDrive(Device(plain, maximum_command=GIB)), ReadyDrive(Device(disk))]
    seconds = {}
    for rule, division in sorted(rules.items(), reverse=True):  # first as printed: those requests are the paper's
        runs = simulate_join(setting, files, drives, allocation=HybridAllocation(**division), recording=RECORDING).runs
        seen, usual = (run.total() for run in runs)
        seconds[rule] = {"seconds": seen.io_time / SECONDS, "hidden": usual.io_time / SECONDS, "seeks": seen.seeks}
    return seconds


def with_divisions(
    join: str, memory: int, divisions: Sequence[tuple[dict[str, int], Sequence[str]]], scale: float, seed: int
) -> list[dict[str, list[float]]]:
    """I/O seconds of a join with given divisions of its buffers, each on some devices; JSON-ready: by device, a place each.

    Files lie packed: what a file system adds is the same for any division.
    """
    files, setting = lay_out_setup(Setup(join, memory), scale, seed)
    setting = JoinSetting(join, setting.memory, cpu=None)
    by_device = []
    for division, names in divisions:
        allocation = type(divide(setting, files, presets.load(names[0]))[1])(**division)
        drives = [drive for name in names for drive in places(name, files, seed)]
        times = [run.total().io_time / SECONDS for run in simulate_join(setting, files, drives, allocation=allocation).runs]
        by_device.append({name: times[PLACES * index :][:PLACES] for index, name in enumerate(names)})
    return by_device


def on_every_device(join: str, page_io: bool, scale: float, seed: int) -> dict[str, Any]:
    """I/O and CPU seconds by device, JSON-ready; empty where the pool is too small, and without the devices that are."""
    files, setting = lay_out_setup(Setup(join, LESSONS_MEMORY), scale, seed)
    names = [name for name in presets.names() if presets.load(name).capacity >= bytes_needed(files)]
    setting = JoinSetting(join, setting.memory, page_io, buffers_for=DEVICES["HDD"], cpu=CPU)
    try:
        totals = [run.total() for run in simulate_join(setting, files, [_in_use(name, files) for name in names]).runs]
    except InvalidParameterError as problem:
        reason(problem)
        return {}
    return {name: {"io": each.io_time / SECONDS, "cpu": each.cpu_time / SECONDS} for name, each in zip(names, totals, strict=True)}


def bytes_needed(files: tuple[HeapFile, HeapFile]) -> int:
    """Bytes that relations and temporaries take at most."""
    return 2 * sum(file.pages * PAGE_SIZE for file in files) + 16 * MIB


def _in_use(name: str, files: tuple[HeapFile, HeapFile]) -> DriveInUse:
    """The device; of flash only as many blocks as the join can touch, and a tenth beyond, without an SLC cache; one that merges is full."""
    parameters = presets.load(name).flash
    if parameters is None:
        return DriveInUse(name)
    size = 2 * bytes_needed(files) + 1024 * MIB
    if parameters.log_blocks or parameters.capacity < size:
        return DriveInUse(name, full=bool(parameters.log_blocks))
    blocks = parameters.blocks_per_plane * size // parameters.capacity + parameters.spare_blocks + parameters.gc_reserve + 8
    cacheless = dict.fromkeys(("slc_cache", "slc_read", "slc_program", "slc_idle") if parameters.slc_cache else ("slc_cache",), 0)
    return DriveInUse(name, {"capacity": size, "blocks_per_plane": min(blocks, parameters.blocks_per_plane), **cacheless})


def places(name: str, files: tuple[HeapFile, HeapFile], seed: int) -> list[DriveInUse]:
    """The device with the files in places drawn under a seed, at whole MiB as partitions begin."""
    drive, preset = _in_use(name, files), presets.load(name)
    room = min(preset.capacity - bytes_needed(files), FLASH_PLACES if preset.kind == "ssd" else preset.capacity)
    begins = [MIB * int(generator(seed, "place", number).integers(1 + room // MIB)) for number in range(PLACES)]
    return [replace(drive, start=begin, seed=seed + number) for number, begin in enumerate(begins)]
