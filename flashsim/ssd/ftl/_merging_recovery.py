"""After a power cut: every logical block is gathered in one data block again, in no time.

A block that holds all valid pages of one logical block, at their offsets, and no others goes on as its data block.  A cut in the midst of a
merge, log blocks and retired blocks leave others: their pages are taken into the controller's memory and written back, into a block that
held nothing else if there is one, which is erased for it, so that no other block need be free.  Blocks without valid pages are erased.
A copy keeps the write id of its source.  A drive that is read-only stays as it is: no write will ask for its data blocks.

A free block is there for every logical block that needs one.  A die works in order, so the flash stands as in the midst of one plan, which
leaves as many blocks free as it opens.  A logical block whose pages lie in log blocks only has a data block that is empty and was erased
just now; if that, or the block that holds its pages, is retired, the spare that stands in for it is not in use yet.
"""

import numpy as np

from flashsim.ssd.ftl._merging import DATA, LOGICAL_BLOCKS, page_at, place_of, pool_of, use_block
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import CLOSED_BLOCK, DATA_BLOCK, RETIRED_BLOCK, erased, programmed
from flashsim.ssd.state.pools import choose_free, drop_page, map_page, recycle_block


def recover_merging(state: DriveState) -> None:
    """Rebuild the table of data blocks; what a layer keeps of each plane is empty.  No block wears out meanwhile."""
    blocks = state.blocks
    state.own[DATA:] = -1
    blocks.state[blocks.state == CLOSED_BLOCK] = DATA_BLOCK
    if state.control.read_only:
        return
    limits = blocks.limit.copy()
    blocks.limit = 0
    discard_empty(state, np.flatnonzero(blocks.state == DATA_BLOCK).tolist())
    sources: dict[int, list[int]] = {}
    homes: dict[int, int] = {}
    for logical, block, private in adopt_data_blocks(state):
        sources.setdefault(logical, []).append(block)
        homes[logical] = max(homes.get(logical, -1), block if private else -1)
    for logical in sorted(homes, key=lambda logical: (homes[logical] < 0, logical)):  # those that need a free block come last
        write_back(state, logical, homes[logical])
        discard_empty(state, sources[logical])
    for retired in np.flatnonzero((blocks.state == RETIRED_BLOCK) & (blocks.written > 0)).tolist():
        erase_in_place(state, retired)
    blocks.limit = limits


def adopt_data_blocks(state: DriveState) -> list[tuple[int, int, bool]]:
    """Enter the blocks that can stay as they are.

    For the other logical blocks: each block that holds valid pages of one, and whether it holds no others and can be used on.
    """
    per_block, pools, count = state.parameters.pages_per_block, state.parameters.pools, len(state.blocks)
    page = np.flatnonzero(state.mapping)
    place = state.mapping[page].astype(np.int64) - 1
    logical, offset = page % pools * state.own[LOGICAL_BLOCKS] + page // pools // per_block, page // pools % per_block
    logicals, blocks = np.divmod(np.unique(logical * count + place // per_block), count)
    private = (np.bincount(blocks, minlength=count) == 1) & (state.blocks.state == DATA_BLOCK)
    in_order = np.bincount(place[place % per_block != offset] // per_block, minlength=count) == 0
    stays = (np.bincount(logicals)[logicals] == 1) & (private & in_order)[blocks]
    state.own[DATA + logicals[stays]] = blocks[stays]
    return list(zip(logicals[~stays].tolist(), blocks[~stays].tolist(), private[blocks[~stays]].tolist(), strict=True))


def write_back(state: DriveState, logical: int, home: int) -> None:
    """Take a logical block's pages from where they lie and write them to their offsets in a block, a free one if it is -1."""
    per_block = state.parameters.pages_per_block
    taken = []
    for offset in range(per_block):
        place = int(place_of(state.flash, logical, offset))
        if place >= 0:
            page = int(page_at(state.flash, logical, offset))
            taken.append((offset, page, int(state.spare[place])))
            drop_page(state.flash, page)
    if home < 0:
        home = int(choose_free(state.flash, state.policies, pool_of(state.flash, logical)))
        use_block(state.flash, home, DATA_BLOCK)
    else:
        erase_in_place(state, home)
    for offset, page, write_id in taken:
        place = home * per_block + offset
        map_page(state.flash, place, page)
        programmed(state.flash, place, -1, page, write_id)
    state.own[DATA + logical] = home


def erase_in_place(state: DriveState, block: int) -> None:
    """Erase a block that stays in the state that it is in."""
    state.blocks.cycles[block] += 1
    state.blocks.written[block] = 0
    erased(state.flash, block)


def discard_empty(state: DriveState, candidates: list[int]) -> None:
    """Erase and free those blocks that hold no valid page."""
    for block in candidates:
        if state.blocks.state[block] == DATA_BLOCK and state.blocks.valid[block] == 0:
            erased(state.flash, block)
            recycle_block(state.flash, block)
