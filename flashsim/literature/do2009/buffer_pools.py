"""Figure 1: I/O and CPU times of the four joins over the buffer pool on both devices, how they vary, and what the text says of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Table
from flashsim.literature.do2009.cpu_fit import prices
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, MEMORY, VARIATION_MEMORY, Setup, grid_jobs, setups
from flashsim.studies.formulas.comparison import WHY, relative
from flashsim.studies.judging.cells import less, number, ratio, statement
from flashsim.studies.presentation.tables import percent

#: Buffer pools for which the slides say how much slower GH is than HH; the paper says it of the largest.
_SLIDES = (200, 400)


def _hybrid_over_grace(claim: Claim, runs: Runs) -> list[Cell]:
    """Speedup of hybrid hash over Grace hash on the SSD: the paper's figure, and those of the slides."""
    ((largest,), slides), cells = claim.published.values(), list[Cell]()
    for pool, published in zip((*_SLIDES, MEMORY[-1]), (*slides, largest), strict=True):
        times = runs.over("SSD", "total", pool, "grace-hash", "hybrid-hash")
        cells.append(number(f"GH over HH, SSD, {pool} MB", published, ratio(*times), claim.limits["each"], place=pool))
    return cells


def _cpu_above_io(claim: Claim, runs: Runs) -> list[Cell]:
    holds, words = less(claim.limits["margin"]), "I/O below CPU time, s"
    setups = [Setup(join, memory) for join in ("bnl", "sort-merge") for memory in MEMORY]
    return [
        statement(
            f"I/O and CPU time, {LABELS[each.join]}, SSD, {each.memory} MB",
            words,
            [runs.seconds(each, "SSD", what) for what in ("io", "cpu")],
            holds,
        )
        for each in setups
    ]


def _hybrid_best(claim: Claim, runs: Runs) -> list[Cell]:
    places, holds = [(machine, memory) for machine in DEVICES for memory in MEMORY], less(claim.limits["margin"])
    times = {place: runs.over(place[0], "total", place[1], *reversed(JOINS)) for place in places}
    return [statement(f"HH and the others, {each[0]}, {each[1]} MB", "HH below each, s", times[each], holds) for each in places]


def _nested_loops(claim: Claim, runs: Runs) -> list[Cell]:
    cells, holds = list[Cell](), less(claim.limits["margin"])
    for memory in (int(text.removesuffix("MB")) for text in claim.values["large"]):
        bnl, sm, gh, hh = runs.over("SSD", "total", memory, *JOINS)
        for words, pair in (("BNL below SM", (bnl, sm)), ("BNL below GH", (bnl, gh)), ("HH below BNL", (hh, bnl))):
            cells.append(statement(f"SSD, {memory} MB, {words}", "less, s", pair, holds))
    return cells


def _sort_and_grace(claim: Claim, runs: Runs) -> list[Cell]:
    joins, (similar, share, points, margin) = (
        ("sort-merge", "grace-hash"),
        (claim.limits[n] for n in ("similar", "share", "points", "margin")),
    )
    times = {(machine, memory): runs.over(machine, "io", memory, *joins) for machine in DEVICES for memory in MEMORY}
    first = {
        (j, m): ratio(*(runs.seconds(Setup(j, m), "SSD", "io", part) for part in ("first phase", "total"))) for j in joins for m in MEMORY
    }
    alike, words = lambda ratio: abs(ratio - 1) <= similar, f"1 within {100 * similar:g} %"
    return [
        *(statement(f"SM over GH, I/O, HDD, {m} MB", words, [ratio(*times["HDD", m])], alike) for m in MEMORY),
        *(statement(f"I/O of SM and GH, SSD, {m} MB", "SM below GH, s", times["SSD", m], less(margin)) for m in MEMORY),
        *(
            statement(
                f"phase 1 of {LABELS[join]}, share of I/O, SSD, {memory} MB",
                f"{share:g} within {points:g}",
                [part],
                lambda part: abs(part - share) <= points,
                equal=0.5,
            )
            for (join, memory), part in first.items()
        ),
    ]


