"""The arrays of a drive's flash, what their rows mean, and what a program or an erase leaves on the flash itself.

Two views stand side by side.  The *logical* view moves when a command is admitted: the map, each block's fill and count of valid pages,
the free blocks (`flashsim.ssd.state.pools`).  The *physical* view moves when an operation ends on a die: what each flash page's spare area
says of its content.  A power cut keeps the physical view alone.

Entries that name a page count from one, so that zeroed memory, which costs nothing until it is touched, reads as "none".

A write id is the number of a page written or trimmed (``control.sequence``) less ``control.id_base``.  Write ids are renumbered before they
outgrow 32 bits: recovery needs their order, and four bytes a flash page are what they may take.  What compares times, such as
``blocks.changed``, goes by the number itself, so that renumbering changes nothing that a drive does.
"""

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import CapacityError
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray, empty_table
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import BLOCK, POOL, Flash, Narrow
from flashsim.ssd.state.geometry import pool_order

# Kinds of flash operations (docs/decisions/0006; their causes are those of `flashsim.core.spans`); the last three need no
# die: two are of the write buffer alone, and one writes to the drive's memory.
READ_PAGE, ZERO_PAGE, FETCH_PAGE, PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE, ERASE_BLOCK, BUFFER_PAGE, DROP_PAGE, MEMORY_PAGE = range(10)

# States of a block.  One that garbage collection empties is FREE_BLOCK already, though not among the free ones.  Layers that merge have
# data blocks, where a page lies at its offset in the logical block, and log blocks, where it may lie anywhere; one that
# keeps its map on flash has map blocks.  None of these stands in a ring.  Blocks that are kept for the SLC cache are OWN_SLC_BLOCK always,
# others that it fills or has filled SLC_BLOCK; they have rings of their own.
FREE_BLOCK, ACTIVE_BLOCK, CLOSED_BLOCK, SPARE_BLOCK, RETIRED_BLOCK, DATA_BLOCK, LOG_BLOCK, MAP_BLOCK = range(8)
OWN_SLC_BLOCK, SLC_BLOCK = 8, 9
#: The column of `Flash.active` for the block that the SLC cache fills, and the `source` of what the host writes there: less one for each
#: that is programmed at once behind it.
SLC_STREAM, IN_SLC = 2, -2
TORN = -1  #: The write id of a flash page whose program was cut off.
LAST_WRITE_ID = 2**31 - 1  #: The highest write id.
BAD_VICTIM = -1  #: Result of planning when the policy chose a block that cannot be reclaimed.


@lean_kernel
def lookup(mapping: Narrow, page: int) -> int:
    """The flash page that holds a logical page, or -1."""
    return int(mapping[page]) - 1


@inlined_kernel
def is_program(kind: int) -> bool:
    """True if operations of a kind write to a flash page."""
    return kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE)


@inlined_kernel
def is_one_program(control: RecordArray, place: int, source: int, following: int) -> bool:
    """True if what goes to two slots, `following` no earlier, is programmed at once; groups begin anywhere in the SLC cache."""
    if source <= IN_SLC:
        return place <= following <= place + IN_SLC - source
    return place // control.group == following // control.group


@inlined_kernel
def empty_slots(control: RecordArray, place: int, source: int, following: int) -> int:
    """Slots that stay empty behind `place` in its group, in the SLC cache its page, if `following` is programmed next (-1: none)."""
    group = control.units if source <= IN_SLC else control.group
    if following // group == place // group:
        return 0
    return group - 1 - place % group


@lean_kernel
def plan_row(
    plan: RecordArray, row: int, kind: int, place: int, source: int, logical: int, write_id: int, superseded: int, cause: int, needs: int
) -> int:
    """Note one flash operation; return the number of rows."""
    planned = plan[row]
    planned.kind = kind
    planned.place = place
    planned.source = source
    planned.logical = logical
    planned.write_id = write_id
    planned.superseded = superseded
    planned.cause = cause
    planned.needs = needs
    return row + 1


