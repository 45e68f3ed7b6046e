"""Figure 1: I/O and CPU times of the four joins over the buffer pool on both devices, and what the text says of them."""

from dataclasses import replace

from matplotlib.figure import Figure

from flashsim.literature.base import Cell, Claim, Judgement, Verdict, decided, judge_holds, judge_numbers, load
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, MEMORY, Setup, cells, grid_jobs
from flashsim.studies.formulas.comparison import WHY, relative
from flashsim.studies.presentation.plots import Bar, Beside, published_beside_ours, stacked_bars
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs


#: Buffer pools for which the slides say how much slower GH is than HH.
_SLIDES = (200, 400, 600)


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge one of the claims of section 4.3."""
    grid = Runs(results)
    if claim.id == "fig1-281":
        return judge_numbers(claim, _hybrid_over_grace(claim, grid))
    if claim.id == "fig1-cpu":
        return _judge_most(claim, _cpu_above_io(grid))
    cells = {"fig1-hh-best": _hybrid_best, "fig1-bnl": _nested_loops, "fig1-sm-gh": _sort_and_grace}[claim.id](claim, grid)
    return judge_holds(claim, cells)


def _hybrid_over_grace(claim: Claim, grid: Runs) -> list[tuple[str, float, float | None]]:
    """Speedup of hybrid hash over Grace hash on the SSD: the paper's figure, and those of the slides."""
    cells = []
    for row, memory in (("HH over GH, SSD, 600 MB", (600,)), ("GH over HH, SSD, slides", _SLIDES)):
        for pool, published in zip(memory, claim.published[row], strict=True):
            name = row if len(memory) == 1 else f"{row}, {pool} MB"
            cells.append((name, float(published), _ratio(grid, "SSD", "total", "grace-hash", "hybrid-hash", pool)))
    return cells


def _cpu_above_io(grid: Runs) -> list[Cell]:
    cells = []
    for join in ("bnl", "sort-merge"):
        for memory in MEMORY:
            io, cpu = (grid.seconds(Setup(join, memory), "SSD", what) for what in ("io", "cpu"))
            cells.append(_less(f"I/O below CPU time, {LABELS[join]}, SSD, {memory} MB", io, cpu))
    return cells


def _judge_most(claim: Claim, cells: list[Cell]) -> Judgement:
    """The verdict on a claim that something holds in most cases: in more than half of the comparisons."""
    judged = judge_holds(claim, cells)
    if judged.verdict is Verdict.NOT_ATTEMPTED:
        return judged
    inside = sum(bool(cell.inside) for cell in cells)
    return replace(judged, verdict=decided(claim, 2 * inside > len(cells)), published="holds in most cases")


def _less(name: str, low: float | None, high: float | None) -> Cell:
    if low is None or high is None:
        return Cell(name, "less", None, None)
    return Cell(name, "less", f"{low:.3f} s against {high:.3f} s", low < high)


def _hybrid_best(claim: Claim, grid: Runs) -> list[Cell]:
    cells = []
    for machine in DEVICES:
        for memory in MEMORY:
            others = [grid.seconds(Setup(join, memory), machine) for join in JOINS[:-1]]
            runs = [other for other in others if other is not None]
            best = min(runs) if len(runs) == len(others) else None
            cells.append(
                _less(f"HH below the best other, {machine}, {memory} MB", grid.seconds(Setup("hybrid-hash", memory), machine), best)
            )
    return cells


def _nested_loops(claim: Claim, grid: Runs) -> list[Cell]:
    cells = []
    for memory in (int(text.removesuffix("MB")) for text in claim.values["large"]):
        bnl, sm, gh, hh = (grid.seconds(Setup(join, memory), "SSD") for join in JOINS)
        pairs = (("BNL below SM", bnl, sm), ("BNL below GH", bnl, gh), ("HH below BNL", hh, bnl))
        cells += [_less(f"{name}, {memory} MB", low, high) for name, low, high in pairs]
    return cells


