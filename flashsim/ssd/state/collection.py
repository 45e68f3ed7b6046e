"""Garbage collection: when a pool collects, how its victims are emptied, whole or in slices, and when wear levelling takes its turn.

`docs/decisions/0006` says why one victim a write suffices.  Policies that choose blindly may hit a block without an invalid page: it is
copied all the same, and the policy asked again; after `flashsim.ssd.gc.base` ROUNDS of them the block with the fewest valid pages is taken.
"""

from __future__ import annotations

from typing import Any

from flashsim.core.kernel import lean_kernel
from flashsim.core.prefetch import prefetch
from flashsim.core.request import Integers
from flashsim.ssd.state.flash_array import (
    BAD_VICTIM,
    CLOSED_BLOCK,
    COLLECTING,
    ERASE_BLOCK,
    FETCH_PAGE,
    FREE_PAGES,
    GC,
    MOVE_PAGE,
    OWNER,
    STATE,
    STORE_PAGE,
    VALID,
    VICTIM,
    VICTIM_CAUSE,
    VICTIM_PAGE,
    WEAR,
    WRITTEN,
    Narrow,
    lookup,
    plan_row,
)
from flashsim.ssd.state.geometry import (
    BROKEN,
    BROKEN_LEVELS,
    BROKEN_VICTIM,
    GC_ROUNDS,
    LEAST_PAGES,
    PAGES_PER_BLOCK,
    READ_ONLY,
    SHARED,
    SLICING,
    START_PAGES,
    STOP_PAGES,
    STREAMS,
    block_of,
    die_of_page,
    pool_of_block,
)
from flashsim.ssd.state.pools import (
    collector_of,
    drop_page,
    emptiest_block,
    next_pool,
    place_page,
    recycle_block,
    takes_writes,
    withdraw_block,
)


@lean_kernel
def move_page(
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    opens: Any,
    plan: Integers,
    row: int,
    pool: int,
    flash_page: int,
    cause: int,
) -> int:
    """Plan to copy the valid page at `flash_page` into the stream for moved pages of a pool; the number of rows.

    Within a die that is one operation, between dies a fetch and a store.
    """
    page = int(pages[flash_page, OWNER]) - 1
    block = drop_page(control, pools, blocks, mapping, page)
    target = place_page(control, pools, blocks, mapping, pages, opens, pool, control[STREAMS] - 1, page)
    if die_of_page(control, target) == die_of_page(control, flash_page):
        return plan_row(plan, row, MOVE_PAGE, target, flash_page, page, 0, -1, cause, -1)
    row = plan_row(plan, row, FETCH_PAGE, flash_page, -1, page, 0, -1, cause, -1)
    return plan_row(plan, row, STORE_PAGE, target, flash_page, page, 0, block, cause, row - 1)


@lean_kernel
def next_valid(control: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, flash_page: int) -> int:
    """The first valid page of a block at `flash_page` or after it, or -1."""
    block = block_of(control, flash_page)
    end = block * control[PAGES_PER_BLOCK] + blocks[WRITTEN, block]
    while flash_page < end:
        page = int(pages[flash_page, OWNER]) - 1
        if page >= 0 and lookup(mapping, page) == flash_page:
            return flash_page
        flash_page += 1
    return -1


@lean_kernel
def is_due(control: Integers, pools: Integers, blocks: Integers, collector: int) -> bool:
    """Whether to reclaim a victim: free pages ran low, or more are wanted once collection has begun, and something is to be gained."""
    free = pools[FREE_PAGES, collector]
    if free <= control[START_PAGES]:
        pools[COLLECTING, collector] = 1
    elif pools[COLLECTING, collector] != 0:
        emptiest = emptiest_block(control, pools, blocks, collector)
        gains = emptiest >= 0 and blocks[VALID, emptiest] < control[PAGES_PER_BLOCK]
        pools[COLLECTING, collector] = gains and free <= control[STOP_PAGES]
    return pools[COLLECTING, collector] != 0


@lean_kernel
def is_closed(control: Integers, blocks: Integers, collector: int, block: int) -> bool:
    """Whether a number that a policy returned is that of a closed block which counts in this column."""
    if block < 0 or block >= blocks.shape[1] or blocks[STATE, block] != CLOSED_BLOCK:
        return False
    return collector_of(control, pool_of_block(control, block)) == collector


