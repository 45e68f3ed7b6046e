"""After a power cut: the logical state is rebuilt from what the flash pages' spare areas say.

The newest completed copy of each logical page wins, by write id; a copy carries the id of its source, and of equal copies the one on the
highest flash page counts.  A trim takes effect when it is admitted, and survives: a drive that forgets it could bring back data older than
what was trimmed, since the trimmed copy itself may be erased by then.  Torn pages are used up and invalid.  Closed blocks take the order of
the newest data that they hold, and count as last changed by it.  That a block is retired is known at once: its pages are copied out, and it
is erased.  A read-only drive stays as it is.
"""

import numpy as np

from flashsim.core.hints import prefetch
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.state import flash_array, pools, slc_cache
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import Flash, Narrow
from flashsim.ssd.state.pools import collector_of, drop_page, free_block
from flashsim.ssd.state.write_buffer import clear_buffer

_AHEAD = 16  #: Flash pages between one whose logical page is mapped and one whose place in the map is asked for.


def recover(state: DriveState) -> None:
    """Rebuild map and blocks; the translation layer does the rest, if it has ways of its own."""
    clear_buffer(state.buffer, state.entries)
    state.make_ids(len(state.mapping))  # each page may be written anew
    state.mapping[:] = 0
    _map_newest(state.flash)
    count_blocks(state)
    if state.layer.recover is not None:
        state.layer.recover(state)
    else:
        rebuild_pools(state)
        restore_reserve(state)
    flash_array.count_wear(state.control, state.blocks)


@lean_kernel
def _map_newest(flash: Flash) -> None:
    """Map every logical page to the newest copy of it that is whole.

    What is zero already is not written: memory that was never touched takes no room.
    """
    last = len(flash.spare) - 1
    for flash_page in range(len(flash.spare)):
        coming = flash.pages[min(flash_page + _AHEAD, last)].spare_owner
        prefetch(flash.mapping, max(coming - 1, 0))
        if flash.pages[flash_page].owner:
            flash.pages[flash_page].owner = 0
        write_id, page = flash.spare[flash_page], int(flash.pages[flash_page].spare_owner) - 1
        if write_id <= 0 or (page < len(flash.trimmed) and write_id <= flash.trimmed[page]):
            continue
        other = flash_array.lookup(flash.mapping, page)
        if other < 0 or write_id >= flash.spare[other]:
            if other >= 0:
                flash.pages[other].owner = 0
            flash.mapping[page] = flash_page + 1
            flash.pages[flash_page].owner = page + 1


def count_blocks(state: DriveState) -> None:
    """Set each block's fill, valid pages and planned erases from the flash; a block that holds something is closed, or retired."""
    blocks = state.blocks
    _count_pages(state.flash)
    blocks.cycles = blocks.erases
    in_use = flash_array.in_use(blocks)
    blocks.state[in_use] = np.where(
        blocks.written > 0, np.where(blocks.slc > 0, flash_array.SLC_BLOCK, flash_array.CLOSED_BLOCK), flash_array.FREE_BLOCK
    )[in_use]
    flash_array.forget_blocks(state.parameters, state.pools, state.active, state.by_valid)
    for pool in range(state.parameters.pools):
        own = blocks_of(state, pool)
        at = collector_of(state.control, pool)
        state.pools.pool_valid[at] += blocks.valid[own].sum()
        _queue_free_blocks(state.flash, int(own[0]), int(own[-1]) + 1)
        for block in own[blocks.state[own] == flash_array.SPARE_BLOCK]:
            state.pools[pool].first_spare = pools.join_ring(blocks, state.pools[pool].first_spare, int(block))
            state.pools.spares[pool] += 1
        if state.control.slc_blocks:
            _queue_cache_blocks(state, pool, own[blocks.state[own] >= flash_array.OWN_SLC_BLOCK])


