"""Sort-merge."""

from fractions import Fraction

from models.allocation.buffers import SortMergeAllocation
from models.allocation.divisions import sort_merge
from models.join_costs.base import PhaseCounts, Sizes, Traffic, ceil_div, in_parts

ALLOCATION = SortMergeAllocation


def allocate(sizes: Sizes, latency_ratio: float, access_ratio: float) -> SortMergeAllocation:
    """The buffers by Haas et al."""
    return sort_merge(sizes.r, sizes.s, sizes.memory, access_ratio, sizes.fudge)


def counts(sizes: Sizes, a: SortMergeAllocation) -> tuple[PhaseCounts, ...]:
    """TR section 4.  The second pass divides memory evenly, MPR = M / (NR_R + NR_S) pages a run, and seeks at every request.

    TR counts what memory holds in pages of the relation; where rows are fetched late, runs hold keys and row ids alone.
    """
    r, s = (sizes.r_temporary, sizes.s_temporary) if sizes.late else (sizes.r, sizes.s)
    r_runs, s_runs = a.runs(r, sizes.fudge), a.runs(s, sizes.fudge)
    temporary = sizes.r_temporary + sizes.s_temporary
    share = Fraction(sizes.memory, max(1, r_runs + s_runs))
    merges = in_parts(sizes.r_temporary, share, r_runs) + in_parts(sizes.s_temporary, share, s_runs)
    return (
        PhaseCounts(
            "sort",
            Traffic(2, ceil_div(sizes.r, a.input) + ceil_div(sizes.s, a.input), sizes.r + sizes.s),
            Traffic(2, ceil_div(sizes.r_temporary, a.output) + ceil_div(sizes.s_temporary, a.output), temporary),
        ),
        PhaseCounts("merge", Traffic(merges, merges, temporary)),
    )