@lean_kernel
def choose(control: Integers, pools: Integers, blocks: Integers, victim: Any, collector: int, rounds_left: int) -> int:
    """The block to reclaim next: the policy's, or the emptiest after its last round; BAD_VICTIM if the policy breaks its contract."""
    chosen = victim(control, pools, blocks, collector)
    closed = is_closed(control, blocks, collector, chosen)
    if closed and (rounds_left > 0 or blocks[VALID, chosen] < control[PAGES_PER_BLOCK]):
        return chosen
    if closed and control[GC_ROUNDS] > 1:
        return emptiest_block(control, pools, blocks, collector)
    control[BROKEN] = BROKEN_VICTIM
    return BAD_VICTIM


@lean_kernel
def begin(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, collector: int, block: int, cause: int
) -> None:
    """Make a closed block the one that is being emptied; where its pages are mapped, which is all over the map, will be looked up soon."""
    withdraw_block(control, pools, blocks, block)
    first = block * control[PAGES_PER_BLOCK]
    pools[VICTIM, collector] = block
    pools[VICTIM_PAGE, collector] = first
    pools[VICTIM_CAUSE, collector] = cause
    for flash_page in range(first, first + blocks[WRITTEN, block]):
        prefetch(mapping, int(pages[flash_page, OWNER]) - 1)


@lean_kernel
def pace(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """How many pages of the victim to move now: all, or in slices as many as let free pages last until it is empty."""
    valid = blocks[VALID, pools[VICTIM, collector]]
    if not control[SLICING]:
        return valid
    spare = pools[FREE_PAGES, collector] - control[LEAST_PAGES] - valid
    return max(1, -(-valid // max(1, spare)))


@lean_kernel
def empty_victim(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, plan: Integers, row: int,
    pool: int, collector: int,
) -> int:  # fmt: skip
    """Plan the next moves of the victim, and its erase once it is empty; the number of rows."""
    block, cause = pools[VICTIM, collector], pools[VICTIM_CAUSE, collector]
    if control[SHARED] and not takes_writes(control, pools, pool):  # victims before used up its free blocks
        pool = next_pool(control, pools, 0)
    for _ in range(pace(control, pools, blocks, collector)):
        flash_page = next_valid(control, blocks, mapping, pages, pools[VICTIM_PAGE, collector])
        if flash_page < 0:
            break
        row = move_page(control, pools, blocks, mapping, pages, opens, plan, row, pool, flash_page, cause)
        pools[VICTIM_PAGE, collector] = flash_page + 1
    if blocks[VALID, block] == 0:
        pools[VICTIM, collector] = -1
        recycle_block(control, pools, blocks, block)
        row = plan_row(plan, row, ERASE_BLOCK, block, -1, -1, 0, -1, cause, -1)
    return row


@lean_kernel
def make_room(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, plan: Integers, row: int, victim: Any,
    opens: Any, levels: Any, pool: int,
) -> int:  # fmt: skip
    """Plan what garbage collection and wear levelling do before a pool takes a write; the number of rows, or BAD_VICTIM.

    Once READ_ONLY is set nothing more is reclaimed; the write in hand still fits what the pool has free.
    """
    collector = collector_of(control, pool)
    rounds_left, enough = control[GC_ROUNDS], False
    while not control[READ_ONLY] and not enough:
        if pools[VICTIM, collector] < 0:
            if not is_due(control, pools, blocks, collector):
                break
            rounds_left = max(0, rounds_left - 1)
            chosen = choose(control, pools, blocks, victim, collector, rounds_left)
            if chosen < 0:
                return BAD_VICTIM
            begin(control, pools, blocks, mapping, pages, collector, chosen, GC)
        cause, free = pools[VICTIM_CAUSE, collector], pools[FREE_PAGES, collector]
        row = empty_victim(control, pools, blocks, mapping, pages, opens, plan, row, pool, collector)
        if pools[VICTIM, collector] >= 0:
            break
        enough = pools[FREE_PAGES, collector] > (control[LEAST_PAGES] if control[SLICING] else free)
        cold = levels(control, pools, blocks, collector) if cause == GC and enough and not control[READ_ONLY] else -1
        if cold >= 0 and not is_closed(control, blocks, collector, cold):
            control[BROKEN] = BROKEN_LEVELS
        elif cold >= 0:
            begin(control, pools, blocks, mapping, pages, collector, cold, WEAR)
            if not control[SLICING]:
                row = empty_victim(control, pools, blocks, mapping, pages, opens, plan, row, pool, collector)
    return row
