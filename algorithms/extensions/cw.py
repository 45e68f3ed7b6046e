"""Clean-write: only pages that are the same as on disk go to the SSD.

Source: Do, 2012, 3.2.3.1.
"""

from algorithms.extensions._flows import give_up, is_admitted, lru_2, nothing
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DIRTY_PAGE, TO_DISK, TO_SSD
from flashsim.storage.extension.state import Extension

TITLE = "CW, clean-write"
on_fetch, on_serve, on_modify, key = nothing, nothing, give_up, lru_2


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    """A clean page that was read at random goes to the SSD."""
    if flags & DIRTY_PAGE:
        return TO_DISK
    return TO_SSD if is_admitted(ext, flags) else 0
