"""Division of sort-merge's buffers."""

import math

from models.allocation.bounds import bounded, ceil_sqrt, checked_ratio, checked_sizes, too_small
from models.allocation.buffers import FUDGE, SortMergeAllocation, exact


def sort_merge_input(r_pages: int, s_pages: int, memory: int, access_ratio: float, fudge: float = FUDGE) -> float:
    """Unrounded input buffer (= output buffer) that minimises the continuous cost of sort-merge: M / (2 + sqrt(z / 2)).

    Source: TR section 4, do2009 table 1.  Equal to the printed (sqrt(2z) - 4) M / (z - 8), z = x F (|R| + |S|) / M, but without
    its 0 / 0 at z = 8.
    """
    z = access_ratio * fudge * (r_pages + s_pages) / memory
    return memory / (2 + math.sqrt(z / 2))


def sort_merge(r_pages: int, s_pages: int, memory: int, access_ratio: float, fudge: float = FUDGE) -> SortMergeAllocation:
    """Buffers of the first pass of sort-merge; the input buffer shrinks where its runs could else not be merged in one pass.

    `access_ratio` is x = (Tl + Ts) / Tl, a random access in latencies.
    """
    r, s = checked_sizes(r_pages, s_pages, memory)
    x = checked_ratio("access_ratio", access_ratio, 1)

    def division(total: int, buffer: int) -> SortMergeAllocation:
        return SortMergeAllocation(total - 2 * buffer, buffer, buffer)

    def two_passes(total: int, buffer: int) -> bool:
        shares = division(total, buffer)
        return shares.workspace >= 1 and shares.runs(r, fudge) + shares.runs(s, fudge) <= total

    root = ceil_sqrt(exact(fudge) * max(r, s))
    if memory <= root:
        raise too_small(memory, f"sort-merge needs more than sqrt(F |S|) = {root}")
    if not two_passes(memory, 1):
        least = next(total for total in range(root + 1, 2 * root + 8) if two_passes(total, 1))
        raise too_small(memory, f"sort-merge needs at least {least} to merge all runs in one pass")
    buffer = bounded(sort_merge_input(r, s, memory, x, fudge), (memory - 1) // 2)
    if not two_passes(memory, buffer):
        fits, fails = 1, buffer
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if two_passes(memory, middle) else (fits, middle)
        buffer = fits
    return division(memory, buffer)
