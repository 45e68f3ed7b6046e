"""FaCE: pages of the SSD are a queue, and one that was read since it was queued gets a second chance.

What leaves memory is queued, unless the SSD holds just that; an older version of it is not valid any more (multi-version FIFO).  At the
head of the queue a page that was read stays for another round (second chance), one that is newer than on disk is written there, and all
others are given up.  Source: Kang, Lee, Moon, "Flash-based extended cache for higher throughput and faster recovery", PVLDB 5(11), 2012,
and "Flash as cache extension for online transactional workloads", VLDB Journal 25(5), 2016, of which the abstracts were at hand; marks and
groups are those of the public program "MySQL with FaCE" (FlashSQL, 2016).  That program queues only pages that are newer than on disk,
which is `clean=0`; that the paper queues others too is remembered, not read.

What differs: (1) there a group of pages is read from the head by one request, and written by another, those with a second chance first.
Here each page is written by itself, to frames one after the other, so that nothing is gained by few large writes; a group that waits until
it is full would hold back pages that clients may be waiting for.  (2) A page with a second chance stays in its frame, for nothing, and is
not written once more.  (3) No page is taken from memory to fill a group.  (4) What a checkpoint writes goes to the disk, and the SSD is not
part of recovery.
"""

from algorithms.extensions._flows import give_up, nothing, write_back
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import Parameter
from flashsim.storage.extension.design import DIRTY_PAGE
from flashsim.storage.extension.manager import partition_of, turn_of
from flashsim.storage.extension.state import BEGIN, END, FIRST_PARAMETER, MARKS, READ_AGAIN, Extension

TITLE = "FaCE"
WRITE_BACK = ROTATES = True
PARAMETERS = {"clean": Parameter(1, 0, 1, "whether pages that the disk has as well are queued")}
on_fetch, on_modify = nothing, give_up


@lean_kernel
def on_evict(ext: Extension, page: int, flags: int) -> int:
    return write_back(ext, page, flags) if flags & DIRTY_PAGE or ext.numbers[FIRST_PARAMETER] else 0


@lean_kernel
def on_serve(ext: Extension, page: int, flags: int) -> int:
    ext.pages[page, MARKS] |= READ_AGAIN
    return 0


@lean_kernel
def key(ext: Extension, page: int) -> int:
    """Time when the page was queued, or a round later if it was read."""
    partition = partition_of(ext, page)
    frames = ext.partitions[partition, END] - ext.partitions[partition, BEGIN]
    return int(turn_of(ext, page) + (frames if ext.pages[page, MARKS] & READ_AGAIN else 0))
