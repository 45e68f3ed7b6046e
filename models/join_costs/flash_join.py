"""FlashJoin: a join kernel joins keys that are scanned alone, and a fetch kernel fetches columns of the rows that join.

Source: Tsirogiannis, Harizopoulos, Shah, Wiener and Graefe, "Query Processing Techniques for Solid State Drives" (SIGMOD 2009).
"""

from models.allocation.buffers import LateAllocation
from models.join_costs._fetches import join_of_keys, late_of, with_fetches
from models.join_costs.base import PhaseCounts, Sizes

ALLOCATION = LateAllocation


def counts(sizes: Sizes, a: LateAllocation) -> tuple[PhaseCounts, ...]:
    """The kernel by its own formula on keys, and the fetches, for which the join index is sorted by one relation after the other."""
    late = late_of(sizes)
    return with_fetches(*join_of_keys(late.inner, sizes, late, a.join), sizes, a, sort_again=True)
