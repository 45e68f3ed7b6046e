"""The textbook's sort-merge: passes that read and write all, then a merge of two sorted files."""

from fractions import Fraction

from models.allocation.buffers import ExternalSortMergeAllocation
from models.allocation.external_sort_merge import external_sort_merge
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, in_parts

ALLOCATION = ExternalSortMergeAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory."""
    return external_sort_merge(sizes.memory)


def counts(sizes: Sizes, a: ExternalSortMergeAllocation) -> tuple[PhaseCounts, ...]:
    """Li et al. 2009, section II: 1 + ceil(log_(B-1) ceil(N / B)) passes of 2 N pages a file, and a merge of the sorted files.

    Runs are read and written whole.  A pass divides memory evenly between the runs that it merges at a time and its output, the merge
    between both files and equal keys of R; both seek at every request.
    """
    reads, writes = Traffic(), Traffic()
    for pages, temporary in ((sizes.r, sizes.r_temporary), (sizes.s, sizes.s_temporary)):
        runs = ceil_div(pages, a.workspace)
        reads += Traffic(1, runs, pages)
        writes += Traffic(1, runs, temporary)
        while runs > 1:
            merged = ceil_div(runs, a.fan_in)
            share = sizes.memory // (ceil_div(runs, merged) + 1)
            moved = in_parts(temporary, share, runs), in_parts(temporary, share, merged)
            reads += Traffic(moved[0], moved[0], temporary)
            writes += Traffic(moved[1], moved[1], temporary)
            runs = merged
    block = Fraction((sizes.last_phase or sizes.memory) // 3)
    merge = in_parts(sizes.r_temporary, block, 1) + in_parts(sizes.s_temporary, block, 1)
    return PhaseCounts("sort", reads, writes), PhaseCounts("merge", Traffic(merge, merge, sizes.r_temporary + sizes.s_temporary))
