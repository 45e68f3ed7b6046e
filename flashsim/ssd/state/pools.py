"""Blocks are taken, filled, closed and freed, and logical pages find their places in them: the logical view, pool by pool.

Closed blocks stand in rings, so that a policy finds its victim without a scan; see `flashsim.ssd.state.flash_array` for the rows.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import Integers
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import (
    ACTIVE,
    ACTIVE_BLOCK,
    AFTER,
    CHANGED,
    CLOSED_BLOCK,
    CYCLES,
    ERASES,
    FIRST_FREE,
    FIRST_SPARE,
    FREE,
    FREE_BLOCK,
    FREE_PAGES,
    FREED,
    LEAST_VALID,
    LIMIT,
    OLDEST,
    ORDER,
    OWNER,
    PEER_AFTER,
    POOL_VALID,
    QUEUED,
    RETIRED_BLOCK,
    SPARES,
    STATE,
    VALID,
    WITH_VALID,
    WRITTEN,
    lookup,
    note_wear,
)
from flashsim.ssd.state.geometry import (
    ALLOCATION,
    BROKEN,
    BROKEN_OPENS,
    DYNAMIC,
    GC_STEPS,
    ID_BASE,
    NEXT_POOL,
    PAGES_PER_BLOCK,
    PLANES,
    POOL_LIMIT,
    POOLS,
    READ_ONLY,
    RETIRED,
    SEQUENCE,
    SHARED,
    STATIC,
    STREAMS,
    block_of,
    pool_of_block,
)
from flashsim.ssd.wear.base import opens_of


@inlined_kernel
def next_write_id(control: Integers) -> int:
    """Number writes and trims of logical pages in order of admission, from 1 (see `flashsim.ssd.state.write_ids`)."""
    control[SEQUENCE] += 1
    return control[SEQUENCE] - control[ID_BASE]


@inlined_kernel
def collector_of(control: Integers, pool: int) -> int:
    """The column in which a pool's closed blocks, free and valid pages are counted: its own, or 0 where all pools share it."""
    return 0 if control[SHARED] else pool


@inlined_kernel
def takes_writes(flash: Flash, pool: int) -> bool:
    """Whether a write may go to a pool.

    With a collection of its own: while its valid pages are below the limit, so that one of its closed blocks has an invalid page whenever
    it must collect; all limits together exceed the logical pages.  With a shared one: while it can open a block for every stream.
    """
    if flash.control[SHARED]:
        return flash.pools[FREE, pool] >= flash.control[STREAMS]
    return flash.pools[POOL_VALID, pool] < flash.control[POOL_LIMIT]


