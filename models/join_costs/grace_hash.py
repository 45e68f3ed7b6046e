"""Grace hash."""

from models.allocation.buffers import GraceAllocation
from models.allocation.divisions import grace_as_hybrid, grace_hash
from models.join_costs._partitions import partitioning
from models.join_costs.base import PhaseCounts, Sizes

ALLOCATION = GraceAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> GraceAllocation:
    """The buffers by Haas et al."""
    return grace_hash(sizes.r, sizes.s, sizes.memory, sizes.fudge)


def counts(sizes: Sizes, a: GraceAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 6: as hybrid hash that keeps nothing in memory."""
    return partitioning(sizes, grace_as_hybrid(a))
