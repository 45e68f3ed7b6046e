"""Figure 3: join times over the page size with page-sized I/O, and what blocked I/O saves."""

from __future__ import annotations

from collections.abc import Collection

from experiments.do2009.page_sizes import page_size_section
from experiments.do2009.runs import DEVICES, JOINS, LABELS, PAGE_SIZE, PAGE_SIZES_MEMORY, Runs, Setup, page_size_grid
from experiments.jobs import Job, Results
from experiments.papers import Cell, Claim, Judgement, Section, Settings, judge_holds, judge_numbers

#: The page size that the second claim speaks of, in bytes.
_SMALL = 2048


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with every page size, and with blocked I/O at the page size of the rest of the paper."""
    blocked = [Setup(join, PAGE_SIZES_MEMORY) for join in JOINS]
    return [setup.job(settings) for setup in [*page_size_grid(page_io=True), *blocked]]


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge what page-sized I/O costs."""
    runs = Runs(results)
    return judge_holds(claim, _small_pages(runs)) if claim.id == "fig3-2kb" else judge_numbers(claim, _over_blocked(claim, runs))


def _over_blocked(claim: Claim, runs: Runs) -> list[tuple[str, float, float | None]]:
    cells = []
    for machine in DEVICES:
        for join, published in zip(JOINS, claim.published[machine], strict=True):
            single, blocked = (runs.seconds(Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZE, page_io), machine) for page_io in (True, False))
            ratio = single / blocked if single is not None and blocked else None
            cells.append((f"{LABELS[join]}, {machine}, page-sized over blocked", float(published), ratio))
    return cells


def _small_pages(runs: Runs) -> list[Cell]:
    cells = []
    for join in ("sort-merge", "grace-hash"):
        hdd, ssd = (runs.seconds(Setup(join, PAGE_SIZES_MEMORY, _SMALL, True), machine) for machine in ("HDD", "SSD"))
        name = f"{LABELS[join]}: SSD over HDD"
        cells.append(Cell(name, "above 1", ssd / hdd, ssd > hdd) if hdd and ssd else Cell(name, "above 1", None, None))
    return cells


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 3."""
    return [page_size_section(Runs(results), page_io=True)]
