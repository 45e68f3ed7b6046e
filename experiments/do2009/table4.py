"""Table 4: speedups of I/O times by phase, SSD over HDD."""

from __future__ import annotations

from collections.abc import Collection

from experiments.do2009.runs import MEMORY, Runs, Setup, paper_grid
from experiments.jobs import Job, Results
from experiments.papers import Claim, Judgement, Section, Settings, judge_numbers, load
from experiments.tables import Entry, Table

#: The published rows: a join and one of its two phases, in order.
ROWS = {
    f"{join}, {word} phase": (join, number)
    for join in ("sort-merge", "grace-hash", "hybrid-hash")
    for number, word in enumerate(("first", "second"))
}


def speedup(grid: Runs, row: str, memory: int) -> float | None:
    """HDD over SSD seconds of I/O; None where a run could not be made, or its phase did no I/O."""
    join, phase = ROWS[row]
    found = [grid.get(Setup(join, memory), machine) for machine in ("HDD", "SSD")]
    seconds = [one.phases[phase].io if one and phase < len(one.phases) else 0.0 for one in found]
    return seconds[0] / seconds[1] if all(seconds) else None


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The whole grid."""
    return [setup.job(settings) for setup in paper_grid()]


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 36 speedups."""
    grid = Runs(results)
    cells = [
        (f"{row} {memory} MB", float(published), speedup(grid, row, memory))
        for row in ROWS
        for memory, published in zip(MEMORY, claim.published[row], strict=True)
    ]
    return judge_numbers(claim, cells)


def sections(results: Results) -> list[Section]:
    """Published speedups beside ours."""
    grid = Runs(results)
    published = next(claim for claim in load("do2009").claims if claim.id == "table4").published
    rows: list[list[Entry]] = []
    for name in ROWS:
        for value, memory in zip(published[name], MEMORY, strict=True):
            ours = speedup(grid, name, memory)
            rows.append([name, memory, float(value), ours, None if ours is None else 100 * (ours / value - 1)])
    return [
        Section(
            "I/O speedups by phase, SSD over HDD (table 4)", "", [Table(["phase", "MB", "published", "ours", "error %"], rows, "table4")]
        )
    ]
