"""Reads and writes of the hash joins that partition."""

from models.allocation.buffers import HybridAllocation, exact
from models.allocation.divisions import sub_buffer_pages
from models.flush_patterns import n_hash
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, in_parts, temporary_pages


def partitioning(sizes: Sizes, a: HybridAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 7: |R0| = floor(WS / F) pages of R stay in memory; S' = ceil(|S| (1 - |R0| / |R|)) goes to disk.

    Every write of a buffer seeks.  In the second phase a bucket of R takes one request.
    """
    base = Traffic(2, ceil_div(sizes.r, a.input) + ceil_div(sizes.s, a.input), sizes.r + sizes.s)
    if a.buckets == 0:
        return (PhaseCounts("partition", base),)
    resident = min(sizes.r, a.workspace // exact(sizes.fudge))
    r = temporary_pages(sizes.r - resident, sizes.r, sizes.r_temporary)
    s = temporary_pages(sizes.r - resident, sizes.r, sizes.s_temporary)
    share = (sizes.r - resident) / sizes.r if sizes.r else 0.0
    writes = _bucket_writes(sizes, a, r, sizes.tuples[0] * share) + _bucket_writes(sizes, a, s, sizes.tuples[1] * share)
    loads, seeks_of_s = min(a.buckets, r), min(a.buckets, s)
    return (
        PhaseCounts("partition", base, writes),
        PhaseCounts("join", Traffic(loads + seeks_of_s, loads + in_parts(s, a.phase2_input, a.buckets), r + s)),
    )


def _bucket_writes(sizes: Sizes, a: HybridAllocation, pages: int, tuples: float) -> Traffic:
    """Writes of the buckets of one relation: an output buffer each, or by N-Hash as many at once as `models.flush_patterns` tells."""
    if getattr(sizes.options, "partition", "") != "n-hash" or not pages or not tuples:
        requests = in_parts(pages, a.output, a.buckets)
        return Traffic(requests, requests, pages)
    part = min(a.output, sizes.options.sub_buffer / sizes.page_size or published_part(a.output, sizes.page_size))
    flushes = n_hash(a.buckets, max(1, round(a.output / part)), max(1.0, tuples / pages * part), tuples)
    requests = round(flushes.requests + flushes.last)
    return Traffic(requests, requests, pages, together=max(0, requests - flushes.calls - 1))


def published_part(output: int, page_size: int) -> float:
    """Pages of a sub-buffer by the published rule: of 8 KiB, or half of a page where an output buffer is one."""
    return sub_buffer_pages(output, page_size) if output > 1 else 0.5
