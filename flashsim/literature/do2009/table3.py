"""Table 3: speedups of I/O times and of total times, SSD over HDD."""

from flashsim.literature.base import Claim, Judgement, judge_numbers, load, traced
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import JOINS, MEMORY, Setup, cells, grid_jobs
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs


#: Seconds that each claim compares.
_WHAT = {"table3-io": "io", "table3-join": "total"}


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 24 speedups of one kind."""
    grid = Runs(results)
    rows = beside(claim, grid)
    numbers = [(f"{join} {memory} MB", published, ours) for join, row in rows.items() for memory, published, ours in row.numbers()]
    runs = {f"{setup.join} {setup.memory} MB": [grid.run(setup)] for setup in cells()}
    by_join = ", ".join(f"{join} {len(row.places) - len(row.outside())}" for join, row in rows.items())
    return traced(judge_numbers(claim, numbers, f"cells inside, of 6: {by_join}"), runs)


def beside(claim: Claim, grid: Runs) -> dict[str, Beside]:
    """The published speedups and ours over the buffer pool, by join."""
    places = [str(memory) for memory in MEMORY]
    by_join = {}
    for join in JOINS:
        ours = [grid.speedup(Setup(join, memory), _WHAT[claim.id]) for memory in MEMORY]
        by_join[join] = Beside(places, [float(value) for value in claim.published[join]], ours, claim.limits["each"])
    return by_join


def sections(results: Results) -> list[Section]:
    grid, paper = Runs(results), load("do2009")
    kinds = {name: beside(paper.claim(name), grid) for name in _WHAT}
    io, join_times = kinds.values()
    rows: list[list[Entry]] = [
        [join, *line] for join in JOINS for line in zip(MEMORY, *io[join].columns(), *join_times[join].columns(), strict=True)
    ]
    header = ["join", "MB", "I/O published", "ours", "error %", "join published", "ours", "error %"]
    table = Table(header, rows, "table3", runs=[grid.run(setup) for setup in cells()])
    pictures = {
        name: published_beside_ours(kind, "buffer pool, MB", f"{word}, HDD over SSD")
        for (name, kind), word in zip(kinds.items(), ("I/O time", "time of the join"), strict=True)
    }
    text = "How many times as long a join takes on the HDD as on the SSD: its I/O, and all of it."
    return [Section("Speedups, SSD over HDD (table 3)", text, [table], pictures)]
