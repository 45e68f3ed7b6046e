"""Table 5: CPU times of block nested loops with page-sized I/O, over the page size, on both machines.

The CPU preset was fitted to the rows of 8 and 32 KB (`flashsim.literature.do2009.cpu_fit`); the other rows are what it predicts.
"""

from collections.abc import Collection
from statistics import fmean

from flashsim.core.units import KIB
from flashsim.literature.do2009.cpu_fit import ROWS
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, PAGE_SIZES_MEMORY, Setup
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.runs.jobs import Job, Results, Settings


def setup(kilobytes: int) -> Setup:
    """The run of one row."""
    return Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run for each row, the longest first."""
    return [setup(kilobytes).job(settings) for kilobytes in ROWS]


def _seconds(grid: Runs, machine: str, time: str, kilobytes: int) -> float | None:
    """``user`` or ``kernel`` time of a row, as at scale 1: work is proportional to the scale; None where it could not be measured."""
    result = grid.get(setup(kilobytes), machine)
    return fmean(getattr(result, time)) / grid.settings.scale if result else None


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The 20 times, a row a machine and kind of time."""
    grid, limit, every = Runs(results), claim.limits["each"], list[Cell]()
    for row, values in claim.published.items():
        machine, time = row.split(", ")
        assert machine in DEVICES
        for kilobytes, published in zip(ROWS, values, strict=True):
            seconds, run = _seconds(grid, machine, time, kilobytes), grid.run(setup(kilobytes))
            every.append(number(f"{row}, {kilobytes} KB", published, seconds, limit, row=row, place=kilobytes, runs=(run,)))
    return every
