"""Hybrid hash."""

from models.allocation.buffers import HybridAllocation
from models.allocation.divisions import hybrid_hash
from models.join_costs._partitions import partitioning
from models.join_costs.base import Sizes

ALLOCATION = HybridAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> HybridAllocation:
    """The buffers by Haas et al."""
    return hybrid_hash(sizes.r, sizes.s, sizes.memory, latency_ratio, sizes.fudge)


counts = partitioning
