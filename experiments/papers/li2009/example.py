"""The worked example of section II: page accesses of sort-merge and of DigestJoin's first phase, counted as they are executed."""

from __future__ import annotations

from collections.abc import Collection

from algorithms.joins.base import JoinParameters, plan
from experiments.papers.base import Cell, Claim, Judgement, decided, load
from experiments.papers.li2009.runs import BASIC, execute, table
from experiments.presentation.section import Section
from experiments.presentation.tables import Table
from experiments.runs.jobs import Job, Results, Settings
from flashsim.core.rng import generator
from flashsim.core.units import KIB

_MEMORY, _PAGE_SIZE = 20, 8 * KIB
#: Pages, tuples a page, and the bytes of one: digests of 16 bytes are then 6 and 9 % of a tuple, and fill 600 and 450 pages.
_TABLES = {"customer": (10_000, 30, 266), "orders": (5_000, 45, 177)}


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """One run, of the published size at every scale."""
    return [_job(settings)]


def _job(settings: Settings) -> Job:
    return Job.of(count_pages, "the worked example", seed=settings.seed)


def count_pages(seed: int) -> dict[str, int]:
    """Page accesses of sort-merge and of DigestJoin, by the names of the published ones; JSON-ready.

    No tuples join: what the second phase fetches is not of the example.
    """
    draw = generator(seed, "li2009", "example")
    customer, orders = (
        table(name, 2 * draw.permutation(pages * per_page) + side, size, _PAGE_SIZE)
        for side, (name, (pages, per_page, size)) in enumerate(_TABLES.items())
    )
    found = {}
    told = JoinParameters(_MEMORY, page_io=True, first=BASIC, fetch="naive")
    for join in (BASIC, "digest"):
        (run,), _ = execute((customer, orders), plan(join, customer, orders, told))
        found[join] = {phase.name: phase.pages for phase in run.phases}
    basic, digest = sum(found[BASIC].values()), sum(found["digest"].values())
    projected = found["digest"]["project"]
    counts = (found[BASIC]["sort"], basic, projected, digest - projected, digest, basic - digest)
    return dict(zip(load("li2009").claim("example").published, counts, strict=True))


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the six numbers."""
    ours = results[_job(results.settings)]
    cells = [Cell(name, value, ours[name], ours[name] == value) for name, (value,) in claim.published.items()]
    agree = sum(bool(cell.inside) for cell in cells)
    told = f"{len(cells)} page counts", f"{agree} of {len(cells)} agree"
    return Judgement(claim, decided(claim, agree == len(cells)), *told, cells, scaled=False)


def sections(results: Results) -> list[Section]:
    """Published counts beside ours."""
    ours, published = results[_job(results.settings)], load("li2009").claim("example").published
    rows = [[name, value, ours[name]] for name, (value,) in published.items()]
    text = "Page accesses of joining 10,000 with 5,000 pages in 20 pages of memory, executed; digests fill 600 and 450 pages."
    return [Section("The worked example (section II)", text, [Table(["what", "published", "ours"], rows, "example")], on_terminal=True)]
