"""Figure 2: join times over the page size with blocked I/O."""

from __future__ import annotations

from collections.abc import Collection

from experiments.do2009.page_sizes import page_size_section
from experiments.do2009.runs import DEVICES, JOINS, PAGE_SIZES, PAGE_SIZES_MEMORY, Runs, Setup, page_size_grid
from experiments.jobs import Job, Results
from experiments.papers import Cell, Claim, Judgement, Section, Settings, judge_holds


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with every page size."""
    return [setup.job(settings) for setup in page_size_grid(page_io=False)]


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge how far total times spread over the page sizes: largest over smallest, less 1."""
    runs = Runs(results)
    cells = []
    for machine in DEVICES:
        for join in JOINS:
            found = [runs.seconds(Setup(join, PAGE_SIZES_MEMORY, page_size), machine) for page_size in PAGE_SIZES]
            seconds = [one for one in found if one is not None]
            spread = max(seconds) / min(seconds) - 1 if len(seconds) == len(found) else None
            inside = None if spread is None else spread < claim.limits["spread"]
            cells.append(Cell(f"spread of {join}, {machine}", f"below {claim.limits['spread']:g}", spread, inside))
    return judge_holds(claim, cells)


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 2."""
    return [page_size_section(Runs(results), page_io=False)]
