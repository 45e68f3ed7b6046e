"""Table 1, the buffer allocations: against the continuous costs' minima, the heuristics' known values, and the best whole division.

It is judged at the paper's sizes whatever the scale of the runs.
"""

from collections.abc import Collection
from functools import partial

from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.literature.do2009.runs import DEVICES, MEMORY, PAGE_SIZE, setups
from flashsim.studies.judging.cells import Cell, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.drives import disk_of
from flashsim.studies.runs.jobs import Job, Results, Settings
from models import optimum
from models.allocation.grace_hash import grace_hash
from models.allocation.hybrid_hash import hybrid_hash
from models.allocation.nested_loops import nested_loops
from models.allocation.sort_merge import sort_merge
from models.disk import Disk
from models.haas import cost
from models.join_costs.base import allocate

#: Pages of customer and orders in the paper.
R_PAGES, S_PAGES = 93_440, 655_360


def paper_disk() -> Disk:
    """The HDD of table 2, for which the paper divides its buffers."""
    return disk_of(presets.load(DEVICES["HDD"]), PAGE_SIZE)


def pool(memory: int) -> int:
    """Pages of a buffer pool in the paper's MB."""
    return memory * MIB // PAGE_SIZE


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The best division of every buffer pool, for each join."""
    return [_best(setup.join, setup.memory) for setup in setups()]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The four allocations at the six buffer pools: each buffer beside the restored form, or the minimum of the continuous cost."""
    disk, judged = paper_disk(), list[Cell]()
    for row, memory in enumerate(MEMORY):
        pages = pool(memory)
        judged += _against_minimum(claim.limits["pages"], memory, pages, disk)
        grace = grace_hash(R_PAGES, S_PAGES, pages)
        hybrid = hybrid_hash(R_PAGES, S_PAGES, pages, disk.latency_ratio)
        buffers = [grace.buckets, grace.output, grace.input, grace.phase2_input]
        for name, values in (("grace-hash", buffers), ("hybrid-hash", [hybrid.input, hybrid.buckets])):
            form = list(claim.published[name][row])
            words = f"{', '.join(map(str, form))} by the restored form"
            equal = partial(_are, form)
            judged.append(statement(f"{name} {memory} MB", words, values, equal, equal=pages / len(values), digits=0))
    return judged


def _are(form: list[int], *values: float) -> bool:
    return list(values) == form


def _against_minimum(limit: float, memory: int, pages: int, disk: Disk) -> list[Cell]:
    y, x = disk.latency_ratio, disk.access_ratio
    closed = {
        "bnl": nested_loops(R_PAGES, S_PAGES, pages, y, refine=False).inner,
        "sort-merge": sort_merge(R_PAGES, S_PAGES, pages, x).input,
    }
    nested = partial(optimum.nested_loops_cost, r_pages=R_PAGES, s_pages=S_PAGES, memory=pages, latency_ratio=y)
    sorting = partial(optimum.sort_merge_cost, r_pages=R_PAGES, s_pages=S_PAGES, memory=pages, access_ratio=x)
    best = {"bnl": optimum.continuous(nested, pages), "sort-merge": optimum.continuous(sorting, pages / 2)}
    return [
        statement(f"{join} {memory} MB", f"{best[join]:.2f} at least cost", [buffer], partial(_is_near, best[join], limit), pages / 2)
        for join, buffer in closed.items()
    ]


def _is_near(best: float, limit: float, buffer: float) -> bool:
    return abs(buffer - best) <= limit


def sections(results: Results) -> list[Section]:
    """The allocations' costs beside the best that any division in whole pages costs."""
    disk = paper_disk()
    rows: list[list[Entry]] = []
    for setup in setups():
        join, memory = setup.join, setup.memory
        least = results[_best(join, memory)]
        buffer_pages = allocate(join, R_PAGES, S_PAGES, pool(memory), disk.latency_ratio, disk.access_ratio)
        ours = cost(join, R_PAGES, S_PAGES, pool(memory), disk, buffer_pages).seconds
        buffers = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in vars(buffer_pages).items())
        rows.append([join, memory, buffers, ours, least, 100 * (ours / least - 1)])
    header = ["join", "MB", "buffers, pages", "I/O s", "best I/O s", "loss %"]
    text = (
        "Buffers by Haas et al. at the paper's sizes, what the formula says they cost on the HDD, and the least that any division in whole "
        "pages would cost."
    )
    return [Section("Buffer allocations (table 1)", text, [Table(header, rows, "table1")])]


def _best(join: str, memory: int) -> Job:
    return Job.of(best_seconds, f"{join}, {memory} MB, best buffers", join=join, pages=pool(memory))


def best_seconds(join: str, pages: int) -> float:
    """Cost of the best division of a buffer pool, by the formula."""
    return optimum.discrete(join, R_PAGES, S_PAGES, pages, paper_disk()).seconds
