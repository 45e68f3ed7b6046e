"""Tables 3 to 5 and figures 1 to 3: the four joins over the buffer pool and over the page size, and how times vary.

The CPU preset was fitted to table 5's rows of 8 and 32 KB (`flashsim.apps.papers.do2009.cpu_fit`); the other rows are what it
predicts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flashsim.apps.papers import base
from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Judged, Results, Section, Shown, Table, load
from flashsim.apps.papers.do2009.cpu_fit import ROWS, prices
from flashsim.apps.papers.do2009.runs import (
    CPU,
    DEVICES,
    FLASH_PAGE,
    GRID,
    JOINS,
    LABELS,
    LONGEST_FIRST,
    MEMORY,
    PAGE_SIZES,
    REPEATED,
    Setup,
    buffers,
    join_setting,
    sized_setup,
)
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.execution.cpu import CpuModel
from flashsim.experiments.formulas.comparison import PhaseComparison, compare, formula, relative
from flashsim.experiments.judging.cells import less, limit_statement, near, number, ratio, statement
from flashsim.experiments.presentation.plots import Bar, stacked_bars
from flashsim.experiments.presentation.tables import percent
from flashsim.experiments.runs.drives import ShipsModel, disk_of
from flashsim.experiments.runs.joining import PhaseSeconds
from models.haas import JoinCost
from models.join_costs.base import Sizes

#: What `JoinRuns.seconds` takes: run, machine, kind and phase; and name and words of a comparison, and the times that it is on.
Time = tuple[Any, ...]
Order = tuple[str, str, Sequence[Time]]


@dataclass(frozen=True)
class Result:
    """One join on one machine: phases and their total, with mean times; and I/O, user's and kernel's seconds of each repetition."""

    comparison: Sequence[PhaseComparison]
    io: Sequence[float]
    user: Sequence[float]
    kernel: Sequence[float]

    @property
    def total(self) -> PhaseComparison:
        return self.comparison[-1]


class JoinRuns(base.Runs):
    """Measurements by setup and machine; totals are with the user's work at other prices than the runs', if `cpu` has them."""

    def __init__(self, results: Results, cpu: CpuModel | None = None) -> None:
        super().__init__(results)
        self._cpu = cpu

    def result(self, setup: Setup, machine: str) -> Result | None:
        """One result, or None where the run was not asked for or could not be made."""
        output = self.get(setup)
        if not output or "problem" in output:
            return None
        repeated = [[PhaseSeconds(**row) for row in one] for one in output["machines"][machine]]
        formula = _formula(setup, self.settings.scale, machine, tuple(output["pages"]), self.settings.ships_model)
        phases = []
        for every in zip(*(compare(one, formula) for one in repeated), strict=True):
            means = {name: fmean(getattr(one, name) for one in every) for name in ("io", "cpu", "total")}
            phases.append(replace(every[0], **means))
        return Result(phases, *([getattr(one[-1], kind) for one in repeated] for kind in ("io", "user", "kernel")))

    def seconds(self, setup: Setup, machine: str, what: str = "total", phase: str = "total") -> float | None:
        """Seconds of a run: ``io``, ``cpu`` or ``total`` (also of its ``first phase`` or ``second phase``), ``user`` or ``kernel``."""
        result = self.result(setup, machine)
        place = {"first phase": 0, "second phase": 1}.get(phase, -1)
        if result is None or place >= len(result.comparison) - 1:
            return None
        if what in ("user", "kernel"):
            return fmean(getattr(result, what))
        seconds: float = getattr(result.comparison[place], what)
        if self._cpu is None or what == "io":
            return seconds
        work = self.get(setup)["work"]
        return seconds + (self._cpu.user_time(work) / cpus.load(CPU).user_time(work) - 1) * fmean(result.user)

    def ratio(self, times: Iterable[Time]) -> float | None:
        """The first of two times over the second."""
        return ratio(*(self.seconds(*time) for time in times))

    def orders(self, claim: Claim, orders: Sequence[Order]) -> list[Cell]:
        """Statements that the first of some times is below the others by the claim's margin."""
        holds = less(claim.limits["margin"])
        return [statement(name, words, [self.seconds(*run) for run in times], holds) for name, words, times in orders]

    def bars(self, groups: Mapping[str, Sequence[Setup]], kind: str) -> Figure:
        """I/O and CPU times in groups of bars, the machines one below the other."""
        panels: dict[str, list[Bar]] = {}
        for machine, device in DEVICES.items():
            bars = panels[f"{machine} ({device}), {kind}scale {self.settings.scale:g}"] = []
            for group, setups in groups.items():
                every = [(LABELS[setup.join], self.result(setup, machine)) for setup in setups]
                bars += [Bar(group, label, one.total.io, one.total.cpu, one.total.formula_io) for label, one in every if one]
        return stacked_bars(panels)