@lean_kernel
def start_program(flash: Flash, place: int, source: int) -> None:
    """A program begins: until it ends, a power cut leaves a torn page.  It says how many bits the cells of its block hold."""
    flash.spare[place] = TORN
    if flash.control.slc_blocks:
        flash.blocks[place // flash.control.pages_per_block].slc = source <= IN_SLC


@lean_kernel
def end_program(flash: Flash, place: int, source: int, logical: int, write_id: int) -> None:
    """A program ends: the page's spare area says what it holds.  A copy (it has a source) keeps the write id."""
    flash.spare[place] = write_id if source < 0 else flash.spare[source]
    flash.pages[place].spare_owner = logical + 1


@lean_kernel
def end_erase(flash: Flash, block: int) -> None:
    first = block * flash.control.pages_per_block
    flash.spare[first : first + flash.control.pages_per_block] = 0
    erases = flash.blocks[block].erases
    flash.blocks[block].erases = erases + 1
    if flash.blocks[block].state not in (RETIRED_BLOCK, SPARE_BLOCK, OWN_SLC_BLOCK):
        note_wear(flash.control, erases, -1)
        note_wear(flash.control, erases + 1, 1)


@lean_kernel
def note_wear(control: RecordArray, erases: int, change: int) -> None:
    """A block with so many erases comes into use (`change` is 1) or goes out of it (-1)."""
    control.in_use += change
    control.erase_sum += change * erases
    control.erase_squares += change * erases * erases
    if erases == control.fewest:
        control.at_fewest += change
    elif erases < control.fewest:
        control.fewest, control.at_fewest = erases, 1
    if erases == control.most:
        control.at_most += change
    elif erases > control.most:
        control.most, control.at_most = erases, 1


def count_wear(control: RecordArray, blocks: RecordArray) -> None:
    """Count the wear of all blocks, as `note_wear` keeps it from then on."""
    control.retired = (blocks.state == RETIRED_BLOCK).sum()
    erases = blocks.erases[in_use(blocks)]
    control.in_use, control.erase_sum, control.erase_squares = len(erases), erases.sum(), (erases * erases).sum()
    control.fewest, control.most = erases.min(initial=NEVER), erases.max(initial=0)
    control.at_fewest, control.at_most = (erases == control.fewest).sum(), (erases == control.most).sum()


def in_use(blocks: RecordArray) -> npt.NDArray[np.bool_]:
    """Mask of the blocks that are neither retired nor spare, nor kept for the SLC cache."""
    return (blocks.state != RETIRED_BLOCK) & (blocks.state != SPARE_BLOCK) & (blocks.state != OWN_SLC_BLOCK)


def empty_arrays(parameters: SsdParameters) -> tuple[RecordArray, Integers, Integers, RecordArray]:
    """The tables of a drive that was never written: its good blocks are free in order, the last of each plane spare."""
    per_pool, count, per_block = parameters.blocks_per_plane, parameters.pools, parameters.slots_per_block
    pools, blocks = empty_table(count, POOL), empty_table(count * per_pool, BLOCK)
    active, by_valid = np.empty((count, 2 + parameters.placement_handles), np.int64), np.empty((count, per_block + 1), np.int64)
    pools.order = pool_order(parameters)
    forget_blocks(parameters, pools, active, by_valid)
    blocks.limit = _limits(parameters)
    states = blocks.state.reshape(count, per_pool)
    if bad := parameters.factory_bad_blocks:
        for pool in range(count):
            states[pool, generator(parameters.seed, "factory bad blocks", pool).permutation(per_pool)[:bad]] = RETIRED_BLOCK
    good = states != RETIRED_BLOCK
    own = good & (np.cumsum(good, axis=1) > parameters.good_blocks)
    spare = own & (np.cumsum(own, axis=1) > parameters.own_slc_blocks)
    own &= ~spare
    states[own], states[spare] = OWN_SLC_BLOCK, SPARE_BLOCK
    pools.first_free, pools.free = _link(blocks, states == FREE_BLOCK)
    pools.first_spare, pools.spares = _link(blocks, spare)
    pools.slc_free, _ = _link(blocks, own)
    pools.free_pages = pools.free * per_block
    if parameters.gc_pool == "shared":
        pools.free_pages = np.where(np.arange(count) == 0, pools.free_pages.sum(), 0)
    return pools, active, by_valid, blocks


def forget_blocks(parameters: SsdParameters, pools: RecordArray, active: Integers, by_valid: Integers) -> None:
    """Take all blocks off the pools' rings and streams."""
    active[:] = by_valid[:] = -1
    for name in ("first_free", "first_spare", "victim", "freed", "oldest", "slc_oldest", "slc_free"):
        pools[name] = -1
    for name in ("free", "spares", "free_pages", "pool_valid", "collecting", "slc_blocks"):
        pools[name] = 0
    pools.least_valid = parameters.slots_per_block


def _limits(parameters: SsdParameters) -> Integers:
    """Endurance of each block, erases: normally distributed about the drive's, at least 1; 0 where there is no end."""
    count = parameters.pools * parameters.blocks_per_plane
    if parameters.endurance == 0:
        return np.zeros(count, np.int64)
    spread = parameters.endurance_spread * parameters.endurance
    limits = parameters.endurance + spread * generator(parameters.seed, "endurance").standard_normal(count)
    return np.maximum(np.rint(limits), 1).astype(np.int64)


def _link(blocks: RecordArray, chosen: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Link the chosen blocks of each pool, shape (pools, blocks), to a ring; the first of each (-1: none), and how many they are."""
    ring, counts = np.flatnonzero(chosen), chosen.sum(axis=1)
    starts, any_chosen = np.cumsum(counts) - counts, counts > 0
    after, first = np.roll(ring, -1), np.full(len(counts), -1)
    first[any_chosen] = ring[starts[any_chosen]]
    after[(starts + counts - 1)[any_chosen]] = first[any_chosen]
    blocks.after[ring], blocks.before[after] = after, ring
    return first, counts


@lean_kernel
def ids_left(control: RecordArray) -> int:
    """Pages that can be written and trimmed before write ids must be renumbered."""
    return LAST_WRITE_ID - (control.sequence - control.id_base)


def renumber(control: RecordArray, spare: Narrow, trimmed: Narrow, count: int, oldest_in_flight: int | None) -> int:
    """Make room for `count` more write ids; by how much those in flight have become smaller.

    Ids that are older than all in flight become 1, 2, ... in the same order; the others keep their distances.
    """
    last = int(control.sequence - control.id_base)
    first_kept = last + 1 if oldest_in_flight is None else oldest_in_flight
    ids = np.unique(np.concatenate([array[(array > 0) & (array < first_kept)] for array in (spare, trimmed)]))
    shift = first_kept - 1 - len(ids)
    if last - shift + count > LAST_WRITE_ID:
        raise CapacityError(f"write ids: {last - shift} are in use, and {count} more do not fit into {LAST_WRITE_ID}")
    for array in (spare, trimmed):
        newer, older = array >= first_kept, (array > 0) & (array < first_kept)
        array[older] = np.searchsorted(ids, array[older]) + 1
        array[newer] -= shift
    control.id_base += shift
    return shift
