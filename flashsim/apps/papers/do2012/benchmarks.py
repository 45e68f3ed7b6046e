"""Figures of chapters 3 and 4 with TPC-C and TPC-E: throughput by design, by checkpoints, and from the beginning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Judged, Section, Shown, Table
from flashsim.apps.papers.do2012 import runs as own
from flashsim.apps.papers.do2012.runs import (
    DESIGNS,
    DISKS,
    LAST,
    PUBLISHED,
    Disks,
    Judge,
    ThesisRuns,
    dual_write,
    of_readings,
    tpc_c,
    tpc_e,
)
from flashsim.core.units import HOURS, KIB, MIB, MINUTES
from flashsim.experiments.judging.cells import limit_statement, number, ratio, rising, saving, statement
from flashsim.experiments.presentation.plots import series_over
from flashsim.pools.setup import PoolResult, PoolSetup

#: Designs of all benchmarks; CW is of TPC-E only.
COMPARED = ("none", "dw", "lc", "tac")


def with_readings(
    claims: Mapping[str, tuple[Callable[[Disks], list[PoolSetup]], Judge]],
    show: Callable[[ThesisRuns], list[Section]],
    readings: Sequence[Disks] = DISKS,
) -> Exhibit:
    """Claims with their setups and judges, each with each reading of the disks, and what is shown of the runs."""
    setups = {claim: [setup for disks in readings for setup in setups_of(disks)] for claim, (setups_of, _) in claims.items()}
    return Judged(
        setups, show, runs=ThesisRuns, judges={claim: partial(of_readings, judge, readings) for claim, (_, judge) in claims.items()}
    )


def _speedups(
    title: str, name: str, of: str, databases: Sequence[int], setup_of: Callable[..., PoolSetup], designs: Sequence[str], runs: ThesisRuns
) -> list[Section]:
    rows: list[list[Entry]] = []
    counts, states = ("disk_reads", "disk_writes", "ssd_reads", "ssd_writes"), ("ssd_used", "ssd_newer", "ssd_invalid")
    for disks, size, design in product(DISKS, databases, designs):
        setup = setup_of(size, design, disks)
        if (series := runs.series(setup)) is not None:
            reads, from_disk = series.total("ssd_reads", LAST), series.total("disk_reads", LAST)
            rates = [runs.steady(setup), runs.over(setup, setup_of(size, "none", disks)), 100 * reads / max(1, reads + from_disk)]
            rates += [*(series.rate(what, LAST) for what in counts), *(100 * series.filled_share(state, LAST) for state in states)]
            rows.append([disks.name, str(size), DESIGNS[design], *rates])
    per_second = (f"{count.replace('ssd', 'SSD').replace('_', ' ')}/s" for count in counts)
    header = ["disks", of, "design", "transactions/s", "speedup", "SSD hits, %", *per_second, "used, %", "newer, %", "invalid, %"]
    text = "Means of the last two hours. SSD reads are those of misses, without the cleaner's."
    return [Section(title, text, [Table(header, rows, name, 1)], on_terminal=True)] if rows else []


def ramp_up(title: str, name: str, panels: Mapping[str, Mapping[str, PoolSetup]], runs: ThesisRuns, smoothed: int = 3) -> list[Section]:
    """Throughput over time, smoothed over three intervals as the thesis does, or more; a panel a database."""
    frames, every = [], 0.0
    for panel, (label, setup) in [(panel, line) for panel, lines in panels.items() for line in lines.items()]:
        if (series := runs.series(setup)) is not None:
            rates, every = smooth(series, smoothed), setup.interval / MINUTES
            hours = (np.arange(len(rates)) + (smoothed + 1) / 2) * every / 60
            frames.append(pd.DataFrame({"panel": panel, "hours": hours, "design": label, "transactions/s": rates}))
    if not frames:
        return []
    picture = series_over(pd.concat(frames), "hours", "transactions/s", "design", ["panel"], "hours")
    return [Section(title, f"Means over {smoothed * every:g} minutes.", pictures={name: picture})]


def smooth(series: PoolResult, intervals: int) -> npt.NDArray[np.float64]:
    """Transactions a second in the mean over windows of `intervals`, wherever one fits."""
    return np.convolve(series.counts["transactions"] / series.seconds, np.full(intervals, 1 / intervals), "valid")


_WAREHOUSES, _LIMITS = (1000, 2000, 4000), (10, 50, 90)


def _designs(disks: Disks, designs: Sequence[str] = COMPARED) -> list[PoolSetup]:
    return [tpc_c(size, design, disks) for size in _WAREHOUSES for design in designs]


def over_lc(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    """LC over other designs."""
    return claim.numbers(runs.over(tpc_c(2000, "lc", disks), tpc_c(2000, design, disks)) for design in ("none", "dw", "tac"))


def limits(disks: Disks) -> list[PoolSetup]:
    """LC with 4,000 warehouses by lambda."""
    return [tpc_c(4000, "lc", disks, limit) for limit in _LIMITS]


def over_limits(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    """The highest lambda over others."""
    *others, most = limits(disks)
    return claim.numbers(runs.over(most, other) for other in others)


def _waste(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    def invalid(size: int, design: str) -> float | None:
        result = runs.series(tpc_c(size, design, disks))
        return None if result is None else 100 * result.filled_share("ssd_invalid", LAST)

    small, middle, large = waste = [invalid(size, "tac") for size in _WAREHOUSES]
    others = [invalid(size, design) for size in _WAREHOUSES for design in ("dw", "lc")]
    return [
        *claim.numbers(waste),
        statement("TAC, 1K, 4K and 2K, %", "rising", [small, large, middle], rising(claim.limits["rise"]), digits=1),
        statement("DW and LC, %", "none", others, lambda *all: not any(all), 0, digits=1),
    ]


def _sections_c(runs: ThesisRuns) -> list[Section]:
    parts = _speedups("TPC-C (figure 3.1 a to c)", "tpc-c", "warehouses", _WAREHOUSES, tpc_c, COMPARED, runs)
    lines = {f"{size} warehouses": {DESIGNS[design]: tpc_c(size, design, PUBLISHED) for design in COMPARED} for size in _WAREHOUSES[1:]}
    parts += ramp_up("TPC-C from the beginning (figure 3.6), disks as in table 3.1", "tpc-c-ramp-up", lines, runs)
    rows = [
        [disks.name, limit, runs.steady(setup), series.rate("cleanings", LAST), 100 * series.filled_share("ssd_newer", LAST)]
        for disks in DISKS
        for limit, setup in zip(_LIMITS, limits(disks), strict=True)
        if (series := runs.series(setup)) is not None
    ]
    table = Table(["disks", "lambda, %", "transactions/s", "cleaner's writes/s", "newer than disk, % of the SSD"], rows, "tpc-c-lambda", 1)
    return [*parts, *([Section("LC with 4,000 warehouses by lambda (figure 3.7)", "", [table], on_terminal=True)] if rows else [])]


#: The sweep of `peak`; the working set is 63 % of the database, and equals the SSD at 222 GB.
_SIZES, _SWEEP, MIDDLE = (115, 230, 415), (60, 115, 170, 230, 300, 415), 230


def over_none(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    """Designs over no SSD with TPC-E, a row a size of the database."""
    cells = []
    for (published,), size in zip(claim.published.values(), _SIZES, strict=True):
        gains = {design: runs.over(tpc_e(size, design, disks), tpc_e(size, "none", disks)) for design in COMPARED[1:]}
        limit, row = claim.limits["each"], str(size)
        cells += [number(f"{design.upper()} at {size} GB", published, gain, limit, row=row) for design, gain in gains.items()]
    return cells


def _peak(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    gains = {size: runs.over(tpc_e(size, "dw", disks), tpc_e(size, "none", disks)) for size in _SWEEP}
    others = [gain for size, gain in gains.items() if size != MIDDLE]
    words, above = f"the first, with {MIDDLE} GB, above each", 1 + claim.limits["margin"]
    return [statement("gains over the database's size", words, [gains[MIDDLE], *others], lambda first, *all: first > above * max(all))]


def clean_write(disks: Disks) -> list[PoolSetup]:
    """CW, and the designs that it is held against."""
    return [tpc_e(MIDDLE, design, disks) for design in ("cw", "dw", "lc")]


def below_others(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    """Percent by which CW's throughput is below that of DW and LC."""
    mine, *others = map(runs.steady, clean_write(disks))
    return claim.numbers((saving(mine, its) for its in others), points=True, equal=(0.0,))


