"""Blocks are taken, filled, closed and freed, and logical pages find their places in them: the logical view, pool by pool.

Closed blocks stand in rings, so that a policy finds its victim without a scan; see `flashsim.ssd.state.flash`.
"""

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import READ
from flashsim.core.spans import HOST
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import (
    ACTIVE_BLOCK,
    CLOSED_BLOCK,
    FREE_BLOCK,
    RETIRED_BLOCK,
    SLC_STREAM,
    lookup,
    note_wear,
    plan_row,
)
from flashsim.ssd.state.geometry import BROKEN_OPENS, DYNAMIC, STATIC, block_of, pool_of_block
from flashsim.ssd.wear.base import opens_of

#: Rounds of a policy that chooses blindly: a wholly valid block is often hit where writes amplify much (with 32 pages a block and 7 %
#: over-provisioning 31 % of the blocks are).  Eight in a row then happen once in ten thousand.
BLIND_ROUNDS = 8
LOOKED_AT = 32  #: The most blocks that one decision of a wear levelling policy compares.


@inlined_kernel
def next_write_id(control: RecordArray) -> int:
    """Number writes and trims of logical pages in order of admission, from 1 (see `flashsim.ssd.state.flash_array`)."""
    control.sequence += 1
    return control.sequence - control.id_base


@inlined_kernel
def collector_of(control: RecordArray, pool: int) -> int:
    """The column in which a pool's closed blocks, free and valid pages are counted: its own, or 0 where all pools share it."""
    return 0 if control.shared else pool


@inlined_kernel
def choose_stream(control: RecordArray, queue: int) -> None:
    """Let what comes from a submission queue go to the active blocks of its placement handle."""
    if control.placement_handles > 1:
        handle = queue % control.placement_handles
        control.stream = handle + SLC_STREAM if handle else 0


@inlined_kernel
def takes_writes(flash: Flash, pool: int) -> bool:
    """True if a write may go to a pool.

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
    chosen, least = -1, 0
    for step in range(count):
        at = (turn + step) % count
        pool = flash.pools[at].order
        if takes_writes(flash, pool):
            queued = flash.pools[pool // flash.control.planes].queued
            if chosen < 0 or queued < least:
                chosen, least = at, queued
            if flash.control.allocation != DYNAMIC:
                break
    flash.control.next_pool = (chosen + 1) % count
    return flash.pools[chosen].order


@inlined_kernel
def join_ring(blocks: RecordArray, first: int, block: int) -> int:
    """Put a block (or an entry of the write buffer) last in the ring whose first is given (-1: it is empty); return the first."""
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
def choose_free(flash: Flash, policies: Policies, pool: int) -> int:
    """The free block that wear levelling names; if it breaks its contract that is noted, and the first one goes on."""
    block = opens_of(policies)(flash, pool)
    is_own = 0 <= block < flash.blocks.shape[0] and pool_of_block(flash.control, block) == pool
    if not is_own or flash.blocks[block].state != FREE_BLOCK or flash.blocks[block].written > 0:  # one that is being emptied is written
        flash.control.broken = BROKEN_OPENS
        block = flash.pools[pool].first_free
    return block


@lean_kernel
def first_of_most(flash: Flash, pool: int, sign: int) -> int:
    """The free block of a pool with the most erases (with the fewest if `sign` is -1), planned ones included; the first freed of equals.

    At most LOOKED_AT are compared.  A drive in use has a few free blocks a plane; one that is being filled has many, and it does not pay
    to compare them all.
    """
    best = block = flash.pools[pool].first_free
    for _ in range(LOOKED_AT - 1):
        flash.control.gc_steps += 1
        block = flash.blocks[block].after
        if block == flash.pools[pool].first_free:
            break
        if sign * flash.blocks[block].cycles > sign * flash.blocks[best].cycles:
            best = block
    return best


@lean_kernel
def draw_closed(flash: Flash, collector: int) -> int:
    """A closed block, each as likely: blocks that are not closed are drawn again.

    A draw is a function of how many there were before: engine and specification draw alike, and no generator has a state.
    """
    count = flash.blocks.shape[0] if flash.control.shared else flash.control.blocks_per_pool
    while True:
        flash.control.gc_draws += 1
        flash.control.gc_steps += 1
        block = collector * count + ((mix_bits(int(flash.control.gc_draws)) * count) >> 32)
        if flash.blocks[block].state == CLOSED_BLOCK:
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
        flash.active[pool, stream] = block = choose_free(flash, policies, pool)
        claim_block(flash, block)
    flash_page = block * flash.control.pages_per_block + flash.blocks[block].written
    collector = collector_of(flash.control, pool)
    fill_page(flash, collector, block, flash_page, page)
    flash.pools[collector].free_pages -= 1
    if flash.blocks[block].written == flash.control.pages_per_block:
        flash.active[pool, stream] = -1
        close_block(flash, block, flash.control.sequence)
    return flash_page


@lean_kernel
def pad_group(flash: Flash, pool: int, stream: int) -> None:
    """Leave the rest of a group of a stream's active block empty, in the SLC cache of a page: its slots are used up."""
    block = flash.active[pool, stream]
    group = flash.control.units if stream == SLC_STREAM else flash.control.group
    short = -flash.blocks[block].written % group if block >= 0 else 0
    if short == 0:
        return
    flash.blocks[block].written += short
    if stream == SLC_STREAM:
        return
    flash.pools[collector_of(flash.control, pool)].free_pages -= short
    if flash.blocks[block].written == flash.control.pages_per_block:
        flash.active[pool, stream] = -1
        close_block(flash, block, flash.control.sequence)