@inlined_kernel
def next_pool(flash: Flash, page: int) -> int:
    """The pool that takes the next write, of logical page `page`: in turn, by its address, or the one whose die has the least to do."""
    count = flash.control[POOLS]
    turn = page % count if flash.control[ALLOCATION] == STATIC else flash.control[NEXT_POOL]
    chosen = -1
    for step in range(count):
        at = (turn + step) % count
        pool = flash.pools[ORDER, at]
        if not takes_writes(flash, pool):
            continue
        if (
            chosen < 0
            or flash.pools[QUEUED, pool // flash.control[PLANES]] < flash.pools[QUEUED, flash.pools[ORDER, chosen] // flash.control[PLANES]]
        ):
            chosen = at
        if flash.control[ALLOCATION] != DYNAMIC:
            break
    flash.control[NEXT_POOL] = (chosen + 1) % count
    return flash.pools[ORDER, chosen]


@inlined_kernel
def join_ring(flash: Flash, start: int, links: int, pool: int, block: int) -> None:
    """Put a block last in the ring that starts at ``pools[start, pool]`` and is linked by rows `links` and ``links + 1``."""
    first = flash.pools[start, pool]
    if first < 0:
        flash.pools[start, pool] = first = block
    last = flash.blocks[links + 1, first] if first != block else block
    flash.blocks[links, last] = block
    flash.blocks[links + 1, block] = last
    flash.blocks[links, block] = first
    flash.blocks[links + 1, first] = block


@inlined_kernel
def leave_ring(flash: Flash, start: int, links: int, pool: int, block: int) -> None:
    after, before = flash.blocks[links, block], flash.blocks[links + 1, block]
    flash.blocks[links, before] = after
    flash.blocks[links + 1, after] = before
    if flash.pools[start, pool] == block:
        flash.pools[start, pool] = after if after != block else -1


@lean_kernel
def close_block(flash: Flash, block: int, write_id: int) -> None:
    """A full block joins the closed ones, as changed by that write."""
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    flash.blocks[STATE, block] = CLOSED_BLOCK
    flash.blocks[CHANGED, block] = write_id
    join_ring(flash, OLDEST, AFTER, at, block)
    join_ring(flash, WITH_VALID + flash.blocks[VALID, block], PEER_AFTER, at, block)
    flash.pools[LEAST_VALID, at] = min(flash.pools[LEAST_VALID, at], flash.blocks[VALID, block])


@lean_kernel
def withdraw_block(flash: Flash, block: int) -> None:
    """Take a closed block from the closed ones, to reclaim it."""
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    leave_ring(flash, OLDEST, AFTER, at, block)
    leave_ring(flash, WITH_VALID + flash.blocks[VALID, block], PEER_AFTER, at, block)
    flash.blocks[STATE, block] = FREE_BLOCK


@lean_kernel
def emptiest_block(flash: Flash, collector: int) -> int:
    """The closed block with the fewest valid pages; among equals the one that has had it longest.  -1 if none is closed."""
    fewest = flash.pools[LEAST_VALID, collector]
    while fewest < flash.control[PAGES_PER_BLOCK] and flash.pools[WITH_VALID + fewest, collector] < 0:
        fewest += 1
        flash.control[GC_STEPS] += 1
    flash.control[GC_STEPS] += 1
    flash.pools[LEAST_VALID, collector] = fewest
    return flash.pools[WITH_VALID + fewest, collector]


@lean_kernel
def claim_block(flash: Flash, block: int) -> None:
    pool = pool_of_block(flash.control, block)
    leave_ring(flash, FIRST_FREE, AFTER, pool, block)
    flash.pools[FREE, pool] -= 1
    flash.blocks[STATE, block] = ACTIVE_BLOCK


@lean_kernel
def is_free(flash: Flash, pool: int, block: int) -> bool:
    """Whether a number that a policy returned is that of a free block of the pool; one that is being emptied is written."""
    if block < 0 or block >= flash.blocks.shape[1] or pool_of_block(flash.control, block) != pool:
        return False
    return flash.blocks[STATE, block] == FREE_BLOCK and flash.blocks[WRITTEN, block] == 0


@lean_kernel
def choose_free(flash: Flash, policies: Policies, pool: int) -> int:
    """The free block that wear levelling names; if it breaks its contract that is noted, and the first one goes on."""
    block = opens_of(policies)(flash, pool)
    if is_free(flash, pool, block):
        return block
    flash.control[BROKEN] = BROKEN_OPENS
    return flash.pools[FIRST_FREE, pool]


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
    flash.blocks[STATE, block] = FREE_BLOCK
    flash.blocks[WRITTEN, block] = 0
    join_ring(flash, FIRST_FREE, AFTER, pool, block)
    flash.pools[FREE, pool] += 1
    flash.pools[FREE_PAGES, collector_of(flash.control, pool)] += flash.control[PAGES_PER_BLOCK]
    flash.pools[FREED, collector_of(flash.control, pool)] = block


@lean_kernel
def recycle_block(flash: Flash, block: int) -> None:
    """An erase was planned: free the block, or retire it if that wears it out; a spare takes its place, or the drive turns read-only."""
    pool = pool_of_block(flash.control, block)
    flash.blocks[CYCLES, block] += 1
    if flash.blocks[LIMIT, block] == 0 or flash.blocks[CYCLES, block] < flash.blocks[LIMIT, block]:
        free_block(flash, block)
        return
    flash.blocks[STATE, block] = RETIRED_BLOCK
    flash.blocks[WRITTEN, block] = 0
    flash.control[RETIRED] += 1
    note_wear(flash.control, flash.blocks[ERASES, block], -1)
    if flash.pools[SPARES, pool] == 0:
        flash.control[READ_ONLY] = 1
        return
    spare = flash.pools[FIRST_SPARE, pool]
    leave_ring(flash, FIRST_SPARE, AFTER, pool, spare)
    flash.pools[SPARES, pool] -= 1
    note_wear(flash.control, flash.blocks[ERASES, spare], 1)
    free_block(flash, spare)


@inlined_kernel
def place_page(flash: Flash, policies: Policies, pool: int, stream: int, page: int) -> int:
    """Give a logical page the next flash page of a stream's active block, opened if there is none; return it.  A full block is closed."""
    block = flash.pools[ACTIVE + stream, pool]
    if block < 0:
        flash.pools[ACTIVE + stream, pool] = block = open_block(flash, policies, pool)
    flash_page = block * flash.control[PAGES_PER_BLOCK] + flash.blocks[WRITTEN, block]
    map_page(flash, flash_page, page)
    flash.pools[FREE_PAGES, collector_of(flash.control, pool)] -= 1
    if flash.blocks[WRITTEN, block] == flash.control[PAGES_PER_BLOCK]:
        flash.pools[ACTIVE + stream, pool] = -1
        close_block(flash, block, flash.control[SEQUENCE])
    return flash_page


@inlined_kernel
def map_page(flash: Flash, flash_page: int, page: int) -> None:
    """Map a logical page to a flash page, which becomes the last one written of its block (not a closed one)."""
    block = block_of(flash.control, flash_page)
    flash.blocks[WRITTEN, block] = flash_page - block * flash.control[PAGES_PER_BLOCK] + 1
    flash.blocks[VALID, block] += 1
    flash.pools[POOL_VALID, collector_of(flash.control, pool_of_block(flash.control, block))] += 1
    flash.pages[flash_page, OWNER] = page + 1
    flash.mapping[page] = flash_page + 1


@inlined_kernel
def drop_page(flash: Flash, page: int) -> int:
    """Unmap a logical page; return the block that held it, or -1."""
    flash_page = lookup(flash.mapping, page)
    if flash_page < 0:
        return -1
    block = block_of(flash.control, flash_page)
    at = collector_of(flash.control, pool_of_block(flash.control, block))
    valid = flash.blocks[VALID, block] - 1
    if flash.blocks[STATE, block] == CLOSED_BLOCK:
        leave_ring(flash, WITH_VALID + valid + 1, PEER_AFTER, at, block)
        join_ring(flash, WITH_VALID + valid, PEER_AFTER, at, block)
        flash.pools[LEAST_VALID, at] = min(flash.pools[LEAST_VALID, at], valid)
        flash.blocks[CHANGED, block] = flash.control[SEQUENCE]
    flash.blocks[VALID, block] = valid
    flash.pools[POOL_VALID, at] -= 1
    flash.mapping[page] = 0
    return block
