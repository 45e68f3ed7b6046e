"""Fully associative sector translation (FAST): log blocks take what is written anew to any data block of their plane.

A page goes to its offset in the data block as long as nothing at or behind that offset was written.  Of the log blocks of a plane one is
for sequential writes: page 0 of a logical block opens it, and those that follow page by page are programmed there.  Any other write to that
logical block, or page 0 of another, merges it: it takes in the pages behind, if there are any, and becomes the data block (a switch or a
partial merge).  The other log blocks are for random writes, and filled one after another.  When all are full, the one that was opened first
is reclaimed: each logical block that has a valid page in it is merged, with all its pages from wherever they lie, into a new block (a full
merge).  So a write may wait for as many full merges as a block has pages.

Source: S.-W. Lee, D.-J. Park, T.-S. Chung, D.-H. Lee, S. Park, H.-J. Song, "A log buffer-based flash translation layer using
fully-associative sector translation", ACM Transactions on Embedded Computing Systems 6(3), 2007.
"""

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import WRITE, Integers
from flashsim.ssd.ftl import _merging as merging
from flashsim.ssd.ftl._merging import DATA, LOGICAL_BLOCKS
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.collection import next_valid
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import DATA_BLOCK, LOG_BLOCK
from flashsim.ssd.state.pools import read_or_trim

COLLECTS = False
USES = ("log_blocks",)
# What is kept of each plane: the log block for sequential writes, and the logical block that it belongs to (-1: none); the number of the
# last log block for random writes (-1: none); and these, the one that was opened first in front.  There is room for one more than they may
# be, for a drive that runs out of blocks in a merge.
SEQUENTIAL, OWNED_BY, LAST, RANDOM = range(4)


def check(parameters: SsdParameters) -> None:
    if parameters.log_blocks < 2:
        raise InvalidParameterError(
            "log_blocks", parameters.log_blocks, "ftl 'fast' needs at least 2 on a plane, one for sequential writes"
        )
    merging.check_merging(parameters, "fast", parameters.log_blocks)


def plan_rows(parameters: SsdParameters) -> int:
    """A merge for every page of a log block and for the sequential one, the erase of the log block, the write and its fetch."""
    merges = min(parameters.pages_per_block, merging.logical_blocks(parameters)) + 1
    return merges * (parameters.pages_per_block + 2) + 3


def own_table(parameters: SsdParameters) -> Integers:
    return merging.merging_table(parameters, RANDOM + parameters.log_blocks)


recover = merging.recover_merging


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    if operation != WRITE:
        return read_or_trim(flash, operation, page)
    logical, offset, row = merging.logical_block_of(flash, page), merging.offset_of(flash.control, page), 0
    pool, at = merging.pool_of(flash, logical), merging.fields_of(flash, logical)
    if flash.own[DATA + logical] < 0:
        flash.own[DATA + logical] = merging.take_block(flash, policies, pool, DATA_BLOCK)
    follows = flash.own[at + OWNED_BY] == logical and offset == flash.blocks[flash.own[at + SEQUENTIAL]].written
    if flash.own[at + OWNED_BY] == logical and not follows:
        row = end_sequential(flash, policies, row, at)
    target = flash.own[at + SEQUENTIAL] if follows else flash.own[DATA + logical]
    if offset < flash.blocks[target].written:
        if offset == 0:
            row = end_sequential(flash, policies, row, at)
            flash.own[at + SEQUENTIAL] = target = merging.take_block(flash, policies, pool, LOG_BLOCK)
            flash.own[at + OWNED_BY] = logical
        else:
            row = make_room_in_logs(flash, policies, row, pool, at)
            target = flash.own[at + RANDOM + flash.own[at + LAST]]
            offset = flash.blocks[target].written
    return merging.write_page(flash, row, page, partial, target * flash.control.pages_per_block + offset)


@lean_kernel
def make_room_in_logs(flash: Flash, policies: Policies, row: int, pool: int, at: int) -> int:
    """See to it that the last log block for random writes of a plane has a free page; the number of rows."""
    last = flash.own[at + LAST]
    if last >= 0 and flash.blocks[flash.own[at + RANDOM + last]].written < flash.control.pages_per_block:
        return row
    most = (flash.own.size - DATA) // flash.control.pools - flash.own[LOGICAL_BLOCKS] - RANDOM - 1
    if last + 1 == most and not flash.control.read_only:
        row = reclaim(flash, policies, row, at)
    flash.own[at + LAST] += 1
    flash.own[at + RANDOM + flash.own[at + LAST]] = merging.take_block(flash, policies, pool, LOG_BLOCK)
    return row


@lean_kernel
def reclaim(flash: Flash, policies: Policies, row: int, at: int) -> int:
    """Plan to empty and erase the log block that was opened first, but stop if the drive runs out of blocks; the number of rows."""
    log = flash.own[at + RANDOM]
    place = next_valid(flash, log * flash.control.pages_per_block)
    while place >= 0 and not flash.control.read_only:
        logical = merging.logical_block_of(flash, int(flash.pages[place].owner) - 1)
        in_order = logical == flash.own[at + OWNED_BY]
        row = end_sequential(flash, policies, row, at) if in_order else merging.merge(flash, policies, row, logical, -1)
        place = next_valid(flash, place)
    if flash.blocks[log].valid == 0:
        row = merging.discard(flash, row, log)
        for entry in range(at + RANDOM, at + RANDOM + flash.own[at + LAST]):
            flash.own[entry] = flash.own[entry + 1]
        flash.own[at + LAST] -= 1
    return row


@lean_kernel
def end_sequential(flash: Flash, policies: Policies, row: int, at: int) -> int:
    """Plan to merge the log block for sequential writes, if there is one, with its data block; the number of rows."""
    if flash.own[at + OWNED_BY] >= 0:
        row = merging.merge(flash, policies, row, flash.own[at + OWNED_BY], flash.own[at + SEQUENTIAL])
        flash.own[at + SEQUENTIAL] = flash.own[at + OWNED_BY] = -1
    return row
