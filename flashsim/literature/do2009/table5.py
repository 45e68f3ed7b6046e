"""Table 5: CPU times of block nested loops with page-sized I/O, over the page size, on both machines.

The CPU preset was fitted to the rows of 8 and 32 KB (`flashsim.literature.do2009.cpu_fit`); the other rows are what it predicts.
"""

from collections.abc import Collection
from statistics import fmean

from flashsim.core.units import KIB
from flashsim.literature.base import Claim, Judgement, judge_numbers, load, traced
from flashsim.literature.do2009.cpu_fit import CALIBRATION_ROWS, ROWS
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, PAGE_SIZES_MEMORY, Setup
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_TIMES = ("user", "kernel")


def setup(kilobytes: int) -> Setup:
    """The run of one row."""
    return Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run for each row, the longest first."""
    return [setup(kilobytes).job(settings) for kilobytes in ROWS]


def seconds(grid: Runs, machine: str, time: str, kilobytes: int) -> float | None:
    """``user`` or ``kernel`` time of a row, as at scale 1: work is proportional to the scale; None where it could not be measured."""
    result = grid.get(setup(kilobytes), machine)
    return fmean(getattr(result, time)) / grid.settings.scale if result else None


def beside(claim: Claim, grid: Runs) -> dict[str, Beside]:
    """The published times and ours over the page size, by machine and kind of time."""
    places = [str(kilobytes) for kilobytes in ROWS]
    by_column = {}
    for machine in DEVICES:
        for time in _TIMES:
            published = [float(value) for value in claim.published[f"{machine}, {time}"]]
            ours = [seconds(grid, machine, time, kilobytes) for kilobytes in ROWS]
            by_column[f"{machine}, {time}"] = Beside(places, published, ours, claim.limits["each"])
    return by_column


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 20 times; the note tells predictions from what was fitted."""
    grid = Runs(results)
    times = beside(claim, grid)
    numbers = [(f"{name}, {kilobytes} KB", published, ours) for name, row in times.items() for kilobytes, published, ours in row.numbers()]
    runs = {f"{name}, {kilobytes} KB": [grid.run(setup(kilobytes))] for name in times for kilobytes in ROWS}
    predicted = [
        abs(error or 0)
        for row in times.values()
        for kilobytes, error in zip(ROWS, row.errors(), strict=True)
        if kilobytes not in CALIBRATION_ROWS
    ]
    inside = sum(error <= 100 * claim.limits["each"] for error in predicted)
    text = f"predicted cells inside: {inside} of {len(predicted)}, largest error {max(predicted):.1f} %"
    return traced(judge_numbers(claim, numbers, text), runs)


def sections(results: Results) -> list[Section]:
    grid = Runs(results)
    times = beside(load("do2009").claim("table5"), grid)
    kinds = ["fitted" if kilobytes in CALIBRATION_ROWS else "predicted" for kilobytes in ROWS]
    columns = [column for row in times.values() for column in row.columns()]
    rows: list[list[Entry]] = [[f"{kilobytes} KB", kind, *line] for kilobytes, kind, *line in zip(ROWS, kinds, *columns, strict=True)]
    header = ["page", "row"]
    for name in times:
        header += [f"{name.replace(',', '')} s", "ours", "error %"]
    text = (
        "Block nested loops with a buffer pool of 500 MB reads page by page. User time hardly depends on the page, kernel time is a "
        "constant a request and a little a byte. Both were fitted to the rows of 8 and 32 KB."
    )
    table = Table(header, rows, "table5", digits=1, runs=[grid.run(setup(kilobytes)) for kilobytes in ROWS])
    picture = published_beside_ours(times, "page, KB", "CPU time, s", share=False)
    return [Section("CPU times of block nested loops (table 5)", text, [table], {"table5": picture})]
