"""What the paper left open: whether the best buffers on flash differ from a disk's, on every device that there is a preset of.

Every number is an execution in virtual time, at a twentieth of the other exhibits' scale, with the files in several places of the drive.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.formulas.comparison import disk_of
from experiments.formulas.drives import drive_of
from experiments.papers.base import Section
from experiments.papers.do2009.runs import JOINS, LABELS, MEMORY, PAGE_SIZE, Setup, laid_out, too_small
from experiments.presentation.plots import LINES, style, svg
from experiments.presentation.tables import Entry, Table
from experiments.runs.jobs import Job, Results, Settings
from experiments.runs.joining import DriveInUse, JoinSetting, simulate_join
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.core.units import MB, MIB, SECONDS
from flashsim.device import presets
from flashsim.ssd.parameters import SsdParameters
from flashsim.storage.heap_file import HeapFile, heap_file
from models.allocation import Allocation, allocate
from models.haas import Sizes
from models.ssd_buffers import Problem, closed_form

TITLE = "What the paper left open: the best buffers on every device"
#: Some four hundred executions on nineteen devices: relations and memory are a twentieth of the other exhibits'.
SHARE = 0.05
#: Files lie packed: what a file system adds is the same for any division.
PLACEMENT = "packed"
#: Files lie in so many places of a drive, at whole MiB: anywhere on a disk, and within the first 64 MiB of flash, whose blocks are smaller.
#: Where the platter stands when a disk's next piece comes depends on the pieces' and the tracks' lengths, so that a join can be lucky.
PLACES, FLASH_PLACES = 5, 64 * MIB
#: The closed form is allowed so much over the best that a search finds.
ALLOWED = 1.0  # %


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run each join and buffer pool; in it, devices with the same buffers share a pass."""
    return [_job(settings, join, memory) for memory in MEMORY for join in JOINS]


def _job(settings: Settings, join: str, memory: int) -> Job:
    label = f"{join}, {memory} MB, best buffers on every device"
    return Job.of(f"{__name__}:both_divisions", label, join=join, memory=memory, scale=settings.scale * SHARE, seed=settings.seed)


def both_divisions(join: str, memory: int, scale: float, seed: int) -> dict[str, Any]:
    """I/O seconds of a join on every device with the buffers of Haas et al., and with the model's best.

    JSON-ready, by device: ``problem``, or by the division's name ``seconds`` (a place each), ``model`` (the model's seconds), ``buffers``.
    """
    files, setting = laid_out(Setup(join, memory), scale, seed)
    setting = JoinSetting(join, setting.memory, placement=PLACEMENT, cpu=None)
    found: dict[str, Any] = {}
    wanted: dict[Allocation, list[tuple[str, str]]] = {}
    problems = {}
    for name in presets.names():
        try:
            problems[name], divisions = _divisions(join, files, setting.memory, name)
        except InvalidParameterError as problem:
            found[name] = {"problem": too_small(problem)}
            continue
        if isinstance(divisions, str):
            found[name] = {"problem": divisions}
            continue
        found[name] = {}
        for kind, allocation in divisions.items():
            wanted.setdefault(allocation, []).append((name, kind))
    for allocation, users in wanted.items():
        names = list(dict.fromkeys(name for name, _ in users))
        drives = [drive for name in names for drive in places(name, files, seed)]
        times = [run.total().io_time / SECONDS for run in simulate_join(setting, files, drives, allocation=allocation).runs]
        seconds = {name: times[PLACES * index :][:PLACES] for index, name in enumerate(names)}
        for name, kind in users:
            told = problems[name].cost(allocation).seconds
            found[name][kind] = {"seconds": seconds[name], "model": told, "buffers": asdict(allocation)}
    return found


