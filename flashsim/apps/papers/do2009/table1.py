"""Table 1, the buffer allocations: against the continuous costs' minima, the heuristics' known values, and the best whole division.

It is judged at the paper's sizes whatever the scale of the runs.
"""

from collections.abc import Collection
from functools import partial

from flashsim.apps.papers.base import Cell, Claim, Entry, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.do2009.runs import GRID, MEMORY, PAGE_SIZE, large_pages, paper_disk
from flashsim.core.units import MIB
from flashsim.experiments.judging.cells import equal_to, near, statement
from models import optimum
from models.allocation.divisions import grace_hash, hybrid_hash, nested_loops, sort_merge
from models.haas import cost
from models.join_costs.base import allocate

#: Pages of customer and orders in the paper.
R_PAGES, S_PAGES = large_pages(PAGE_SIZE)


def pool(memory: int) -> int:
    """Pages of a buffer pool in the paper's MB."""
    return memory * MIB // PAGE_SIZE


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """The best division of every buffer pool, for each join."""
    return [Job.of(best_seconds, f"{one.join}, {one.memory} MB, best buffers", join=one.join, pages=pool(one.memory)) for one in GRID]


def best_seconds(join: str, pages: int) -> float:
    """Cost of the best division of a buffer pool, by the formula."""
    return optimum.discrete(join, R_PAGES, S_PAGES, pages, paper_disk()).seconds


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The four allocations at the six buffer pools: the minimum of the continuous cost, or each buffer beside the restored form."""
    y, x, cells = paper_disk().latency_ratio, paper_disk().access_ratio, list[Cell]()
    for row, memory in enumerate(MEMORY):
        pages = pool(memory)
        sizes = {"r_pages": R_PAGES, "s_pages": S_PAGES, "memory": pages}
        inner = nested_loops(R_PAGES, S_PAGES, pages, y, refine=False).inner
        nested = optimum.continuous(partial(optimum.nested_loops_cost, **sizes, latency_ratio=y), pages)
        sorting = optimum.continuous(partial(optimum.sort_merge_cost, **sizes, access_ratio=x), pages / 2)
        for join, buffer, best in (("bnl", inner, nested), ("sort-merge", sort_merge(R_PAGES, S_PAGES, pages, x).input, sorting)):
            words, holds = f"{best:.2f} at least cost", near(best, claim.limits["pages"])
            cells.append(statement(f"{join} {memory} MB", words, [buffer], holds, pages / 2))
        grace, hybrid = grace_hash(R_PAGES, S_PAGES, pages), hybrid_hash(R_PAGES, S_PAGES, pages, y)
        buffers = [grace.buckets, grace.output, grace.input, grace.phase2_input]
        for join, values in (("grace-hash", buffers), ("hybrid-hash", [hybrid.input, hybrid.buckets])):
            form = claim.published[join][row]
            words = f"{', '.join(map(str, form))} by the restored form"
            cells.append(statement(f"{join} {memory} MB", words, values, equal_to(form), equal=pages / len(values), digits=0))
    return cells


def sections(results: Results) -> list[Section]:
    disk, rows = paper_disk(), list[list[Entry]]()
    for setup, job in zip(GRID, jobs((), results.settings), strict=True):
        join, memory, least = setup.join, setup.memory, results[job]
        allocation = allocate(join, R_PAGES, S_PAGES, pool(memory), disk.latency_ratio, disk.access_ratio)
        ours = cost(join, R_PAGES, S_PAGES, pool(memory), disk, allocation).seconds
        rows.append([join, memory, in_words(allocation), ours, least, 100 * (ours / least - 1)])
    header = ["join", "MB", "buffers, pages", "I/O s", "best I/O s", "loss %"]
    return [Section("Buffer allocations (table 1)", load("do2009").text("table1"), [Table(header, rows, "table1")])]


def in_words(allocation: object) -> str:
    """Pages of each buffer."""
    return ", ".join(f"{name.replace('_', ' ')} {pages:,}" for name, pages in vars(allocation).items())
