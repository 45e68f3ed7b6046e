"""Clean-write: only pages that are the same as on disk go to the SSD.

Source: Do, 2012, 3.2.3.1.
"""

from __future__ import annotations

from algorithms.extensions._lru_2 import lru_2
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, DROP, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import FILL, Extension

TITLE = "CW, clean-write"
key = lru_2


@lean_kernel
def evicted(ext: Extension, page: int, flags: int) -> int:
    """A clean page that was read at random goes to the SSD."""
    if flags & DIRTY_PAGE:
        return TO_DISK
    return TO_SSD if ext.numbers[FILL] > 0 or not flags & SEQUENTIAL else 0


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
