"""Open questions of the paper: the rule of hybrid hash, the best buffers on every device, and its lessons on other disks and flash drives.

The rule that is printed for hybrid hash, I = O = 1.1 sqrt(B), has lost a factor: 1.118 sqrt(B y) follows from the quadratic before it,
where y is the latency in page transfers (docs/explanation/optimal_allocations.md).  Every device that there is a preset of has its best
buffers, and the lessons, executed at a twentieth of the other exhibits' scale.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from flashsim.apps.papers.base import Entry, Exhibit, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.do2009 import other_runs
from flashsim.apps.papers.do2009.runs import (
    JOINS,
    LABELS,
    MEMORY,
    PAGE_SIZE,
    Setup,
    join_setting,
    large_pages,
    lay_out_setup,
    paper_disk,
    reason,
)
from flashsim.apps.papers.do2009.table1 import in_words
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MB
from flashsim.device import presets
from flashsim.experiments.formulas.comparison import sizes_of
from flashsim.experiments.formulas.drives import drive_of
from flashsim.experiments.presentation.plots import COLOURS, LINES, legend, panels
from flashsim.experiments.runs.drives import disk_of
from models import optimum
from models.allocation.buffers import Allocation
from models.allocation.divisions import hybrid_hash
from models.disk import Disk
from models.haas import JoinCost, cost
from models.join_costs.base import Sizes, allocate
from models.ssd_buffers import closed_form
from models.ssd_drive import DriveModel
from models.ssd_joins import DetailedCost, Problem

_ZERO = {"color": "#7f7f7f", "lw": 0.6}


@cache
def _rules(scale: float, memory: int) -> dict[str, JoinCost]:
    """Each rule's division, and what it costs by the formula; nothing where the pool is too small."""
    pages, disk = (*large_pages(PAGE_SIZE, scale), join_setting(Setup("hybrid-hash", memory), scale).memory), paper_disk()
    try:
        rules = {
            "printed": hybrid_hash(*pages, disk.latency_ratio),
            "derived": hybrid_hash(*pages, disk.latency_ratio, rule="sqrt-y"),
            "best": optimum.discrete("hybrid-hash", *pages, disk).allocation,
        }
    except InvalidParameterError as problem:
        reason(problem)
        return {}
    return {rule: cost("hybrid-hash", *pages, disk, division) for rule, division in rules.items()}


class HybridRule(Exhibit):
    """The buffers of hybrid hash on the paper's disk, by three rules."""

    TITLE = "What the paper left open: the rule of hybrid hash"
    #: Seconds by the formula, simulated with every request waiting its latency, and with read-ahead and write-behind.
    kinds: Mapping[str, str] = {"formula": "formula", "seconds": "simulated", "hidden": "with read-ahead and write-behind"}

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return list(self._jobs(settings).values())

    def _jobs(self, settings: Settings) -> dict[int, Job]:
        """A run each buffer pool, which executes the three divisions; none of a pool that is too small."""
        jobs, scale, seed = {}, settings.scale, settings.seed
        for memory in MEMORY:
            if rules := {rule: vars(join.allocation) for rule, join in _rules(scale, memory).items()}:
                label, group = f"hybrid hash, {memory} MB, three rules", Setup("hybrid-hash", memory).name
                jobs[memory] = Job.of(other_runs.with_buffers, label, group, memory=memory, rules=rules, scale=scale, seed=seed)
        return jobs

    def seconds(self, results: Results) -> dict[int, dict[str, dict[str, float]]]:
        """Seconds of each kind, and seeks, by buffer pool and rule."""
        return {
            memory: {rule: results[job][rule] | {"formula": join.seconds} for rule, join in _rules(results.settings.scale, memory).items()}
            for memory, job in self._jobs(results.settings).items()
            if job in results
        }

    def losses(self, results: Results, rule: str, kind: str = "seconds") -> dict[int, float]:
        """Extra cost of a rule over the derived one, as a share, by buffer pool."""
        return {memory: costs[rule][kind] / costs["derived"][kind] - 1 for memory, costs in self.seconds(results).items()}

    def sections(self, results: Results) -> list[Section]:
        rows: list[list[Entry]] = []
        for memory, costs in self.seconds(results).items():
            for rule, join in _rules(results.settings.scale, memory).items():
                division, more = vars(join.allocation), [100 * self.losses(results, rule, kind)[memory] for kind in self.kinds]
                seconds = [costs[rule][kind] for kind in self.kinds]
                rows.append([memory, rule, division["input"], division["output"], *seconds, costs[rule]["seeks"], *more])
        _, *simulated = self.kinds.values()
        header = ["MB", "rule", "I, pages", "O, pages", "formula I/O s", *simulated, "seeks", "over derived %: formula", *simulated]
        table = Table(header, rows, "hybrid-rule", digits=2)
        return [Section(self.TITLE, load("do2009").text("hybrid_rule"), [table], {"hybrid-rule": self._figure(results)})]

    def _figure(self, results: Results) -> Figure:
        with panels(3.6) as (picture, axes):
            for (colour, marker), (kind, label) in zip(LINES, self.kinds.items(), strict=False):
                for rule, line in (("printed", "-"), ("best", ":")):
                    lost = 100 * pd.Series(self.losses(results, rule, kind), dtype=float)
                    axes.plot(lost, line, color=colour, marker=marker, label=f"{rule}, {label}")
            axes.axhline(0, **_ZERO)
            axes.set(xlabel="buffer pool (MB)", ylabel="I/O time over the derived rule's (%)")
            legend(picture, axes, 2)
        return picture


