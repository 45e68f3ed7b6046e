"""Tables 3 and 4 and figure 1: the four joins over the buffer pool on both devices, how times vary, and what the text says of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Table
from flashsim.literature.do2009.cpu_fit import prices
from flashsim.literature.do2009.measured import Order, Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, MEMORY, VARIATION_MEMORY, Setup, grid_jobs, setups
from flashsim.studies.formulas.comparison import WHY, relative
from flashsim.studies.judging.cells import less, number, ratio, statement
from flashsim.studies.presentation.tables import percent


def _times(joins: Iterable[str], memory: int, machine: str = "SSD", kinds: Sequence[str] = ("total",)) -> list[tuple[Setup, str, str]]:
    """Times of joins with a buffer pool."""
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
    "fig1-sm-gh": [
        (f"I/O of SM and GH, SSD, {memory} MB", "SM below GH, s", _times(("sort-merge", "grace-hash"), memory, kinds=("io",)))
        for memory in MEMORY
    ],
}


def _hybrid_over_grace(claim: Claim, runs: Runs) -> list[Cell]:
    """Speedup of hybrid hash over Grace hash on the SSD: those of the slides, and the paper's of the largest pool."""
    (largest, slides), cells = claim.published.values(), list[Cell]()
    for pool, published in zip((200, 400, 600), (*slides, *largest), strict=True):
        times = (runs.seconds(Setup(join, pool), "SSD") for join in ("grace-hash", "hybrid-hash"))
        cells.append(number(f"GH over HH, SSD, {pool} MB", published, ratio(*times), claim.limits["each"], place=pool))
    return cells


def _sort_and_grace(claim: Claim, runs: Runs) -> list[Cell]:
    """Beside the order on the SSD: I/O alike on the HDD, and the first phase's share on the SSD."""
    similar, share, points = (claim.limits[name] for name in ("similar", "share", "points"))
    alike, first = list[Cell](), list[Cell]()
    for memory in MEMORY:
        value = ratio(*(runs.seconds(Setup(join, memory), "HDD", "io") for join in ("sort-merge", "grace-hash")))
        words = f"1 within {100 * similar:g} %"
        alike.append(statement(f"SM over GH, I/O, HDD, {memory} MB", words, [value], lambda value: abs(value - 1) <= similar))
    for join, memory in [(join, memory) for join in ("sort-merge", "grace-hash") for memory in MEMORY]:
        value = ratio(*(runs.seconds(Setup(join, memory), "SSD", "io", phase) for phase in ("first phase", "total")))
        name, words = f"phase 1 of {LABELS[join]}, share of I/O, SSD, {memory} MB", f"{share:g} within {points:g}"
        first.append(statement(name, words, [value], lambda value: abs(value - share) <= points, equal=0.5))
    return [*alike, *runs.orders(claim, _ORDERS["fig1-sm-gh"]), *first]


class _Figure1(Exhibit):
    jobs = staticmethod(grid_jobs)

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The cells of one of the claims of section 4.3; where a variant is stated, also those with its prices of CPU work."""
        own = {"fig1-281": _hybrid_over_grace, "fig1-sm-gh": _sort_and_grace}.get(claim.id)
        cells = list[Cell]()
        for variant in ("", *claim.stated):
            runs = Runs(results, prices(without=("grace-hash",)) if variant else None)
            judged = own(claim, runs) if own else runs.orders(claim, _ORDERS[claim.id])
            cells += [replace(cell, variant=variant) for cell in judged]
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
            for times in ([row.formula_io, row.formula_io_measured_seek, row.io], [flash.formula_io, flash.io]):
                share = relative(times[-1] or 0.0, times[0])
                entries += [*times, share and percent(share)]
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


class _Speedups(Exhibit):
    """Tables 3 and 4: speedups, SSD over HDD, a row a join, or a join and phase."""

    jobs = staticmethod(grid_jobs)

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        runs = Runs(results)

        def measured(row: str, memory: int) -> tuple[str, float | None, str]:
            join, _, phase = row.partition(", ")
            setup = Setup(join, memory)
            return f"{row} {memory} MB", runs.speedup(setup, claim.values["seconds"], phase or "total"), runs.id(setup)

        return claim.grid(MEMORY, measured)


EXHIBITS: Mapping[str, Exhibit] = {"figure1": _Figure1(), "variance": _Variance(), "table3": _Speedups(), "table4": _Speedups()}
