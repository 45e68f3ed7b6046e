"""No extension: what leaves memory goes to the disk, if that does not have it."""

from __future__ import annotations

from algorithms.extensions._lru_2 import lru_2
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, DROP, TO_DISK
from flashsim.storage.extension.state import Extension

TITLE = "no SSD"
key = lru_2


@lean_kernel
def evicted(ext: Extension, page: int, flags: int) -> int:
    """What the disk does not have goes there."""
    return TO_DISK if flags & DIRTY_PAGE else 0


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