#: What the detailed model says of a division of Haas et al. (``haas``) and of its best (``best``); or why neither can run.
Divisions = str | dict[str, DetailedCost]


@cache
def _sizes(memory: int, scale: float, seed: int) -> tuple[Sizes, int]:
    files, setting = lay_out_setup(Setup("", memory), scale, seed)
    return sizes_of(files, setting.memory), other_runs.bytes_needed(files)


@cache
def _device(name: str, span: int) -> tuple[int, DriveModel, Disk]:
    """A preset's capacity, and what the models see of it."""
    preset = presets.load(name)
    return preset.capacity, drive_of(preset, PAGE_SIZE, span), disk_of(preset, PAGE_SIZE)


@cache
def _divisions(join: str, memory: int, scale: float, seed: int, name: str) -> Divisions:
    sizes, size = _sizes(memory, scale, seed)
    capacity, drive, disk = _device(name, (sizes.r + sizes.s + sizes.r_temporary + sizes.s_temporary) * PAGE_SIZE)
    try:
        problem = Problem(join, sizes, drive)
        if capacity < size:
            return f"it holds {capacity / MB:,.0f} MB, and relations and temporaries take up to {size / MB:,.0f} MB"
        haas = allocate(join, sizes.r, sizes.s, sizes.memory, disk.latency_ratio, disk.access_ratio)
        return {"haas": problem.cost(haas), "best": closed_form(problem)}  # within 1 % of what a search finds, which takes a second
    except InvalidParameterError as too_little:
        return reason(too_little)


@dataclass(frozen=True)
class Case:
    """A join with a buffer pool on a device: seconds of each division, a place each, and the model's; or why it cannot run."""

    device: str
    join: str
    memory: int
    problem: str = ""
    costs: Mapping[str, DetailedCost] = field(default_factory=dict)
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def gains(self) -> list[float]:
        """Gain of the best division over that of Haas et al. in each place, %."""
        return [100 * (haas / best - 1) for haas, best in zip(self.seconds["haas"], self.seconds["best"], strict=True)]

    @property
    def gain(self) -> float:
        return fmean(self.gains)

    @property
    def noise(self) -> float:
        return 2 * stdev(self.gains) / math.sqrt(len(self.gains))

    @property
    def is_slower(self) -> bool:
        """The best division is slower by more than the noise and what the closed form is allowed over the best that a search finds."""
        return self.gain < -max(Allocations.allowed, self.noise)


