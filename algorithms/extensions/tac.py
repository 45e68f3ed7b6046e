"""Temperature-aware caching: a page goes to the SSD right after it has come from disk, if its extent is warmer than the coldest one there.

The temperature of an extent of 32 pages grows by one with each miss in memory.  A copy whose page is modified stays, not valid, until its
frame is replaced or the page is evicted and written once more.  A page that is read to be written is modified before its copy could be
written, and is never cached.

Source: Canim et al., "SSD bufferpool extensions for database systems", PVLDB 3(2), 2010, as Do, 2012, 3.2.4 and 3.4.2 tells it.
"""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.storage.extension.design import DIRTY_PAGE, FOR_UPDATE, INVALIDATE, TO_DISK, TO_SSD
from flashsim.storage.extension.state import FRAME, STATUS, VALID, Extension

TITLE = "TAC, temperature-aware caching"
_EXTENT = 32


@lean_kernel
def _warm(ext: Extension, page: int) -> int:
    extent = 64 + (page - FIRST_PAGE) // _EXTENT
    ext.words[extent] += 1
    return int(ext.words[extent])


@lean_kernel
def evicted(ext: Extension, page: int, flags: int) -> int:
    """What the disk does not have goes there, and over a copy that is not valid any more."""
    if not flags & DIRTY_PAGE:
        return 0
    return TO_DISK | (TO_SSD if ext.pages[page, FRAME] and not ext.pages[page, STATUS] & VALID else 0)


@lean_kernel
def fetched(ext: Extension, page: int, flags: int) -> int:
    """Warmer than the coldest page, or while there is room."""
    _warm(ext, page)
    return 0 if flags & FOR_UPDATE else TO_SSD


@lean_kernel
def served(ext: Extension, page: int, flags: int) -> int:
    """Its extent is warmer."""
    _warm(ext, page)
    return 0


@lean_kernel
def modified(ext: Extension, page: int) -> int:
    """The copy stays where it is."""
    return INVALIDATE


@lean_kernel
def key(ext: Extension, page: int) -> int:
    """The temperature of its extent."""
    return int(ext.words[64 + (page - FIRST_PAGE) // _EXTENT])
