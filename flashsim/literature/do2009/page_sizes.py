"""Figures 2 and 3 and table 5: times over the page size with blocked and with page-sized I/O, and what blocked I/O saves.

The CPU preset was fitted to table 5's rows of 8 and 32 KB (`flashsim.literature.do2009.cpu_fit`); the other rows are what it predicts.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from flashsim.core.units import KIB
from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Judged, Section, Shown, Table
from flashsim.literature.do2009.cpu_fit import ROWS
from flashsim.literature.do2009.measured import Order, Runs
from flashsim.literature.do2009.runs import DEVICES, FLASH_PAGE, JOINS, LABELS, PAGE_SIZES, PAGE_SIZES_MEMORY, Setup
from flashsim.studies.judging.cells import bounded, ratio

#: Every join with every page size, the longest runs first, with blocked and with page-sized I/O.
_BLOCKED, _PAGE_SIZED = (
    [Setup(join, PAGE_SIZES_MEMORY, size, page_io) for size in PAGE_SIZES for join in JOINS] for page_io in (False, True)
)
#: Runs that show whether half flash pages make small pages dear: as usual, in buffers of whole flash pages, and with pages of that size.
_ALIGNED = [
    (usual, replace(usual, aligned=True), replace(usual, page_size=FLASH_PAGE)) for usual in _BLOCKED[: len(JOINS)] if usual.join != "bnl"
]


def _figure(number: int, kind: str, grid: list[Setup], runs: Runs) -> list[Section]:
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


def _spreads(claim: Claim, runs: Runs) -> list[Cell]:
    """Spread of total times over the page sizes, largest over smallest, less 1: little with blocked I/O, more with page-sized."""
    cells = []
    for grid, relation, kind in ((_BLOCKED, "below", ""), (_PAGE_SIZED, "above", ", page-sized I/O")):
        for machine in DEVICES:
            for join in JOINS:
                seconds = [runs.seconds(each, machine) for each in grid if each.join == join]
                spread = None if None in seconds else max(filter(None, seconds)) / min(filter(None, seconds)) - 1
                cells.append(bounded(f"spread of {join}, {machine}{kind}", relation, claim.limits["spread"], spread, equal=0))
    return cells


def _small_pages(runs: Runs) -> list[Section]:
    rows: list[list[Entry]] = [[LABELS[each[0].join], *(runs.seconds(setup, "SSD", "io") for setup in each)] for each in _ALIGNED]
    text = (
        "I/O seconds on the SSD. A buffer of an odd number of 2 KB pages ends in the middle of a flash page of 4 KB: the next one "
        "begins there, so every command of it touches one flash page that another command touched as well."
    )
    header = ["join", "2 KB pages", "2 KB pages, output in whole flash pages", "4 KB pages"]
    return [Section(_SMALL_PAGES, text, [Table(header, rows, "aligned", digits=1)])]


def _over_blocked(claim: Claim, runs: Runs) -> list[Cell]:

    def measured(machine: str, join: str) -> tuple[str, float | None, str]:
        usual = Setup(join, PAGE_SIZES_MEMORY)
        times = ((each, machine) for each in (replace(usual, page_io=True), usual))
        return f"{LABELS[join]}, {machine}, page-sized over blocked", runs.ratio(times), ""

    return claim.grid(JOINS, measured)


def _with_small_pages(claim: Claim, runs: Runs) -> list[Cell]:
    small = [Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZES[0], page_io=True) for join in ("sort-merge", "grace-hash")]
    orders: list[Order] = [(f"{LABELS[s.join]}, HDD and SSD", "the first less, s", [(s, name) for name in DEVICES]) for s in small]
    return runs.orders(claim, orders)


def _cpu_times(claim: Claim, runs: Runs) -> list[Cell]:
    """CPU times of block nested loops, a row a machine and kind of time, as at scale 1: work is proportional to the scale."""

    def measured(row: str, kilobytes: int) -> tuple[str, float | None, str]:
        setup = Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)
        seconds = runs.seconds(setup, *row.split(", "))
        return f"{row}, {kilobytes} KB", ratio(seconds, runs.settings.scale), runs.id(setup)

    return claim.grid(ROWS, measured)


_SMALL_PAGES = "Small pages and flash pages"
#: The runs of figure 3 have blocked I/O at the page size of the rest of the paper alone.
_FIGURE_3 = [*_PAGE_SIZED, *(Setup(join, PAGE_SIZES_MEMORY) for join in JOINS)]
EXHIBITS: Mapping[str, Exhibit] = {
    "figure2": Judged([*_PAGE_SIZED, *_BLOCKED], partial(_figure, 2, "blocked", _BLOCKED), runs=Runs, judges={"fig2": _spreads}),
    "figure3": Judged(
        _FIGURE_3,
        partial(_figure, 3, "page-sized", _PAGE_SIZED),
        runs=Runs,
        judges={"fig3-blocked": _over_blocked, "fig3-2kb": _with_small_pages},
    ),
    "table5": Judged([setup for setup in _PAGE_SIZED if setup.join == "bnl"], runs=Runs, judges={"table5": _cpu_times}),
    "aligned": Shown([setup for each in _ALIGNED for setup in each], _small_pages, _SMALL_PAGES, Runs),
}