#: Counts whose sum is the pages that moved, by device and direction.
_TRAFFIC = {("disks", "read"): ["disk_pages_read"], ("disks", "written"): ["disk_pages_written"]}
_TRAFFIC |= {("SSD", "read"): ["ssd_reads", "cleaner_reads"], ("SSD", "written"): ["ssd_writes"]}


def _sections_e(runs: ThesisRuns) -> list[Section]:
    parts = _speedups("TPC-E (figure 3.1 d to f)", "tpc-e", "GB", _SWEEP, tpc_e, tuple(DESIGNS), runs)
    lines = {f"{size} GB": {design: tpc_e(size, design, PUBLISHED) for design in COMPARED} for size in _SIZES[1:]}
    parts += ramp_up("TPC-E from the beginning (figure 3.8), disks as in table 3.1", "tpc-e-ramp-up", lines, runs)
    return [*parts, *_traffic(runs)]


def _traffic(runs: ThesisRuns) -> list[Section]:
    """Figure 3.9, and what the text says of it (3.4.3.2), in MB/s of 2^20 bytes."""
    rows, frames, setup = [], list[pd.DataFrame](), tpc_e(MIDDLE, "dw", PUBLISHED)
    for disks in DISKS:
        if (series := runs.series(tpc_e(MIDDLE, "dw", disks))) is None:
            continue
        pages = {each: np.sum([series.counts[count] for count in counts], axis=0) for each, counts in _TRAFFIC.items()}
        moved = {each: count * 8 * KIB / MIB / series.seconds for each, count in pages.items()}
        last = sum(moved["disks", direction][LAST].mean() for direction in ("read", "written"))
        rest = [moved["SSD", direction].max() for direction in ("read", "written")]
        rows.append([disks.name, *map(float, (moved["disks", "read"][0], last, *rest))])
        if disks is PUBLISHED:
            hours = (np.arange(len(series.counts["references"])) + 0.5) * (setup.interval / HOURS)
            every = [{"device": device, "hours": hours, "direction": name, "MB/s": rates} for (device, name), rates in moved.items()]
            frames = [pd.DataFrame(each) for each in every]
    if not rows:
        return []
    header = ["disks", "disks at first: read, MB/s", "in the last two hours: both", "SSD at most: read, MB/s", "written"]
    table = Table(header, [["published", 50.0, 6.5, 46.0, 9.7], *rows], "tpc-e-traffic", 1)
    title, text = "Traffic of DW with 230 GB (figure 3.9), disks as in table 3.1", f"Intervals of {setup.interval / MINUTES:g} minutes."
    picture = series_over(pd.concat(frames), "hours", "MB/s", "direction", ["device"], "hours")
    return [Section(title, text, [table], {"tpc-e-traffic": picture})]