def _sort_and_grace(claim: Claim, grid: Runs) -> list[Cell]:
    limits = claim.limits
    cells = []
    for memory in MEMORY:
        ratio = _ratio(grid, "HDD", "io", "sort-merge", "grace-hash", memory)
        cells.append(Cell(f"SM over GH, I/O, HDD, {memory} MB", 1, ratio, None if ratio is None else abs(ratio - 1) <= limits["similar"]))
    for memory in MEMORY:
        sm, gh = (grid.seconds(Setup(join, memory), "SSD", "io") for join in ("sort-merge", "grace-hash"))
        cells.append(_less(f"SM below GH, I/O, SSD, {memory} MB", sm, gh))
    for join in ("sort-merge", "grace-hash"):
        for memory in MEMORY:
            share = _first_phase(grid, join, memory)
            inside = None if share is None else abs(share - limits["share"]) <= limits["points"]
            cells.append(Cell(f"phase 1 of {LABELS[join]}, share of I/O, SSD, {memory} MB", limits["share"], share, inside))
    return cells


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 1, all seconds, and formula against simulation."""
    grid = Runs(results)
    text = (
        "I/O time (dark) and CPU time (light) of block nested loops (BNL), sort-merge (SM), Grace hash (GH) and hybrid hash (HH) with "
        "buffer pools of 100 to 600 MB; the dot is the I/O time that the formula predicts. The paper prints no times; beside them "
        "stands what its text and its slides say of them."
    )
    why = "; ".join(f"{setup.name}: {problem}" for setup in cells() if (problem := grid.problem(setup)))
    said = published_beside_ours(_beside(grid), "buffer pool, MB", "ratio", share=False)
    return [
        Section("Join times over the buffer pool (figure 1)", text, pictures={"figure1": figure(grid), "figure1-ratios": said}),
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


def _beside(grid: Runs) -> dict[str, Beside]:
    faster, similar = (load("do2009").claim(name) for name in ("fig1-281", "fig1-sm-gh"))
    slides = dict(zip(_SLIDES, map(float, faster.published["GH over HH, SSD, slides"]), strict=True))
    places, share = [str(memory) for memory in MEMORY], similar.limits["share"]
    slower = [_ratio(grid, "SSD", "total", "grace-hash", "hybrid-hash", memory) for memory in MEMORY]
    alike = [_ratio(grid, "HDD", "io", "sort-merge", "grace-hash", memory) for memory in MEMORY]
    panels = {
        "GH over HH, SSD, total": Beside(places, [slides.get(memory) for memory in MEMORY], slower, faster.limits["each"]),
        "SM over GH, HDD, I/O": Beside(places, [1.0] * len(MEMORY), alike, similar.limits["similar"]),
    }
    for join in ("sort-merge", "grace-hash"):
        ours = [_first_phase(grid, join, memory) for memory in MEMORY]
        panels[f"phase 1 of {LABELS[join]}, of I/O, SSD"] = Beside(places, [share] * len(MEMORY), ours, similar.limits["points"] / share)
    return panels


def _ratio(grid: Runs, machine: str, what: str, over: str, under: str, memory: int) -> float | None:
    upper, lower = (grid.seconds(Setup(join, memory), machine, what) for join in (over, under))
    return upper / lower if upper is not None and lower else None


def _first_phase(grid: Runs, join: str, memory: int) -> float | None:
    """The first phase's share of the I/O time on the SSD."""
    result = grid.get(Setup(join, memory), "SSD")
    return result.comparison[0].io / result.total.io if result else None


def _seconds(grid: Runs) -> Table:
    rows: list[list[Entry]] = []
    for setup in cells():
        row: list[Entry] = [setup.join, setup.memory]
        for machine in DEVICES:
            result = grid.get(setup, machine)
            row += [result.total.formula_io, result.total.io, result.total.cpu, result.total.total] if result else [None] * 4
        rows.append(row)
    header = ["join", "MB"]
    for machine in DEVICES:
        header += [f"{machine}: formula I/O", "I/O", "CPU", "total"]
    return Table(header, rows, "seconds", digits=2 if grid.settings.scale >= 0.05 else 3, runs=[grid.run(setup) for setup in cells()])


def _counts(grid: Runs) -> Table:
    rows: list[list[Entry]] = []
    runs: list[str] = []
    for setup in cells():
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
