"""Figure 3: join times over the page size with page-sized I/O, and what blocked I/O saves."""

from collections.abc import Collection
from dataclasses import replace

from flashsim.literature.base import Cell, Claim, Judgement, judge_holds, judge_numbers, load
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.page_sizes import page_size_section
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, PAGE_SIZE, PAGE_SIZES_MEMORY, Setup, page_size_grid
from flashsim.studies.presentation.plots import Beside, published_beside_ours
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

#: The page size that the second claim speaks of, in bytes.
_SMALL = 2048


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with every page size, and with blocked I/O at the page size of the rest of the paper."""
    blocked = [Setup(join, PAGE_SIZES_MEMORY) for join in JOINS]
    return [setup.job(settings) for setup in [*page_size_grid(page_io=True), *blocked]]


def judge(claim: Claim, results: Results) -> Judgement:
    runs = Runs(results)
    return judge_holds(claim, _small_pages(runs)) if claim.id == "fig3-2kb" else _judge_blocked(claim, runs)


def _over_blocked(claim: Claim, runs: Runs) -> dict[str, Beside]:
    """Total times with page-sized I/O over those with blocked I/O, published and ours, by machine."""
    ratios = {}
    for machine in DEVICES:
        ours: list[float | None] = []
        for join in JOINS:
            single, blocked = (runs.seconds(Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZE, page_io), machine) for page_io in (True, False))
            ours.append(single / blocked if single is not None and blocked else None)
        ratios[machine] = Beside(list(LABELS.values()), [float(value) for value in claim.published[machine]], ours, claim.limits["each"])
    return ratios


def _judge_blocked(claim: Claim, runs: Runs) -> Judgement:
    ratios = _over_blocked(claim, runs)
    return judge_numbers(
        claim,
        [
            (f"{join}, {machine}, page-sized over blocked", published, ours)
            for machine, row in ratios.items()
            for join, published, ours in row.numbers()
        ],
    )


def _small_pages(runs: Runs) -> list[Cell]:
    cells = []
    for join in ("sort-merge", "grace-hash"):
        hdd, ssd = (runs.seconds(Setup(join, PAGE_SIZES_MEMORY, _SMALL, True), machine) for machine in ("HDD", "SSD"))
        name = f"{LABELS[join]}: SSD over HDD"
        cells.append(Cell(name, "above 1", ssd / hdd, ssd > hdd) if hdd and ssd else Cell(name, "above 1", None, None))
    return cells


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 3, and what the slides say of it."""
    runs = Runs(results)
    section = page_size_section(runs, page_io=True)
    ratios = _over_blocked(load("do2009").claim("fig3-blocked"), runs)
    picture = published_beside_ours(ratios, "join, 8 KB pages", "page-sized over blocked")
    return [replace(section, pictures={**section.pictures, "figure3-ratios": picture})]
