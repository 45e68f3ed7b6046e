"""Table 3: speedups of I/O times and of total times, SSD over HDD."""

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import JOINS, MEMORY, Setup, grid_jobs
from flashsim.studies.judging.cells import Cell, number
from flashsim.studies.judging.claims import Claim
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs

#: Seconds that each claim compares.
_WHAT = {"table3-io": "io", "table3-join": "total"}


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The 24 speedups of one kind, a row a join."""
    grid, what, limit = Runs(results), _WHAT[claim.id], claim.limits["each"]
    return [
        number(f"{join} {memory} MB", published, grid.speedup(setup, what), limit, row=join, place=memory, runs=(grid.run(setup),))
        for join in JOINS
        for memory, published in zip(MEMORY, claim.published[join], strict=True)
        for setup in (Setup(join, memory),)
    ]
