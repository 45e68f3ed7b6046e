"""The arrays of a drive's flash, what their rows mean, and what a program or an erase leaves on the flash itself.

Two views stand side by side.  The *logical* view moves when a command is admitted: the map, each block's fill and count of valid pages,
the free blocks (`flashsim.ssd.state.pools`).  The *physical* view moves when an operation ends on a die: what each flash page's spare area
says of its content.  A power cut keeps the physical view alone.

Entries that name a page count from one, so that zeroed memory, which costs nothing until it is touched, reads as "none".
"""

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import lean_kernel
from flashsim.core.records import Records
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.core.units import NEVER
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import Flash, Narrow
from flashsim.ssd.state.geometry import (
    AT_FEWEST,
    AT_MOST,
    ERASE_SQUARES,
    ERASE_SUM,
    FEWEST,
    IN_USE,
    MOST,
    PAGES_PER_BLOCK,
    RETIRED,
    pool_order,
)

# Kinds of flash operations (docs/decisions/0006; their causes are those of `flashsim.core.spans`); the last two are of the write buffer
# alone.
READ_PAGE, ZERO_PAGE, FETCH_PAGE, PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE, ERASE_BLOCK, BUFFER_PAGE, DROP_PAGE = range(9)

# Rows of the pool array, shape (POOL_ROWS + pages of a block + 1, pools).  ACTIVE + s is the block that stream s fills (-1: none is open).
# ORDER lists the pools in the order of allocation.  QUEUED counts the operations that wait on a die or are at work there (column: the die).
# SPARES is how many spare blocks are left.
(
    ACTIVE, ACTIVE_MOVED, FREE, FIRST_FREE, SPARES, FIRST_SPARE, ORDER, QUEUED,
) = range(8)  # fmt: skip
# What garbage collection looks at, in column 0 where pools share it: free pages (of free and active blocks), valid pages, whether it is at
# work, the block that it empties (-1: none), the next flash page to look at there, and why; the block that was freed last, and where static
# wear levelling looks next.
FREE_PAGES, POOL_VALID, COLLECTING, VICTIM, VICTIM_PAGE, VICTIM_CAUSE, FREED, WEAR_HAND = range(8, 16)
# Rings of closed blocks (-1 where one is empty): in the order in which they were closed, and row WITH_VALID + v those with v valid pages,
# the one whose count changed longest ago first.  No closed block has fewer valid pages than LEAST_VALID.
OLDEST, LEAST_VALID, WITH_VALID = range(16, 19)
POOL_ROWS = 18
# Rows of the block array, shape (BLOCK_ROWS, blocks).  WRITTEN is the page up to which the block is filled.  ERASES is what the block has
# gone through, CYCLES what was planned, LIMIT what it can take (0: no end).  AFTER and BEFORE link a block in the free, the spare or the
# closed ring, PEER_AFTER and PEER_BEFORE in that of its count; CHANGED is the write id up to which pages were placed in or lost from the
# closed block.
STATE, VALID, PEER_AFTER, PEER_BEFORE, CHANGED, WRITTEN, AFTER, BEFORE, ERASES, CYCLES, LIMIT = range(11)
BLOCK_ROWS = 11
# States of a block.  One that garbage collection empties is FREE_BLOCK already, though not among the free ones.  Layers that merge have
# data blocks, where a page lies at its offset in the logical block, and log blocks, where it may lie anywhere; one that
# keeps its map on flash has map blocks.  None of these stands in a ring.
FREE_BLOCK, ACTIVE_BLOCK, CLOSED_BLOCK, SPARE_BLOCK, RETIRED_BLOCK, DATA_BLOCK, LOG_BLOCK, MAP_BLOCK = range(8)
# Columns of the page array, shape (flash pages, PAGE_COLUMNS), int32: one more than the logical page, 0 for none.
OWNER, SPARE_OWNER = range(2)
PAGE_COLUMNS = 2

#: The write id of a flash page whose program was cut off.
TORN = -1
#: What planning returns when the policy chose a block that cannot be reclaimed.
BAD_VICTIM = -1


@lean_kernel
def lookup(mapping: Narrow, page: int) -> int:
    """The flash page that holds a logical page, or -1."""
    return int(mapping[page]) - 1


