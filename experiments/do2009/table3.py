"""Table 3: speedups of I/O times and of total times, SSD over HDD."""

from __future__ import annotations

from experiments.do2009.runs import JOINS, MEMORY, Grid
from experiments.papers import Claim, Judgement, Section, judge_numbers, load
from experiments.tables import Entry, Table

#: What each claim compares.
_WHAT = {"table3-io": "io", "table3-join": "total"}


def judge(claim: Claim, grid: Grid) -> Judgement:
    """Judge the 24 speedups of one kind."""
    what = _WHAT[claim.id]
    cells = [
        (f"{join} {memory} MB", float(published), grid.speedup(join, memory, what))
        for join in JOINS
        for memory, published in zip(MEMORY, claim.published[join], strict=True)
    ]
    return judge_numbers(claim, cells, _calibration(claim))


def _calibration(claim: Claim) -> str:
    columns = " and ".join(claim.values.get("calibration", ()))
    return f"no preset was calibrated, though the columns {columns} may serve for that" if columns else ""


def sections(grid: Grid) -> list[Section]:
    """Published speedups beside ours."""
    claims = {claim.id: claim for claim in load("do2009").claims}
    rows: list[list[Entry]] = []
    for join in JOINS:
        for index, memory in enumerate(MEMORY):
            row: list[Entry] = [join, memory]
            for name, what in _WHAT.items():
                published, ours = float(claims[name].published[join][index]), grid.speedup(join, memory, what)
                row += [published, ours, None if ours is None else 100 * (ours / published - 1)]
            rows.append(row)
    header = ["join", "MB", "I/O published", "ours", "error %", "join published", "ours", "error %"]
    return [Section("Speedups, SSD over HDD (table 3)", "", [Table(header, rows, "table3")])]
