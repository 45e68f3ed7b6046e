"""The arrays of a drive's flash as one thing, which kernels take; `flashsim.ssd.state.flash_array` says what their rows and columns mean.

A block's fields lie together in memory: a write asks for seven of one block, and on large drives the table outgrows the processor's caches.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from flashsim.core.groups import group_type
from flashsim.core.records import MATRIX, VECTOR, RecordArray, record_dtype, record_of_type, table_type
from flashsim.core.request import OPERATIONS, Integers
from flashsim.core.spans import CAUSES
from flashsim.ssd.state.geometry import CONTROL

Narrow = npt.NDArray[np.int32]  #: The arrays with an entry a page are narrower than the others.


class PlannedOperation(NamedTuple):
    """A row of a plan, which has the flash operations of one logical page in order; -1 for what an operation has not."""

    kind: int
    place: int  #: A flash page, or the block to erase.
    #: Source of a move or a store; IN_SLC or less of what the host writes into the SLC cache.
    source: int
    logical: int
    write_id: int
    #: The block that holds the page's older version.
    superseded: int
    cause: int
    needs: int  #: The row of the plan that must have ended before.


PLAN = record_dtype(int32=" ".join(PlannedOperation._fields))


# A pool's free and spare blocks: how many, and the first of their rings; the pool of its number in the order of allocation; the operations
# that wait on a die or are at work there (row: the die).
_FREE = "free first_free spares first_spare order queued "
# The SLC cache of a pool: blocks that it has, the first of those that it filled, in their order, and of its own that are erased (-1: none).
_CACHE = "slc_blocks slc_oldest slc_free "
# What garbage collection looks at, in row 0 where pools share it: free pages (of free and active blocks), valid pages, whether it is at
# work, the block that it empties (-1: none), the next flash page to look at there, and why; the block that was freed last, and where static
# wear levelling looks next; the first of the closed blocks in the order in which they were closed (-1: none).  No closed block has fewer
# valid pages than `least_valid`.
_COLLECTED = "free_pages pool_valid collecting victim victim_page victim_cause freed wear_hand oldest least_valid"
POOL = record_dtype(int64=_FREE + _CACHE + _COLLECTED)
#: `written` is the page up to which the block is filled.  `erases` is what the block has gone through, `cycles` what was planned, `limit`
#: what it can take (0: no end).  `after` and `before` link a block in the free, the spare or the closed ring, `peer_after` and
#: `peer_before` in that of its count; `changed` is the number of the write up to which pages were placed in or lost from the closed block;
#: `slc` says that its flash holds one bit a cell.
BLOCK = record_dtype(int64="state valid peer_after peer_before changed written after before erases cycles limit slc")
#: One more than the logical page, 0 for none: the one that is mapped there, and the one that the page's spare area names.
FLASH_PAGE = record_dtype(int32="owner spare_owner")
#: The write buffer: how many pages it holds (0: there is none), how many entries may wait, how many leave at once when one more does (0: a
#: group), by what their collection is rounded, in 2^-32, how many wait, the oldest, the first unused row;
#: whether writes are acknowledged only when they are programmed; whether only parts of pages come there; whether it, or the controller's
#: own memory, loses in a power cut what it has acknowledged.
#: Of the pace of writes (`flashsim.ssd.state.pacing`): the time of a unit while the drive collects (0: there is no pace), how much work may
#: be owed, the host's share in 1/1000; the work that is owed, the time of a unit by the host's rate in a phase (0: there is none); since
#: when units of the host are counted, and how many; the last acknowledgement, and when the next may be.
_PACE = "unit_time debt_limit share floor_time debt pace since units last opens"
BUFFER = record_dtype(int64=f"places threshold batch rounding waiting oldest unused write_through coalescing volatile {_PACE}")
#: A page in the write buffer.  `stream` is that of its newest sectors, `sector_mask` has a bit for each sector that the buffer holds,
#: `write_id` is that of the newest of them, and `arrived` that of the newest that came over the link as a whole.  `filling` is the transfer
#: that is to bring the newest (-1: it has ended).  `after` and `before` link entries to a ring in the order in which they came, and `after`
#: unused rows; `next_in_bucket` links those of one hash, from `bucket` of the row of that number.
ENTRY = record_dtype(int64="page stream sector_mask write_id arrived filling after before next_in_bucket bucket")
#: A page that is programmed with others at once: whether only a part of it comes, and then the row of the plan that fetches the rest (-1:
#: none); its `write_id` (0: the next), and `entry` if it comes from the write buffer.
MEMBER = record_dtype(int64="page part fetch write_id entry")
#: Counters: commands and their bytes, and those that went on where the last one ended, by operation of the host; reads and writes of
#: programs inside the drive, their bytes, and bytes between host and memory; of partial writes, of the write buffer and of groups; then by
#: cause flash pages read and programmed, and blocks erased.
COUNTERS = np.dtype(
    [
        *((name, np.int64, len(OPERATIONS)) for name in ("commands", "bytes", "continued")),
        *((name, np.int64, 2) for name in ("internal_commands", "internal_bytes", "memory_bytes")),
        *((name, np.int64) for name in ("read_modify_write_reads", "buffer_read_hits", "buffer_overwrites")),
        *((name, np.int64) for name in ("padded_programs", "shared_reads", "read_retries", "slc_programs")),
        *((name, np.int64, len(CAUSES)) for name in ("reads", "programs", "erases")),
    ]
)
#: Durations and rules of the dies as in `SsdParameters` and `SsdTiming`; whether reads and programs do not all take the same time, and
#: whether nothing comes between a transfer to a die and the program behind it; a bit for each cause whose work takes no time.
TIMING = record_dtype(
    int64="read program erase transfer read_overhead write_overhead suspend_overhead read_priority suspend_program suspend_erase "
    "suspend_stop suspend_progress program_step program_long_step long_chance erase_step "
    "multi_plane cache_read cache_program continuation_latency continuation_limit continuation_pages "
    "unbroken levels read_levels program_levels erase_growth code_word retry retry_growth retry_time slc_read slc_program slc_idle "
    "free_causes"
)


class Flash(NamedTuple):
    """The state of a drive's flash, logical and physical."""

    control: RecordArray  #: CONTROL: geometry, and the scalars that allocation goes by.
    pools: RecordArray  #: POOL: planes as keepers of their blocks.
    #: The block that each of the two streams of a pool fills, its SLC cache, and each placement handle but the first, shape (pools, 2 +
    #: handles); -1 where none is open.
    active: Integers
    #: Rings of the closed blocks of a pool by their valid pages, shape (pools, pages of a block + 1): the one whose count changed longest
    #: ago (-1: none).
    by_valid: Integers
    blocks: RecordArray  #: BLOCK.
    mapping: Narrow  #: One more than the flash page of each logical page, 0 for none.
    pages: RecordArray  #: FLASH_PAGE, of each flash page.
    spare: Narrow  #: The write id of what each flash page holds: 0 erased, TORN unreadable.
    trimmed: Narrow  #: The write id of each logical page's last trim.
    own: Integers  #: The translation layer's own table.
    plan: RecordArray  #: PLAN.
    buffer: RecordArray  #: BUFFER (`flashsim.ssd.state.write_buffer`).
    entries: RecordArray  #: ENTRY.
    group: RecordArray  #: MEMBER, of each slot of a group.


#: An entry a page.
MAP = types.Array(types.int32, 1, "C")
FLASH = group_type(
    (
        record_of_type(CONTROL), table_type(POOL), MATRIX, MATRIX, table_type(BLOCK), MAP, table_type(FLASH_PAGE), MAP, MAP, VECTOR,
        table_type(PLAN), record_of_type(BUFFER), table_type(ENTRY), table_type(MEMBER),
    ),
    Flash,
)  # fmt: skip