@lean_kernel
def plan_row(
    plan: Records,
    row: int,
    kind: int,
    place: int,
    source: int,
    logical: int,
    write_id: int,
    superseded: int,
    cause: int,
    needs: int,
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
def started(spare: Narrow, flash_page: int) -> None:
    """A program begins: until it ends, a power cut leaves a torn page."""
    spare[flash_page] = TORN


@lean_kernel
def programmed(flash: Flash, place: int, source: int, logical: int, write_id: int) -> None:
    """A program ends: the page's spare area says what it holds.  A copy (it has a source) keeps the write id."""
    flash.spare[place] = write_id if source < 0 else flash.spare[source]
    flash.pages[place, SPARE_OWNER] = logical + 1


@lean_kernel
def erased(flash: Flash, block: int) -> None:
    first = block * flash.control[PAGES_PER_BLOCK]
    flash.spare[first : first + flash.control[PAGES_PER_BLOCK]] = 0
    erases = flash.blocks[ERASES, block]
    flash.blocks[ERASES, block] = erases + 1
    if flash.blocks[STATE, block] not in (RETIRED_BLOCK, SPARE_BLOCK):
        note_wear(flash.control, erases, -1)
        note_wear(flash.control, erases + 1, 1)


@lean_kernel
def note_wear(control: Integers, erases: int, change: int) -> None:
    """A block with so many erases comes into use (`change` is 1) or goes out of it (-1)."""
    control[IN_USE] += change
    control[ERASE_SUM] += change * erases
    control[ERASE_SQUARES] += change * erases * erases
    if erases == control[FEWEST]:
        control[AT_FEWEST] += change
    elif erases < control[FEWEST]:
        control[FEWEST], control[AT_FEWEST] = erases, 1
    if erases == control[MOST]:
        control[AT_MOST] += change
    elif erases > control[MOST]:
        control[MOST], control[AT_MOST] = erases, 1


def count_wear(control: Integers, blocks: Integers) -> None:
    """Count the wear of all blocks, as `note_wear` keeps it from then on."""
    retired = blocks[STATE] == RETIRED_BLOCK
    erases = blocks[ERASES, ~retired & (blocks[STATE] != SPARE_BLOCK)]
    fewest, most = erases.min(initial=NEVER), erases.max(initial=0)
    control[[IN_USE, ERASE_SUM, ERASE_SQUARES, RETIRED]] = len(erases), erases.sum(), (erases * erases).sum(), retired.sum()
    control[[FEWEST, AT_FEWEST, MOST, AT_MOST]] = fewest, (erases == fewest).sum(), most, (erases == most).sum()


def empty_arrays(parameters: SsdParameters) -> tuple[Integers, Integers]:
    """The pool and block arrays of a drive that was never written: its good blocks are free in order, the last of each plane spare."""
    per_pool, pools = parameters.blocks_per_plane, parameters.pools
    pool_array = np.zeros((POOL_ROWS + parameters.pages_per_block + 1, pools), np.int64)
    block_array = np.zeros((BLOCK_ROWS, pools * per_pool), np.int64, order="F")
    pool_array[ORDER] = pool_order(parameters)
    forget_blocks(parameters, pool_array)
    block_array[LIMIT] = _limits(parameters)
    states = block_array[STATE].reshape(pools, per_pool)
    for pool in range(pools):
        bad = generator(parameters.seed, "factory bad blocks", pool).permutation(per_pool)[: parameters.factory_bad_blocks]
        states[pool, bad] = RETIRED_BLOCK
        good = np.flatnonzero(states[pool] != RETIRED_BLOCK)
        states[pool, good[len(good) - parameters.spares_at_first :]] = SPARE_BLOCK
    for start, count, state in ((FIRST_FREE, FREE, FREE_BLOCK), (FIRST_SPARE, SPARES, SPARE_BLOCK)):
        _link(pool_array, block_array, start, count, block_array[STATE] == state, per_pool)
    pool_array[FREE_PAGES] = pool_array[FREE] * parameters.pages_per_block
    if parameters.gc_pool == "shared":
        pool_array[FREE_PAGES, 0], pool_array[FREE_PAGES, 1:] = pool_array[FREE_PAGES].sum(), 0
    return pool_array, block_array


def forget_blocks(parameters: SsdParameters, pools: Integers) -> None:
    """Take all blocks off the pools' rings and streams."""
    for row in (ACTIVE, ACTIVE_MOVED, FIRST_FREE, FIRST_SPARE, VICTIM, FREED, OLDEST):
        pools[row] = -1
    for row in (FREE, SPARES, FREE_PAGES, POOL_VALID, COLLECTING):
        pools[row] = 0
    pools[WITH_VALID:] = -1
    pools[LEAST_VALID] = parameters.pages_per_block


def _limits(parameters: SsdParameters) -> Integers:
    """How many erases each block can take: normally distributed about the drive's endurance, at least 1; 0 where there is no end."""
    count = parameters.pools * parameters.blocks_per_plane
    if parameters.endurance == 0:
        return np.zeros(count, np.int64)
    spread = parameters.endurance_spread * parameters.endurance
    limits = parameters.endurance + spread * generator(parameters.seed, "endurance").standard_normal(count)
    return np.maximum(np.rint(limits), 1).astype(np.int64)


def _link(pools: Integers, blocks: Integers, start: int, count: int, chosen: npt.NDArray[np.bool_], per_pool: int) -> None:
    for pool in range(pools.shape[1]):
        ring = pool * per_pool + np.flatnonzero(chosen[pool * per_pool : (pool + 1) * per_pool])
        pools[count, pool] = len(ring)
        pools[start, pool] = ring[0] if len(ring) else -1
        blocks[AFTER, ring] = np.roll(ring, -1)
        blocks[BEFORE, ring] = np.roll(ring, 1)
