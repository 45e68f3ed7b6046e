"""Division of the buffers of block nested loops."""

import math
from fractions import Fraction

from models.allocation.bounds import bounded, checked_ratio, checked_sizes, too_small
from models.allocation.buffers import FUDGE, NestedLoopsAllocation, exact


def nested_loops_inner(s_pages: int, memory: int, latency_ratio: float) -> float:
    """Unrounded input buffer for S that minimises the continuous cost of block nested loops.

    Source: TR section 3; do2009 table 1.  The term - y|S| stands outside the root.  Tends to M / 2 for a slow start (y to
    infinity) and to 0 for a fast one.
    """
    y, s = latency_ratio, s_pages
    if math.isinf(y):
        return memory / (1 + math.sqrt(1 + memory / s))
    root = math.sqrt(y * s * (y * s + memory * (y + s)))
    return (root - y * s) / (y + s)


def nested_loops(
    r_pages: int, s_pages: int, memory: int, latency_ratio: float, fudge: float = FUDGE, refine: bool = True
) -> NestedLoopsAllocation:
    """Buffers of block nested loops.

    `r_pages`, `s_pages` and `memory`: |R|, |S| and M, in pages. `latency_ratio`: y = Tl / Tx, a request's latency in page transfers.
    `fudge`: F. `refine`: keep the number of chunks and give S the pages that R then leaves free; if R fits in memory, also weigh one chunk
    against two (TR section 3, "Using the formulas"). Raises InvalidParameterError: memory for less than one page of R with its table and
    one of S.
    """
    r, s = checked_sizes(r_pages, s_pages, memory)
    y = checked_ratio("latency_ratio", latency_ratio, 0)
    table = r * exact(fudge)
    least = math.ceil(exact(fudge))
    if memory < least + 1:
        raise too_small(memory, f"bnl needs at least {least + 1}")
    inner = bounded(nested_loops_inner(s, memory, y), memory - least)
    if not refine:
        return NestedLoopsAllocation(memory - inner, inner)

    def with_chunks(chunks: int) -> NestedLoopsAllocation:
        outer = max(least, math.ceil(table / chunks))
        return NestedLoopsAllocation(outer, memory - outer)

    def requests(allocation: NestedLoopsAllocation) -> tuple[float, int]:
        chunks = allocation.chunks(r, fudge)
        starts = chunks * (1 + math.ceil(Fraction(s, allocation.inner)))
        return (starts if math.isinf(y) else chunks * s + y * starts), chunks

    refined = with_chunks(math.ceil(table / (memory - inner)))
    if memory <= table:
        return refined
    return min((refined, with_chunks(1), with_chunks(2)), key=lambda a: requests(a) if a.inner >= 1 else (math.inf, 0))
