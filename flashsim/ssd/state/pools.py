"""Blocks are taken, filled, closed and freed, and logical pages find their places in them: the logical view, pool by pool.

Closed blocks stand in rings, so that a policy finds its victim without a scan; see `flashsim.ssd.state.flash`.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ACTIVE_BLOCK, CLOSED_BLOCK, FREE_BLOCK, RETIRED_BLOCK, lookup, note_wear
from flashsim.ssd.state.geometry import BROKEN_OPENS, DYNAMIC, STATIC, block_of, pool_of_block
from flashsim.ssd.wear.base import opens_of


@inlined_kernel
def next_write_id(control: RecordArray) -> int:
    """Number writes and trims of logical pages in order of admission, from 1 (see `flashsim.ssd.state.write_ids`)."""
    control.sequence += 1
    return control.sequence - control.id_base


@inlined_kernel
def collector_of(control: RecordArray, pool: int) -> int:
    """The column in which a pool's closed blocks, free and valid pages are counted: its own, or 0 where all pools share it."""
    return 0 if control.shared else pool


@inlined_kernel
def takes_writes(flash: Flash, pool: int) -> bool:
    """Whether a write may go to a pool.

    With a collection of its own: while its valid pages are below the limit, so that one of its closed blocks has an invalid page whenever
    it must collect; all limits together exceed the logical pages.  With a shared one: while it can open a block for every stream.
    """
    if flash.control.shared:
        return flash.pools[pool].free >= flash.control.streams
    return flash.pools[pool].pool_valid < flash.control.pool_limit


