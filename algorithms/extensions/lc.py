"""Lazy cleaning: a page that is newer than on disk goes to the SSD alone, and a cleaner writes it to disk later.

While a sharp checkpoint is taken no such page is taken, and what a checkpoint writes goes to the disk alone.  Source: Do, 2012, 3.2.3.3 and
3.3.2.
"""

from algorithms.extensions._flows import give_up, is_admitted, lru_2, must_reach_the_disk, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, TO_DISK, TO_SSD
from flashsim.storage.extension.state import Extension

TITLE = "LC, lazy cleaning"
WRITE_BACK = True
on_fetch, on_serve, on_modify, key = nothing, nothing, give_up, lru_2


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    """A page that was read at random goes to the SSD, whatever the disk has."""
    if is_admitted(ext, flags) and not must_reach_the_disk(ext, flags):
        return TO_SSD
    return TO_DISK if flags & DIRTY_PAGE else 0
