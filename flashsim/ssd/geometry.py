"""Where a flash page lies: plain numbers for pages and blocks, and the arithmetic between them.

A drive's dies are numbered so that neighbours lie on different channels (die d on channel d mod channels).  Blocks are numbered die by
die, flash pages block by block::

    flash page  = block * pages_per_block + page of the block
    block       = die * blocks_per_die + block of the die
    channel     = die mod channels

Planes only add blocks to a die: a die works on one page or block at a time.
"""

from __future__ import annotations

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import SECTOR, Integers
from flashsim.ssd.parameters import SsdParameters

# The control array: geometry, then the counters of the flash translation layer, then what garbage collection goes by: how many blocks
# d-choices draws, how many victims one write may reclaim, how many draws were made, how many blocks and lists were looked at for a victim.
# PLAN_ROWS is the most flash operations that one logical page can take.
(
    PAGES_PER_BLOCK, BLOCKS_PER_DIE, DIES, CHANNELS, LOGICAL_PAGES, PAGE_SECTORS, RESERVE, DIE_LIMIT, NEXT_DIE, SEQUENCE,
    GC_CHOICES, GC_ROUNDS, GC_DRAWS, GC_STEPS, PLAN_ROWS,
) = range(15)  # fmt: skip
CONTROL_SCALARS = 15


def control_array(parameters: SsdParameters, gc_rounds: int) -> Integers:
    """The control array of an empty drive, shape (CONTROL_SCALARS,); `gc_rounds` as in `flashsim.ssd.gc.base`."""
    control = np.zeros(CONTROL_SCALARS, np.int64)
    control[PAGES_PER_BLOCK] = parameters.pages_per_block
    control[BLOCKS_PER_DIE] = parameters.blocks_per_die
    control[DIES] = parameters.dies
    control[CHANNELS] = parameters.channels
    control[LOGICAL_PAGES] = parameters.logical_pages
    control[PAGE_SECTORS] = parameters.page_size // SECTOR
    control[RESERVE] = parameters.gc_reserve
    control[DIE_LIMIT] = (parameters.blocks_per_die - parameters.gc_reserve) * parameters.pages_per_block
    control[GC_CHOICES] = parameters.gc_choices
    control[GC_ROUNDS] = gc_rounds
    control[PLAN_ROWS] = gc_rounds * (parameters.pages_per_block + 1) + 2  # moves and erases, a fetch and a program
    return control


@lean_kernel
def block_of(control: Integers, flash_page: int) -> int:
    """The block of a flash page."""
    return flash_page // control[PAGES_PER_BLOCK]


@lean_kernel
def die_of_block(control: Integers, block: int) -> int:
    """The die of a block."""
    return block // control[BLOCKS_PER_DIE]


@lean_kernel
def die_of_page(control: Integers, flash_page: int) -> int:
    """The die of a flash page."""
    return die_of_block(control, block_of(control, flash_page))


@lean_kernel
def channel_of(control: Integers, die: int) -> int:
    """The channel of a die."""
    return die % control[CHANNELS]
