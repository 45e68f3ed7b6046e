"""Logical blocks, and merges: what the layers that map whole blocks share.

Consecutive logical pages go to consecutive planes, in the order of allocation; each plane divides its share into *logical blocks* of as
many pages as an erase block has::

    plane          = pools[page % pools].order
    logical block  = page // pools // pages_per_block     of the plane
    offset         = page // pools % pages_per_block

The logical blocks of one number, over all planes, are a superblock striped over the channels.  Every plane works by itself, so merges never
leave a die.  A *data block* has each page at its offset, so that a logical block needs one number of memory; pages are programmed in
ascending order, and one that is passed over stays empty until the block is erased.

A *merge* gathers the valid pages of one logical block in one data block.  It is a *switch* if a block has them all already and just takes
the data block's place, a *partial* merge if it has the first ones and takes in the rest, and a *full* merge into a new block otherwise.

After a power cut every logical block is gathered in one data block again, in no time.  A block that holds all valid pages of one logical
block, at their offsets, and no others goes on as its data block.  A cut in the midst of a merge, log blocks and retired blocks leave
others: their pages are taken into the controller's memory and written back, into a block that held nothing else if there is one, which is
erased for it, so that no other block need be free.  Blocks without valid pages are erased.  A copy keeps the write id of its source.  A
drive that is read-only stays as it is: no write will ask for its data blocks.

A free block is there for every logical block that needs one.  A die works in order, so the flash stands as in the midst of one plan, which
leaves as many blocks free as it opens.  A logical block whose pages lie in log blocks only has a data block that is empty and was erased
just now; if that, or the block that holds its pages, is retired, the spare that stands in for it is not in use yet.
"""

import numpy as np

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import Integers
from flashsim.core.spans import MERGE
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import (
    CLOSED_BLOCK,
    DATA_BLOCK,
    ERASE_BLOCK,
    MOVE_PAGE,
    RETIRED_BLOCK,
    lookup,
    plan_row,
)
from flashsim.ssd.state.geometry import block_of, pool_of_block
from flashsim.ssd.state.pools import choose_free, claim_block, drop_page, map_page, plan_program, recycle_block

# The table `own`: how many logical blocks a plane has; then the data block of each (-1: none), plane by plane in the order of allocation;
# then what the layer keeps of each plane, `fields` numbers each.
LOGICAL_BLOCKS, DATA = range(2)


