"""Figure 3: join times over the page size with page-sized I/O, and what blocked I/O saves."""

from collections.abc import Collection

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.page_sizes import page_size_section
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, PAGE_SIZE, PAGE_SIZES_MEMORY, Setup, page_size_grid
from flashsim.studies.judging.cells import Cell, less, number, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

#: The page size that the second claim speaks of, in bytes.
_SMALL = 2048


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with every page size, and with blocked I/O at the page size of the rest of the paper."""
    blocked = [Setup(join, PAGE_SIZES_MEMORY) for join in JOINS]
    return [setup.job(settings) for setup in [*page_size_grid(page_io=True), *blocked]]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """Total times with page-sized I/O over those with blocked I/O; or with the smallest pages those of the SSD beside the HDD's."""
    runs = Runs(results)
    if claim.id == "fig3-2kb":
        small = [Setup(join, PAGE_SIZES_MEMORY, _SMALL, page_io=True) for join in ("sort-merge", "grace-hash")]
        slower = less(claim.limits["margin"])
        return [
            statement(
                f"{LABELS[each.join]}, HDD and SSD", "the first less, s", [runs.seconds(each, machine) for machine in DEVICES], slower
            )
            for each in small
        ]
    every = []
    for machine in DEVICES:
        for place, (join, published) in enumerate(zip(JOINS, claim.published[machine], strict=True)):
            single, blocked = (runs.seconds(Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZE, page_io), machine) for page_io in (True, False))
            ratio = single / blocked if single is not None and blocked else None
            name = f"{LABELS[join]}, {machine}, page-sized over blocked"
            every.append(number(name, published, ratio, claim.limits["each"], row=machine, place=place))
    return every


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 3."""
    return [page_size_section(Runs(results), page_io=True)]