class Allocations(Exhibit):
    """The best buffers on every device."""

    TITLE = "What the paper left open: the best buffers on every device"
    allowed = 1.0  # %

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return [self._job(settings, join, memory)[0] for memory in MEMORY for join in JOINS]

    def _job(self, settings: Settings, join: str, memory: int) -> tuple[Job, dict[str, Divisions]]:
        """The run, in which devices with the same buffers share a pass, and divisions by device."""
        scale, rules = settings.scale * other_runs.SHARE, dict[Allocation, dict[str, None]]()
        by_device = {name: _divisions(join, memory, scale, settings.seed, name) for name in presets.names()}
        for name, divisions in by_device.items():
            for each in () if isinstance(divisions, str) else divisions.values():
                rules.setdefault(each.allocation, {})[name] = None
        label, shared = f"{join}, {memory} MB, best buffers on every device", [(asdict(each), [*names]) for each, names in rules.items()]
        job = Job.of(other_runs.with_divisions, label, join=join, memory=memory, divisions=shared, scale=scale, seed=settings.seed)
        return job, by_device

    def cases(self, results: Results) -> list[Case]:
        """Every join and buffer pool that was run, on every device."""
        cases = []
        for join, memory in [(join, memory) for join in JOINS for memory in MEMORY]:
            job, by_device = self._job(results.settings, join, memory)
            rules = [buffers for buffers, _ in job.parameters["divisions"]]
            for name, costs in by_device.items() if job in results else ():
                if isinstance(costs, str):
                    cases.append(Case(name, join, memory, costs))
                else:
                    seconds = {kind: results[job][rules.index(asdict(each.allocation))][name] for kind, each in costs.items()}
                    cases.append(Case(name, join, memory, "", costs, seconds))
        return cases

    def sections(self, results: Results) -> list[Section]:
        cases, scale = self.cases(results), results.settings.scale * other_runs.SHARE
        run = sorted((case for case in cases if not case.problem), key=lambda case: case.device)
        text = load("do2009").text("allocations", scale=scale, places=other_runs.PLACES)
        gains = {(case.device, case.join, case.memory): case.gain for case in run}
        devices = dict.fromkeys(case.device for case in run)
        rows = [[name, LABELS[join], *(gains.get((name, join, memory)) for memory in MEMORY)] for name in devices for join in JOINS]
        slower = [[case.device, LABELS[case.join], case.memory, -case.gain, case.noise] for case in run if case.is_slower]
        seconds: list[list[Entry]] = []
        for case in run:
            times = [time for kind in ("haas", "best") for time in (fmean(case.seconds[kind]), case.costs[kind].seconds)]
            best = in_words(case.costs["best"].allocation)
            seconds.append([case.device, LABELS[case.join], case.memory, *times, case.gain, case.noise, best])
        why: dict[tuple[str, str], list[str]] = {}
        for case in cases:
            if case.problem:
                why.setdefault((case.device, case.problem), []).append(f"{LABELS[case.join]} {case.memory}")
        header = ["device", "join", "MB", "Haas: I/O s", "model", "best: I/O s", "model", "gain %", "noise %", "best buffers, pages"]
        loss = [f"slower by more than the noise and {self.allowed:g} %", "join", "MB", "%", "noise %"]
        tables = [
            Table(["device", "join", *(f"{memory} MB: gain %" for memory in MEMORY)], rows, "gains", digits=1),
            Table(loss, slower, "slower", digits=1),
            Table(header, seconds, "allocations", digits=2),
            Table(["not run", "why", "joins and MB"], ([*which, ", ".join(joins)] for which, joins in why.items()), "not-run"),
        ]
        return [Section(self.TITLE, text, tables, {"allocations": self._figure(run)})]

    def _figure(self, cases: Iterable[Case]) -> Figure:
        rows = [(case.join, presets.load(case.device).kind, case.memory, case.gain) for case in cases]
        gains = pd.DataFrame(rows, columns=["join", "kind", "memory", "gain"]).astype({"gain": float})
        with panels(4.4, 2, 2, sharex=True) as (picture, grid):
            for axes, join in zip(grid.flat, JOINS, strict=True):
                for (colour, marker), (kind, label) in zip(LINES, (("hdd", "disks"), ("ssd", "flash drives")), strict=False):
                    of_kind = gains[(gains["join"] == join) & (gains["kind"] == kind)]
                    ends = of_kind.groupby("memory")["gain"].agg(["median", "min", "max"])
                    axes.plot(ends["median"], color=colour, marker=marker, label=label)
                    axes.fill_between(ends.index, ends["min"], ends["max"], color=colour, alpha=0.15, lw=0)
                axes.axhline(0, **_ZERO)
                axes.set_title(LABELS[join], fontsize=10)
            picture.supxlabel("buffer pool (MB)", fontsize=9)
            picture.supylabel("gain over the buffers of Haas et al. (%)", fontsize=9)
            legend(picture, picture.axes[0])
        return picture


