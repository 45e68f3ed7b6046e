"""Place of a flash page: plain numbers for pages and blocks, and the arithmetic between them.

Dies are numbered so that neighbours lie on different channels (die d on channel d mod channels, then packages, then the dies of a package).
Blocks are numbered die by die and plane by plane, flash pages block by block::

    flash page  = block * pages_per_block + page of the block     (counted in slots: see below)
    block       = pool * blocks_per_plane + block of the plane
    pool        = die * planes_per_die + plane of the die

A *pool* is a plane as the keeper of its blocks: they are taken, filled and reclaimed there.

Where a flash page holds several *mapping units*, a logical page of the translation layer is one of them, and what the state calls a flash
page is its place, a *slot*: all pages that are counted here are slots then.  A *group* is the slots that are programmed at once, and only
together.  Without mapping units of their own all three are one flash page.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray, empty_record, record_dtype
from flashsim.core.request import Integers
from flashsim.ssd.parameters import SsdParameters

# The geometry, in slots, of which `units` are a flash page and `group` are programmed at once; `map_pages` are the translation pages, whose
# logical numbers follow `logical_pages`.
_GEOMETRY = "pages_per_block blocks_per_pool planes dies channels pools logical_pages map_pages page_sectors units group "
# What allocation goes by: placement handles of the host, and the column of `Flash.active` for what it writes now; how a plane is chosen,
# the next in turn, how many streams, how many valid pages a pool may hold; the pages
# written and trimmed so far, and how many of these numbers the write ids leave out (`write_ids`); whether blocks ran out, so that the drive
# takes no more writes, and how many it refused; which policy broke its contract.
_ALLOCATION = "placement_handles stream allocation next_pool streams pool_limit sequence id_base read_only refused broken "
# What garbage collection goes by: whether pools share it, moves stay within a chip and victims are emptied in slices; free pages at which a
# pool starts, up to which it goes on, and below which it must not fall; blocks that d-choices draws, victims that one write may reclaim,
# draws made, blocks and lists looked at for a victim; the share of a victim's units that are moved, in 2^-24, the mean of late.
# `plan_rows` is the most flash operations that one logical page can take.
_COLLECTION = "shared copyback slicing start_pages stop_pages least_pages gc_choices gc_rounds gc_draws gc_steps moved_share wear_gap "
_COLLECTION += "plan_rows "
# Of the SLC cache: blocks of a pool that it has at most (0: there is none), the slots of one, whether they are kept for it, whether it is
# folded when it is full, and whether writes pass it by.
_CACHE = "slc_blocks slc_pages slc_own slc_folds slc_bypass "
# The wear of the blocks in use, those that are neither spare nor retired: how many they are, the sum of their erases and of the squares; a
# number that none of them is below and how many have it, a number that none is above and how many have it; the retired blocks.
_WEAR = "in_use erase_sum erase_squares fewest at_fewest most at_most retired"
CONTROL = record_dtype(int64=_GEOMETRY + _ALLOCATION + _COLLECTION + _CACHE + _WEAR)

# How a plane is chosen for a write, in the order of `control_of`; 0 is in turn.
STATIC, DYNAMIC = 1, 2
# Which policy named a block that its contract rules out; 0 for none.
BROKEN_VICTIM, BROKEN_OPENS, BROKEN_LEVELS = range(1, 4)


def filled_record(dtype: np.dtype[np.void], parameters: SsdParameters, **others: int) -> RecordArray:
    """A record whose fields are `others`, or a drive's parameters of the same names, or 0."""
    record = empty_record(dtype)
    for name in dtype.names or ():
        record[name] = others.get(name, getattr(parameters, name, 0))
    return record


def control_of(parameters: SsdParameters, gc_rounds: int, map_pages: int, plan_rows: int) -> RecordArray:
    """CONTROL of an empty drive; the other arguments are as in `gc.base` and `ftl.base`."""
    per_block, shared = parameters.slots_per_block, parameters.gc_pool == "shared"
    together = parameters.pools if shared else 1
    start_pages = parameters.gc_reserve * per_block * together
    return filled_record(
        CONTROL, parameters, pages_per_block=per_block, blocks_per_pool=parameters.blocks_per_plane, planes=parameters.planes_per_die,
        map_pages=map_pages,
        page_sectors=parameters.sectors_per_unit, streams=parameters.gc_streams, copyback=parameters.gc_copyback,
        slicing=parameters.gc_slicing, allocation=("round-robin", "static", "dynamic").index(parameters.allocation), shared=shared,
        start_pages=start_pages, stop_pages=max(parameters.gc_stop, parameters.gc_reserve) * per_block * together,
        slc_own=parameters.slc_mode == "static", slc_folds=parameters.slc_full == "fold",
        least_pages=start_pages - per_block, gc_rounds=gc_rounds, plan_rows=max(plan_rows, collection_rows(parameters, gc_rounds)),
    )  # fmt: skip


def moves_of_a_write(parameters: SsdParameters, gc_rounds: int) -> int:
    """The most pages that collection moves before a write: those of a victim for every round, one more in slices and one to level wear."""
    return (gc_rounds + 2) * parameters.slots_per_block


def collection_rows(parameters: SsdParameters, gc_rounds: int) -> int:
    """The most rows of a plan for a write: moves (two rows each between dies), erases, fetches, programs, and a block of a cache."""
    folding = parameters.slc_pages + 1 if parameters.slc_cache else 0
    moves = moves_of_a_write(parameters, gc_rounds) * (2 if parameters.gc_pool == "shared" else 1)
    return moves + gc_rounds + 2 + 2 * parameters.group + folding


def pool_order(parameters: SsdParameters) -> Integers:
    """The pools in the order in which consecutive writes (or addresses) take them, shape (pools,)."""
    sizes = (parameters.dies_per_package, parameters.packages_per_channel, parameters.channels, parameters.planes_per_die)
    axes = ["DWCP".index(letter) for letter in reversed(parameters.allocation_order)]  # the one that changes fastest comes last
    return np.arange(parameters.pools).reshape(sizes).transpose(axes).ravel()


@lean_kernel
def block_of(control: RecordArray, flash_page: int) -> int:
    return flash_page // control.pages_per_block


@lean_kernel
def pool_of_block(control: RecordArray, block: int) -> int:
    return block // control.blocks_per_pool


@lean_kernel
def die_of_block(control: RecordArray, block: int) -> int:
    return block // (control.blocks_per_pool * control.planes)


@lean_kernel
def channel_of(control: RecordArray, die: int) -> int:
    return die % control.channels
