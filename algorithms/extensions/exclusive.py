"""Exclusive: a page is in memory or on the SSD, and never in both.

That a copy is given up when its page is read, and written once more when that leaves memory, is Koltsidas and Viglas', "The case for
flash-aware multi-level caching", Edinburgh, 2009, as Do, 2012, 3.5 tells it.  Its abstract calls the flash drive a read cache, and says
nothing of pages that were changed.  Chosen here: such a page is newer than on disk in memory as well, or on the SSD, from where a cleaner
writes it; and the page missed longest ago is replaced.
"""

from algorithms.extensions._flows import give_up, lru, write_back
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.design import DROP
from flashsim.storage.extension.state import Extension

TITLE = "exclusive"
WRITE_BACK = True
on_evict, on_modify, key = write_back, give_up, lru


@lean_kernel
def on_serve(ext: Extension, page: int, flags: int) -> int:
    return DROP


on_fetch = on_serve