@inlined_kernel
def close_cache_block(flash: Flash, pool: int) -> None:
    """Close a block of the SLC cache if it has no room for another group."""
    block = flash.active[pool, SLC_STREAM]
    if flash.blocks[block].written > flash.control.slc_pages - flash.control.group:
        flash.active[pool, SLC_STREAM] = -1
        flash.pools[pool].slc_oldest = join_ring(flash.blocks, flash.pools[pool].slc_oldest, block)


@inlined_kernel
def map_page(flash: Flash, flash_page: int, page: int) -> None:
    """Map a logical page to a flash page, which becomes the last one written of its block (not a closed one)."""
    block = block_of(flash.control, flash_page)
    fill_page(flash, collector_of(flash.control, pool_of_block(flash.control, block)), block, flash_page, page)


@inlined_kernel
def fill_page(flash: Flash, collector: int, block: int, flash_page: int, page: int) -> None:
    """Map a logical page to a flash page whose block is at hand, and the column that counts it (see `map_page`)."""
    flash.blocks[block].written = flash_page - block * flash.control.pages_per_block + 1
    flash.blocks[block].valid += 1
    flash.pools[collector].pool_valid += 1
    flash.pages[flash_page].owner = page + 1
    flash.mapping[page] = flash_page + 1


@inlined_kernel
def drop_page(flash: Flash, page: int) -> int:
    """Unmap a logical page; return the block that held it, or -1."""
    flash_page = lookup(flash.mapping, page)
    if flash_page < 0:
        return -1
    flash.mapping[page] = 0
    return invalidate(flash, flash_page)


@inlined_kernel
def invalidate(flash: Flash, flash_page: int) -> int:
    """Take a flash page from the logical page that is mapped there, which is unmapped or mapped anew; return its block."""
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
    flash.pages[flash_page].owner = 0
    return block


@inlined_kernel
def plan_read(flash: Flash, row: int, page: int, needs: int) -> int:
    """Plan to read a page, after the row that it needs (-1: none), or zeros where nothing is mapped; the number of rows."""
    here = lookup(flash.mapping, page)
    if here < 0:
        return plan_row(flash.plan, row, flash_array.ZERO_PAGE, -1, -1, page, 0, -1, HOST, -1)
    return plan_row(flash.plan, row, flash_array.READ_PAGE, here, -1, page, 0, -1, HOST, needs)


@inlined_kernel
def read_or_trim(flash: Flash, operation: int, page: int) -> int:
    """Plan to read a page, or unmap it, where the whole map is in memory; the number of rows."""
    if operation == READ:
        return plan_read(flash, 0, page, -1)
    drop_page(flash, page)
    return 0


@inlined_kernel
def plan_program(flash: Flash, row: int, page: int, partial: int, needs: int) -> int:
    """Plan to program a page that the host writes, after its fetch if it is partial; the number of rows.

    The last of them has no place yet.  The fetch needs a row as in `plan_read`.
    """
    fetch, here = -1, lookup(flash.mapping, page)
    if partial and here >= 0:
        fetch = row
        row = plan_row(flash.plan, row, flash_array.FETCH_PAGE, here, -1, page, 0, -1, HOST, needs)
    superseded = drop_page(flash, page)
    return plan_row(flash.plan, row, flash_array.PROGRAM_PAGE, -1, -1, page, next_write_id(flash.control), superseded, HOST, fetch)
