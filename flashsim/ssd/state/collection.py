"""Garbage collection: when a pool collects, how its victims are emptied, whole or in slices, and when wear levelling takes its turn.

`docs/decisions/0006` says why one victim a write suffices.  Policies that choose blindly may hit a block without an invalid page: it is
copied all the same, and the policy asked again; after `flashsim.ssd.gc.base` ROUNDS of them the block with the fewest valid pages is taken.
"""

from numba import types

from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.policies import Policies, function_in
from flashsim.core.records import VECTOR
from flashsim.core.spans import FOLD, GC, HOST, WEAR
from flashsim.ssd.gc.base import victim_of
from flashsim.ssd.state import pools, slc_cache
from flashsim.ssd.state.flash import FLASH, Flash
from flashsim.ssd.state.flash_array import (
    BAD_VICTIM,
    CLOSED_BLOCK,
    ERASE_BLOCK,
    FETCH_PAGE,
    IN_SLC,
    MOVE_PAGE,
    PROGRAM_PAGE,
    SLC_STREAM,
    STORE_PAGE,
    lookup,
    plan_row,
)
from flashsim.ssd.state.geometry import BROKEN_LEVELS, BROKEN_VICTIM, block_of, die_of_block, pool_of_block
from flashsim.ssd.state.pacing import note_victim
from flashsim.ssd.state.pools import collector_of, drop_page, emptiest_block, invalidate
from flashsim.ssd.wear.base import LEVELS, levels_of

# Few drives group pages or have an SLC cache: what only these need is compiled once, and called by its place behind the policies.  Such a
# call passes all arrays, and every kernel on the way to it takes them all: so those that each write goes through are inlined.
_OF_ROWS, _OF_ONE = types.int64(FLASH, VECTOR, types.int64, types.int64), types.int64(FLASH, VECTOR, types.int64)
fold_block_of, fold_idle_of, write_group_of = (
    function_in(place, types.FunctionType(signature)) for place, signature in enumerate((_OF_ROWS, _OF_ONE, _OF_ONE), LEVELS.place + 1)
)
#: How many flash pages ahead of a move the map's places are asked for: memory finds several at a time, but not a block's.
MOVES_AHEAD = 12


@inlined_kernel
def move_page(flash: Flash, policies: Policies, row: int, pool: int, flash_page: int, cause: int) -> int:
    """Plan to copy the valid page at `flash_page` into the stream for moved pages of a pool; the number of rows.

    Within a die that is one operation, between dies a fetch and a store.
    """
    page = int(flash.pages[flash_page].owner) - 1
    block = invalidate(flash, flash_page)
    target = pools.place_page(flash, policies, pool, flash.control.streams - 1, page)
    if die_of_block(flash.control, block) == pool // flash.control.planes:
        return plan_row(flash.plan, row, MOVE_PAGE, target, flash_page, page, 0, -1, cause, -1)
    row = plan_row(flash.plan, row, FETCH_PAGE, flash_page, -1, page, 0, -1, cause, -1)
    return plan_row(flash.plan, row, STORE_PAGE, target, flash_page, page, 0, block, cause, row - 1)


@inlined_kernel
def next_valid(flash: Flash, flash_page: int) -> int:
    """The first valid page of a block at `flash_page` or after it, or -1."""
    block = block_of(flash.control, flash_page)
    end = block * flash.control.pages_per_block + flash.blocks[block].written
    while flash_page < end and flash.pages[flash_page].owner == 0:
        flash_page += 1
    return flash_page if flash_page < end else -1


@inlined_kernel
def gains_room(flash: Flash, block: int) -> bool:
    """True if the valid pages of a closed block, moved, leave room for a group at least."""
    return flash.blocks[block].valid <= flash.control.pages_per_block - flash.control.group


