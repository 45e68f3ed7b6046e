"""Figure 4.9: throughput peaks sooner if a read from disk brings eight pages until the SSD is full, on the machine of chapter 4."""

from collections.abc import Collection
from dataclasses import replace

from flashsim.core.units import GIB, MINUTES
from flashsim.literature.do2012.runs import PARTITIONS, PUBLISHED, Runs, devices, job, tpc_c, tpc_e
from flashsim.literature.do2012.shown import ramp_up, smooth
from flashsim.pools.setup import PoolResult, PoolSetup
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_MEMORY, _MINUTES = 24 * GIB, 2
#: Throughput is at its peak when it is at this share of the last two hours', in the mean over so many intervals.
_PEAK, _SMOOTHED = 0.95, 9
_LAST = slice(-120 // _MINUTES, None)
_BENCHMARKS = ("TPC-C", "TPC-E")
#: Writes of the background writer at the same time: an assumption.  So it writes all the time, as section 4.2.1.2 tells of it.
_WRITES = 8


def dual_write(benchmark: str, *, expands: bool) -> PoolSetup:
    """DW with 2,000 warehouses or 20,000 customers, and the recovery intervals of section 4.4.1."""
    setup, minutes = (tpc_c(2000, "dw", PUBLISHED), 30.0) if benchmark == "TPC-C" else (tpc_e(230, "dw", PUBLISHED), 7.5)
    options = PARTITIONS | {"cleaners": _WRITES, "sharp": 0, "expands_for_ssd": int(expands)}
    options |= {"checkpoint": round(minutes * MINUTES), "work": setup.options.get("work", 0)}
    return replace(setup, devices=devices(PUBLISHED.faster, "4.3"), memory=_MEMORY, interval=_MINUTES * MINUTES, options=options)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    if "fig4.9" not in claims:
        return []
    return [job(dual_write(benchmark, expands=expands), settings) for benchmark in _BENCHMARKS for expands in (False, True)]


def hours_to_peak(series: PoolResult | None) -> float | None:
    if series is None:
        return None
    first = int((smooth(series, _SMOOTHED) >= _PEAK * series.rate("transactions", _LAST)).argmax())
    return (first + _SMOOTHED / 2) * _MINUTES / 60


def _both(runs: Runs, benchmark: str) -> list[float | None]:
    return [hours_to_peak(runs.series(dual_write(benchmark, expands=expands))) for expands in (False, True)]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """Ramp-up times without the reads of 8 pages, over those with them."""
    every = []
    for benchmark, (published,) in claim.published.items():
        alone, expanded = _both(Runs(results), benchmark)
        every.append(number(benchmark, published, alone / expanded if alone and expanded else None, claim.limits["each"]))
    return every


def sections(results: Results) -> list[Section]:
    runs = Runs(results)
    rows: list[list[Entry]] = [
        [benchmark, *hours, hours[0] / hours[1]]
        for benchmark in _BENCHMARKS
        if None not in (hours := _both(runs, benchmark)) and hours[0] and hours[1]
    ]
    table = Table(["benchmark", "hours to the peak: until memory is full", "until the SSD is full", "times"], rows, "filling", 2)
    lines = {
        benchmark: {
            f"until {'the SSD' if expands else 'memory'} is full": dual_write(benchmark, expands=expands) for expands in (False, True)
        }
        for benchmark in _BENCHMARKS
    }
    pictures = ramp_up(
        "Reads of 8 pages until the SSD is full (figure 4.9), DW on the machine of chapter 4", "filling", lines, runs, _SMOOTHED
    )
    return [replace(each, tables=[table], on_terminal=True) for each in pictures]