class Lessons(NamedTuple):
    """I/O seconds, I/O and CPU seconds, and page-sized over blocked I/O, by join on a device; and the median of CPU time's share."""

    device: str
    io: list[float]
    totals: list[float]
    blocked_gains: list[float]
    cpu_share: float


class Hardware(Exhibit):
    """The paper's lessons on every device: all share a pass, since the buffers are those of the paper's disk."""

    TITLE = "What the paper left open: its lessons on other hardware"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return [self._job(settings, join, page_io) for page_io in (True, False) for join in JOINS]

    def _job(self, settings: Settings, join: str, page_io: bool) -> Job:
        label = f"{join}, {'page-sized' if page_io else 'blocked'} I/O on every device"
        scale = settings.scale * other_runs.SHARE
        return Job.of(other_runs.on_every_device, label, join=join, page_io=page_io, scale=scale, seed=settings.seed)

    def lessons(self, results: Results) -> list[Lessons]:
        blocked, single = ([results.get(self._job(results.settings, join, page_io), {}) for join in JOINS] for page_io in (False, True))
        names = [name for name in presets.names() if all(name in by_device for by_device in (*blocked, *single))]
        every = []
        for name in names:
            times = ((blocked, "io"), (single, "io"), (blocked, "cpu"))
            io, page_io, cpu = (np.array([by_device[name][kind] for by_device in runs], np.float64) for runs, kind in times)
            totals = io + cpu
            every.append(Lessons(name, io.tolist(), totals.tolist(), (page_io / io).tolist(), float(np.median(cpu / totals))))
        return every

    def sections(self, results: Results) -> list[Section]:
        every = self.lessons(results)
        fastest = [LABELS[JOINS[each.totals.index(min(each.totals))]] for each in every]
        rows = [[one.device, *one.io, join, min(one.blocked_gains), 100 * one.cpu_share] for one, join in zip(every, fastest, strict=True)]
        joins = [f"{LABELS[join]}: I/O s" for join in JOINS]
        header = ["device", *joins, "fastest in all", "page-sized over blocked I/O, least", "CPU share %"]
        best = sum(each.totals[-1] <= min(each.totals) for each in every)
        blocked, busy = sum(min(each.blocked_gains) > 1.1 for each in every), sum(each.cpu_share > 0.5 for each in every)
        told = {"scale": results.settings.scale * other_runs.SHARE, "memory": other_runs.LESSONS_MEMORY, "devices": len(every)}
        text = load("do2009").text("hardware", **told, best=best, blocked=blocked, busy=busy)
        return [Section(self.TITLE, text, [Table(header, rows, "hardware", digits=2)], {"hardware": self._figure(every)})]

    def _figure(self, every: Sequence[Lessons]) -> Figure:
        with panels(0.28 * len(every) + 1.2) as (picture, axes):
            for place, each in enumerate(every):
                ends = [min(each.blocked_gains), max(each.blocked_gains)]
                axes.plot(ends, [place, place], color=COLOURS[0][0], marker="|", lw=3)
            axes.axvline(1, **_ZERO)
            axes.set_xscale("log")
            axes.set_yticks(range(len(every)), [each.device for each in every])
            axes.set_xlabel("page-sized over blocked I/O time, least and most of the four joins")
        return picture


EXHIBITS: Mapping[str, Exhibit] = {"hybrid_rule": HybridRule(), "allocations": Allocations(), "hardware": Hardware()}
