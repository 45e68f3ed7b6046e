"""Figure 1: I/O and CPU times of the four joins over the buffer pool on both devices, and what the text says of them."""

from dataclasses import replace

from matplotlib.figure import Figure

from flashsim.literature.do2009.cpu_fit import prices
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, MEMORY, Setup, grid_jobs, setups
from flashsim.studies.formulas.comparison import WHY, relative
from flashsim.studies.judging.cells import Cell, less, number, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.plots import Bar, stacked_bars
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs


#: Buffer pools for which the slides say how much slower GH is than HH; the paper says it of the largest.
_SLIDES = (200, 400)


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The cells of one of the claims of section 4.3."""
    of_claim = {
        "fig1-281": _hybrid_over_grace,
        "fig1-cpu": _cpu_above_io,
        "fig1-hh-best": _hybrid_best,
        "fig1-bnl": _nested_loops,
        "fig1-sm-gh": _sort_and_grace,
    }
    every = of_claim[claim.id](claim, Runs(results))
    for variant in claim.stated:  # of which there is one: other prices of CPU work
        every += [replace(cell, variant=variant) for cell in of_claim[claim.id](claim, Runs(results, prices(without=("grace-hash",))))]
    return every


def _hybrid_over_grace(claim: Claim, grid: Runs) -> list[Cell]:
    """Speedup of hybrid hash over Grace hash on the SSD: the paper's figure, and those of the slides."""
    ((largest,), slides), limit = claim.published.values(), claim.limits["each"]
    return [
        number(f"GH over HH, SSD, {pool} MB", published, _ratio(grid, "SSD", "total", "grace-hash", "hybrid-hash", pool), limit, place=pool)
        for pool, published in zip((*_SLIDES, MEMORY[-1]), (*slides, largest), strict=True)
    ]


def _cpu_above_io(claim: Claim, grid: Runs) -> list[Cell]:
    return [
        statement(
            f"I/O and CPU time, {LABELS[join]}, SSD, {memory} MB",
            "I/O below CPU time, s",
            [grid.seconds(Setup(join, memory), "SSD", what) for what in ("io", "cpu")],
            less(claim.limits["margin"]),
        )
        for join in ("bnl", "sort-merge")
        for memory in MEMORY
    ]


def _hybrid_best(claim: Claim, grid: Runs) -> list[Cell]:
    return [
        statement(
            f"HH and the others, {machine}, {memory} MB",
            "HH below each, s",
            [grid.seconds(Setup(join, memory), machine) for join in reversed(JOINS)],
            less(claim.limits["margin"]),
        )
        for machine in DEVICES
        for memory in MEMORY
    ]


def _nested_loops(claim: Claim, grid: Runs) -> list[Cell]:
    cells, holds = [], less(claim.limits["margin"])
    for memory in (int(text.removesuffix("MB")) for text in claim.values["large"]):
        bnl, sm, gh, hh = (grid.seconds(Setup(join, memory), "SSD") for join in JOINS)
        for words, pair in (("BNL below SM", (bnl, sm)), ("BNL below GH", (bnl, gh)), ("HH below BNL", (hh, bnl))):
            cells.append(statement(f"SSD, {memory} MB, {words}", "less, s", pair, holds))
    return cells


