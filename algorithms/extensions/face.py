"""FaCE: pages of the SSD are a queue, and one that was read since it was queued gets a second chance.

What leaves memory is queued, unless the SSD holds just that; an older version of it is not valid any more (multi-version FIFO).  At the
head of the queue a page that was read stays for another round, one that is newer than on disk is written there, and all others are
given up, a group at a time (group second chance).  Source: Kang, Lee, Moon, "Flash-based extended cache for higher throughput and
faster recovery", PVLDB 5(11), 2012.

What differs: a page with a second chance stays in its frame and is not written once more; pages are written to frames one after the other,
but each by itself, and none is taken from memory to fill a group; what a checkpoint writes goes to the disk, and the SSD is not part of
recovery.
"""

from __future__ import annotations

from algorithms.extensions._flows import give_up, nothing, write_back
from flashsim.core.kernel import lean_kernel
from flashsim.storage.extension.manager import partition_of, turn_of
from flashsim.storage.extension.state import BEGIN, END, MARKS, READ_AGAIN, Extension

TITLE = "FaCE"
WRITE_BACK = ROTATES = True
evicted, fetched, modified = write_back, nothing, give_up


@lean_kernel
def served(ext: Extension, page: int, flags: int) -> int:
    """The page will have a second chance."""
    ext.pages[page, MARKS] |= READ_AGAIN
    return 0


@lean_kernel
def key(ext: Extension, page: int) -> int:
    """When it was queued, or a round later if it was read."""
    partition = partition_of(ext, page)
    frames = ext.partitions[partition, END] - ext.partitions[partition, BEGIN]
    return int(turn_of(ext, page) + (frames if ext.pages[page, MARKS] & READ_AGAIN else 0))