def _divisions(join: str, files: tuple[HeapFile, HeapFile], memory: int, name: str) -> tuple[Problem, dict[str, Allocation] | str]:
    """The problem and the divisions to compare, or why the device cannot hold the files."""
    preset = presets.load(name)
    r, s = sorted(file.pages for file in files)
    temporary = sorted(heap_file(file.relation, PAGE_SIZE).pages for file in files)
    span = (r + s + sum(temporary)) * PAGE_SIZE
    problem = Problem(join, Sizes(r, s, temporary[0], temporary[1], memory), drive_of(preset, PAGE_SIZE, span))
    needed = bytes_needed(files)
    if preset.capacity < needed:
        return problem, f"it holds {preset.capacity / MB:,.0f} MB, and relations and temporaries take up to {needed / MB:,.0f} MB"
    disk = disk_of(preset, PAGE_SIZE)
    best = closed_form(problem).allocation  # within 1 % of what a search finds, which takes a second for each device
    divisions = {"haas": allocate(join, r, s, memory, disk.latency_ratio, disk.access_ratio), "best": best}
    return problem, divisions


def bytes_needed(files: tuple[HeapFile, HeapFile]) -> int:
    """Bytes that relations and temporaries take at most."""
    return 2 * sum(file.pages * PAGE_SIZE for file in files) + 16 * MIB


def in_use(name: str, files: tuple[HeapFile, HeapFile]) -> DriveInUse:
    """The device; of flash only as many blocks as the join can touch, and a tenth more than its capacity asks for, are laid out.

    A drive that merges blocks is full.
    """
    parameters = presets.load(name).parameters
    if not isinstance(parameters, SsdParameters):
        return DriveInUse(name)
    needed = 2 * bytes_needed(files) + 1024 * MIB
    if parameters.log_blocks or parameters.capacity < needed:
        return DriveInUse(name, full=bool(parameters.log_blocks))
    blocks = parameters.blocks_per_plane * needed // parameters.capacity + parameters.spare_blocks + parameters.gc_reserve + 8
    return DriveInUse(name, {"capacity": needed, "blocks_per_plane": min(blocks, parameters.blocks_per_plane)})


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


def gains(cell: Mapping[str, Any]) -> list[float]:
    """How much faster the best division is than that of Haas et al. in each place, in %; nothing where the device cannot run the join."""
    if "haas" not in cell:
        return []
    return [100 * (haas / best - 1) for haas, best in zip(cell["haas"]["seconds"], cell["best"]["seconds"], strict=True)]


def gain(cell: Mapping[str, Any]) -> float | None:
    """The mean gain over the places, in %."""
    found = gains(cell)
    return fmean(found) if found else None


def noise(cell: Mapping[str, Any]) -> float:
    """Two standard errors of the mean gain, in %."""
    found = gains(cell)
    return 2 * stdev(found) / math.sqrt(len(found))


def sections(results: Results) -> list[Section]:
    """Seconds and gains, and what could not be run."""
    cells = {(join, memory): results.get(_job(results.settings, join, memory), {}) for join in JOINS for memory in MEMORY}
    names = [name for name in presets.names() if any(gain(found.get(name, {})) is not None for found in cells.values())]
    scale = results.settings.scale * SHARE
    text = (
        f"I/O seconds of every join, executed at scale {scale:g} on new drives (those that merge blocks: full), with the buffers that Haas "
        "et al. give for the device's own figures and with the best ones of the detailed model; gain is how much faster the latter are, "
        f"the mean over {PLACES} places of the files on the drive. Noise is two standard errors of that mean: on a disk it is a matter of "
        "luck where the platter stands when the next piece comes."
    )
    return [
        Section(
            TITLE,
            text,
            [_gains(cells, names), _slower(cells, names), _seconds(cells, names), _not_run(cells)],
            pictures={"allocations": svg(figure(cells, names))},
        ),
    ]


Cells = Mapping[tuple[str, int], Mapping[str, Any]]


