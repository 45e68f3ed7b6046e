"""Table 5: CPU times of block nested loops with page-sized I/O, over the page size, on both machines.

The CPU preset was fitted to the rows of 8 and 32 KB (`experiments.do2009.cpu_fit`); the other rows are what it predicts.
"""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean

from experiments.do2009.cpu_fit import CALIBRATION_ROWS, ROWS
from experiments.do2009.runs import DEVICES, PAGE_SIZES_MEMORY, Runs, Setup
from experiments.jobs import Job, Results
from experiments.papers import Claim, Judgement, Section, Settings, judge_numbers, load
from experiments.tables import Entry, Table
from flashsim.core.units import KIB

_TIMES = ("user", "kernel")


def setup(kilobytes: int) -> Setup:
    """The run of one row."""
    return Setup("bnl", PAGE_SIZES_MEMORY, kilobytes * KIB, page_io=True)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run for each row, the longest first."""
    return [setup(kilobytes).job(settings) for kilobytes in ROWS]


def seconds(grid: Runs, machine: str, time: str, kilobytes: int) -> float | None:
    """``user`` or ``kernel`` time of a row, as at scale 1: work is proportional to the scale; None where it could not be measured."""
    found = grid.get(setup(kilobytes), machine)
    return fmean(getattr(found, time)) / grid.settings.scale if found else None


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 20 times; the note tells predictions from what was fitted."""
    grid = Runs(results)
    rows = [(machine, time, kilobytes) for machine in DEVICES for time in _TIMES for kilobytes in ROWS]
    cells = [
        (f"{machine}, {time}, {kilobytes} KB", _published(claim, machine, time, kilobytes), seconds(grid, machine, time, kilobytes))
        for machine, time, kilobytes in rows
    ]
    predicted = [
        abs((measured or 0) / published - 1)
        for (*_, kilobytes), (_, published, measured) in zip(rows, cells, strict=True)
        if kilobytes not in CALIBRATION_ROWS
    ]
    inside = sum(error <= claim.limits["each"] for error in predicted)
    told = f"predicted cells inside: {inside} of {len(predicted)}, largest error {100 * max(predicted):.1f} %"
    return judge_numbers(claim, cells, told)


def _published(claim: Claim, machine: str, time: str, kilobytes: int) -> float:
    return float(claim.published[f"{machine}, {time}"][ROWS.index(kilobytes)])


def sections(results: Results) -> list[Section]:
    """Published times beside ours."""
    grid = Runs(results)
    claim = next(claim for claim in load("do2009").claims if claim.id == "table5")
    rows: list[list[Entry]] = []
    for kilobytes in ROWS:
        row: list[Entry] = [f"{kilobytes} KB", "fitted" if kilobytes in CALIBRATION_ROWS else "predicted"]
        for machine in DEVICES:
            for time in _TIMES:
                published, ours = _published(claim, machine, time, kilobytes), seconds(grid, machine, time, kilobytes)
                row += [published, ours, None if ours is None else 100 * (ours / published - 1)]
        rows.append(row)
    header = ["page", "row"]
    for machine in DEVICES:
        for time in _TIMES:
            header += [f"{machine} {time} s", "ours", "error %"]
    text = (
        "Block nested loops with a buffer pool of 500 MB reads page by page. User time hardly depends on the page, kernel time is a "
        "constant a request and a little a byte. Both were fitted to the rows of 8 and 32 KB."
    )
    return [Section("CPU times of block nested loops (table 5)", text, [Table(header, rows, "table5", digits=1)])]
