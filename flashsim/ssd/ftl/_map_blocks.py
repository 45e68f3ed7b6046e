"""Blocks of translation pages: a fixed number in each plane, filled in turn; the emptiest is cleaned, one page a write.

A plane with at most p translation pages in blocks of n pages has one block and as many more as 2p pages fill.  When a block is full and
only one other is empty, that is filled next, and of the full ones the emptiest becomes the victim.  It holds at most n/2 valid pages, since
all full ones together hold at most p.  As each write to the region moves one of them before, the victim is empty, erased and of use again
when the next block is full.  So a translation page written takes at most one move, one erase,
one fetch and one store, whatever the drive does.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import Integers
from flashsim.core.spans import MAP
from flashsim.ssd.ftl._map_cache import MAP_BLOCKS, REGIONS, STORES, make_clean
from flashsim.ssd.state.collection import next_valid
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MAP_BLOCK, MOVE_PAGE, STORE_PAGE, lookup, plan_row
from flashsim.ssd.state.geometry import pool_of_block
from flashsim.ssd.state.pools import choose_free, claim_block, collector_of, drop_page, map_page, recycle_block

# Fields of a plane's region in the vector `own`: the place of the block that is being filled, the place of the one that is being emptied
# (-1: none) and the page to look at next there; then the blocks.
FILLED, EMPTIED, NEXT_PAGE, FIRST_BLOCK = range(4)

#: The most rows of a plan that a translation page takes to be written.
STORE_ROWS = 4


def blocks_for(map_pages: int, pools: int, pages_per_block: int) -> int:
    """Blocks of a plane for translation pages (0 if there are none)."""
    in_a_plane = -(-map_pages // pools)
    return 1 + -(-2 * in_a_plane // pages_per_block) if map_pages else 0


def words_for(pools: int, map_blocks: int) -> int:
    """Words of the vector `own` that the regions of all planes take."""
    return pools * (FIRST_BLOCK + map_blocks)


@lean_kernel
def region_of(own: Integers, pool: int) -> int:
    return own[REGIONS] + pool * (FIRST_BLOCK + own[MAP_BLOCKS])


@lean_kernel
def claim(flash: Flash, pool: int, place: int, block: int) -> None:
    claim_block(flash, block)
    flash.pools[collector_of(flash.control, pool)].free_pages -= flash.control.pages_per_block
    flash.blocks[block].state = MAP_BLOCK
    flash.own[region_of(flash.own, pool) + FIRST_BLOCK + place] = block


@lean_kernel
def claim_region(flash: Flash) -> None:
    """Take the blocks of every plane, the first free ones."""
    for pool in range(flash.control.pools):
        region = region_of(flash.own, pool)
        flash.own[region + FILLED] = 0
        flash.own[region + EMPTIED] = -1
        for place in range(flash.own[MAP_BLOCKS]):
            claim(flash, pool, place, flash.pools[pool].first_free)


@lean_kernel
def open_next(flash: Flash, region: int) -> None:
    """The block that was filled is full: fill an empty one; if it was the last, empty the full one with the fewest valid pages."""
    empties, opened, fewest = 0, -1, -1
    for place in range(flash.own[MAP_BLOCKS]):
        block = flash.own[region + FIRST_BLOCK + place]
        if flash.blocks[block].written == 0:
            empties, opened = empties + 1, place
        elif fewest < 0 or flash.blocks[block].valid < flash.blocks[flash.own[region + FIRST_BLOCK + fewest]].valid:
            fewest = place
    flash.own[region + FILLED] = opened
    if empties == 1:
        flash.own[region + EMPTIED] = fewest
        flash.own[region + NEXT_PAGE] = flash.own[region + FIRST_BLOCK + fewest] * flash.control.pages_per_block


@lean_kernel
def place_map_page(flash: Flash, region: int, page: int) -> int:
    """Give a translation page the next flash page of its region; return it."""
    block = flash.own[region + FIRST_BLOCK + flash.own[region + FILLED]]
    if flash.blocks[block].written == flash.control.pages_per_block:
        open_next(flash, region)
        block = flash.own[region + FIRST_BLOCK + flash.own[region + FILLED]]
    flash_page = block * flash.control.pages_per_block + flash.blocks[block].written
    map_page(flash, flash_page, page)
    return flash_page


@lean_kernel
def clean_up(flash: Flash, policies: Policies, row: int, region: int) -> int:
    """Plan one step of emptying a region's victim: a move, and the erase once it is empty; the number of rows.

    The erased block goes to its plane, and the region takes the one that wear levelling names, so that all blocks wear alike.
    """
    place = flash.own[region + EMPTIED]
    if place < 0:
        return row
    victim = flash.own[region + FIRST_BLOCK + place]
    if flash.blocks[victim].valid > 0:
        flash_page = next_valid(flash, flash.own[region + NEXT_PAGE])
        flash.own[region + NEXT_PAGE] = flash_page + 1
        page = int(flash.pages[flash_page].owner) - 1
        drop_page(flash, page)
        target = place_map_page(flash, region, page)
        row = plan_row(flash.plan, row, MOVE_PAGE, target, flash_page, page, 0, victim, MAP, -1)
    if flash.blocks[victim].valid == 0:
        flash.own[region + EMPTIED] = -1
        row = plan_row(flash.plan, row, ERASE_BLOCK, victim, -1, -1, 0, -1, MAP, -1)
        recycle_block(flash, victim)
        if not flash.control.read_only:
            pool = pool_of_block(flash.control, victim)
            claim(flash, pool, place, choose_free(flash, policies, pool))
    return row


@lean_kernel
def last_write_id(control: RecordArray) -> int:
    """The write id that a copy of a translation page carries: that of what the host wrote or trimmed last, so that ids count the host's.

    Copies of one id may be of different age.  Recovery writes all anew, so that it need not know.
    """
    return control.sequence - control.id_base


@lean_kernel
def store_map_page(flash: Flash, policies: Policies, row: int, number: int) -> int:
    """Plan to write translation page `number` anew, with all that memory knows; the number of rows.  A read-only drive writes nothing."""
    if flash.control.read_only:
        return row
    region = region_of(flash.own, number % flash.control.pools)
    row = clean_up(flash, policies, row, region)
    page, fetch = flash.control.logical_pages + number, -1
    if lookup(flash.mapping, page) >= 0:
        fetch = row
        row = plan_row(flash.plan, row, FETCH_PAGE, lookup(flash.mapping, page), -1, page, 0, -1, MAP, -1)
    superseded = drop_page(flash, page)
    target = place_map_page(flash, region, page)
    flash.own[STORES] += 1
    make_clean(flash.own, number)
    return plan_row(flash.plan, row, STORE_PAGE, target, -1, page, last_write_id(flash.control), superseded, MAP, fetch)