@cache
def _formula(setup: Setup, scale: float, machine: str, pages: tuple[int, int, int, int], ships_model: bool) -> JoinCost | None:
    disk = disk_of(presets.load(DEVICES[machine]), setup.page_size)
    if ships_model:
        disk = ShipsModel(scale, setup.page_size * setup.page_io).disk(disk)
    sizes = Sizes(*pages, join_setting(setup, scale).memory)
    allocation = buffers(setup, scale, *pages[:2], ships_model=ships_model)
    return formula(setup.join, sizes, disk, allocation, page_io=setup.page_io)


_BOTH = ("sort-merge", "grace-hash")


def _times(joins: Iterable[str], memory: int, machine: str = "SSD", kinds: Sequence[str] = ("total",)) -> list[Time]:
    return [(Setup(join, memory), machine, kind) for join in joins for kind in kinds]


#: Comparisons of times by claim: name, words, and the times of which the first is the least.
_ORDERS: dict[str, list[Order]] = {
    "fig1-cpu": [
        (f"I/O and CPU time, {LABELS[join]}, SSD, {memory} MB", "I/O below CPU time, s", _times([join], memory, kinds=("io", "cpu")))
        for join in ("bnl", "sort-merge")
        for memory in MEMORY
    ],
    "fig1-hh-best": [
        (f"HH and the others, {machine}, {memory} MB", "HH below each, s", _times(reversed(JOINS), memory, machine))
        for machine in DEVICES
        for memory in MEMORY
    ],
    "fig1-bnl": [
        (f"SSD, {memory} MB, {LABELS[pair[0]]} below {LABELS[pair[1]]}", "less, s", _times(pair, memory))
        for memory in (400, 500, 600)
        for pair in (("bnl", "sort-merge"), ("bnl", "grace-hash"), ("hybrid-hash", "bnl"))
    ],
    "fig1-sm-gh": [(f"I/O of SM and GH, SSD, {memory} MB", "SM below GH, s", _times(_BOTH, memory, kinds=("io",))) for memory in MEMORY],
}


