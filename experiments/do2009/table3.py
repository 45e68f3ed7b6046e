"""Table 3: speedups of I/O times and of total times, SSD over HDD."""

from __future__ import annotations

from collections.abc import Collection

from experiments.do2009.runs import JOINS, MEMORY, Runs, Setup, paper_grid
from experiments.jobs import Job, Results
from experiments.papers import Claim, Judgement, Section, Settings, judge_numbers, load
from experiments.tables import Entry, Table

#: What each claim compares.
_WHAT = {"table3-io": "io", "table3-join": "total"}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The whole grid."""
    return [setup.job(settings) for setup in paper_grid()]


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 24 speedups of one kind."""
    grid = Runs(results)
    what = _WHAT[claim.id]
    cells = [
        (f"{join} {memory} MB", float(published), grid.speedup(Setup(join, memory), what))
        for join in JOINS
        for memory, published in zip(MEMORY, claim.published[join], strict=True)
    ]
    return judge_numbers(claim, cells, _by_join(claim, grid, what))


def _by_join(claim: Claim, grid: Runs, what: str) -> str:
    """How many cells of each join are inside."""
    parts = []
    for join in JOINS:
        pairs = zip(MEMORY, claim.published[join], strict=True)
        errors = [abs((grid.speedup(Setup(join, memory), what) or 0) / published - 1) for memory, published in pairs]
        parts.append(f"{join} {sum(error <= claim.limits['each'] for error in errors)}")
    return f"cells inside, of 6: {', '.join(parts)}"


def sections(results: Results) -> list[Section]:
    """Published speedups beside ours."""
    grid = Runs(results)
    claims = {claim.id: claim for claim in load("do2009").claims}
    rows: list[list[Entry]] = []
    for join in JOINS:
        for index, memory in enumerate(MEMORY):
            row: list[Entry] = [join, memory]
            for name, what in _WHAT.items():
                published, ours = float(claims[name].published[join][index]), grid.speedup(Setup(join, memory), what)
                row += [published, ours, None if ours is None else 100 * (ours / published - 1)]
            rows.append(row)
    header = ["join", "MB", "I/O published", "ours", "error %", "join published", "ours", "error %"]
    return [Section("Speedups, SSD over HDD (table 3)", "", [Table(header, rows, "table3")])]
