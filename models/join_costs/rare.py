"""RARE-join: key columns are scanned and hashed, and columns of the rows that join are fetched by the join index, as in Jive join.

Source: Shah, Harizopoulos, Wiener and Graefe, "Fast Scans and Joins using Flash Drives" (DaMoN 2008).
"""

import math
from dataclasses import dataclass

import numpy as np

from models.allocation.buffers import LateAllocation, exact
from models.allocation.divisions import bucket_division, nested_loops
from models.join_costs._fetches import file_pages, late_of, pages_by_chance, parts_read, with_fetches
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div

ALLOCATION = LateAllocation


def counts(sizes: Sizes, a: LateAllocation) -> tuple[PhaseCounts, ...]:
    """One pass where a table of R's keys fits in memory, or else buckets of keys; then the fetches, of which R's rows are put aside."""
    late = late_of(sizes)
    scans = parts_read(sizes.r, late.r.keys, 1), parts_read(sizes.s, late.s.keys, 1)
    if math.ceil(late.r.key_pages * exact(sizes.fudge)) < a.join:
        keys = [PhaseCounts("scan", scans[0]), PhaseCounts("join", scans[1])]
    else:
        buckets = _Buckets(a.join, sizes.fudge, late.latency_ratio, (late.r.digests_a_page, late.s.digests_a_page))
        written, join = buckets.partition((late.r.keyed, late.s.keyed), (late.r.key_pages, late.s.key_pages))
        keys = [PhaseCounts("partition", scans[0] + scans[1], written), join]
    return with_fetches(keys, 0.0, sizes, a, sort_again=False)


@dataclass(frozen=True)
class _Buckets:
    """Buckets of keys with row ids.  R's are read whole and S's page by page, and buckets too large for memory are joined otherwise."""

    #: What there is for them, F, and y.
    memory: int
    fudge: float
    latency_ratio: float
    #: Digests of R and of S on a page.
    a_page: tuple[int, int]

    def partition(self, tuples: tuple[int, int], pages: tuple[int, int]) -> tuple[Traffic, PhaseCounts]:
        """Writes of both relations, of which so many pages are read, and the counts of joining all buckets."""
        a = bucket_division(*pages, self.memory, self.fudge)
        share, written = 1 / a.buckets, Traffic()
        for count, each in zip(tuples, self.a_page, strict=True):
            moved = round(a.buckets * file_pages(count, each, share))
            requests = round(a.buckets * file_pages(count, each * a.output, share))
            written += Traffic(requests, requests, moved)
        return written, self._join(a.buckets, tuples)

    def _join(self, buckets: int, tuples: tuple[int, int]) -> PhaseCounts:
        """Counts of joining all buckets; a bucket of R has so many pages only by chance."""
        (r_tuples, s_tuples), (r_page, s_page) = tuples, self.a_page
        s, total = file_pages(s_tuples, s_page, 1 / buckets), buckets * file_pages(r_tuples, r_page, 1 / buckets)
        moved = np.zeros(3)
        for r, chance in pages_by_chance(r_tuples, r_page, 1 / buckets):
            if math.ceil(r * exact(self.fudge)) >= self.memory:
                moved += buckets * chance * np.array(self._overfull(r, round(s), spreads=2 * buckets * r <= (buckets + 1) * total))
            elif r:
                moved += buckets * chance * np.array([1 + s, r + s, 0])
        requests, pages, written = (round(each) for each in moved.tolist())
        return PhaseCounts("join", Traffic(requests, requests, pages), Traffic(written, written, written))

    def _overfull(self, r: int, s: int, *, spreads: bool) -> tuple[int, int, int]:
        """Requests and pages read, and pages written, for a bucket joined by nested loops, or divided again if that moves fewer pages."""
        loops = nested_loops(r, s, self.memory, self.latency_ratio, self.fudge)
        chunks = loops.chunks(r, self.fudge)
        if not spreads or r + chunks * s <= 3 * (r + s):
            return chunks * (1 + ceil_div(s, loops.inner)), r + chunks * s, 0
        a = bucket_division(r, s, self.memory, self.fudge)
        written, join = self.partition((r * self.a_page[0], s * self.a_page[1]), (r, s))
        requests = ceil_div(r, a.input) + ceil_div(s, a.input) + join.reads.requests
        return requests, r + s + join.reads.pages, written.pages + join.writes.pages
