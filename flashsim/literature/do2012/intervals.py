"""Costs of checkpoints: figure 3.10, long intervals and short ones, and the kinds of chapter 3, sharp and fuzzy."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from flashsim.core.units import HOURS, MINUTES
from flashsim.literature.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Shown, Table
from flashsim.literature.do2012.benchmarks import COMPARED, MIDDLE, SetupOf, clean_write, ramp_up, with_readings
from flashsim.literature.do2012.devices import NEAREST_FIRST, on_drives
from flashsim.literature.do2012.runs import DESIGNS, NO_WRITES, PUBLISHED, Disks, Runs, devices, disks_of, job, tpc_c, tpc_e
from flashsim.pools.setup import PoolSetup
from flashsim.studies.judging.cells import bounded, ratio, saving

#: Intervals of an hour, those before the first checkpoint of the long interval, and those until the SSD was full; and the share of the
#: pages that the SSD ever has with which it counts as full.
_HOUR, _FIRST, _FULL, _AS_FULL = 10, 50, 100, 0.99


def _intervals(disks: Disks) -> list[PoolSetup]:
    """DW and LC, each with a checkpoint every 40 minutes, and every 5 hours."""
    changes: tuple[dict[str, Any], ...] = ({}, {"checkpoint": 5 * HOURS, "options": {"dirty_limit": 50}})
    return [tpc_e(MIDDLE, design, disks, time=14 * HOURS, **change) for design in ("dw", "lc") for change in changes]


def _of_intervals(claim: Claim, runs: Runs, disks: Disks) -> list[Cell]:
    """Ratios of the intervals' throughputs, before and after ten hours, the time at which the thesis's SSD was full; and LC's."""
    series = [runs.series(setup) for setup in _intervals(disks)]
    first, early, late = slice(0, _FIRST), slice(0, _FULL), slice(_FULL, None)
    before, after = slice(_FIRST - _HOUR, _FIRST), slice(_FIRST, _FIRST + _HOUR)
    compared = {
        "DW, 40 minutes over 5 hours, in the first 10 hours": (0, early, 1, early),
        "DW, 5 hours over 40 minutes, after that": (1, late, 0, late),
        "LC, 5 hours over 40 minutes, in the first 5 hours": (3, first, 2, first),
        "LC, 5 hours: the hour before the first checkpoint over the hour after it began": (3, before, 3, after),
    }
    cells = []
    for name, (mine, part, other, its) in compared.items():
        rates = [None if one is None else one.rate("transactions", when) for one, when in ((series[mine], part), (series[other], its))]
        cells.append(bounded(name, "above", 1 + claim.limits["margin"], ratio(*rates)))
    return cells


def _shown_intervals(runs: Runs) -> list[Section]:
    names, setups = ("every 40 minutes", "every 5 hours"), _intervals(PUBLISHED)
    panels = {"DW": dict(zip(names, setups[:2], strict=True)), "LC": dict(zip(names, setups[2:], strict=True))}
    parts = ramp_up("Checkpoints with TPC-E (figure 3.10), disks as in table 3.1", "checkpoints", panels, runs)
    return [replace(part, tables=[_rates(runs, setups, "checkpoints-rates")], on_terminal=True) for part in parts]


