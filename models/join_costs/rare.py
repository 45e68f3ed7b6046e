"""RARE-join: key columns are scanned and hashed, and columns of the rows that join are fetched by the join index, as in Jive join.

Source: Shah, Harizopoulos, Wiener and Graefe, "Fast Scans and Joins using Flash Drives" (DaMoN 2008).
"""

import math

from models.allocation.buffers import LateAllocation, exact
from models.join_costs._fetches import keys_joined, late_of, parts_read, with_fetches
from models.join_costs.base import PhaseCounts, Sizes

ALLOCATION = LateAllocation


def counts(sizes: Sizes, a: LateAllocation) -> tuple[PhaseCounts, ...]:
    """One pass where a table of R's keys fits in memory, or else Grace hash on keys; then the fetches, of which R's rows are put aside."""
    late = late_of(sizes)
    if math.ceil(late.r.key_pages * exact(sizes.fudge)) < a.join:
        keys = [
            PhaseCounts(name, parts_read(pages, side.keys, 1))
            for name, pages, side in (("scan", sizes.r, late.r), ("join", sizes.s, late.s))
        ]
    else:
        keys = keys_joined("grace-hash", sizes, late, a.join)
    return with_fetches(keys, sizes, a, sort_again=False)
