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
"""

import numpy as np

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import Integers
from flashsim.core.spans import HOST, MERGE
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import DATA_BLOCK, ERASE_BLOCK, FETCH_PAGE, MOVE_PAGE, PROGRAM_PAGE, lookup, plan_row
from flashsim.ssd.state.geometry import block_of, pool_of_block
from flashsim.ssd.state.pools import choose_free, claim_block, drop_page, map_page, next_write_id, recycle_block

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
    for refused, why in (
        (parameters.allocation != "static", f"allocation: '{parameters.allocation}', but a logical block stays on its plane: use static"),
        (
            parameters.wear not in ("none", "dynamic"),
            f"wear: '{parameters.wear}', but blocks are only chosen when opened: use none or dynamic",
        ),
        (parameters.gc_pool != "die", f"gc_pool: '{parameters.gc_pool}', but a merge stays on its die: use die"),
        (parameters.gc_streams > 1, f"gc_streams: {parameters.gc_streams}, but pages are merged to their offsets: use 1"),
        (parameters.gc_slicing, "gc_slicing: a merge is done at once"),
        (parameters.gc_stop > 0, f"gc_stop: {parameters.gc_stop}, but nothing is collected: use 0"),
    ):
        if refused:
            raise RefusedError(f"{why} with ftl '{name}'")
    room = parameters.good_blocks - parameters.gc_reserve - extra
    if logical_blocks(parameters) > room:
        raise InvalidParameterError(
            "capacity",
            parameters.capacity,
            f"it takes {logical_blocks(parameters)} data blocks of a plane, but beside gc_reserve and {extra} more that ftl '{name}' needs "
            f"there are {max(0, room)}",
        )


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
    """Where the table has what the layer keeps of a logical block's plane."""
    numbers = (flash.own.size - DATA) // flash.control.pools
    return (
        DATA
        + flash.own[LOGICAL_BLOCKS] * flash.control.pools
        + logical // flash.own[LOGICAL_BLOCKS] * (numbers - flash.own[LOGICAL_BLOCKS])
    )


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
    fetch, here = -1, lookup(flash.mapping, page)
    if partial and here >= 0:
        fetch = row
        row = plan_row(flash.plan, row, FETCH_PAGE, here, -1, page, 0, -1, HOST, -1)
    superseded = drop_page(flash, page)
    write_id = next_write_id(flash.control)
    map_page(flash, place, page)
    return plan_row(flash.plan, row, PROGRAM_PAGE, place, -1, page, write_id, superseded, HOST, fetch)


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
    """Whether a block has valid pages at their offsets only, and all others of the logical block fit behind them."""
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
