"""Blocks are taken, filled, closed and freed, and logical pages find their places in them: the logical view, pool by pool.

Closed blocks stand in rings, so that a policy finds its victim without a scan; see `flashsim.ssd.state.flash_array` for the rows.
"""

from __future__ import annotations

from typing import Any

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.state.flash_array import (
    ACTIVE,
    ACTIVE_BLOCK,
    AFTER,
    CHANGED,
    CLOSED_BLOCK,
    CYCLES,
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
    Narrow,
    lookup,
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
    SEQUENCE,
    SHARED,
    STATIC,
    STREAMS,
    block_of,
    pool_of_block,
)


@lean_kernel
def next_write_id(control: Integers) -> int:
    """Number writes and trims of logical pages in order of admission, from 1 (see `flashsim.ssd.state.write_ids`)."""
    control[SEQUENCE] += 1
    return control[SEQUENCE] - control[ID_BASE]


@lean_kernel
def collector_of(control: Integers, pool: int) -> int:
    """The column in which a pool's closed blocks, free and valid pages are counted: its own, or 0 where all pools share it."""
    return 0 if control[SHARED] else pool


@lean_kernel
def takes_writes(control: Integers, pools: Integers, pool: int) -> bool:
    """Whether a write may go to a pool.

    With a collection of its own: while its valid pages are below the limit, so that one of its closed blocks has an invalid page whenever
    it must collect; all limits together exceed the logical pages.  With a shared one: while it can open a block for every stream.
    """
    if control[SHARED]:
        return pools[FREE, pool] >= control[STREAMS]
    return pools[POOL_VALID, pool] < control[POOL_LIMIT]


