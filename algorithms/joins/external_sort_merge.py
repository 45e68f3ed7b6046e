"""External sort-merge join as textbooks have it (`algorithms.sorting.external`).

Source: Li, On, Xu, Choi and Hu, "DigestJoin" (MDM 2009), section II, the join called Basic in section IV.
"""

from algorithms.joins.base import JoinParameters, settle
from algorithms.sorting.external import join_sorted
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from models.allocation.buffers import Allocation, ExternalSortMergeAllocation
from models.allocation.divisions import external_sort_merge

#: In `models.join_costs`.
FORMULA = "external-sort-merge"
#: A page of each sorted file, and one for tuples of R that have the same key.
STREAMS_IN = 3


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory."""
    return external_sort_merge(parameters.memory)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S; R is the smaller.

    Each file is sorted in 1 + ceil(log_(B-1) ceil(N / B)) passes that read and write its N pages; the last one writes too, and the
    sorted files are then read once more.  What stays in memory once it is sorted (`pages_kept`) is neither written nor read again.
    """
    shares = settle(r, s, parameters, allocation, ExternalSortMergeAllocation, allocate)
    return join_sorted(r, s, shares, parameters.memory, parameters.last_phase, page_io=parameters.page_io)
