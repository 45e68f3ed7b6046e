"""Table 4: speedups of I/O times by phase, SSD over HDD."""

from flashsim.literature.base import Claim, Judgement, judge_numbers, load, traced
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import MEMORY, Setup, grid_jobs
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs


#: The published rows: a join and one of its two phases, in order.
ROWS = {
    f"{join}, {word} phase": (join, number)
    for join in ("sort-merge", "grace-hash", "hybrid-hash")
    for number, word in enumerate(("first", "second"))
}


def speedup(grid: Runs, row: str, memory: int) -> float | None:
    """HDD over SSD seconds of I/O; None where a run could not be made, or its phase did no I/O."""
    join, phase = ROWS[row]
    results = [grid.get(Setup(join, memory), machine) for machine in ("HDD", "SSD")]
    seconds = [one.phases[phase].io if one and phase < len(one.phases) else 0.0 for one in results]
    return seconds[0] / seconds[1] if all(seconds) else None


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the 36 speedups."""
    grid = Runs(results)
    rows = beside(claim, grid)
    numbers = [(f"{name} {memory} MB", published, ours) for name, row in rows.items() for memory, published, ours in row.numbers()]
    runs = {f"{name} {memory} MB": [grid.run(Setup(ROWS[name][0], memory))] for name in ROWS for memory in MEMORY}
    return traced(judge_numbers(claim, numbers), runs)


def beside(claim: Claim, grid: Runs) -> dict[str, Beside]:
    """The published speedups and ours over the buffer pool, by phase."""
    places = [str(memory) for memory in MEMORY]
    by_name = {}
    for name in ROWS:
        ours = [speedup(grid, name, memory) for memory in MEMORY]
        by_name[name] = Beside(places, [float(value) for value in claim.published[name]], ours, claim.limits["each"])
    return by_name


def sections(results: Results) -> list[Section]:
    grid = Runs(results)
    phases = beside(load("do2009").claim("table4"), grid)
    rows: list[list[Entry]] = [[name, *line] for name, row in phases.items() for line in zip(MEMORY, *row.columns(), strict=True)]
    runs = [grid.run(Setup(ROWS[name][0], memory)) for name in ROWS for memory in MEMORY]
    table = Table(["phase", "MB", "published", "ours", "error %"], rows, "table4", runs=runs)
    picture = published_beside_ours(phases, "buffer pool, MB", "I/O time, HDD over SSD")
    text = "How many times as long the I/O of a phase takes on the HDD as on the SSD."
    return [Section("I/O speedups by phase, SSD over HDD (table 4)", text, [table], {"table4": picture})]