@inlined_kernel
def next_pool(flash: Flash, page: int) -> int:
    """The pool that takes the next write, of logical page `page`: in turn, by its address, or the one whose die has the least to do."""
    count = flash.control.pools
    turn = page % count if flash.control.allocation == STATIC else flash.control.next_pool
    chosen = -1
    for step in range(count):
        at = (turn + step) % count
        pool = flash.pools[at].order
        if not takes_writes(flash, pool):
            continue
        if (
            chosen < 0
            or flash.pools[pool // flash.control.planes].queued < flash.pools[flash.pools[chosen].order // flash.control.planes].queued
        ):
            chosen = at
        if flash.control.allocation != DYNAMIC:
            break
    flash.control.next_pool = (chosen + 1) % count
    return flash.pools[chosen].order


@inlined_kernel
def join_ring(blocks: RecordArray, first: int, block: int) -> int:
    """Put a block last in the free, spare or closed ring whose first is given (-1: it is empty); return the first."""
    if first < 0:
        blocks[block].after = blocks[block].before = block
        return block
    last = blocks[first].before
    blocks[last].after = blocks[first].before = block
    blocks[block].before = last
    blocks[block].after = first
    return first


@inlined_kernel
def leave_ring(blocks: RecordArray, first: int, block: int) -> int:
    """Take a block from its ring; return the first of what is left, -1 if it is empty."""
    after, before = blocks[block].after, blocks[block].before
    blocks[before].after = after
    blocks[after].before = before
    if first != block:
        return first
    return after if after != block else -1


@inlined_kernel
def join_peers(flash: Flash, collector: int, valid: int, block: int) -> None:
    """Put a closed block last in the ring of those with so many valid pages."""
    blocks, first = flash.blocks, flash.by_valid[collector, valid]
    if first < 0:
        flash.by_valid[collector, valid] = blocks[block].peer_after = blocks[block].peer_before = block
        return
    last = blocks[first].peer_before
    blocks[last].peer_after = blocks[first].peer_before = block
    blocks[block].peer_before = last
    blocks[block].peer_after = first


@inlined_kernel
def leave_peers(flash: Flash, collector: int, valid: int, block: int) -> None:
    blocks = flash.blocks
    after, before = blocks[block].peer_after, blocks[block].peer_before
    blocks[before].peer_after = after
    blocks[after].peer_before = before
    if flash.by_valid[collector, valid] == block:
        flash.by_valid[collector, valid] = after if after != block else -1


@lean_kernel
def close_block(flash: Flash, block: int, write_id: int) -> None:
    """A full block joins the closed ones, as changed by that write."""
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    flash.blocks[block].state = CLOSED_BLOCK
    flash.blocks[block].changed = write_id
    flash.pools[at].oldest = join_ring(flash.blocks, flash.pools[at].oldest, block)
    join_peers(flash, at, flash.blocks[block].valid, block)
    flash.pools[at].least_valid = min(flash.pools[at].least_valid, flash.blocks[block].valid)


@lean_kernel
def withdraw_block(flash: Flash, block: int) -> None:
    """Take a closed block from the closed ones, to reclaim it."""
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    flash.pools[at].oldest = leave_ring(flash.blocks, flash.pools[at].oldest, block)
    leave_peers(flash, at, flash.blocks[block].valid, block)
    flash.blocks[block].state = FREE_BLOCK


@lean_kernel
def emptiest_block(flash: Flash, collector: int) -> int:
    """The closed block with the fewest valid pages; among equals the one that has had it longest.  -1 if none is closed."""
    fewest = flash.pools[collector].least_valid
    while fewest < flash.control.pages_per_block and flash.by_valid[collector, fewest] < 0:
        fewest += 1
        flash.control.gc_steps += 1
    flash.control.gc_steps += 1
    flash.pools[collector].least_valid = fewest
    return flash.by_valid[collector, fewest]


@lean_kernel
def claim_block(flash: Flash, block: int) -> None:
    pool = pool_of_block(flash.control, block)
    flash.pools[pool].first_free = leave_ring(flash.blocks, flash.pools[pool].first_free, block)
    flash.pools[pool].free -= 1
    flash.blocks[block].state = ACTIVE_BLOCK


@lean_kernel
def is_free(flash: Flash, pool: int, block: int) -> bool:
    """Whether a number that a policy returned is that of a free block of the pool; one that is being emptied is written."""
    if block < 0 or block >= flash.blocks.shape[0] or pool_of_block(flash.control, block) != pool:
        return False
    return flash.blocks[block].state == FREE_BLOCK and flash.blocks[block].written == 0


@lean_kernel
def choose_free(flash: Flash, policies: Policies, pool: int) -> int:
    """The free block that wear levelling names; if it breaks its contract that is noted, and the first one goes on."""
    block = opens_of(policies)(flash, pool)
    if is_free(flash, pool, block):
        return block
    flash.control.broken = BROKEN_OPENS
    return flash.pools[pool].first_free


@lean_kernel
def open_block(flash: Flash, policies: Policies, pool: int) -> int:
    """Take one of a pool's free blocks, the one that wear levelling names; return it."""
    block = choose_free(flash, policies, pool)
    claim_block(flash, block)
    return block


@lean_kernel
def free_block(flash: Flash, block: int) -> None:
    """Put an erased block behind its pool's free blocks."""
    pool = pool_of_block(flash.control, block)
    flash.blocks[block].state = FREE_BLOCK
    flash.blocks[block].written = 0
    flash.pools[pool].first_free = join_ring(flash.blocks, flash.pools[pool].first_free, block)
    flash.pools[pool].free += 1
    flash.pools[collector_of(flash.control, pool)].free_pages += flash.control.pages_per_block
    flash.pools[collector_of(flash.control, pool)].freed = block


@lean_kernel
def recycle_block(flash: Flash, block: int) -> None:
    """An erase was planned: free the block, or retire it if that wears it out; a spare takes its place, or the drive turns read-only."""
    pool = pool_of_block(flash.control, block)
    flash.blocks[block].cycles += 1
    if flash.blocks[block].limit == 0 or flash.blocks[block].cycles < flash.blocks[block].limit:
        free_block(flash, block)
        return
    flash.blocks[block].state = RETIRED_BLOCK
    flash.blocks[block].written = 0
    flash.control.retired += 1
    note_wear(flash.control, flash.blocks[block].erases, -1)
    if flash.pools[pool].spares == 0:
        flash.control.read_only = 1
        return
    spare = flash.pools[pool].first_spare
    flash.pools[pool].first_spare = leave_ring(flash.blocks, spare, spare)
    flash.pools[pool].spares -= 1
    note_wear(flash.control, flash.blocks[spare].erases, 1)
    free_block(flash, spare)


@inlined_kernel
def place_page(flash: Flash, policies: Policies, pool: int, stream: int, page: int) -> int:
    """Give a logical page the next flash page of a stream's active block, opened if there is none; return it.  A full block is closed."""
    block = flash.active[pool, stream]
    if block < 0:
        flash.active[pool, stream] = block = open_block(flash, policies, pool)
    flash_page = block * flash.control.pages_per_block + flash.blocks[block].written
    map_page(flash, flash_page, page)
    flash.pools[collector_of(flash.control, pool)].free_pages -= 1
    if flash.blocks[block].written == flash.control.pages_per_block:
        flash.active[pool, stream] = -1
        close_block(flash, block, flash.control.sequence)
    return flash_page


@inlined_kernel
def map_page(flash: Flash, flash_page: int, page: int) -> None:
    """Map a logical page to a flash page, which becomes the last one written of its block (not a closed one)."""
    block = block_of(flash.control, flash_page)
    flash.blocks[block].written = flash_page - block * flash.control.pages_per_block + 1
    flash.blocks[block].valid += 1
    flash.pools[collector_of(flash.control, pool_of_block(flash.control, block))].pool_valid += 1
    flash.pages[flash_page].owner = page + 1
    flash.mapping[page] = flash_page + 1


@inlined_kernel
def drop_page(flash: Flash, page: int) -> int:
    """Unmap a logical page; return the block that held it, or -1."""
    flash_page = lookup(flash.mapping, page)
    if flash_page < 0:
        return -1
    block = block_of(flash.control, flash_page)
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    valid = flash.blocks[block].valid - 1
    if flash.blocks[block].state == CLOSED_BLOCK:
        leave_peers(flash, at, valid + 1, block)
        join_peers(flash, at, valid, block)
        flash.pools[at].least_valid = min(flash.pools[at].least_valid, valid)
        flash.blocks[block].changed = flash.control.sequence
    flash.blocks[block].valid = valid
    flash.pools[at].pool_valid -= 1
    flash.mapping[page] = 0
    return block
