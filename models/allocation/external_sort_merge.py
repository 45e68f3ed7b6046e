"""Division of the textbook's sort-merge's buffers."""

from models.allocation.bounds import too_small
from models.allocation.buffers import ExternalSortMergeAllocation

#: Two runs and an output buffer.
_LEAST = 3


def external_sort_merge(memory: int) -> ExternalSortMergeAllocation:
    """Runs of B pages, merged B - 1 at a time, with B pages of memory (Li et al. 2009, section II)."""
    if memory < _LEAST:
        raise too_small(memory, f"external sort-merge needs at least {_LEAST}")
    return ExternalSortMergeAllocation(memory, memory - 1)


def pages_kept(r_pages: int, s_pages: int, workspace: int, memory: int) -> tuple[int, int]:
    """Sorted pages of R and of S that stay in memory until they are merged, where the merge has `memory` pages; R is the smaller.

    A file that is sorted at once need not be written: both stay if memory holds both.  Otherwise R stays, sorted after S, and S is read
    back through what R leaves, which is a page at least: of R that takes all of memory the last page is written.

    Examples
    --------
    >>> [pages_kept(4, s, 10, 10) for s in (6, 7)], pages_kept(10, 12, 10, 10), pages_kept(11, 12, 10, 10)
    ([(4, 6), (4, 0)], (9, 0), (0, 0))
    """
    if s_pages <= workspace and r_pages + s_pages <= memory:
        return r_pages, s_pages
    return (min(r_pages, memory - 1), 0) if r_pages <= min(workspace, memory) else (0, 0)
