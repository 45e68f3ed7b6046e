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