def _order_cells(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """Orders of times; where a variant is stated, also with its prices of CPU work."""
    priced = {"": runs} | {variant: JoinRuns(runs.results, prices(without=("grace-hash",))) for variant in claim.stated}
    return [replace(cell, variant=variant) for variant, each in priced.items() for cell in each.orders(claim, _ORDERS[claim.id])]


def _hybrid_over_grace(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """Speedup of hybrid hash over Grace hash on the SSD: those of the slides, and the paper's of the largest pool."""
    (largest, slides), limit = claim.published.values(), claim.limits["each"]
    return [
        number(f"GH over HH, SSD, {pool} MB", value, runs.ratio(_times(("grace-hash", "hybrid-hash"), pool)), limit, place=pool)
        for pool, value in zip((200, 400, 600), (*slides, *largest), strict=True)
    ]


def _sort_and_grace(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """Beside the order on the SSD: I/O alike on the HDD, and the first phase's share on the SSD."""
    similar, share, points = (claim.limits[name] for name in ("similar", "share", "points"))
    alike, first = list[Cell](), list[Cell]()
    for memory in MEMORY:
        value = runs.ratio(_times(_BOTH, memory, "HDD", ("io",)))
        alike.append(statement(f"SM over GH, I/O, HDD, {memory} MB", f"1 within {100 * similar:g} %", [value], near(1, similar)))
    for join, memory in [(join, memory) for join in _BOTH for memory in MEMORY]:
        value = runs.ratio([(Setup(join, memory), "SSD", "io", phase) for phase in ("first phase", "total")])
        name = f"phase 1 of {LABELS[join]}, share of I/O, SSD, {memory} MB"
        first.append(statement(name, f"{share:g} within {points:g}", [value], near(share, points), equal=0.5))
    return [*alike, *_order_cells(claim, runs), *first]


def _figure1(runs: JoinRuns) -> list[Section]:
    paper = load("do2009")
    why = "; ".join(f"{setup.name}: {problem}" for setup in GRID if (problem := (runs.get(setup) or {}).get("problem")))
    picture = runs.bars({f"{memory} MB": [Setup(join, memory) for join in JOINS] for memory in MEMORY}, "")
    return [
        Section("Join times over the buffer pool (figure 1)", paper.text("figure1"), pictures={"figure1": picture}),
        Section("Seconds", f"Not run: {why}" if why else "", [_seconds(runs)], on_terminal=True),
        Section("Formula against simulation", paper.text("formula"), [_counts(runs)]),
    ]


def _seconds(runs: JoinRuns) -> Table:
    rows = []
    for setup in GRID:
        totals = [result.total if result else None for result in (runs.result(setup, machine) for machine in DEVICES)]
        times = [getattr(total, name) if total else None for total in totals for name in ("formula_io", "io", "cpu", "total")]
        rows.append([setup.join, setup.memory, *times])
    header = ["join", "MB", *(name for machine in DEVICES for name in (f"{machine}: formula I/O", "I/O", "CPU", "total"))]
    return Table(header, rows, "seconds", 2 if runs.settings.scale >= 0.05 else 3, runs=[runs.id(setup) for setup in GRID])


def _counts(runs: JoinRuns) -> Table:
    rows, ids = list[list[Entry]](), list[str]()
    for setup in GRID:
        hdd, ssd = (runs.result(setup, machine) for machine in DEVICES)
        for row, flash in zip(hdd.comparison, ssd.comparison, strict=True) if hdd and ssd else ():
            entries: list[Entry] = [setup.join, setup.memory, row.phase, row.formula_requests, row.requests, row.formula_pages, row.pages]
            for times in ([row.formula_io, row.io], [flash.formula_io, flash.io]):
                share = relative(times[-1] or 0.0, times[0])
                entries += [*times, share and percent(share)]
            rows.append(entries)
            ids.append(runs.id(setup))
    header = ["join", "MB", "phase", "requests: formula", "ours", "pages: formula", "ours"]
    header += ["HDD I/O s: formula", "ours", "differs %", "SSD I/O s: formula", "ours", "differs %"]
    return Table(header, rows, "formula", 2 if runs.settings.scale >= 0.05 else 3, runs=ids)


def spread(times: Sequence[float] | None) -> float | None:
    """The range of times over their mean."""
    return None if times is None else float(np.ptp(times) / np.mean(times))


def _io_times(runs: JoinRuns, machine: str) -> dict[str, Sequence[float] | None]:
    """I/O seconds on each state, by join; None where a run could not be made."""
    return {setup.join: result.io if result else None for setup in REPEATED for result in [runs.result(setup, machine)]}


def _variance(claim: Claim, runs: JoinRuns) -> list[Cell]:
    flash, disk = ({join: spread(times) for join, times in _io_times(runs, machine).items()} for machine in ("SSD", "HDD"))
    wider, cells = less(claim.limits["margin"]), list[Cell]()
    for wide, narrow in (("grace-hash", "sort-merge"), ("hybrid-hash", "sort-merge"), ("sort-merge", "bnl")):
        name = f"spreads of {LABELS[narrow]} and {LABELS[wide]}, SSD"
        cells.append(statement(name, "the first less", (flash[narrow], flash[wide]), wider, 0, digits=5))
    return cells + [
        limit_statement(f"spread of {LABELS[join]}, HDD", "below", claim.limits["little"], wide, 0) for join, wide in disk.items()
    ]


def _error_bars(runs: JoinRuns) -> list[Section]:
    rows = [
        [machine, join, len(times), min(times), float(np.mean(times)), max(times), 100 * (spread(times) or 0)]
        for machine in DEVICES
        for join, times in _io_times(runs, machine).items()
        if times
    ]
    header = ["machine", "join", "states", "least I/O s", "mean", "most", "spread %"]
    condition = "over drive states drawn under the seed: where the volume begins, and what was overwritten before"
    text = f"I/O seconds with {REPEATED[0].memory} MB {condition}."
    return [Section("Variation between runs (error bars of figure 1)", text, [Table(header, rows, "variance", digits=3)])]


def _speedups(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """Speedups, SSD over HDD, a row a join, or a join and phase."""

    def measure(row: str, memory: int) -> tuple[str, float | None, str]:
        join, _, phase = row.partition(", ")
        setup, what = Setup(join, memory), claim.values["seconds"]
        return f"{row} {memory} MB", runs.ratio([(setup, machine, what, phase or "total") for machine in DEVICES]), runs.id(setup)

    return claim.grid(MEMORY, measure)


#: Every join with every page size, the longest runs first, with blocked and with page-sized I/O.
_BLOCKED, _PAGE_SIZED = ([sized_setup(join, size, page_io) for size in PAGE_SIZES for join in JOINS] for page_io in (False, True))
#: Runs that show whether half flash pages make small pages dear: as usual, in buffers of whole flash pages, and with pages of that size.
_ALIGNED = [(one, replace(one, aligned=True), replace(one, page_size=FLASH_PAGE)) for one in _BLOCKED[: len(JOINS)] if one.join != "bnl"]


def _figure(number: int, kind: str, grid: list[Setup], runs: JoinRuns) -> list[Section]:
    rows, ids = list[list[Entry]](), list[str]()
    for machine in DEVICES:
        for setup in grid:
            if result := runs.result(setup, machine):
                total, kib = result.total, setup.page_size // 1024
                rows.append([machine, setup.join, kib, total.formula_io, total.io, result.user[0], result.kernel[0], total.total])
                ids.append(runs.id(setup))
    header = ["machine", "join", "page, KB", "formula I/O", "I/O", "user", "kernel", "total"]
    text = f"A buffer pool of 500 MB and {kind} I/O: I/O time (dark) and CPU time (light), in seconds; the dot is the formula's I/O time."
    name, groups = f"figure{number}", {f"{size // 1024} KB": [each for each in grid if each.page_size == size] for size in PAGE_SIZES}
    title = f"Join times over the page size, {kind} I/O (figure {number})"
    return [Section(title, text, [Table(header, rows, name, runs=ids)], {name: runs.bars(groups, f"{kind} I/O, ")})]


def _spreads(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """Spread of total times over the page sizes, largest over smallest, less 1: little with blocked I/O, more with page-sized."""
    cells = []
    for grid, relation, kind in ((_BLOCKED, "below", ""), (_PAGE_SIZED, "above", ", page-sized I/O")):
        for machine in DEVICES:
            for join in JOINS:
                seconds = [runs.seconds(each, machine) for each in grid if each.join == join]
                spread = None if None in seconds else max(filter(None, seconds)) / min(filter(None, seconds)) - 1
                cells.append(limit_statement(f"spread of {join}, {machine}{kind}", relation, claim.limits["spread"], spread, equal=0))
    return cells


def _small_pages(runs: JoinRuns) -> list[Section]:
    rows: list[list[Entry]] = [[LABELS[each[0].join], *(runs.seconds(setup, "SSD", "io") for setup in each)] for each in _ALIGNED]
    header = ["join", "2 KB pages", "2 KB pages, output in whole flash pages", "4 KB pages"]
    return [Section(_SMALL_PAGES, load("do2009").text("aligned"), [Table(header, rows, "aligned", digits=1)])]


def _over_blocked(claim: Claim, runs: JoinRuns) -> list[Cell]:
    def measure(machine: str, join: str) -> tuple[str, float | None, str]:
        times = ((sized_setup(join, page_io=page_io), machine) for page_io in (True, False))
        return f"{LABELS[join]}, {machine}, page-sized over blocked", runs.ratio(times), ""

    return claim.grid(JOINS, measure)


def _with_small_pages(claim: Claim, runs: JoinRuns) -> list[Cell]:
    small = [sized_setup(join, PAGE_SIZES[0], page_io=True) for join in ("sort-merge", "grace-hash")]
    orders: list[Order] = [(f"{LABELS[s.join]}, HDD and SSD", "the first less, s", [(s, name) for name in DEVICES]) for s in small]
    return runs.orders(claim, orders)


def _cpu_times(claim: Claim, runs: JoinRuns) -> list[Cell]:
    """CPU times of block nested loops, a row a machine and kind of time, as at scale 1: work is proportional to the scale."""

    def measure(row: str, kilobytes: int) -> tuple[str, float | None, str]:
        setup = sized_setup("bnl", kilobytes * KIB, page_io=True)
        seconds = runs.seconds(setup, *row.split(", "))
        return f"{row}, {kilobytes} KB", ratio(seconds, runs.settings.scale), runs.id(setup)

    return claim.grid(ROWS, measure)


_SMALL_PAGES = "Small pages and flash pages"
#: The runs of figure 3 have blocked I/O at the page size of the rest of the paper alone.
_FIGURE_3 = [*_PAGE_SIZED, *map(sized_setup, JOINS)]
_JUDGES = dict.fromkeys(_ORDERS, _order_cells) | {"fig1-281": _hybrid_over_grace, "fig1-sm-gh": _sort_and_grace, "fig1-variance": _variance}
_JUDGES |= dict.fromkeys(("table3-io", "table3-join", "table4"), _speedups) | {"table5": _cpu_times}
_JUDGES |= {"fig2": _spreads, "fig3-blocked": _over_blocked, "fig3-2kb": _with_small_pages}
EXHIBITS: Mapping[str, Exhibit] = {
    "figure1": Judged(LONGEST_FIRST, _figure1, runs=JoinRuns, judges=_JUDGES),
    "variance": Judged(REPEATED, _error_bars, runs=JoinRuns, judges=_JUDGES),
    **dict.fromkeys(("table3", "table4"), Judged(LONGEST_FIRST, runs=JoinRuns, judges=_JUDGES)),
    "figure2": Judged([*_PAGE_SIZED, *_BLOCKED], partial(_figure, 2, "blocked", _BLOCKED), runs=JoinRuns, judges=_JUDGES),
    "figure3": Judged(_FIGURE_3, partial(_figure, 3, "page-sized", _PAGE_SIZED), runs=JoinRuns, judges=_JUDGES),
    "table5": Judged([setup for setup in _PAGE_SIZED if setup.join == "bnl"], runs=JoinRuns, judges=_JUDGES),
    "aligned": Shown([setup for each in _ALIGNED for setup in each], _small_pages, _SMALL_PAGES, JoinRuns),
}
