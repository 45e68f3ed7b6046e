"""Buffers of each join that divides its memory in closed form."""

import math
from fractions import Fraction
from typing import Literal

from flashsim.core.errors import UnknownNameError, check_known
from flashsim.core.units import KIB
from models.allocation.buffers import (
    FUDGE,
    ExternalSortMergeAllocation,
    GraceAllocation,
    HybridAllocation,
    NestedLoopsAllocation,
    SimpleHashAllocation,
    SortMergeAllocation,
    ceil_sqrt,
    checked_ratio,
    checked_sizes,
    clip,
    exact,
    too_small,
)


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
    inner = clip(nested_loops_inner(s, memory, y), memory - least)
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
    buffer = clip(sort_merge_input(r, s, memory, x, fudge), (memory - 1) // 2)
    if not two_passes(memory, buffer):
        fits, fails = 1, buffer
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if two_passes(memory, middle) else (fits, middle)
        buffer = fits
    return division(memory, buffer)


_LEAST = 3  #: Two runs and an output buffer.


def external_sort_merge(memory: int) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory (Li et al. 2009, section II)."""
    if memory < _LEAST:
        raise too_small(memory, f"external sort-merge needs at least {_LEAST}")
    return ExternalSortMergeAllocation(memory, memory - 1)


def pages_kept(r_pages: int, s_pages: int, workspace: int, memory: int) -> tuple[int, int]:
    """Sorted pages of R and of S that stay in memory until they are merged, where the merge has `memory` pages; R is the smaller.

    A file that is sorted at once need not be written: both stay if memory holds both.  Otherwise R stays, sorted after S, and S is read
    back through what R leaves, which is a page at least: of R that takes all of memory the last page is written.

    >>> [pages_kept(4, s, 10, 10) for s in (6, 7)], pages_kept(10, 12, 10, 10), pages_kept(11, 12, 10, 10)
    ([(4, 6), (4, 0)], (9, 0), (0, 0))
    """
    if s_pages <= workspace and r_pages + s_pages <= memory:
        return r_pages, s_pages
    return (min(r_pages, memory - 1), 0) if r_pages <= min(workspace, memory) else (0, 0)


def simple_hash(r_pages: int, s_pages: int, memory: int, latency_ratio: float, fudge: float = FUDGE) -> SimpleHashAllocation:
    """Buffers of simple hash: I = O = sqrt(y^2 + y M / 2) - y, rounded up (TR section 5)."""
    checked_sizes(r_pages, s_pages, memory)
    y = checked_ratio("latency_ratio", latency_ratio, 0)
    least = math.ceil(exact(fudge))
    if memory < least + 2:
        raise too_small(memory, f"simple-hash needs at least {least + 2}")
    closed = memory / 4 if math.isinf(y) else math.sqrt(y * y + y * memory / 2) - y
    buffer = clip(closed, (memory - least) // 2)
    return SimpleHashAllocation(memory - 2 * buffer, buffer, buffer)


def grace_buckets(r_pages: int, memory: int, fudge: float = FUDGE) -> float:
    """Unrounded number of buckets at which all buffers of the first phase are as large as the second's input buffer (TR section 6)."""
    table = r_pages * fudge
    return (table + math.sqrt(table * table + 4 * memory * table)) / (2 * memory)


def grace_hash(r_pages: int, s_pages: int, memory: int, fudge: float = FUDGE) -> GraceAllocation:
    """Buffers of Grace hash, all equal as far as they can be (a heuristic: TR section 6; do2009 table 1)."""
    r, _ = checked_sizes(r_pages, s_pages, memory)
    table = r * exact(fudge)
    root = ceil_sqrt(table)
    if memory <= root:
        raise too_small(memory, f"grace-hash needs more than sqrt(F |R|) = {root}")
    buckets = min(memory - 1, math.ceil(grace_buckets(r, memory, fudge)))
    output = memory // (buckets + 1)
    workspace = math.ceil(table / buckets)
    return GraceAllocation(buckets, output, memory - buckets * output, memory - workspace, workspace)


def bucket_division(r_pages: int, s_pages: int, memory: int, fudge: float) -> GraceAllocation:
    """Buffers for dividing a bucket: Grace hash's, or as many buckets as possible where those would still overflow."""
    if memory > ceil_sqrt(r_pages * exact(fudge)):
        return grace_hash(r_pages, s_pages, memory, fudge)
    return GraceAllocation(memory - 1, 1, 1, 1, memory - 1)


def grace_as_hybrid(grace: GraceAllocation) -> HybridAllocation:
    """Grace hash's buffers as a hybrid hash that keeps nothing in memory."""
    return HybridAllocation(grace.buckets, grace.output, grace.input, 0, grace.phase2_input, grace.phase2_workspace)


HybridRule = Literal["haas", "sqrt-y"]


SecondPhase = Literal["do2009", "haas"]


def hybrid_input(memory: int, latency_ratio: float, rule: HybridRule = "haas") -> float:
    """Unrounded input buffer (= output buffer) of hybrid hash.

    The rule ``"haas"`` is 1.1 sqrt(M), as printed (TR table 2; do2009 table 1); ``"sqrt-y"`` is (sqrt(5) / 2) sqrt(M y), what TR's own
    quadratic tends to for a large R and M much above y.
    """
    if rule == "haas":
        return 1.1 * math.sqrt(memory)
    if rule == "sqrt-y":
        return math.sqrt(5) / 2 * math.sqrt(memory * latency_ratio)
    raise UnknownNameError("rule", rule, ("haas", "sqrt-y"))


def hybrid_division(
    r_pages: int,
    memory: int,
    buffer: int,
    fudge: float = FUDGE,
    second: SecondPhase = "do2009",
    *,
    output: int | None = None,
    phase2_input: int | None = None,
) -> HybridAllocation | None:
    """Buffers of hybrid hash for a given input buffer, or None where that leaves no workspace.

    Source: TR section 7: K is the smallest number of buckets with K (M - I2) + WS >= F |R|, WS = M - I - K O.

    `output` is O and `phase2_input` is I2, the pages that the second phase has for input at least; both are as large as the input buffer
    unless they are given.
    """
    output, phase2_input = output or buffer, phase2_input or buffer
    table = max(1, r_pages) * exact(fudge)
    if table <= memory - buffer:
        # No bucket goes to disk; what the table leaves free serves the input.
        workspace = math.ceil(table)
        return HybridAllocation(0, 0, memory - workspace, workspace, 0, 0)
    if memory - phase2_input - output < 1:
        return None
    buckets = math.ceil((table - (memory - buffer)) / (memory - phase2_input - output))
    workspace = memory - buffer - buckets * output
    if workspace < 1:
        return None
    if second == "haas":
        return HybridAllocation(buckets, output, buffer, workspace, phase2_input, memory - phase2_input)
    phase2 = math.ceil((table - workspace) / buckets)
    return HybridAllocation(buckets, output, buffer, workspace, memory - phase2, phase2)


def hybrid_hash(
    r_pages: int,
    s_pages: int,
    memory: int,
    latency_ratio: float,
    fudge: float = FUDGE,
    rule: HybridRule = "haas",
    second: SecondPhase = "do2009",
) -> HybridAllocation:
    """Buffers of hybrid hash.  At little memory the rule leaves no workspace: Grace hash's buffers are returned with workspace 0.

    The rule is how the input buffer is found: see `hybrid_input`.  In the second phase, ``"do2009"`` gives the input what a bucket's table
    leaves free, ``"haas"`` as much as in the first.

    Raises InvalidParameterError: memory not above sqrt(F |R|).
    """
    r, _ = checked_sizes(r_pages, s_pages, memory)
    y = checked_ratio("latency_ratio", latency_ratio, 0)
    check_known("second phase", second, ("do2009", "haas"))
    root = ceil_sqrt(r * exact(fudge))
    if memory <= root:
        raise too_small(memory, f"hybrid-hash needs more than sqrt(F |R|) = {root}")
    buffer = clip(hybrid_input(memory, y, rule), memory - 1)
    return hybrid_division(r, memory, buffer, fudge, second) or grace_as_hybrid(grace_hash(r_pages, s_pages, memory, fudge))


SUB_BUFFER = 8 * KIB  #: shin2016, section 1.3: a sub-buffer, bytes.


def sub_buffer_pages(ring: int, page_size: int, sub_buffer: int = 0) -> int:
    """Pages of a sub-buffer: as many as divide the ring, and are not longer than what is wanted.

    `ring` is pages of an output buffer; the sizes are bytes.  Without a sub-buffer 8 KiB are wanted, but two sub-buffers at least: with one
    there would be one request at a time.

    >>> [sub_buffer_pages(ring, 4096) for ring in (1, 2, 3, 4, 19)], sub_buffer_pages(12, 4096, 16384)
    ([1, 1, 1, 2, 1], 4)
    """
    most = sub_buffer // page_size if sub_buffer else min(SUB_BUFFER // page_size, ring // 2)
    return next(pages for pages in range(max(1, min(most, ring)), 0, -1) if ring % pages == 0)
