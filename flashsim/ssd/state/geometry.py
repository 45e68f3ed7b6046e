"""Where a flash page lies: plain numbers for pages and blocks, and the arithmetic between them.

Dies are numbered so that neighbours lie on different channels (die d on channel d mod channels, then packages, then the dies of a package).
Blocks are numbered die by die and plane by plane, flash pages block by block::

    flash page  = block * pages_per_block + page of the block
    block       = pool * blocks_per_plane + block of the plane
    pool        = die * planes_per_die + plane of the die

A *pool* is a plane as the keeper of its blocks: they are taken, filled and reclaimed there.
"""

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import SECTOR, Integers
from flashsim.ssd.parameters import SsdParameters

# The control array.  First the geometry; MAP_PAGES are the translation pages, whose logical numbers follow LOGICAL_PAGES.
(
    PAGES_PER_BLOCK, BLOCKS_PER_POOL, PLANES, DIES, CHANNELS, POOLS, LOGICAL_PAGES, MAP_PAGES, PAGE_SECTORS,
) = range(9)  # fmt: skip
# Then what allocation goes by: how a plane is chosen, the next in turn, how many streams, how many valid pages a pool may hold; the pages
# written and trimmed so far, and how many of these numbers the write ids leave out (`write_ids`); whether blocks ran out, so
# that the drive takes no more writes, and how many it refused; which policy broke its contract.
(
    ALLOCATION, NEXT_POOL, STREAMS, POOL_LIMIT, SEQUENCE, ID_BASE, READ_ONLY, REFUSED, BROKEN,
) = range(9, 18)  # fmt: skip
# Then what garbage collection goes by: whether pools share it, moves stay within a chip and victims are emptied in slices; free pages at
# which a pool starts, up to which it goes on, and below which it must not fall; blocks that d-choices draws, victims that one write may
# reclaim, draws made, blocks and lists looked at for a victim.  PLAN_ROWS is the most flash operations that one logical page can take.
(
    SHARED, COPYBACK, SLICING, START_PAGES, STOP_PAGES, LEAST_PAGES, GC_CHOICES, GC_ROUNDS, GC_DRAWS, GC_STEPS, WEAR_GAP, PLAN_ROWS,
) = range(18, 30)  # fmt: skip
# Then the wear of the blocks in use, those that are neither spare nor retired: how many they are, the sum of their erases and of the
# squares; a number that none of them is below and how many have it, a number that none is above and how many have it; the retired blocks.
(
    IN_USE, ERASE_SUM, ERASE_SQUARES, FEWEST, AT_FEWEST, MOST, AT_MOST, RETIRED,
) = range(30, 38)  # fmt: skip
CONTROL_SCALARS = 38

# How a plane is chosen for a write.
ROUND_ROBIN, STATIC, DYNAMIC = range(3)
# Which policy named a block that its contract rules out; 0 for none.
BROKEN_VICTIM, BROKEN_OPENS, BROKEN_LEVELS = range(1, 4)


def control_array(parameters: SsdParameters, gc_rounds: int, map_pages: int, plan_rows: int) -> Integers:
    """The control array of an empty drive, shape (CONTROL_SCALARS,); the other arguments are as in `gc.base` and `ftl.base`."""
    per_block, shared = parameters.pages_per_block, parameters.gc_pool == "shared"
    together = parameters.pools if shared else 1
    control = np.zeros(CONTROL_SCALARS, np.int64)
    control[PAGES_PER_BLOCK] = per_block
    control[BLOCKS_PER_POOL] = parameters.blocks_per_plane
    control[PLANES] = parameters.planes_per_die
    control[DIES] = parameters.dies
    control[CHANNELS] = parameters.channels
    control[POOLS] = parameters.pools
    control[LOGICAL_PAGES] = parameters.logical_pages
    control[MAP_PAGES] = map_pages
    control[PAGE_SECTORS] = parameters.page_size // SECTOR
    control[ALLOCATION] = {"round-robin": ROUND_ROBIN, "static": STATIC, "dynamic": DYNAMIC}[parameters.allocation]
    control[STREAMS] = parameters.gc_streams
    control[POOL_LIMIT] = parameters.pool_limit
    control[SHARED] = shared
    control[COPYBACK] = parameters.gc_copyback
    control[SLICING] = parameters.gc_slicing
    control[START_PAGES] = parameters.gc_reserve * per_block * together
    control[STOP_PAGES] = max(parameters.gc_stop, parameters.gc_reserve) * per_block * together
    control[LEAST_PAGES] = control[START_PAGES] - per_block
    control[GC_CHOICES] = parameters.gc_choices
    control[GC_ROUNDS] = gc_rounds
    control[WEAR_GAP] = parameters.wear_gap
    control[PLAN_ROWS] = max(plan_rows, collection_rows(parameters, gc_rounds))
    return control


def moves_of_a_write(parameters: SsdParameters, gc_rounds: int) -> int:
    """The most pages that collection moves before a write: those of a victim for every round, one more in slices and one to level wear."""
    return (gc_rounds + 2) * parameters.pages_per_block


def collection_rows(parameters: SsdParameters, gc_rounds: int) -> int:
    """The most rows of a plan for a write with collection: moves (two rows each between dies), erases, a fetch and the program."""
    return moves_of_a_write(parameters, gc_rounds) * (2 if parameters.gc_pool == "shared" else 1) + gc_rounds + 2 + 2


def pool_order(parameters: SsdParameters) -> Integers:
    """The pools in the order in which consecutive writes (or addresses) take them, shape (pools,)."""
    sizes = {
        "C": parameters.channels,
        "W": parameters.packages_per_channel,
        "D": parameters.dies_per_package,
        "P": parameters.planes_per_die,
    }
    at = np.arange(parameters.pools)
    where = {}
    for letter in parameters.allocation_order:
        at, where[letter] = np.divmod(at, sizes[letter])
    die = (where["D"] * sizes["W"] + where["W"]) * sizes["C"] + where["C"]
    return die * sizes["P"] + where["P"]


@lean_kernel
def block_of(control: Integers, flash_page: int) -> int:
    return flash_page // control[PAGES_PER_BLOCK]


@lean_kernel
def pool_of_block(control: Integers, block: int) -> int:
    return block // control[BLOCKS_PER_POOL]


@lean_kernel
def die_of_block(control: Integers, block: int) -> int:
    return block // (control[BLOCKS_PER_POOL] * control[PLANES])


@lean_kernel
def die_of_page(control: Integers, flash_page: int) -> int:
    return die_of_block(control, block_of(control, flash_page))


@lean_kernel
def channel_of(control: Integers, die: int) -> int:
    return die % control[CHANNELS]