@lean_kernel
def next_pool(control: Integers, pools: Integers, page: int) -> int:
    """The pool that takes the next write, of logical page `page`: in turn, by its address, or the one whose die has the least to do."""
    count = control[POOLS]
    turn = page % count if control[ALLOCATION] == STATIC else control[NEXT_POOL]
    chosen = -1
    for step in range(count):
        at = (turn + step) % count
        pool = pools[ORDER, at]
        if not takes_writes(control, pools, pool):
            continue
        if chosen < 0 or pools[QUEUED, pool // control[PLANES]] < pools[QUEUED, pools[ORDER, chosen] // control[PLANES]]:
            chosen = at
        if control[ALLOCATION] != DYNAMIC:
            break
    control[NEXT_POOL] = (chosen + 1) % count
    return pools[ORDER, chosen]


@lean_kernel
def join_ring(pools: Integers, blocks: Integers, start: int, links: int, pool: int, block: int) -> None:
    """Put a block last in the ring that starts at ``pools[start, pool]`` and is linked by rows `links` and ``links + 1``."""
    first = pools[start, pool]
    if first < 0:
        pools[start, pool] = first = block
    last = blocks[links + 1, first] if first != block else block
    blocks[links, last] = block
    blocks[links + 1, block] = last
    blocks[links, block] = first
    blocks[links + 1, first] = block


@lean_kernel
def leave_ring(pools: Integers, blocks: Integers, start: int, links: int, pool: int, block: int) -> None:
    """Take a block out of its ring."""
    after, before = blocks[links, block], blocks[links + 1, block]
    blocks[links, before] = after
    blocks[links + 1, after] = before
    if pools[start, pool] == block:
        pools[start, pool] = after if after != block else -1


@lean_kernel
def close_block(control: Integers, pools: Integers, blocks: Integers, block: int, write_id: int) -> None:
    """A full block joins the closed ones, as changed by that write."""
    at = collector_of(control, pool_of_block(control, block))
    blocks[STATE, block] = CLOSED_BLOCK
    blocks[CHANGED, block] = write_id
    join_ring(pools, blocks, OLDEST, AFTER, at, block)
    join_ring(pools, blocks, WITH_VALID + blocks[VALID, block], PEER_AFTER, at, block)
    pools[LEAST_VALID, at] = min(pools[LEAST_VALID, at], blocks[VALID, block])


@lean_kernel
def withdraw_block(control: Integers, pools: Integers, blocks: Integers, block: int) -> None:
    """Take a closed block from the closed ones, to reclaim it."""
    at = collector_of(control, pool_of_block(control, block))
    leave_ring(pools, blocks, OLDEST, AFTER, at, block)
    leave_ring(pools, blocks, WITH_VALID + blocks[VALID, block], PEER_AFTER, at, block)
    blocks[STATE, block] = FREE_BLOCK


@lean_kernel
def emptiest_block(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """The closed block with the fewest valid pages; among equals the one that has had it longest.  -1 if none is closed."""
    fewest = pools[LEAST_VALID, collector]
    while fewest < control[PAGES_PER_BLOCK] and pools[WITH_VALID + fewest, collector] < 0:
        fewest += 1
        control[GC_STEPS] += 1
    control[GC_STEPS] += 1
    pools[LEAST_VALID, collector] = fewest
    return pools[WITH_VALID + fewest, collector]


@lean_kernel
def claim_block(control: Integers, pools: Integers, blocks: Integers, block: int) -> None:
    """Take a block from its pool's free ones."""
    pool = pool_of_block(control, block)
    leave_ring(pools, blocks, FIRST_FREE, AFTER, pool, block)
    pools[FREE, pool] -= 1
    blocks[STATE, block] = ACTIVE_BLOCK


@lean_kernel
def is_free(control: Integers, blocks: Integers, pool: int, block: int) -> bool:
    """Whether a number that a policy returned is that of a free block of the pool; one that is being emptied is written."""
    if block < 0 or block >= blocks.shape[1] or pool_of_block(control, block) != pool:
        return False
    return blocks[STATE, block] == FREE_BLOCK and blocks[WRITTEN, block] == 0


@lean_kernel
def choose_free(control: Integers, pools: Integers, blocks: Integers, opens: Any, pool: int) -> int:
    """The free block that wear levelling names; if it breaks its contract that is noted, and the first one goes on."""
    block = opens(control, pools, blocks, pool)
    if is_free(control, blocks, pool, block):
        return block
    control[BROKEN] = BROKEN_OPENS
    return pools[FIRST_FREE, pool]


@lean_kernel
def open_block(control: Integers, pools: Integers, blocks: Integers, opens: Any, pool: int) -> int:
    """Take one of a pool's free blocks, the one that wear levelling names; return it."""
    block = choose_free(control, pools, blocks, opens, pool)
    claim_block(control, pools, blocks, block)
    return block


@lean_kernel
def free_block(control: Integers, pools: Integers, blocks: Integers, block: int) -> None:
    """Put an erased block behind its pool's free blocks."""
    pool = pool_of_block(control, block)
    blocks[STATE, block] = FREE_BLOCK
    blocks[WRITTEN, block] = 0
    join_ring(pools, blocks, FIRST_FREE, AFTER, pool, block)
    pools[FREE, pool] += 1
    pools[FREE_PAGES, collector_of(control, pool)] += control[PAGES_PER_BLOCK]
    pools[FREED, collector_of(control, pool)] = block


@lean_kernel
def recycle_block(control: Integers, pools: Integers, blocks: Integers, block: int) -> None:
    """An erase was planned: free the block, or retire it if that wears it out; a spare takes its place, or the drive turns read-only."""
    pool = pool_of_block(control, block)
    blocks[CYCLES, block] += 1
    if blocks[LIMIT, block] == 0 or blocks[CYCLES, block] < blocks[LIMIT, block]:
        free_block(control, pools, blocks, block)
        return
    blocks[STATE, block] = RETIRED_BLOCK
    blocks[WRITTEN, block] = 0
    if pools[SPARES, pool] == 0:
        control[READ_ONLY] = 1
        return
    spare = pools[FIRST_SPARE, pool]
    leave_ring(pools, blocks, FIRST_SPARE, AFTER, pool, spare)
    pools[SPARES, pool] -= 1
    free_block(control, pools, blocks, spare)


@lean_kernel
def place_page(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, pool: int, stream: int, page: int
) -> int:
    """Give a logical page the next flash page of a stream's active block, opened if there is none; return it.  A full block is closed."""
    block = pools[ACTIVE + stream, pool]
    if block < 0:
        pools[ACTIVE + stream, pool] = block = open_block(control, pools, blocks, opens, pool)
    flash_page = block * control[PAGES_PER_BLOCK] + blocks[WRITTEN, block]
    map_page(control, pools, blocks, mapping, pages, flash_page, page)
    pools[FREE_PAGES, collector_of(control, pool)] -= 1
    if blocks[WRITTEN, block] == control[PAGES_PER_BLOCK]:
        pools[ACTIVE + stream, pool] = -1
        close_block(control, pools, blocks, block, control[SEQUENCE])
    return flash_page


@lean_kernel
def map_page(control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, flash_page: int, page: int) -> None:
    """Map a logical page to a flash page, which becomes the last one written of its block (not a closed one)."""
    block = block_of(control, flash_page)
    blocks[WRITTEN, block] = flash_page - block * control[PAGES_PER_BLOCK] + 1
    blocks[VALID, block] += 1
    pools[POOL_VALID, collector_of(control, pool_of_block(control, block))] += 1
    pages[flash_page, OWNER] = page + 1
    mapping[page] = flash_page + 1


@lean_kernel
def drop_page(control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, page: int) -> int:
    """Unmap a logical page; return the block that held it, or -1."""
    flash_page = lookup(mapping, page)
    if flash_page < 0:
        return -1
    block = block_of(control, flash_page)
    at = collector_of(control, pool_of_block(control, block))
    valid = blocks[VALID, block] - 1
    if blocks[STATE, block] == CLOSED_BLOCK:
        leave_ring(pools, blocks, WITH_VALID + valid + 1, PEER_AFTER, at, block)
        join_ring(pools, blocks, WITH_VALID + valid, PEER_AFTER, at, block)
        pools[LEAST_VALID, at] = min(pools[LEAST_VALID, at], valid)
        blocks[CHANGED, block] = control[SEQUENCE]
    blocks[VALID, block] = valid
    pools[POOL_VALID, at] -= 1
    mapping[page] = 0
    return block
