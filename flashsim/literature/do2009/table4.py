"""Table 4: speedups of I/O times by phase, SSD over HDD."""

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import MEMORY, Setup, grid_jobs
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs

_JOINS = ("sort-merge", "grace-hash", "hybrid-hash")


def _speedup(grid: Runs, setup: Setup, phase: int) -> float | None:
    """HDD over SSD seconds of I/O; None where a run could not be made, or its phase did no I/O."""
    results = [grid.get(setup, machine) for machine in ("HDD", "SSD")]
    seconds = [one.phases[phase].io if one and phase < len(one.phases) else 0.0 for one in results]
    return seconds[0] / seconds[1] if all(seconds) else None


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The 36 speedups, a row a join and phase."""
    grid, limit = Runs(results), claim.limits["each"]
    return [
        number(f"{row} {memory} MB", published, _speedup(grid, setup, phase), limit, row=row, place=memory, runs=(grid.run(setup),))
        for join in _JOINS
        for phase, word in enumerate(("first phase", "second phase"))
        for row in (f"{join}, {word}",)
        for memory, published in zip(MEMORY, claim.published[row], strict=True)
        for setup in (Setup(join, memory),)
    ]
