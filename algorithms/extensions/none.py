"""No extension: what leaves memory goes to the disk, if that does not have it."""

from algorithms.extensions._flows import give_up, lru_2, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, TO_DISK
from flashsim.storage.extension.state import Extension

TITLE = "no SSD"
SSD = False
on_fetch, on_serve, on_modify, key = nothing, nothing, give_up, lru_2


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    return TO_DISK if flags & DIRTY_PAGE else 0
