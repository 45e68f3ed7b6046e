"""Figure 2: join times over the page size with blocked I/O."""

from collections.abc import Collection
from dataclasses import replace

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.page_sizes import page_size_section
from flashsim.literature.do2009.runs import DEVICES, FLASH_PAGE, JOINS, LABELS, PAGE_SIZES, PAGE_SIZES_MEMORY, Setup, page_size_grid
from flashsim.studies.judging.cells import Cell, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

#: Runs that show whether half flash pages make small pages dear.
ALIGNED = [Setup(join, PAGE_SIZES_MEMORY, PAGE_SIZES[0], aligned=True) for join in JOINS if join != "bnl"]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with every page size, page-sized too; the joins that write also with buffers that keep small pages aligned."""
    return [setup.job(settings) for setup in [*page_size_grid(page_io=True), *page_size_grid(page_io=False), *ALIGNED]]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """How far total times spread over the page sizes, largest over smallest, less 1: little with blocked I/O, more with page-sized."""
    runs, limit, cells = Runs(results), claim.limits["spread"], list[Cell]()
    for page_io, words in ((False, "below"), (True, "above")):
        for machine in DEVICES:
            for join in JOINS:
                seconds = [runs.seconds(Setup(join, PAGE_SIZES_MEMORY, page_size, page_io), machine) for page_size in PAGE_SIZES]
                spread = None if None in seconds else max(filter(None, seconds)) / min(filter(None, seconds)) - 1
                name = f"spread of {join}, {machine}{', page-sized I/O' * page_io}"
                holds = (lambda value: value > limit) if page_io else (lambda value: value < limit)
                cells.append(statement(name, f"{words} {limit:g}", [spread], holds, equal=0))
    return cells


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 2, and small pages in buffers of whole flash pages."""
    runs = Runs(results)
    rows: list[list[Entry]] = []
    for setup in ALIGNED:
        usual, larger = replace(setup, aligned=False), replace(setup, aligned=False, page_size=FLASH_PAGE)
        rows.append([LABELS[setup.join], *(runs.seconds(one, "SSD", "io") for one in (usual, setup, larger))])
    text = (
        "I/O seconds on the SSD. A buffer of an odd number of 2 KB pages ends in the middle of a flash page of 4 KB: the next one begins "
        "there, so every command of it touches one flash page that another command touched as well."
    )
    header = ["join", "2 KB pages", "2 KB pages, output in whole flash pages", "4 KB pages"]
    whole = Section("Small pages and flash pages", text, [Table(header, rows, "aligned", digits=1)])
    return [page_size_section(runs, page_io=False), whole]