def _gains(cells: Cells, names: Sequence[str]) -> Table:
    rows: list[list[Entry]] = []
    for name in names:
        for join in JOINS:
            rows.append([name, LABELS[join], *(gain(cells[join, memory].get(name, {})) for memory in MEMORY)])
    return Table(["device", "join", *(f"{memory} MB: gain %" for memory in MEMORY)], rows, "gains", digits=1)


def slower(cells: Cells, names: Sequence[str]) -> list[tuple[str, str, int, float]]:
    """Device, join, memory and loss in % of each case in which the best division is slower by more than the noise and what is allowed."""
    found = []
    for name in names:
        for (join, memory), by_device in cells.items():
            cell = by_device.get(name, {})
            gained = gain(cell)
            if gained is not None and gained < -max(ALLOWED, noise(cell)):
                found.append((name, join, memory, -gained))
    return found


def _slower(cells: Cells, names: Sequence[str]) -> Table:
    rows: list[list[Entry]] = [
        [name, LABELS[join], memory, loss, noise(cells[join, memory][name])] for name, join, memory, loss in slower(cells, names)
    ]
    return Table([f"slower by more than the noise and {ALLOWED:g} %", "join", "MB", "%", "noise %"], rows, "slower", digits=1)


def _seconds(cells: Cells, names: Sequence[str]) -> Table:
    rows: list[list[Entry]] = []
    for name in names:
        for (join, memory), by_device in cells.items():
            cell = by_device.get(name, {})
            if gain(cell) is not None:
                buffers = ", ".join(f"{part.replace('_', ' ')} {pages:,}" for part, pages in cell["best"]["buffers"].items())
                told = [told for kind in ("haas", "best") for told in (fmean(cell[kind]["seconds"]), cell[kind]["model"])]
                rows.append([name, LABELS[join], memory, *told, gain(cell), noise(cell), buffers])
    header = ["device", "join", "MB", "Haas: I/O s", "model", "best: I/O s", "model", "gain %", "noise %", "best buffers, pages"]
    return Table(header, rows, "allocations", digits=2)


def _not_run(cells: Cells) -> Table:
    why: dict[tuple[str, str], list[str]] = {}
    for (join, memory), by_device in cells.items():
        for name, cell in by_device.items():
            if "problem" in cell:
                why.setdefault((name, cell["problem"]), []).append(f"{LABELS[join]} {memory}")
    rows: list[list[Entry]] = [[name, problem, ", ".join(which)] for (name, problem), which in why.items()]
    return Table(["not run", "why", "joins and MB"], rows, "not-run")


def figure(cells: Cells, names: Sequence[str]) -> Figure:
    """Gains over the buffer pool, a panel each join and a line each kind of device: the median, and the range as a band."""
    kinds = {kind: [name for name in names if presets.load(name).kind == kind] for kind in ("hdd", "ssd")}
    with style():
        panels = Figure(figsize=(8, 5), layout="constrained")
        for axes, join in zip(panels.subplots(2, 2, sharex=True).flat, JOINS, strict=True):
            for (colour, marker), (kind, members) in zip(LINES, kinds.items(), strict=False):
                gains = [[gain(cells[join, memory].get(name, {})) for name in members] for memory in MEMORY]
                known = [(memory, [g for g in row if g is not None]) for memory, row in zip(MEMORY, gains, strict=True)]
                known = [(memory, row) for memory, row in known if row]
                pools = [memory for memory, _ in known]
                label = {"hdd": "disks", "ssd": "flash drives"}[kind]
                axes.plot(pools, [np.median(row) for _, row in known], color=colour, marker=marker, label=label)
                axes.fill_between(pools, [min(row) for _, row in known], [max(row) for _, row in known], color=colour, alpha=0.15, lw=0)
            axes.axhline(0, color="#7f7f7f", lw=0.6)
            axes.set_title(LABELS[join], fontsize=10)
        panels.supxlabel("buffer pool, MB", fontsize=9)
        panels.supylabel("gain over the buffers of Haas et al., %", fontsize=9)
        panels.axes[0].legend(frameon=False, fontsize=8)
    return panels