def logical_blocks(parameters: SsdParameters) -> int:
    return -(-parameters.logical_pages // (parameters.pools * parameters.pages_per_block))


def merging_table(parameters: SsdParameters, fields: int) -> Integers:
    """The table of an empty drive, shape (1 + (logical blocks of a plane + `fields`) x planes,); everything in it is -1."""
    count = logical_blocks(parameters)
    table = np.full(DATA + (count + fields) * parameters.pools, -1, np.int64)
    table[LOGICAL_BLOCKS] = count
    return table


def check_merging(parameters: SsdParameters, name: str, extra: int) -> None:
    """Refuse what a layer that merges cannot work with; `extra` blocks of a plane are in use beside the data blocks."""
    for refused, parameter, why in (
        (parameters.allocation != "static", "allocation", "a logical block stays on its plane: use static"),
        (parameters.wear not in ("none", "dynamic"), "wear", "blocks are only chosen when opened: use none or dynamic"),
        (parameters.gc_pool != "die", "gc_pool", "a merge stays on its die: use die"),
        (parameters.gc_streams > 1, "gc_streams", "pages are merged to their offsets: use 1"),
        (parameters.gc_slicing, "gc_slicing", ""),
        (parameters.gc_stop > 0, "gc_stop", "nothing is collected: use 0"),
    ):
        if refused:
            value = getattr(parameters, parameter)
            reason = f"{value!r}, but {why}" if why else "a merge is done at once"
            raise RefusedError(f"{parameter}: {reason} with ftl '{name}'")
    blocks, room = logical_blocks(parameters), max(0, parameters.good_blocks - parameters.gc_reserve - extra)
    if blocks > room:
        needs = f"beside gc_reserve and {extra} more that ftl '{name}' needs there are {room}"
        raise InvalidParameterError("capacity", parameters.capacity, f"it takes {blocks} data blocks of a plane, but {needs}")


@lean_kernel
def logical_block_of(flash: Flash, page: int) -> int:
    """The number of a page's logical block, over all planes: its place in the table after DATA."""
    return page % flash.control.pools * flash.own[LOGICAL_BLOCKS] + page // flash.control.pools // flash.control.pages_per_block


@lean_kernel
def offset_of(control: RecordArray, page: int) -> int:
    return page // control.pools % control.pages_per_block


@lean_kernel
def page_at(flash: Flash, logical: int, offset: int) -> int:
    """The logical page at an offset of a logical block; the last blocks may end in numbers that are no page."""
    index = logical % flash.own[LOGICAL_BLOCKS] * flash.control.pages_per_block + offset
    return index * flash.control.pools + logical // flash.own[LOGICAL_BLOCKS]


@lean_kernel
def place_of(flash: Flash, logical: int, offset: int) -> int:
    """The flash page that holds the page at an offset of a logical block, or -1."""
    page = page_at(flash, logical, offset)
    return lookup(flash.mapping, page) if page < flash.control.logical_pages else -1


@lean_kernel
def pool_of(flash: Flash, logical: int) -> int:
    return flash.pools[logical // flash.own[LOGICAL_BLOCKS]].order


@lean_kernel
def fields_of(flash: Flash, logical: int) -> int:
    """Begin of the table's fields for a logical block's plane."""
    blocks, plane = flash.own[LOGICAL_BLOCKS], logical // flash.own[LOGICAL_BLOCKS]
    fields = (flash.own.size - DATA) // flash.control.pools - blocks
    return DATA + blocks * flash.control.pools + plane * fields


@lean_kernel
def use_block(flash: Flash, block: int, state: int) -> None:
    """Make a free block a data or log block; its pages count as free no more, whatever it will hold."""
    claim_block(flash, block)
    flash.blocks[block].state = state
    flash.pools[pool_of_block(flash.control, block)].free_pages -= flash.control.pages_per_block


@lean_kernel
def take_block(flash: Flash, policies: Policies, pool: int, state: int) -> int:
    """Make the free block of a plane that wear levelling names a data or log block; return it."""
    block = choose_free(flash, policies, pool)
    use_block(flash, block, state)
    return block


@lean_kernel
def write_page(flash: Flash, row: int, page: int, partial: int, place: int) -> int:
    """Plan to program a page that the host writes; the number of rows."""
    row = plan_program(flash, row, page, partial, -1)
    flash.plan[row - 1].place = place
    map_page(flash, place, page)
    return row


@lean_kernel
def gather(flash: Flash, row: int, logical: int, first: int, end: int, target: int) -> int:
    """Plan to move the valid pages of a logical block from offset `first` up to `end` to their offsets in a block; the number of rows."""
    for offset in range(first, end):
        source = place_of(flash, logical, offset)
        if source < 0 or block_of(flash.control, source) == target:
            continue
        page, place = page_at(flash, logical, offset), target * flash.control.pages_per_block + offset
        drop_page(flash, page)
        map_page(flash, place, page)
        row = plan_row(flash.plan, row, MOVE_PAGE, place, source, page, 0, -1, MERGE, -1)
    return row


@lean_kernel
def discard(flash: Flash, row: int, block: int) -> int:
    """Plan to erase a block without valid pages, and free it; the number of rows."""
    recycle_block(flash, block)
    return plan_row(flash.plan, row, ERASE_BLOCK, block, -1, -1, 0, -1, MERGE, -1)


@lean_kernel
def can_take_in(flash: Flash, logical: int, block: int) -> bool:
    """True if a block has valid pages at their offsets only, and all others of the logical block fit behind them."""
    for offset in range(flash.control.pages_per_block):
        place = place_of(flash, logical, offset)
        if place < 0 or place == block * flash.control.pages_per_block + offset:
            continue
        if block_of(flash.control, place) == block or offset < flash.blocks[block].written:
            return False
    return True


@lean_kernel
def merge(flash: Flash, policies: Policies, row: int, logical: int, log: int) -> int:
    """Plan to merge a logical block, with a log block of its own or without (-1): a switch, partial or full merge; the number of rows.

    It opens one block at most; the old data block and the log block are erased.
    """
    data = flash.own[DATA + logical]
    target = log
    if log < 0 or not can_take_in(flash, logical, log):
        target = take_block(flash, policies, pool_of_block(flash.control, data), DATA_BLOCK)
    row = gather(flash, row, logical, 0, flash.control.pages_per_block, target)
    flash.blocks[target].state = DATA_BLOCK
    flash.own[DATA + logical] = target
    row = discard(flash, row, data)
    if log >= 0 and log != target:
        row = discard(flash, row, log)
    return row


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
    pages = []
    for offset in range(per_block):
        place = int(place_of(state.flash, logical, offset))
        if place >= 0:
            page = int(page_at(state.flash, logical, offset))
            pages.append((offset, page, int(state.spare[place])))
            drop_page(state.flash, page)
    if home < 0:
        home = int(choose_free(state.flash, state.policies, pool_of(state.flash, logical)))
        use_block(state.flash, home, DATA_BLOCK)
    else:
        erase_in_place(state, home)
    for offset, page, write_id in pages:
        place = home * per_block + offset
        map_page(state.flash, place, page)
        flash_array.end_program(state.flash, place, -1, page, write_id)
    state.own[DATA + logical] = home


def erase_in_place(state: DriveState, block: int) -> None:
    """Erase a block that stays in the state that it is in."""
    state.blocks.cycles[block] += 1
    state.blocks.written[block] = 0
    flash_array.end_erase(state.flash, block)


def discard_empty(state: DriveState, candidates: list[int]) -> None:
    """Erase and free those blocks that hold no valid page."""
    for block in candidates:
        if state.blocks.state[block] == DATA_BLOCK and state.blocks.valid[block] == 0:
            flash_array.end_erase(state.flash, block)
            recycle_block(state.flash, block)
