"""Fully associative sector translation (FAST): log blocks take what is written anew to any data block of their plane.

A page goes to its offset in the data block as long as nothing at or behind that offset was written.  Of the log blocks of a plane one is
for sequential writes: page 0 of a logical block opens it, and those that follow page by page are programmed there.  Any other write to that
logical block, or page 0 of another, merges it: it takes in the pages behind, if there are any, and becomes the data block (a switch or a
partial merge).  The other log blocks are for random writes, and filled one after another.  When all are full, the one that was opened first
is reclaimed: each logical block that has a valid page in it is merged, with all its pages from wherever they lie, into a new block (a full
merge).  So a write may wait for as many full merges as a block has pages.

References
----------
S.-W. Lee, D.-J. Park, T.-S. Chung, D.-H. Lee, S. Park, H.-J. Song, "A log buffer-based flash translation layer using fully-associative
sector translation", ACM Transactions on Embedded Computing Systems 6(3), 2007.
"""

from __future__ import annotations

from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import READ, TRIM, Integers
from flashsim.ssd.ftl._merging import (
    DATA,
    LOGICAL_BLOCKS,
    check_merging,
    discard,
    fields_of,
    logical_block_of,
    logical_blocks,
    merge,
    merging_table,
    offset_of,
    pool_of,
    take_block,
    write_page,
)
from flashsim.ssd.ftl._merging_recovery import recover_merging
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.collection import next_valid
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import (
    DATA_BLOCK,
    HOST,
    LOG_BLOCK,
    OWNER,
    READ_PAGE,
    VALID,
    WRITTEN,
    ZERO_PAGE,
    Narrow,
    lookup,
    plan_row,
)
from flashsim.ssd.state.geometry import PAGES_PER_BLOCK, POOLS, READ_ONLY
from flashsim.ssd.state.pools import drop_page

COLLECTS = False
USES = ("log_blocks",)
# What is kept of each plane: the log block for sequential writes, and the logical block that it belongs to (-1: none); the number of the
# last log block for random writes (-1: none); and these, the one that was opened first in front.  There is room for one more than they may
# be, for a drive that runs out of blocks in a merge.
SEQUENTIAL, OWNED_BY, LAST, RANDOM = range(4)


def check(parameters: SsdParameters) -> None:
    """Refuse fewer than two log blocks and what no layer that merges works with."""
    if parameters.log_blocks < 2:
        raise InvalidParameterError(
            "log_blocks", parameters.log_blocks, "ftl 'fast' needs at least 2 on a plane, one for sequential writes"
        )
    check_merging(parameters, "fast", parameters.log_blocks)


def plan_rows(parameters: SsdParameters) -> int:
    """A merge for every page of a log block and for the sequential one, the erase of the log block, the write and its fetch."""
    merges = min(parameters.pages_per_block, logical_blocks(parameters)) + 1
    return merges * (parameters.pages_per_block + 2) + 3


def own_table(parameters: SsdParameters) -> Integers:
    """Data blocks and log blocks."""
    return merging_table(parameters, RANDOM + parameters.log_blocks)


def recover(state: DriveState) -> None:
    """Merge what is in log blocks; none is in use."""
    recover_merging(state)


@lean_kernel
def translate(
    operation: int,
    page: int,
    partial: int,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    own: Integers,
    plan: Integers,
    victim: Any,
    opens: Any,
    levels: Any,
) -> int:
    """Plan the flash operations of one logical page."""
    here = lookup(mapping, page)
    if operation == READ:
        return plan_row(plan, 0, READ_PAGE if here >= 0 else ZERO_PAGE, here, -1, page, 0, -1, HOST, -1)
    if operation == TRIM:
        drop_page(control, pools, blocks, mapping, page)
        return 0
    logical, offset, row = logical_block_of(control, own, page), offset_of(control, page), 0
    pool, at = pool_of(pools, own, logical), fields_of(control, own, logical)
    if own[DATA + logical] < 0:
        own[DATA + logical] = take_block(control, pools, blocks, opens, pool, DATA_BLOCK)
    follows = own[at + OWNED_BY] == logical and offset == blocks[WRITTEN, own[at + SEQUENTIAL]]
    if own[at + OWNED_BY] == logical and not follows:
        row = end_sequential(control, pools, blocks, mapping, pages, opens, own, plan, row, at)
    target = own[at + SEQUENTIAL] if follows else own[DATA + logical]
    if offset < blocks[WRITTEN, target]:
        if offset == 0:
            row = end_sequential(control, pools, blocks, mapping, pages, opens, own, plan, row, at)
            own[at + SEQUENTIAL] = target = take_block(control, pools, blocks, opens, pool, LOG_BLOCK)
            own[at + OWNED_BY] = logical
        else:
            row = make_room_in_logs(control, pools, blocks, mapping, pages, opens, own, plan, row, pool, at)
            target = own[at + RANDOM + own[at + LAST]]
            offset = blocks[WRITTEN, target]
    return write_page(control, pools, blocks, mapping, pages, plan, row, page, partial, target * control[PAGES_PER_BLOCK] + offset)


@lean_kernel
def make_room_in_logs(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, own: Integers, plan: Integers,
    row: int, pool: int, at: int,
) -> int:  # fmt: skip
    """See to it that the last log block for random writes of a plane has a free page; the number of rows."""
    last = own[at + LAST]
    if last >= 0 and blocks[WRITTEN, own[at + RANDOM + last]] < control[PAGES_PER_BLOCK]:
        return row
    most = (own.size - DATA) // control[POOLS] - own[LOGICAL_BLOCKS] - RANDOM - 1
    if last + 1 == most and not control[READ_ONLY]:
        row = reclaim(control, pools, blocks, mapping, pages, opens, own, plan, row, at)
    own[at + LAST] += 1
    own[at + RANDOM + own[at + LAST]] = take_block(control, pools, blocks, opens, pool, LOG_BLOCK)
    return row


@lean_kernel
def reclaim(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, own: Integers, plan: Integers,
    row: int, at: int,
) -> int:  # fmt: skip
    """Plan to empty and erase the log block that was opened first, but stop if the drive runs out of blocks; the number of rows."""
    log = own[at + RANDOM]
    place = next_valid(control, blocks, mapping, pages, log * control[PAGES_PER_BLOCK])
    while place >= 0 and not control[READ_ONLY]:
        logical = logical_block_of(control, own, int(pages[place, OWNER]) - 1)
        if logical == own[at + OWNED_BY]:
            row = end_sequential(control, pools, blocks, mapping, pages, opens, own, plan, row, at)
        else:
            row = merge(control, pools, blocks, mapping, pages, opens, own, plan, row, logical, -1)
        place = next_valid(control, blocks, mapping, pages, place)
    if blocks[VALID, log] == 0:
        row = discard(control, pools, blocks, plan, row, log)
        for entry in range(at + RANDOM, at + RANDOM + own[at + LAST]):
            own[entry] = own[entry + 1]
        own[at + LAST] -= 1
    return row


@lean_kernel
def end_sequential(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, own: Integers, plan: Integers,
    row: int, at: int,
) -> int:  # fmt: skip
    """Plan to merge the log block for sequential writes, if there is one, with its data block; the number of rows."""
    if own[at + OWNED_BY] >= 0:
        row = merge(control, pools, blocks, mapping, pages, opens, own, plan, row, own[at + OWNED_BY], own[at + SEQUENTIAL])
        own[at + SEQUENTIAL] = own[at + OWNED_BY] = -1
    return row
