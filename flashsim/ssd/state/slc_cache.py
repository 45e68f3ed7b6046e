"""The SLC cache of a pool: blocks that hold one bit a cell are opened, filled, and taken away to be folded, the oldest first."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import SLC_BLOCK, SLC_STREAM
from flashsim.ssd.state.pools import choose_free, claim_block, join_ring, leave_ring, map_page, recycle_block


@lean_kernel
def place(flash: Flash, pool: int, page: int) -> int:
    """Give a logical page the next flash page of the block that a pool's SLC cache fills; return it."""
    block = flash.active[pool, SLC_STREAM]
    flash_page = block * flash.control.pages_per_block + flash.blocks[block].written
    map_page(flash, flash_page, page)
    return flash_page


@lean_kernel
def has_room(flash: Flash, pool: int) -> bool:
    """True if the SLC cache of a pool may open a block: one of its own, or a free one that collection can do without."""
    if flash.control.slc_own:
        return flash.pools[pool].slc_free >= 0
    beyond = flash.pools[pool].free_pages - flash.control.pages_per_block
    return flash.pools[pool].slc_blocks < flash.control.slc_blocks and beyond > flash.control.start_pages


@lean_kernel
def open_block(flash: Flash, policies: Policies, pool: int) -> None:
    """Let the SLC cache of a pool, which has room, fill another block."""
    if flash.control.slc_own:
        block = flash.pools[pool].slc_free
        flash.pools[pool].slc_free = leave_ring(flash.blocks, block, block)
    else:
        block = choose_free(flash, policies, pool)
        claim_block(flash, block)
        flash.pools[pool].free_pages -= flash.control.pages_per_block
        flash.blocks[block].state = SLC_BLOCK
    flash.active[pool, SLC_STREAM] = block
    flash.pools[pool].slc_blocks += 1


@lean_kernel
def leave_oldest(flash: Flash, pool: int) -> int:
    """Take the oldest of the blocks that a pool's SLC cache has filled; return it."""
    block = flash.pools[pool].slc_oldest
    flash.pools[pool].slc_oldest = leave_ring(flash.blocks, block, block)
    flash.pools[pool].slc_blocks -= 1
    return int(block)


@lean_kernel
def recycle(flash: Flash, pool: int, block: int) -> None:
    """The erase of a block that left the SLC cache was planned: it is free, or the cache's again."""
    if not flash.control.slc_own:
        recycle_block(flash, block)
        return
    flash.blocks[block].cycles += 1
    flash.blocks[block].written = 0
    flash.pools[pool].slc_free = join_ring(flash.blocks, flash.pools[pool].slc_free, block)
