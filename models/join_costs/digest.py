"""DigestJoin: both relations are projected to digests, these are joined by any join, and pages of rows that join are fetched.

Source: Li, On, Xu, Choi and Hu, "DigestJoin: Exploiting Fast Random Reads for Flash-based Joins" (MDM 2009), section II.
"""

import math
from dataclasses import replace

from models.allocation.buffers import (
    Allocation,
    DigestAllocation,
    GraceAllocation,
    HybridAllocation,
    NestedLoopsAllocation,
    SimpleHashAllocation,
    exact,
)
from models.join_costs._fetches import late_of, pages_with_matches
from models.join_costs.base import FORMULAS, Late, PhaseCounts, Sizes, Traffic, ceil_div
from models.page_fetching import cardenas, least_fetches, least_recently_used

ALLOCATION = DigestAllocation
#: Strategies that fetch in the order of the join index; of a buffer pool's policies least recently used is counted.
_IN_ORDER = ("naive", "pooled")


def counts(sizes: Sizes, a: DigestAllocation) -> tuple[PhaseCounts, ...]:
    """Projection; the first join by its own formula, on digests; the join index, written and read by single pages; fetches.

    A fetch is a request of a page that seeks.  Naive and pooled fetching are counted for entries in the order in which the first join
    finds them: of keys, which lie anywhere in both relations, or of scans of the larger one.  Block nested loops are counted for blocks
    of R's pages in as many frames, and every other strategy by what no plan can do without.  What a strategy sorts or puts aside is left
    out.
    """
    late, fetch = late_of(sizes), sizes.options.fetch
    projected = [] if sizes.options.digests_stored else [_project(sizes, late, a)]
    small, large = sorted((late.r.digests, late.s.digests))
    memory, last_phase = (sizes.memory, late.streams_in) if late.streams_in else (sizes.memory - 1, None)
    digests = Sizes(small, large, small, large, memory, sizes.fudge, last_phase)
    first = FORMULAS.load(late.inner)
    buffers = first.allocate(digests, late.latency_ratio, late.access_ratio)
    phase_counts = first.counts(digests, buffers)
    phases = [*projected, *(replace(phase, name=f"digest {late.title}: {phase.name}") for phase in phase_counts)]
    if not late.streams_in:
        moved = Traffic(min(1, late.index), late.index, late.index)
        phases.append(PhaseCounts("index", moved, moved))
    fetches = math.ceil(_naive(sizes, late, digests, buffers) if fetch in _IN_ORDER else _fetches(sizes, late))
    is_bound = fetch not in (*_IN_ORDER, "blocks")
    return (*phases, PhaseCounts("fetch", Traffic(fetches, fetches, fetches), is_bound=is_bound))


def _project(sizes: Sizes, late: Late, a: DigestAllocation) -> PhaseCounts:
    return PhaseCounts(
        "project",
        Traffic(2, ceil_div(sizes.r, a.input) + ceil_div(sizes.s, a.input), sizes.r + sizes.s),
        Traffic(2, ceil_div(late.r.digests, a.output) + ceil_div(late.s.digests, a.output), late.r.digests + late.s.digests),
    )


def _naive(sizes: Sizes, late: Late, digests: Sizes, buffers: Allocation) -> float:
    """Rows are found in the order of keys, or bucket by bucket, or for one chunk after another, page by page of the relation scanned."""
    frames = sizes.memory - (late.streams_in or 1)
    sides = sorted(((sizes.r, late.r), (sizes.s, late.s)), key=lambda side: side[1].digests)
    (pages, hashed), (scanned_pages, scanned) = sides
    each, often = hashed.rows / max(1, pages), late.results / max(1, hashed.matches)
    match buffers:
        case NestedLoopsAllocation():
            chunks = max(1, buffers.chunks(digests.r, digests.fudge))
            file = pages / chunks, each, hashed.matches / chunks, often
            return chunks * least_recently_used([file], frames, cardenas(scanned_pages, scanned.matches / chunks))
        case GraceAllocation():
            shares = [1 / buffers.buckets] * buffers.buckets
        case HybridAllocation():
            resident = min(1.0, buffers.workspace / digests.fudge / max(1, digests.r)) if buffers.buckets else 1.0
            shares = [resident, *[(1 - resident) / max(1, buffers.buckets)] * buffers.buckets]
        case SimpleHashAllocation():
            scans = max(1, math.ceil(digests.r * exact(digests.fudge) / buffers.workspace))
            shares = [1 / scans] * scans
        case _:
            return least_recently_used(
                [(pages, each, hashed.matches), (scanned_pages, scanned.rows / max(1, scanned_pages), scanned.matches)], frames
            )
    return least_recently_used(
        [(pages, each, hashed.matches, often)], frames, sum(cardenas(scanned_pages, scanned.matches * share) for share in shares)
    )


def _fetches(sizes: Sizes, late: Late) -> float:
    frames = sizes.memory - (late.streams_in or 1)
    r_pages, s_pages = pages_with_matches(sizes.r, late.r), pages_with_matches(sizes.s, late.s)
    if sizes.options.fetch == "blocks":
        blocks = max(1, math.ceil(r_pages / max(1, frames - 2)))
        return r_pages + blocks * cardenas(sizes.s, late.results / blocks)
    pages, pairs = math.ceil(r_pages + s_pages), math.floor(cardenas(max(1.0, r_pages * s_pages), late.results))
    return max(r_pages + s_pages, least_fetches(pages, pairs, frames, pages))