#: Throughput is at its peak when it is at this share of the last two hours', in the mean over so many intervals of two minutes.
_PEAK, _SMOOTHED = 0.95, 9
_BENCHMARKS, _LAST = ("TPC-C", "TPC-E"), slice(-60, None)


def hours_to_peak(series: PoolResult) -> float:
    first = int((smooth(series, _SMOOTHED) >= _PEAK * series.rate("transactions", _LAST)).argmax())
    return (first + _SMOOTHED / 2) * 2 / 60


def _hours(runs: ThesisRuns, benchmark: str) -> list[float | None]:
    """Ramp-up times without the reads of 8 pages, and with them."""
    every = (runs.series(dual_write(benchmark, expands=expands)) for expands in (False, True))
    return [None if series is None else hours_to_peak(series) for series in every]


def _filling_sections(runs: ThesisRuns) -> list[Section]:
    rows = [[benchmark, *hours, ratio(*hours)] for benchmark in _BENCHMARKS if None not in (hours := _hours(runs, benchmark))]
    table = Table(["benchmark", "hours to the peak: until memory is full", "until the SSD is full", "times"], rows, "filling", 2)
    until = {"until memory is full": False, "until the SSD is full": True}
    lines = {each: {name: dual_write(each, expands=expands) for name, expands in until.items()} for each in _BENCHMARKS}
    title = "Reads of 8 pages until the SSD is full (figure 4.9), DW on the machine of chapter 4"
    return [replace(each, tables=[table], on_terminal=True) for each in ramp_up(title, "filling", lines, runs, _SMOOTHED)]


#: Intervals of an hour, those before the first checkpoint of the long interval, and those until the SSD was full; and the share of the
#: pages that the SSD ever has with which it counts as full.
_HOUR, _FIRST, _FULL, _AS_FULL = 10, 50, 100, 0.99


def _intervals(disks: Disks) -> list[PoolSetup]:
    """DW and LC, each with a checkpoint every 40 minutes, and every 5 hours."""
    changes: tuple[dict[str, Any], ...] = ({}, {"checkpoint": 5 * HOURS, "dirty_limit": 50})
    return [tpc_e(MIDDLE, design, disks, 14 * HOURS).with_options(**each) for design in ("dw", "lc") for each in changes]


