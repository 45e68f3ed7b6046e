"""Dual-write: a page that is newer than on disk goes to the disk and to the SSD, also when a checkpoint writes it.

Source: Do, 2012, 3.2.3.2 and 3.3.2.
"""

from algorithms.extensions._flows import give_up, is_admitted, lru_2, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, TO_DISK, TO_SSD
from flashsim.storage.extension.state import Extension

TITLE = "DW, dual-write"
on_fetch, on_serve, on_modify, key = nothing, nothing, give_up, lru_2


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    """A page that was read at random goes to the SSD, and to the disk if that does not have it."""
    return (TO_DISK if flags & DIRTY_PAGE else 0) | (TO_SSD if is_admitted(ext, flags) else 0)
