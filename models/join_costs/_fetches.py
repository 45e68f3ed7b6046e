"""What joins that fetch rows late have in common: pages with rows that join, scans of keys, and fetches by a join index.

RARE-join and FlashJoin are counted by bytes of minipages: a scan of keys, what their join writes and reads again, the join index where it
does not fit in memory, and each page that is needed once; how many those are is the expected number that random rows lie on (Yao).
"""

import math
from fractions import Fraction

from flashsim.core.errors import InvalidParameterError
from models.allocation.buffers import GraceAllocation, LateAllocation
from models.join_costs.base import FORMULAS, Late, LateSide, Parts, PhaseCounts, Sizes, Traffic, ceil_div, in_parts
from models.page_fetching import yao


def late_of(sizes: Sizes) -> Late:
    """What a formula is told of late fetching."""
    if sizes.late is None:
        raise InvalidParameterError("sizes", "no rows", "this formula needs rows, digests and results of the join beside pages")
    return sizes.late


def pages_with_joined(pages: int, side: LateSide) -> float:
    """Of a relation's pages, the expected number that have a row which joins, if these lie anywhere."""
    return yao(side.rows, side.rows / pages, side.joined) if pages and side.rows else 0.0


def parts_read(pages: int, parts: Parts, seeks: int) -> Traffic:
    return Traffic(seeks, pages * parts.requests, pages, pages * (1 - parts.share))


def keys_joined(kernel: str, sizes: Sizes, late: Late, memory: int) -> list[PhaseCounts]:
    """A join of keys with row ids by its own formula, for which minipages of both relations are scanned in the place of base files."""
    keys = Sizes(late.r.key_pages, late.s.key_pages, late.r.digests, late.s.digests, memory, sizes.fudge)
    formula = FORMULAS.load(kernel)
    try:
        buffers = formula.allocate(keys, late.latency_ratio, late.access_ratio)
    except InvalidParameterError:
        if kernel != "grace-hash":
            raise
        buffers = GraceAllocation(memory - 1, 1, 1, 1, memory - 1)  # as many buckets as there can be, which are divided again
    first, *rest = formula.counts(keys, buffers)
    scans = 1 if rest or first.writes.pages else (first.reads.pages - keys.r) // max(1, keys.s)
    more = first.reads.pages - keys.r - scans * keys.s
    again = Traffic(0, math.ceil(first.reads.requests * more / max(1, first.reads.pages)), more)
    scanned = parts_read(sizes.r, late.r.keys, 1) + parts_read(scans * sizes.s, late.s.keys, scans)
    return [PhaseCounts(first.name, scanned + again, first.writes), *rest]


def with_fetches(phases: list[PhaseCounts], sizes: Sizes, a: LateAllocation, *, sort_again: bool) -> tuple[PhaseCounts, ...]:
    """Phases of a join of keys, the join index that it writes if memory does not hold it, and the fetches.

    Parameters
    ----------
    sort_again
        Entries with what was fetched are sorted, as far as they do not fit, rather than written by ranges of pages.
    """
    late, memory = late_of(sizes), sizes.memory
    sides = {"R": (sizes.r, late.r), "S": (sizes.s, late.s)}
    wanted = [label for label, (_, side) in sides.items() if side.wanted.share]
    if not wanted:
        return tuple(phases)
    at = next((label for label in wanted if sides[label][0] * sides[label][1].wanted.share > memory / 2), wanted[-1])
    other = next((label for label in wanted if label != at), None)
    needed = {label: math.ceil(pages_with_joined(*sides[label])) for label in wanted}
    fetches = {label: parts_read(needed[label], sides[label][1].wanted, needed[label]) for label in wanted}
    spilled, fan_in = late.index if late.index > a.index else 0, (memory - 1) // 2
    runs = ceil_div(spilled, a.index)
    merged = in_parts(spilled, Fraction(max(1, fan_in), max(1, runs)), runs)
    *before, last = phases
    written = PhaseCounts(last.name, last.reads, last.writes + Traffic(runs, runs, spilled))
    found = fetches[at] + Traffic(merged, merged, spilled)
    free = memory - 1 - (runs or late.index)
    if other is None or needed[other] * sides[other][1].wanted.share <= free:
        rest = [PhaseCounts(f"fetch {other}", fetches[other])] if other else []
        return (*before, written, *rest, PhaseCounts(f"fetch {at}", found))
    carried, room = sides[at][1].carried, memory - 1 - fan_in
    carried = 0 if sort_again and carried <= room else carried
    put, taken = (ceil_div(carried, room), in_parts(carried, memory, ceil_div(carried, room))) if sort_again else (carried, carried)
    aside, again = Traffic(put, put, carried), Traffic(taken, taken, carried)
    return (*before, written, PhaseCounts(f"fetch {at}", found, aside), PhaseCounts(f"fetch {other}", fetches[other] + again))