def _of_intervals(claim: Claim, runs: ThesisRuns, disks: Disks) -> list[Cell]:
    """Ratios of the intervals' throughputs, before and after ten hours, the time at which the thesis's SSD was full; and LC's."""
    dw, long_dw, lc, long_lc = (runs.series(setup) for setup in _intervals(disks))
    first, early, late = slice(0, _FIRST), slice(0, _FULL), slice(_FULL, None)
    before, after = slice(_FIRST - _HOUR, _FIRST), slice(_FIRST, _FIRST + _HOUR)
    compared = {
        "DW, 40 minutes over 5 hours, in the first 10 hours": [(dw, early), (long_dw, early)],
        "DW, 5 hours over 40 minutes, after that": [(long_dw, late), (dw, late)],
        "LC, 5 hours over 40 minutes, in the first 5 hours": [(long_lc, first), (lc, first)],
        "LC, 5 hours: the hour before the first checkpoint over the hour after it began": [(long_lc, before), (long_lc, after)],
    }
    rates = {name: [one.rate("transactions", when) if one else None for one, when in parts] for name, parts in compared.items()}
    return [limit_statement(name, "above", 1 + claim.limits["margin"], ratio(*each)) for name, each in rates.items()]


def _interval_sections(runs: ThesisRuns) -> list[Section]:
    names, setups = ("every 40 minutes", "every 5 hours"), _intervals(PUBLISHED)
    panels = {"DW": dict(zip(names, setups[:2], strict=True)), "LC": dict(zip(names, setups[2:], strict=True))}
    parts = ramp_up("Checkpoints with TPC-E (figure 3.10), disks as in table 3.1", "checkpoints", panels, runs)
    return [replace(part, tables=[_rates(runs, setups, "checkpoints-rates")], on_terminal=True) for part in parts]


def _rates(runs: ThesisRuns, setups: Sequence[PoolSetup], name: str) -> Table:
    rows: list[list[Entry]] = []
    for setup in setups:
        if (series := runs.series(setup)) is not None:
            used, early, late = series.counts["ssd_used"], slice(0, _FULL), slice(_FULL, None)
            full = float((used >= _AS_FULL * used.max()).argmax() + 1) / _HOUR
            rates = [series.rate("transactions", early), series.rate("transactions", late), series.rate("disk_pages_written", early), full]
            rows.append([own.disks_of(setup), DESIGNS[setup.design], setup.options.checkpoint // MINUTES, *rates])
    header = ["", "design", "a checkpoint every, min", "transactions/s in the first 10 h", "after that"]
    header += ["pages written to disk/s in the first 10 h", "hours until the SSD is full"]
    return Table(header, rows, name, 1)


#: DW with both intervals, and the same where disk writes take no time, so that a checkpoint holds up no read.
_WITHOUT_WRITES = [setup for each in _intervals(PUBLISHED)[:2] for setup in (each, replace(each, devices=own.devices(1, own.NO_WRITES)))]
_IN_NO_TIME = "Checkpoints where disk writes take no time"
EXHIBITS: Mapping[str, Exhibit] = {
    "tpc-c": with_readings({
        "fig3.1-c": (_designs, over_lc),
        "fig3.7": (limits, over_limits),
        "tac-waste": (lambda disks: _designs(disks, COMPARED[1:]), _waste),
    }, _sections_c),
    "tpc-e": with_readings({
        "fig3.1-e": (lambda disks: [tpc_e(size, design, disks) for size in _SIZES for design in COMPARED], over_none),
        "peak": (lambda disks: [tpc_e(size, design, disks) for size in _SWEEP for design in ("none", "dw")], _peak),
        "cw": (clean_write, below_others),
    }, _sections_e),
    "filling": with_readings({
        "fig4.9": (
            lambda _: [dual_write(each, expands=expands) for each in _BENCHMARKS for expands in (False, True)],
            lambda claim, runs, _: claim.numbers(ratio(*_hours(runs, benchmark)) for benchmark in _BENCHMARKS),
        ),
    }, _filling_sections, (PUBLISHED,)),
    "checkpoints": with_readings({"fig3.10": (_intervals, _of_intervals)}, _interval_sections),
    "without-writes": Shown(
        _WITHOUT_WRITES, lambda runs: [Section(_IN_NO_TIME, "", [_rates(runs, _WITHOUT_WRITES, "without-writes")])], _IN_NO_TIME, ThesisRuns
    ),
}  # fmt: skip
