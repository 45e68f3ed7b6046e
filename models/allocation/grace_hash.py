"""Division of Grace hash's buffers."""

import math

from models.allocation.bounds import ceil_sqrt, checked_sizes, too_small
from models.allocation.buffers import FUDGE, GraceAllocation, HybridAllocation, exact


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
