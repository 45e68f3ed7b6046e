"""What the hash joins that partition read and write."""

from __future__ import annotations

import math

from models.allocation.buffers import (
    HybridAllocation,
    exact,
)
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, in_parts, written


def partitioned(sizes: Sizes, a: HybridAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 7: |R0| = floor(WS / F) pages of R stay in memory; S' = ceil(|S| (1 - |R0| / |R|)) goes to disk.

    Every write of a buffer seeks.  In the second phase a bucket of R takes one request.
    """
    base = Traffic(2, ceil_div(sizes.r, a.input) + ceil_div(sizes.s, a.input), sizes.r + sizes.s)
    if a.buckets == 0:
        return (PhaseCounts("partition", base),)
    kept = min(sizes.r, math.floor(a.workspace / exact(sizes.fudge)))
    r = written(sizes.r - kept, sizes.r, sizes.r_temporary)
    s = written(sizes.r - kept, sizes.r, sizes.s_temporary)
    writes = in_parts(r, a.output, a.buckets) + in_parts(s, a.output, a.buckets)
    loads, seeks_of_s = min(a.buckets, r), min(a.buckets, s)
    return (
        PhaseCounts("partition", base, Traffic(writes, writes, r + s)),
        PhaseCounts("join", Traffic(loads + seeks_of_s, loads + in_parts(s, a.phase2_input, a.buckets), r + s)),
    )