class _Figure1(Exhibit):
    jobs = staticmethod(grid_jobs)
    judges: Mapping[str, Callable[[Claim, Runs], list[Cell]]] = {
        "fig1-281": _hybrid_over_grace,
        "fig1-cpu": _cpu_above_io,
        "fig1-hh-best": _hybrid_best,
        "fig1-bnl": _nested_loops,
        "fig1-sm-gh": _sort_and_grace,
    }

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The cells of one of the claims of section 4.3; where a variant is stated, also those with its prices of CPU work."""
        judge = self.judges[claim.id]
        cells = judge(claim, Runs(results))
        if claim.stated:
            (variant,) = claim.stated
            cells += [replace(cell, variant=variant) for cell in judge(claim, Runs(results, prices(without=("grace-hash",))))]
        return cells

    def sections(self, results: Results) -> list[Section]:
        """The counterpart of figure 1, all seconds, and formula against simulation."""
        runs = Runs(results)
        text = (
            "I/O time (dark) and CPU time (light) of block nested loops (BNL), sort-merge (SM), Grace hash (GH) and hybrid hash (HH) with "
            "buffer pools of 100 to 600 MB; the dot is the I/O time that the formula predicts. The paper prints no times; beside them "
            "stands what its text and its slides say of them."
        )
        why = "; ".join(f"{setup.name}: {problem}" for setup in setups() if (problem := (runs.get(setup) or {}).get("problem")))
        picture = runs.bars({f"{memory} MB": [Setup(join, memory) for join in JOINS] for memory in MEMORY}, "")
        return [
            Section("Join times over the buffer pool (figure 1)", text, pictures={"figure1": picture}),
            Section("Seconds", f"Not run: {why}" if why else "", [_seconds(runs)], on_terminal=True),
            Section("Formula against simulation", WHY, [_counts(runs)]),
        ]


def _digits(runs: Runs) -> int:
    return 2 if runs.settings.scale >= 0.05 else 3


def _seconds(runs: Runs) -> Table:
    rows: list[list[Entry]] = []
    for setup in setups():
        results = [runs.result(setup, machine) for machine in DEVICES]
        times = [[each.total.formula_io, each.total.io, each.total.cpu, each.total.total] if each else [None] * 4 for each in results]
        rows.append([setup.join, setup.memory, *times[0], *times[1]])
    header = ["join", "MB", *(name for machine in DEVICES for name in (f"{machine}: formula I/O", "I/O", "CPU", "total"))]
    return Table(header, rows, "seconds", digits=_digits(runs), runs=[runs.id(setup) for setup in setups()])


def _counts(runs: Runs) -> Table:
    rows: list[list[Entry]] = []
    ids: list[str] = []
    for setup in setups():
        hdd, ssd = (runs.result(setup, machine) for machine in DEVICES)
        for row, flash in zip(hdd.comparison, ssd.comparison, strict=True) if hdd and ssd else ():
            entries: list[Entry] = [setup.join, setup.memory, row.phase, row.formula_requests, row.requests, row.formula_pages, row.pages]
            entries += [row.formula_io, row.formula_io_measured_seek]
            for each in (row, flash):
                share = relative(each.io, each.formula_io)
                entries += [*([flash.formula_io] if each is flash else []), each.io, None if share is None else percent(share)]
            rows.append(entries)
            ids.append(runs.id(setup))
    header = ["join", "MB", "phase", "requests: formula", "ours", "pages: formula", "ours"]
    header += ["HDD I/O s: formula", "with measured seek", "ours", "differs %", "SSD I/O s: formula", "ours", "differs %"]
    return Table(header, rows, "formula", digits=_digits(runs), runs=ids)


def spread(times: Sequence[float] | None) -> float | None:
    """The range of times over their mean."""
    return None if times is None else float(np.ptp(times) / np.mean(times))


class _Variance(Exhibit):
    """The error bars of figure 1: how far I/O times vary from one state of the drives to another."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """Every join with one buffer pool, on more states than other runs."""
        return [Setup(join, VARIATION_MEMORY).job(settings) for join in JOINS]

    def _io_times(self, results: Results, machine: str) -> dict[str, Sequence[float] | None]:
        """I/O seconds on each state, by join; None where a run could not be made."""
        every = {join: Runs(results).result(Setup(join, VARIATION_MEMORY), machine) for join in JOINS}
        return {join: result.io if result else None for join, result in every.items()}

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The order of the spreads on the SSD, and their size on the HDD."""
        little, wider = claim.limits["little"], less(claim.limits["margin"])
        flash, disk = ({join: spread(times) for join, times in self._io_times(results, name).items()} for name in ("SSD", "HDD"))
        cells = list[Cell]()
        for wide, narrow in (("grace-hash", "sort-merge"), ("hybrid-hash", "sort-merge"), ("sort-merge", "bnl")):
            name = f"spreads of {LABELS[narrow]} and {LABELS[wide]}, SSD"
            cells.append(statement(name, "the first less", (flash[narrow], flash[wide]), wider, 0, digits=5))
        words = f"below {little:g}"
        return cells + [statement(f"spread of {LABELS[j]}, HDD", words, [wide], lambda wide: wide < little, 0) for j, wide in disk.items()]

    def sections(self, results: Results) -> list[Section]:
        rows: list[list[Entry]] = []
        for machine in DEVICES:
            for join, times in self._io_times(results, machine).items():
                if times:
                    rows.append([machine, join, len(times), min(times), float(np.mean(times)), max(times), 100 * (spread(times) or 0)])
        header = ["machine", "join", "states", "least I/O s", "mean", "most", "spread %"]
        condition = "over drive states drawn under the seed: where the volume begins, and what was overwritten before"
        text = f"I/O seconds with {VARIATION_MEMORY} MB {condition}."
        return [Section("Variation between runs (error bars of figure 1)", text, [Table(header, rows, "variance", digits=3)])]


EXHIBITS: Mapping[str, Exhibit] = {"figure1": _Figure1(), "variance": _Variance()}
