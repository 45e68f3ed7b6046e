"""The textbook's sort-merge: passes that read and write all but what fits in memory, then a merge of two sorted files."""

from fractions import Fraction

from models.allocation.buffers import ExternalSortMergeAllocation
from models.allocation.divisions import external_sort_merge, pages_kept
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, in_parts

ALLOCATION = ExternalSortMergeAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory."""
    return external_sort_merge(sizes.memory)


def counts(sizes: Sizes, a: ExternalSortMergeAllocation) -> tuple[PhaseCounts, ...]:
    """Li et al. 2009, section II: 1 + ceil(log_(B-1) ceil(N / B)) passes of 2 N pages a file, and a merge of the sorted files.

    What stays in memory (`models.allocation.divisions.pages_kept`) is read once and not written.

    Runs are read and written whole.  A pass divides memory evenly between the runs that it merges at a time and its output, the merge
    between both files and equal keys of R; both seek at every request.
    """
    reads, writes, memory = Traffic(), Traffic(), sizes.last_phase or sizes.memory
    kept, stored = pages_kept(sizes.r, sizes.s, a.workspace, memory), []
    for pages, temporary, stays in ((sizes.r, sizes.r_temporary, kept[0]), (sizes.s, sizes.s_temporary, kept[1])):
        runs = ceil_div(pages, a.workspace)
        reads += Traffic(1, runs, pages)
        stored.append(max(0, temporary - stays))
        writes += Traffic(min(1, stored[-1]), min(runs, stored[-1]), stored[-1])
        while runs > 1:
            merged = ceil_div(runs, a.fan_in)
            share = sizes.memory // (ceil_div(runs, merged) + 1)
            moved = in_parts(temporary, share, runs), in_parts(temporary, share, merged)
            reads += Traffic(moved[0], moved[0], temporary)
            writes += Traffic(moved[1], moved[1], temporary)
            runs = merged
    block = Fraction(memory - kept[0] if kept[0] else memory // 3)
    merge = sum(in_parts(pages, block, 1) for pages in stored)
    return PhaseCounts("sort", reads, writes), PhaseCounts("merge", Traffic(merge, merge, sum(stored)))
