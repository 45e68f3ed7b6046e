"""Dual-write: a page that is newer than on disk goes to the disk and to the SSD.

Source: Do, 2012, 3.2.3.2.
"""

from __future__ import annotations

from algorithms.extensions._lru_2 import lru_2
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, DROP, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import FILL, Extension

TITLE = "DW, dual-write"
key = lru_2


@lean_kernel
def evicted(ext: Extension, page: int, flags: int) -> int:
    """A page that was read at random goes to the SSD, and to the disk if that does not have it."""
    to_disk = TO_DISK if flags & DIRTY_PAGE else 0
    return to_disk | (TO_SSD if ext.numbers[FILL] > 0 or not flags & SEQUENTIAL else 0)


@lean_kernel
def fetched(ext: Extension, page: int, flags: int) -> int:
    """What comes from disk goes to memory alone."""
    return 0


@lean_kernel
def served(ext: Extension, page: int, flags: int) -> int:
    """A copy that has been read stays."""
    return 0


@lean_kernel
def modified(ext: Extension, page: int) -> int:
    """A copy that is not the newest any more is given up."""
    return DROP
