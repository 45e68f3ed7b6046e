"""Block nested loops."""

from models.allocation.buffers import NestedLoopsAllocation
from models.allocation.divisions import nested_loops
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div

ALLOCATION = NestedLoopsAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> NestedLoopsAllocation:
    """The buffers by Haas et al."""
    return nested_loops(sizes.r, sizes.s, sizes.memory, latency_ratio, sizes.fudge)


def counts(sizes: Sizes, a: NestedLoopsAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 3: NB = ceil(|R| F / M_R); NX = |R| + NB |S|; NIO = NB (1 + ceil(|S| / M_S)); NS = 2 NB."""
    chunks = a.chunks(sizes.r, sizes.fudge)
    return (PhaseCounts("join", Traffic(2 * chunks, chunks * (1 + ceil_div(sizes.s, a.inner)), sizes.r + chunks * sizes.s)),)