def _rates(runs: Runs, setups: Sequence[PoolSetup], name: str) -> Table:
    rows: list[list[Entry]] = []
    for setup in setups:
        if (series := runs.series(setup)) is not None:
            used, early, late = series.counts["ssd_used"], slice(0, _FULL), slice(_FULL, None)
            full = float((used >= _AS_FULL * used.max()).argmax() + 1) / _HOUR
            rates = [series.rate("transactions", early), series.rate("transactions", late), series.rate("disk_pages_written", early), full]
            rows.append([disks_of(setup), DESIGNS[setup.design], setup.options["checkpoint"] // MINUTES, *rates])
    header = ["", "design", "a checkpoint every, min", "transactions/s in the first 10 h", "after that"]
    header += ["pages written to disk/s in the first 10 h", "hours until the SSD is full"]
    return Table(header, rows, name, 1)


#: DW with both intervals, and the same where disk writes take no time, so that a checkpoint holds up no read.
_WITHOUT_WRITES = [setup for each in _intervals(PUBLISHED)[:2] for setup in (each, replace(each, devices=devices(1, NO_WRITES)))]
_IN_NO_TIME = "Checkpoints where disk writes take no time"
_SETUPS: dict[str, SetupOf] = {
    "TPC-C, 2,000 warehouses": lambda design, disks: tpc_c(2000, design, disks),
    "TPC-E, 230 GB": lambda design, disks: tpc_e(230, design, disks),
}


#: LC with TPC-E and sharp checkpoints, by how many pages these write at the same time; and CW.
_AT_ONCE = {f"LC, {pages} pages": tpc_e(MIDDLE, "lc", PUBLISHED, options={"cleaners": pages}) for pages in (256, 64, 32)}
_AT_ONCE["CW"] = tpc_e(MIDDLE, "cw", PUBLISHED)


def _kinds(setup_of: SetupOf, design: str) -> list[PoolSetup]:
    """A design without checkpoints, with sharp ones, and LC with fuzzy ones."""
    setup = setup_of(design, PUBLISHED).with_options(checkpoint=40 * MINUTES)
    return [setup.with_options(checkpoint=0), setup, *([setup.with_options(sharp=0)] if design == "lc" else [])]


def _nearest_first(setup: PoolSetup, settings: Settings) -> Job:
    """On simulated disks that serve the nearest first; a sharp checkpoint has as many writes outstanding as such a disk's queue holds."""
    return on_drives(setup.with_options(cleaners=32), settings, NEAREST_FIRST)


class _Kinds(Exhibit):
    """The cost of checkpoints by design (3.2.3.3, 3.3.2): sharp ones write what is newer on the SSD to disk, fuzzy ones do not."""

    TITLE = "Sharp and fuzzy checkpoints"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        kinds = [setup for setup_of in _SETUPS.values() for design in COMPARED for setup in _kinds(setup_of, design)]
        at_rates = [job(setup, settings) for setup in (*kinds, *_AT_ONCE.values())]
        return at_rates + [_nearest_first(setup, settings) for setup in clean_write(PUBLISHED)]

    def sections(self, results: Results) -> list[Section]:
        runs, rows = Runs(results), list[list[Entry]]()
        for (benchmark, setup_of), design in product(_SETUPS.items(), COMPARED):
            alone, sharp, fuzzy = (*map(runs.steady, _kinds(setup_of, design)), None)[:3]
            if alone and sharp:
                rows.append([benchmark, DESIGNS[design], alone, sharp, fuzzy, 100 * sharp / alone, 100 * fuzzy / alone if fuzzy else None])
        header = ["benchmark", "design", "transactions/s without", "with sharp ones", "with fuzzy ones", "left with sharp ones, %"]
        text = (
            "Means of the last two hours with a checkpoint every 40 minutes, disks as in table 3.1. Where nothing is newer on the SSD than "
            "on disk both kinds are the same. The thesis says that with TPC-C throughput falls to half or less (3.4.1.2)."
        )
        alone = runs.steady(_kinds(_SETUPS["TPC-E, 230 GB"], "lc")[0])
        lost = [[name, saving(runs.steady(setup), alone)] for name, setup in _AT_ONCE.items()]
        driven = {DESIGNS[setup.design]: Runs(results, _nearest_first).steady(setup) for setup in clean_write(PUBLISHED)}
        tables = [Table([*header, "with fuzzy ones, %"], rows, "checkpoint-kinds", 1)]
        if rows:
            tables.append(Table(["TPC-E: a sharp checkpoint writes at the same time", "below LC without, %"], lost, "checkpoint-widths", 1))
        if all(driven.values()):
            title = "TPC-E, simulated disks that serve the nearest first, 32 writes of a checkpoint at once"
            tables.append(Table([title, "transactions/s"], [[*each] for each in driven.items()], "checkpoint-drives", 1))
        return [Section(self.TITLE, text, tables, on_terminal=True)]


EXHIBITS: Mapping[str, Exhibit] = {
    "checkpoints": with_readings({"fig3.10": (_intervals, _of_intervals)}, _shown_intervals),
    "without-writes": Shown(
        _WITHOUT_WRITES, lambda runs: [Section(_IN_NO_TIME, "", [_rates(runs, _WITHOUT_WRITES, "without-writes")])], _IN_NO_TIME, Runs
    ),
    "sharp-and-fuzzy": _Kinds(),
}