@lean_kernel
def is_due(flash: Flash, collector: int) -> bool:
    """True if a victim should be reclaimed: free pages ran low, or collection has begun and aims at more, and something is to be gained."""
    free = flash.pools[collector].free_pages
    if free <= flash.control.start_pages:
        flash.pools[collector].collecting = 1
    elif flash.pools[collector].collecting != 0:
        emptiest = emptiest_block(flash, collector)
        gains = emptiest >= 0 and gains_room(flash, emptiest)
        flash.pools[collector].collecting = gains and free <= flash.control.stop_pages
    return flash.pools[collector].collecting != 0


@lean_kernel
def is_closed(flash: Flash, collector: int, block: int) -> bool:
    """True if a number that a policy returned is that of a closed block which counts in this column."""
    if block < 0 or block >= flash.blocks.shape[0] or flash.blocks[block].state != CLOSED_BLOCK:
        return False
    return collector_of(flash.control, pool_of_block(flash.control, block)) == collector


@lean_kernel
def choose(flash: Flash, policies: Policies, collector: int, rounds_left: int) -> int:
    """The block to reclaim next: the policy's, or the emptiest after its last round; BAD_VICTIM if the policy breaks its contract."""
    chosen = victim_of(policies)(flash, collector)
    closed = is_closed(flash, collector, chosen)
    if closed and (rounds_left > 0 or gains_room(flash, chosen)):
        return chosen
    if closed and (flash.control.gc_rounds > 1 or flash.blocks[chosen].valid < flash.control.pages_per_block):
        return emptiest_block(flash, collector)
    flash.control.broken = BROKEN_VICTIM
    return BAD_VICTIM


@inlined_kernel
def ask_for_places(flash: Flash, first: int, end: int) -> None:
    """Ask memory for the places in the map, all over which they lie, of the logical pages that flash pages up to `end` hold."""
    for flash_page in range(first, end):
        prefetch(flash.mapping, int(flash.pages[flash_page].owner) - 1)


