"""The run of the worked example: sort-merge and DigestJoin on tables of the published lengths."""

from algorithms.joins.base import JoinParameters, plan
from flashsim.core.rng import generator
from flashsim.core.units import KIB
from flashsim.literature.li2009.runs import BASIC, execute, table

_MEMORY, _PAGE_SIZE = 20, 8 * KIB
#: Pages, tuples a page, and the bytes of one: digests of 16 bytes are then 6 and 9 % of a tuple, and fill 600 and 450 pages.
_TABLES = {"customer": (10_000, 30, 266), "orders": (5_000, 45, 177)}


def count_pages(seed: int) -> list[int]:
    """Page accesses of sort-merge and of DigestJoin, in the order of the published ones; JSON-ready.

    No tuples join: what the second phase fetches is not of the example.
    """
    draw = generator(seed, "li2009", "example")
    customer, orders = (
        table(name, 2 * draw.permutation(pages * per_page) + side, size, _PAGE_SIZE)
        for side, (name, (pages, per_page, size)) in enumerate(_TABLES.items())
    )
    by_join = {}
    parameters = JoinParameters(_MEMORY, page_io=True, first=BASIC, fetch="naive")
    for join in (BASIC, "digest"):
        (run,), _ = execute((customer, orders), plan(join, customer, orders, parameters))
        by_join[join] = {phase.name: phase.pages for phase in run.phases}
    basic, digest = sum(by_join[BASIC].values()), sum(by_join["digest"].values())
    projected = by_join["digest"]["project"]
    return [by_join[BASIC]["sort"], basic, projected, digest - projected, digest, basic - digest]
