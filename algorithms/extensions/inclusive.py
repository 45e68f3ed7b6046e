"""Inclusive: what is in memory is on the SSD too.

That a page goes to both when it is read from disk is Koltsidas and Viglas', "The case for flash-aware multi-level caching", 2009, as Do,
2012, 3.5 tells it, who finds it somewhat like TAC's flow of pages.  Not told there, and chosen here: a page that is written keeps its
frame, whose copy is not valid until the page is written to disk and SSD; and the page missed longest ago is replaced, which may still be in
memory: so a page that was referenced there again and again may lose its copy, and gets one when it leaves.
"""

from algorithms.extensions._flows import lru, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, INVALIDATE, TO_DISK, TO_SSD
from flashsim.storage.extension.state import Extension

TITLE = "inclusive"
on_serve, key = nothing, lru


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    """Copy pages that the SSD lost or never had to the SSD, and pages that are newer to the disk as well."""
    return TO_SSD | (TO_DISK if flags & DIRTY_PAGE else 0)


@lean_kernel
def on_fetch(ext: Extension, page: int, flags: int) -> int:
    """Every page that comes from disk goes to the SSD at once."""
    return TO_SSD


@lean_kernel
def on_modify(ext: Extension, page: int) -> int:
    return INVALIDATE