@lean_kernel
def begin(flash: Flash, collector: int, block: int, cause: int) -> None:
    """Make a closed block the one that is being emptied."""
    pools.withdraw_block(flash, block)
    blocks = flash.blocks.shape[0] if flash.control.shared else flash.control.blocks_per_pool
    note_victim(flash.control, flash.blocks[block].valid, -(-flash.pools[collector].pool_valid // blocks))
    first = block * flash.control.pages_per_block
    flash.pools[collector].victim = block
    flash.pools[collector].victim_page = first
    flash.pools[collector].victim_cause = cause
    ask_for_places(flash, first, first + min(MOVES_AHEAD, flash.blocks[block].written))


@lean_kernel
def pace(flash: Flash, collector: int) -> int:
    """Pages of the victim to move now: all, or in slices, of whole groups, as many as let free pages last until it is empty.

    With batches these are rounded up or down, on average to no more than that, for all that collect before the same batch alike.
    """
    valid = flash.blocks[flash.pools[collector].victim].valid
    if not flash.control.slicing:
        return valid
    spare, group = flash.pools[collector].free_pages - flash.control.least_pages - valid, flash.control.group
    turns = max(1, spare // group)
    if flash.buffer.batch == 0 or turns == 1:
        return max(1, -(-valid // (turns * group))) * group
    return (((valid << 32) // (turns * group) + flash.buffer.rounding) >> 32) * group


@lean_kernel
def empty_victim(flash: Flash, policies: Policies, row: int, pool: int, collector: int) -> int:
    """Plan the next moves of the victim, and its erase once it is empty; the number of rows."""
    block, cause = flash.pools[collector].victim, flash.pools[collector].victim_cause
    if flash.control.shared and not pools.takes_writes(flash, pool):  # victims before used up its free blocks
        pool = pools.next_pool(flash, 0)
    end = block * flash.control.pages_per_block + flash.blocks[block].written
    for _ in range(min(pace(flash, collector), flash.blocks[block].valid)):
        begin_page = flash.pools[collector].victim_page
        flash_page = next_valid(flash, begin_page)
        if flash_page < 0:
            break
        ask_for_places(flash, min(begin_page + MOVES_AHEAD, end), min(flash_page + 1 + MOVES_AHEAD, end))
        row = move_page(flash, policies, row, pool, flash_page, cause)
        flash.pools[collector].victim_page = flash_page + 1
    if flash.control.group > 1:
        pools.pad_group(flash, pool, flash.control.streams - 1)
    if flash.blocks[block].valid == 0:
        flash.pools[collector].victim = -1
        pools.recycle_block(flash, block)
        row = plan_row(flash.plan, row, ERASE_BLOCK, block, -1, -1, 0, -1, cause, -1)
    return row


@inlined_kernel
def make_room(flash: Flash, policies: Policies, row: int, pool: int) -> int:
    """Plan what garbage collection and wear levelling do before a pool takes a write; the number of rows, or BAD_VICTIM.

    Once READ_ONLY is set nothing more is reclaimed; the write in hand still fits what the pool has free.
    """
    collector = collector_of(flash.control, pool)
    rounds_left, enough = flash.control.gc_rounds, False
    while not flash.control.read_only and not enough:
        if flash.pools[collector].victim < 0:
            if not is_due(flash, collector):
                break
            if flash.pools[pool].slc_oldest >= 0 and not flash.control.slc_own:  # it gains more than a victim would
                return int(fold_block_of(policies)(flash, policies, row, pool))
            rounds_left = max(0, rounds_left - 1)
            chosen = choose(flash, policies, collector, rounds_left)
            if chosen < 0:
                return BAD_VICTIM
            begin(flash, collector, chosen, GC)
        cause, free = flash.pools[collector].victim_cause, flash.pools[collector].free_pages
        row = empty_victim(flash, policies, row, pool, collector)
        if flash.pools[collector].victim >= 0:
            break
        enough = flash.pools[collector].free_pages > (flash.control.least_pages if flash.control.slicing else free)
        cold = levels_of(policies)(flash, collector) if cause == GC and enough and not flash.control.read_only else -1
        if cold >= 0 and not is_closed(flash, collector, cold):
            flash.control.broken = BROKEN_LEVELS
        elif cold >= 0:
            begin(flash, collector, cold, WEAR)
            if not flash.control.slicing:
                row = empty_victim(flash, policies, row, pool, collector)
    return row


@kernel_of(_OF_ROWS, on_demand=True)
def fold_block(flash: Flash, policies: Policies, row: int, pool: int) -> int:
    """Plan to move what the oldest block of a pool's SLC cache holds to all bits of other cells, and to erase it; the number of rows."""
    block = slc_cache.leave_oldest(flash, pool)
    flash_page = next_valid(flash, block * flash.control.pages_per_block)
    while flash_page >= 0:
        row = move_page(flash, policies, row, pool, flash_page, FOLD)
        flash_page = next_valid(flash, flash_page + 1)
    if flash.control.group > 1:
        pools.pad_group(flash, pool, flash.control.streams - 1)
    slc_cache.recycle(flash, pool, block)
    return plan_row(flash.plan, row, ERASE_BLOCK, block, -1, -1, 0, -1, FOLD, -1)


@inlined_kernel
def may_fold(flash: Flash, pool: int) -> bool:
    """True if the SLC cache of a pool has a block to fold, and the pool has room for what that holds.

    A block of the cache's own does not come free: it is folded only while no collection is due.
    """
    due = flash.control.slc_own and flash.pools[pool].free_pages <= flash.control.start_pages
    return flash.pools[pool].slc_oldest >= 0 and not due


@inlined_kernel
def enter_cache(flash: Flash, policies: Policies, row: int, pool: int) -> int:
    """Plan what lets the next write to a pool enter its SLC cache, if that is possible; the number of rows."""
    if flash.control.slc_bypass or flash.active[pool, SLC_STREAM] >= 0:
        return row
    if flash.control.slc_folds and not slc_cache.has_room(flash, pool) and may_fold(flash, pool):
        row = int(fold_block_of(policies)(flash, policies, row, pool))
    if slc_cache.has_room(flash, pool):
        slc_cache.open_block(flash, policies, pool)
    return row


@inlined_kernel
def enters_cache(flash: Flash, pool: int) -> bool:
    """True if the next write to a pool goes to its SLC cache, as `enter_cache` has left it."""
    return flash.active[pool, SLC_STREAM] >= 0 and not flash.control.slc_bypass


@kernel_of(_OF_ONE, on_demand=True)
def fold_idle(flash: Flash, policies: Policies, pool: int) -> int:
    """Plan to fold a block of the SLC cache of a pool that has nothing else to do, or first what makes room; the number of rows.

    Its last row, if there is one, is an erase.
    """
    if flash.pools[pool].slc_oldest < 0 or flash.control.read_only:
        return 0
    return int(fold_block_of(policies)(flash, policies, 0, pool)) if may_fold(flash, pool) else make_room(flash, policies, 0, pool)


@kernel_of(_OF_ONE, on_demand=True)
def write_group(flash: Flash, policies: Policies, count: int) -> int:
    """Plan to program the first `count` logical pages of `flash.group` at once, in one pool; the number of rows, or BAD_VICTIM.

    The last rows are theirs, in order; before them stand collection and what completes parts of pages.  A page that has a write id there
    comes from the write buffer.  Slots that are left in the group stay empty.
    """
    pool = pools.next_pool(flash, flash.group[0].page)
    row = make_room(flash, policies, 0, pool)
    if row < 0:
        return BAD_VICTIM
    if not pools.takes_writes(flash, pool):  # garbage collection took its free blocks
        pool = pools.next_pool(flash, flash.group[0].page)
    if flash.control.slc_blocks:
        row = enter_cache(flash, policies, row, pool)
    cached = enters_cache(flash, pool)
    for at in range(count):
        member = flash.group[at]
        here = lookup(flash.mapping, member.page) if member.part else -1
        member.fetch = row if here >= 0 else -1
        if here >= 0:
            row = plan_row(flash.plan, row, FETCH_PAGE, here, -1, member.page, 0, -1, HOST, -1)
    for at in range(count):
        member = flash.group[at]
        superseded = drop_page(flash, member.page)
        kind, write_id = STORE_PAGE, member.write_id
        if write_id == 0:
            kind, write_id = PROGRAM_PAGE, pools.next_write_id(flash.control)
        if cached:
            place, source = slc_cache.place(flash, pool, member.page), IN_SLC - (count - 1 - at)
        else:
            place, source = pools.place_page(flash, policies, pool, flash.control.stream, member.page), -1
        row = plan_row(flash.plan, row, kind, place, source, member.page, write_id, superseded, HOST, member.fetch)
    pools.pad_group(flash, pool, SLC_STREAM if cached else flash.control.stream)
    if cached:
        pools.close_cache_block(flash, pool)
    return row


@inlined_kernel
def write_page(flash: Flash, policies: Policies, row: int, pool: int, page: int, partial: int, needs: int) -> int:
    """Plan to program a page that the host writes in a pool for which room was made; the number of rows (see `pools.plan_program`)."""
    if not pools.takes_writes(flash, pool):  # garbage collection took its free blocks
        pool = pools.next_pool(flash, page)
    if flash.control.slc_blocks:
        row = enter_cache(flash, policies, row, pool)
    row = pools.plan_program(flash, row, page, partial, needs)
    planned = flash.plan[row - 1]
    if enters_cache(flash, pool):
        planned.place, planned.source = slc_cache.place(flash, pool, page), IN_SLC
        pools.close_cache_block(flash, pool)
    else:
        planned.place = pools.place_page(flash, policies, pool, flash.control.stream, page)
    return row


#: What stands behind a drive's policies if it groups pages or has an SLC cache, in the order of `fold_block_of` and its siblings.
GROUPED = fold_block, fold_idle, write_group
