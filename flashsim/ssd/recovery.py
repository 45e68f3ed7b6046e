"""After a power cut: the logical state is rebuilt from what the flash pages' spare areas say.

The newest completed copy of each logical page wins, by write id; a move's copy carries the id of its source, and of equal copies the one
on the highest flash page counts.  A trim takes effect when it is admitted, and survives: a drive that forgets it could bring back data
older than what was trimmed, since the trimmed copy itself may be erased by then.  Torn pages are used up and invalid.  Closed blocks take
the order of the newest data that they hold, and count as last changed by it.
"""

from __future__ import annotations

import numpy as np

from flashsim.core.request import WRITE
from flashsim.ssd.drive_state import DriveState, apply
from flashsim.ssd.flash_array import (
    ACTIVE,
    ACTIVE_BLOCK,
    CLOSED_BLOCK,
    DIE_VALID,
    FIRST_FREE,
    FREE,
    FREE_BLOCK,
    OWNER,
    SPARE_OWNER,
    STATE,
    VALID,
    WRITE_ID,
    WRITTEN,
    close_block,
    drop_page,
    emptiest_block,
    erased,
    forget_closed_blocks,
    free_block,
    lookup,
    withdraw_block,
)


def recover(state: DriveState) -> None:
    """Rebuild map and blocks; then bring every die back to its reserve of free blocks, in no time."""
    _rebuild_map(state)
    _rebuild_blocks(state)
    _restore_reserve(state)


def _rebuild_map(state: DriveState) -> None:
    used = np.flatnonzero(state.spare > 0)
    owners = state.pages[used, SPARE_OWNER].astype(np.int64) - 1
    ids = state.spare[used]
    kept = ids > state.trimmed[owners]
    used, owners, ids = used[kept], owners[kept], ids[kept]
    oldest_first = np.lexsort((used, ids))
    state.mapping[:] = 0
    state.mapping[owners[oldest_first]] = used[oldest_first] + 1  # of several entries for one page the last, newest one stays
    state.pages[:, OWNER] = state.pages[:, SPARE_OWNER]


def _rebuild_blocks(state: DriveState) -> None:
    per_block = state.parameters.pages_per_block
    per_die, dies = state.parameters.blocks_per_die, state.parameters.dies
    blocks = state.blocks
    blocks[WRITTEN] = np.count_nonzero(state.spare.reshape(-1, per_block), axis=1)
    mapped = state.mapping[state.mapping > 0].astype(np.int64) - 1
    blocks[VALID] = np.bincount(mapped // per_block, minlength=dies * per_die)
    blocks[STATE] = np.where(blocks[WRITTEN] > 0, CLOSED_BLOCK, FREE_BLOCK)
    state.dies[DIE_VALID] = blocks[VALID].reshape(dies, per_die).sum(axis=1)
    state.dies[FREE] = 0
    state.dies[FIRST_FREE] = -1
    forget_closed_blocks(state.parameters, state.dies)
    newest = state.spare.reshape(-1, per_block).max(axis=1)
    for die in range(dies):
        own = np.arange(die * per_die, (die + 1) * per_die)
        # A die programs its blocks one after the other, so at most one is filled in part.
        partly = own[(blocks[WRITTEN, own] > 0) & (blocks[WRITTEN, own] < per_block)]
        full = own[blocks[WRITTEN, own] == per_block]
        active = partly[0] if len(partly) else full[0] if len(full) else own[0]
        blocks[STATE, active] = ACTIVE_BLOCK
        state.dies[ACTIVE, die] = active
        for block in own[blocks[STATE, own] == FREE_BLOCK]:
            free_block(state.control, state.dies, blocks, int(block))
        closed = own[blocks[STATE, own] == CLOSED_BLOCK]
        for block in closed[np.argsort(newest[closed], kind="stable")]:
            close_block(state.dies, blocks, die, int(block), int(newest[block]))


def _restore_reserve(state: DriveState) -> None:
    """Empty blocks until each die has its reserve, then write their pages anew.

    A cut in the middle of garbage collection leaves a die one block short, and writes that were lost make pages valid again.  The pages
    taken out fit the dies that are below their limit, as all limits together exceed the logical pages.
    """
    per_block = state.parameters.pages_per_block
    taken: list[tuple[int, int]] = []
    for die in range(state.parameters.dies):
        while state.dies[FREE, die] < state.parameters.gc_reserve:
            block = emptiest_block(state.control, state.dies, state.blocks, die)
            withdraw_block(state.dies, state.blocks, die, block)
            for flash_page in range(block * per_block, (block + 1) * per_block):
                page = int(state.pages[flash_page, OWNER]) - 1
                if page >= 0 and lookup(state.mapping, page) == flash_page:
                    taken.append((page, int(state.spare[flash_page])))
                    drop_page(state.control, state.dies, state.blocks, state.mapping, page)
            erased(state.control, state.blocks, state.spare, block)
            free_block(state.control, state.dies, state.blocks, block)
    for page, write_id in taken:
        rows = len(state.plan_page(WRITE, page, False))
        state.plan[rows - 1, WRITE_ID] = write_id  # the content is not new
        for row in range(rows):
            apply(row, state.plan, state.control, state.blocks, state.pages, state.spare)