def _sort_and_grace(claim: Claim, grid: Runs) -> list[Cell]:
    similar, share, points, margin = (claim.limits[name] for name in ("similar", "share", "points", "margin"))
    cells = [
        statement(
            f"SM over GH, I/O, HDD, {memory} MB",
            f"1 within {100 * similar:g} %",
            [_ratio(grid, "HDD", "io", "sort-merge", "grace-hash", memory)],
            lambda ratio: abs(ratio - 1) <= similar,
        )
        for memory in MEMORY
    ]
    for memory in MEMORY:
        io = [grid.seconds(Setup(join, memory), "SSD", "io") for join in ("sort-merge", "grace-hash")]
        cells.append(statement(f"I/O of SM and GH, SSD, {memory} MB", "SM below GH, s", io, less(margin)))
    return cells + [
        statement(
            f"phase 1 of {LABELS[join]}, share of I/O, SSD, {memory} MB",
            f"{share:g} within {points:g}",
            [_first_phase(grid, join, memory)],
            lambda part: abs(part - share) <= points,
            equal=0.5,
        )
        for join in ("sort-merge", "grace-hash")
        for memory in MEMORY
    ]


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 1, all seconds, and formula against simulation."""
    grid = Runs(results)
    text = (
        "I/O time (dark) and CPU time (light) of block nested loops (BNL), sort-merge (SM), Grace hash (GH) and hybrid hash (HH) with "
        "buffer pools of 100 to 600 MB; the dot is the I/O time that the formula predicts. The paper prints no times; beside them "
        "stands what its text and its slides say of them."
    )
    why = "; ".join(f"{setup.name}: {problem}" for setup in setups() if (problem := grid.problem(setup)))
    return [
        Section("Join times over the buffer pool (figure 1)", text, pictures={"figure1": figure(grid)}),
        Section("Seconds", f"Not run: {why}" if why else "", [_seconds(grid)], on_terminal=True),
        Section("Formula against simulation", WHY, [_counts(grid)]),
    ]


def figure(grid: Runs) -> Figure:
    """The bars of both machines, one below the other."""
    panels: dict[str, list[Bar]] = {}
    for machine, device in DEVICES.items():
        bars = panels.setdefault(f"{machine} ({device}), scale {grid.settings.scale:g}", [])
        for memory in MEMORY:
            for join in JOINS:
                result = grid.get(Setup(join, memory), machine)
                if result:
                    bars.append(Bar(f"{memory} MB", LABELS[join], result.total.io, result.total.cpu, result.total.formula_io))
    return stacked_bars(panels)


def _ratio(grid: Runs, machine: str, what: str, over: str, under: str, memory: int) -> float | None:
    upper, lower = (grid.seconds(Setup(join, memory), machine, what) for join in (over, under))
    return upper / lower if upper is not None and lower else None


def _first_phase(grid: Runs, join: str, memory: int) -> float | None:
    """The first phase's share of the I/O time on the SSD."""
    result = grid.get(Setup(join, memory), "SSD")
    return result.comparison[0].io / result.total.io if result else None


def _seconds(grid: Runs) -> Table:
    rows: list[list[Entry]] = []
    for setup in setups():
        row: list[Entry] = [setup.join, setup.memory]
        for machine in DEVICES:
            result = grid.get(setup, machine)
            row += [result.total.formula_io, result.total.io, result.total.cpu, result.total.total] if result else [None] * 4
        rows.append(row)
    header = ["join", "MB"]
    for machine in DEVICES:
        header += [f"{machine}: formula I/O", "I/O", "CPU", "total"]
    return Table(header, rows, "seconds", digits=2 if grid.settings.scale >= 0.05 else 3, runs=[grid.run(setup) for setup in setups()])


def _counts(grid: Runs) -> Table:
    rows: list[list[Entry]] = []
    runs: list[str] = []
    for setup in setups():
        hdd, ssd = (grid.get(setup, machine) for machine in DEVICES)
        if hdd is None or ssd is None:
            continue
        for row, flash in zip(hdd.comparison, ssd.comparison, strict=True):
            entries: list[Entry] = [setup.join, setup.memory, row.phase, row.formula_requests, row.requests, row.formula_pages, row.pages]
            entries += [row.formula_io, row.formula_io_measured_seek, row.io, _percent(relative(row.io, row.formula_io))]
            rows.append([*entries, flash.formula_io, flash.io, _percent(relative(flash.io, flash.formula_io))])
            runs.append(grid.run(setup))
    header = ["join", "MB", "phase", "requests: formula", "ours", "pages: formula", "ours"]
    header += ["HDD I/O s: formula", "with measured seek", "ours", "differs %", "SSD I/O s: formula", "ours", "differs %"]
    return Table(header, rows, "formula", digits=2 if grid.settings.scale >= 0.05 else 3, runs=runs)


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
