"""The paper's open question: whether the best buffers on flash differ from a disk's, on every device that there is a preset of.

Every number is an execution in virtual time, at a twentieth of the other exhibits' scale, with the files in several places of the drive.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from statistics import fmean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MB
from flashsim.device import presets
from flashsim.literature.do2009.every_device import PLACES, SHARE, bytes_needed, with_divisions
from flashsim.literature.do2009.runs import JOINS, LABELS, MEMORY, PAGE_SIZE, Setup, laid_out, too_small
from flashsim.storage.heap_file import HeapFile
from flashsim.studies.formulas.comparison import sizes_of
from flashsim.studies.formulas.drives import drive_of
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.drives import disk_of
from flashsim.studies.runs.jobs import Job, Results, Settings
from models.allocation.buffers import Allocation
from models.join_costs.base import allocate
from models.ssd_buffers import closed_form
from models.ssd_joins import DetailedCost
from models.ssd_problem import Problem

TITLE = "What the paper left open: the best buffers on every device"
#: The closed form is allowed so much over the best that a search finds.
ALLOWED = 1.0  # %


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run each join and buffer pool; in it, devices with the same buffers share a pass."""
    return [_job(settings, join, memory) for memory in MEMORY for join in JOINS]


def _job(settings: Settings, join: str, memory: int) -> Job:
    scale = settings.scale * SHARE
    rules: dict[Allocation, dict[str, None]] = {}
    for name, divisions in _divisions(join, memory, scale, settings.seed, tuple(presets.names())).items():
        for cost in () if isinstance(divisions, str) else divisions.values():
            rules.setdefault(cost.allocation, {})[name] = None
    with_rules = [(asdict(allocation), list(names)) for allocation, names in rules.items()]
    label = f"{join}, {memory} MB, best buffers on every device"
    return Job.of(with_divisions, label, join=join, memory=memory, divisions=with_rules, scale=scale, seed=settings.seed)


@cache
def _divisions(join: str, memory: int, scale: float, seed: int, names: Sequence[str]) -> dict[str, str | dict[str, DetailedCost]]:
    """By device: that of Haas et al. (``haas``) and the model's best (``best``) with what the model says, or why it cannot run."""
    files, setting = laid_out(Setup(join, memory), scale, seed)
    divisions: dict[str, str | dict[str, DetailedCost]] = {}
    for name in names:
        try:
            divisions[name] = _divided(join, files, setting.memory, presets.load(name))
        except InvalidParameterError as problem:
            divisions[name] = too_small(problem)
    return divisions


def _divided(join: str, files: tuple[HeapFile, HeapFile], memory: int, preset: presets.Preset) -> str | dict[str, DetailedCost]:
    sizes = sizes_of(files, memory)
    span = (sizes.r + sizes.s + sizes.r_temporary + sizes.s_temporary) * PAGE_SIZE
    problem = Problem(join, sizes, drive_of(preset, PAGE_SIZE, span))
    size = bytes_needed(files)
    if preset.capacity < size:
        return f"it holds {preset.capacity / MB:,.0f} MB, and relations and temporaries take up to {size / MB:,.0f} MB"
    disk = disk_of(preset, PAGE_SIZE)
    haas = allocate(join, sizes.r, sizes.s, memory, disk.latency_ratio, disk.access_ratio)
    return {"haas": problem.cost(haas), "best": closed_form(problem)}  # within 1 % of what a search finds, which takes a second


def cell(results: Results, join: str, memory: int) -> dict[str, Any]:
    """Results of a join with a buffer pool, by device; empty if it was not run.

    A device has its ``problem``, or by the division's name ``seconds`` (a place each), ``model`` (the model's seconds) and ``buffers``.
    """
    settings = results.settings
    times = results.get(_job(settings, join, memory))
    if times is None:
        return {}
    divisions = _divisions(join, memory, settings.scale * SHARE, settings.seed, tuple(presets.names()))
    order = list(dict.fromkeys(cost.allocation for costs in divisions.values() if not isinstance(costs, str) for cost in costs.values()))
    seconds = dict(zip(order, times, strict=True))
    return {
        name: {"problem": costs}
        if isinstance(costs, str)
        else {
            kind: {"seconds": seconds[cost.allocation][name], "model": cost.seconds, "buffers": asdict(cost.allocation)}
            for kind, cost in costs.items()
        }
        for name, costs in divisions.items()
    }


def gains(cell: Mapping[str, Any]) -> list[float]:
    """Gain of the best division over that of Haas et al. in each place, %; nothing where the device cannot run the join."""
    if "haas" not in cell:
        return []
    return [100 * (haas / best - 1) for haas, best in zip(cell["haas"]["seconds"], cell["best"]["seconds"], strict=True)]


def gain(cell: Mapping[str, Any]) -> float | None:
    values = gains(cell)
    return fmean(values) if values else None


def noise(cell: Mapping[str, Any]) -> float:
    values = gains(cell)
    return 2 * stdev(values) / math.sqrt(len(values))


def sections(results: Results) -> list[Section]:
    cells = {(join, memory): cell(results, join, memory) for join in JOINS for memory in MEMORY}
    names = [name for name in presets.names() if any(gain(results_of_cell.get(name, {})) is not None for results_of_cell in cells.values())]
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
            pictures={"allocations": figure(cells, names)},
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
    slower_joins = []
    for name in names:
        for (join, memory), by_device in cells.items():
            cell = by_device.get(name, {})
            gained = gain(cell)
            if gained is not None and gained < -max(ALLOWED, noise(cell)):
                slower_joins.append((name, join, memory, -gained))
    return slower_joins


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
                seconds = [seconds for kind in ("haas", "best") for seconds in (fmean(cell[kind]["seconds"]), cell[kind]["model"])]
                rows.append([name, LABELS[join], memory, *seconds, gain(cell), noise(cell), buffers])
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
    with panels(4.4, 2, 2, sharex=True) as (picture, grid):
        for axes, join in zip(grid.flat, JOINS, strict=True):
            for (colour, marker), (kind, members) in zip(LINES, kinds.items(), strict=False):
                gains = [[gain(cells[join, memory].get(name, {})) for name in members] for memory in MEMORY]
                points = [(memory, [g for g in row if g is not None]) for memory, row in zip(MEMORY, gains, strict=True)]
                points = [(memory, row) for memory, row in points if row]
                pools = [memory for memory, _ in points]
                label = {"hdd": "disks", "ssd": "flash drives"}[kind]
                axes.plot(pools, [np.median(row) for _, row in points], color=colour, marker=marker, label=label)
                axes.fill_between(pools, [min(row) for _, row in points], [max(row) for _, row in points], color=colour, alpha=0.15, lw=0)
            axes.axhline(0, color="#7f7f7f", lw=0.6)
            axes.set_title(LABELS[join], fontsize=10)
        picture.supxlabel("buffer pool, MB", fontsize=9)
        picture.supylabel("gain over the buffers of Haas et al., %", fontsize=9)
        legend(picture, picture.axes[0])
    return picture