@lean_kernel
def _count_pages(flash: Flash) -> None:
    """Set each block's fill and valid pages; slots that a group left empty are used up."""
    per_block = int(flash.control.pages_per_block)
    for number in range(len(flash.blocks)):
        first, valid, block = number * per_block, 0, flash.blocks[number]
        end = first + per_block
        while end > first and not flash.spare[end - 1]:
            end -= 1
        for flash_page in range(first, end):
            valid += flash.pages[flash_page].owner > 0
        group = int(flash.control.units if block.slc else flash.control.group)
        block.valid, block.written = valid, -(-(end - first) // group) * group


def _queue_cache_blocks(state: DriveState, pool: int, own: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Blocks of the SLC cache take the order of their newest data; what is left of one that was being filled stays empty."""
    newest, cache = state.spare.reshape(-1, state.parameters.slots_per_block).max(axis=1), state.pools[pool]
    for block in sorted(own.tolist(), key=lambda block: newest[block]):
        ring = "slc_oldest" if state.blocks.written[block] else "slc_free"
        cache[ring] = pools.join_ring(state.blocks, cache[ring], block)
        cache.slc_blocks += ring == "slc_oldest"


@lean_kernel
def _queue_free_blocks(flash: Flash, first: int, end: int) -> None:
    for block in range(first, end):
        if flash.blocks[block].state == flash_array.FREE_BLOCK:
            free_block(flash, block)


def blocks_of(state: DriveState, pool: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    per_pool = state.parameters.blocks_per_plane
    return np.arange(pool * per_pool, (pool + 1) * per_pool)


def rebuild_pools(state: DriveState) -> None:
    """Go on with blocks that are filled in part, a stream each, and close the others."""
    per_block, blocks = state.parameters.slots_per_block, state.blocks
    newest = state.spare.reshape(-1, per_block).max(axis=1)
    order = [np.zeros(0, np.int64)]
    for pool in range(state.parameters.pools):
        own = blocks_of(state, pool)
        closed = own[blocks.state[own] == flash_array.CLOSED_BLOCK]
        partly = closed[blocks.written[closed] < per_block]
        for stream, block in enumerate(partly[: state.parameters.gc_streams]):
            blocks.state[block] = flash_array.ACTIVE_BLOCK
            state.active[pool, stream] = block
            state.pools.free_pages[collector_of(state.control, pool)] += per_block - blocks.written[block]
        order.append(closed[blocks.state[closed] == flash_array.CLOSED_BLOCK])
    closing = np.concatenate(order)
    _close_blocks(state.flash, closing[np.argsort(newest[closing], kind="stable")], newest)


@lean_kernel
def _close_blocks(flash: Flash, order: Integers, newest: Narrow) -> None:
    for block in order:
        pools.close_block(flash, int(block), int(newest[block]) + flash.control.id_base)


def restore_reserve(state: DriveState) -> None:
    """Empty retired blocks, and others until each pool has its reserve of free blocks; then write their pages anew, all in no time.

    A cut in the middle of garbage collection leaves a pool some pages short, and writes that were lost make pages valid again.  The pages
    taken out fit the pools that are below their limit, as all limits together exceed the logical pages.  No block wears out meanwhile:
    one that is past its limit retires when it is reclaimed next.
    """
    control, blocks = state.control, state.blocks
    if control.read_only:
        return
    limits = blocks.limit.copy()
    blocks.limit = 0
    pages: list[tuple[int, int]] = []
    for retired in np.flatnonzero((blocks.state == flash_array.RETIRED_BLOCK) & (blocks.written > 0)).tolist():
        pages += _empty_block(state, retired)
        blocks.written[retired] = 0
        blocks.cycles[retired] += 1
    for pool in range(state.parameters.pools):
        own = slice(None) if control.shared else slice(pool, pool + 1)
        while state.pools.free[own].mean() < state.parameters.gc_reserve:
            if state.pools.slc_oldest[pool] >= 0 and not control.slc_own:
                block = slc_cache.leave_oldest(state.flash, pool)
            else:
                block = pools.emptiest_block(state.flash, collector_of(control, pool))
                pools.withdraw_block(state.flash, block)
            pages += _empty_block(state, block)
            pools.recycle_block(state.flash, block)
    state.write_anew(pages)
    blocks.limit = limits


def _empty_block(state: DriveState, block: int) -> list[tuple[int, int]]:
    per_block, pages = state.parameters.slots_per_block, []
    for flash_page in range(block * per_block, (block + 1) * per_block):
        page = int(state.pages[flash_page].owner) - 1
        if page >= 0:
            pages.append((page, int(state.spare[flash_page])))
            drop_page(state.flash, page)
    flash_array.end_erase(state.flash, block)
    return pages
