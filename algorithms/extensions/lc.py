"""Lazy cleaning: a page that is newer than on disk goes to the SSD alone, and a cleaner writes it to disk later.

While a sharp checkpoint is taken no such page is taken.  Source: Do, 2012, 3.2.3.3 and 3.3.2.
"""

from __future__ import annotations

from algorithms.extensions._lru_2 import lru_2
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, DROP, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import CHECKPOINT, FILL, Extension

TITLE = "LC, lazy cleaning"
key = lru_2


@lean_kernel
def evicted(ext: Extension, page: int, flags: int) -> int:
    """A page that was read at random goes to the SSD, whatever the disk has."""
    to_disk = TO_DISK if flags & DIRTY_PAGE else 0
    if ext.numbers[CHECKPOINT] and to_disk:
        return TO_DISK
    return TO_SSD if ext.numbers[FILL] > 0 or not flags & SEQUENTIAL else to_disk


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
