"""Tables 3 and 4 and figure 1: the four joins over the buffer pool on both devices, how times vary, and what the text says of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Judged, Section, Table
from flashsim.literature.do2009.cpu_fit import prices
from flashsim.literature.do2009.measured import Order, Runs, Time
from flashsim.literature.do2009.runs import DEVICES, GRID, JOINS, LABELS, LONGEST_FIRST, MEMORY, VARIATION_MEMORY, Setup
from flashsim.studies.formulas.comparison import WHY, relative
from flashsim.studies.judging.cells import bounded, less, near, number, statement
from flashsim.studies.presentation.tables import percent

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


def _ordered(claim: Claim, runs: Runs) -> list[Cell]:
    """Orders of times; where a variant is stated, also with its prices of CPU work."""
    priced = {"": runs} | {variant: Runs(runs.results, prices(without=("grace-hash",))) for variant in claim.stated}
    return [replace(cell, variant=variant) for variant, each in priced.items() for cell in each.orders(claim, _ORDERS[claim.id])]


def _hybrid_over_grace(claim: Claim, runs: Runs) -> list[Cell]:
    """Speedup of hybrid hash over Grace hash on the SSD: those of the slides, and the paper's of the largest pool."""
    (largest, slides), limit = claim.published.values(), claim.limits["each"]
    return [
        number(f"GH over HH, SSD, {pool} MB", value, runs.ratio(_times(("grace-hash", "hybrid-hash"), pool)), limit, place=pool)
        for pool, value in zip((200, 400, 600), (*slides, *largest), strict=True)
    ]


def _sort_and_grace(claim: Claim, runs: Runs) -> list[Cell]:
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
    return [*alike, *_ordered(claim, runs), *first]


def _figure1(runs: Runs) -> list[Section]:
    text = (
        "I/O time (dark) and CPU time (light) of block nested loops (BNL), sort-merge (SM), Grace hash (GH) and hybrid hash (HH) with "
        "buffer pools of 100 to 600 MB; the dot is the I/O time that the formula predicts. The paper prints no times; beside them "
        "stands what its text and its slides say of them."
    )
    why = "; ".join(f"{setup.name}: {problem}" for setup in GRID if (problem := (runs.get(setup) or {}).get("problem")))
    picture = runs.bars({f"{memory} MB": [Setup(join, memory) for join in JOINS] for memory in MEMORY}, "")
    return [
        Section("Join times over the buffer pool (figure 1)", text, pictures={"figure1": picture}),
        Section("Seconds", f"Not run: {why}" if why else "", [_seconds(runs)], on_terminal=True),
        Section("Formula against simulation", WHY, [_counts(runs)]),
    ]


def _digits(runs: Runs) -> int:
    return 2 if runs.settings.scale >= 0.05 else 3


def _seconds(runs: Runs) -> Table:
    rows = []
    for setup in GRID:
        totals = [result and result.total for result in (runs.result(setup, machine) for machine in DEVICES)]
        times = [getattr(total, name) if total else None for total in totals for name in ("formula_io", "io", "cpu", "total")]
        rows.append([setup.join, setup.memory, *times])
    header = ["join", "MB", *(name for machine in DEVICES for name in (f"{machine}: formula I/O", "I/O", "CPU", "total"))]
    return Table(header, rows, "seconds", digits=_digits(runs), runs=[runs.id(setup) for setup in GRID])


def _counts(runs: Runs) -> Table:
    rows: list[list[Entry]] = []
    ids: list[str] = []
    for setup in GRID:
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


def _io_times(runs: Runs, machine: str) -> dict[str, Sequence[float] | None]:
    """I/O seconds on each state, by join; None where a run could not be made."""
    return {join: result and result.io for join in JOINS for result in [runs.result(Setup(join, VARIATION_MEMORY), machine)]}


def _variance(claim: Claim, runs: Runs) -> list[Cell]:
    flash, disk = ({join: spread(times) for join, times in _io_times(runs, machine).items()} for machine in ("SSD", "HDD"))
    wider, cells = less(claim.limits["margin"]), list[Cell]()
    for wide, narrow in (("grace-hash", "sort-merge"), ("hybrid-hash", "sort-merge"), ("sort-merge", "bnl")):
        name = f"spreads of {LABELS[narrow]} and {LABELS[wide]}, SSD"
        cells.append(statement(name, "the first less", (flash[narrow], flash[wide]), wider, 0, digits=5))
    return cells + [bounded(f"spread of {LABELS[join]}, HDD", "below", claim.limits["little"], wide, 0) for join, wide in disk.items()]


def _error_bars(runs: Runs) -> list[Section]:
    rows = [
        [machine, join, len(times), min(times), float(np.mean(times)), max(times), 100 * (spread(times) or 0)]
        for machine in DEVICES
        for join, times in _io_times(runs, machine).items()
        if times
    ]
    header = ["machine", "join", "states", "least I/O s", "mean", "most", "spread %"]
    condition = "over drive states drawn under the seed: where the volume begins, and what was overwritten before"
    text = f"I/O seconds with {VARIATION_MEMORY} MB {condition}."
    return [Section("Variation between runs (error bars of figure 1)", text, [Table(header, rows, "variance", digits=3)])]


def _speedups(claim: Claim, runs: Runs) -> list[Cell]:
    """Speedups, SSD over HDD, a row a join, or a join and phase."""

    def measured(row: str, memory: int) -> tuple[str, float | None, str]:
        join, _, phase = row.partition(", ")
        setup, what = Setup(join, memory), claim.values["seconds"]
        return f"{row} {memory} MB", runs.ratio([(setup, machine, what, phase or "total") for machine in DEVICES]), runs.id(setup)

    return claim.grid(MEMORY, measured)


_JUDGES = dict.fromkeys(_ORDERS, _ordered) | {"fig1-281": _hybrid_over_grace, "fig1-sm-gh": _sort_and_grace}
#: The error bars need more states than other runs.
_REPEATED = [Setup(join, VARIATION_MEMORY) for join in JOINS]
EXHIBITS: Mapping[str, Exhibit] = {
    "figure1": Judged(LONGEST_FIRST, _figure1, runs=Runs, judges=_JUDGES),
    "variance": Judged(_REPEATED, _error_bars, runs=Runs, judges={"fig1-variance": _variance}),
    "table3": Judged(LONGEST_FIRST, runs=Runs, judges=dict.fromkeys(("table3-io", "table3-join"), _speedups)),
    "table4": Judged(LONGEST_FIRST, runs=Runs, judges={"table4": _speedups}),
}
