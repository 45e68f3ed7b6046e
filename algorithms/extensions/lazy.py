"""Lazy: what leaves memory goes to the SSD, and a copy there stays when its page is read.

That a page reaches the SSD no sooner than it leaves memory, however it was read, is Koltsidas and Viglas', "The case for flash-aware
multi-level caching", Edinburgh, 2009, as Do, 2012, 3.5 tells it, who finds it somewhat like LC.  Its abstract calls the flash drive a read
cache, and how pages that were changed reach the disk is told in neither: it is as in LC, and the page missed longest ago is replaced.
"""

from algorithms.extensions._flows import give_up, lru, nothing, write_back

TITLE = "lazy"
WRITE_BACK = True
on_evict, on_fetch, on_serve, on_modify, key = write_back, nothing, nothing, give_up, lru
