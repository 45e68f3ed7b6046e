"""The state of a drive's flash: small functions over arrays, without a clock, that every translation layer is made of.

Two views stand side by side.  The *logical* view moves when a command is admitted: the map, each block's fill and count of valid pages,
the free blocks.  The *physical* view moves when an operation ends on a die: what each flash page's spare area says of its content.
A power cut keeps the physical view alone.

Entries that name a page count from one, so that zeroed memory, which costs nothing until it is touched, reads as "none".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.geometry import (
    BLOCKS_PER_DIE,
    DIE_LIMIT,
    DIES,
    GC_STEPS,
    NEXT_DIE,
    PAGES_PER_BLOCK,
    SEQUENCE,
    block_of,
    die_of_block,
)
from flashsim.ssd.parameters import SsdParameters

# Kinds of flash operations.
READ_PAGE, ZERO_PAGE, FETCH_PAGE, PROGRAM_PAGE, MOVE_PAGE, ERASE_BLOCK = range(6)
# Rows of the die array, shape (DIE_ROWS + pages of a block + 1, dies).  Three kinds of rings of blocks start here (-1 where one is empty):
# the free blocks, the closed blocks in the order in which they were closed, and row WITH_VALID + v the closed blocks with v valid pages,
# the one whose count changed longest ago first.  No closed block has fewer valid pages than LEAST_VALID.
ACTIVE, FREE, DIE_VALID, FIRST_FREE, OLDEST, LEAST_VALID, WITH_VALID = range(7)
DIE_ROWS = 6
# Rows of the block array, shape (BLOCK_ROWS, blocks).  AFTER and BEFORE link a block in the free or the closed ring, and PEER_AFTER and
# PEER_BEFORE in that of its count; CHANGED is the write id up to which pages were placed in or lost from the block while it was closed.
STATE, VALID, WRITTEN, ERASES, AFTER, BEFORE, PEER_AFTER, PEER_BEFORE, CHANGED = range(9)
BLOCK_ROWS = 9
# States of a block.
FREE_BLOCK, ACTIVE_BLOCK, CLOSED_BLOCK = range(3)
# Columns of the page array, shape (flash pages, PAGE_COLUMNS), int32: one more than the logical page, 0 for none.
OWNER, SPARE_OWNER = range(2)
PAGE_COLUMNS = 2
# Columns of a plan, shape (rows, PLAN_COLUMNS): the flash operations of one logical page, in order.  PLACE is a flash page, or the block
# to erase; SOURCE is where a move reads; SUPERSEDED is the block that holds the page's older version, -1 for none.
KIND, PLACE, SOURCE, LOGICAL, WRITE_ID, SUPERSEDED = range(6)
PLAN_COLUMNS = 6

#: The arrays with an entry a page are narrower than the others.
Narrow = npt.NDArray[np.int32]

#: The write id of a flash page whose program was cut off.
TORN = -1
#: What `make_room` returns when the policy chose a block that cannot be reclaimed.
BAD_VICTIM = -1


@lean_kernel
def lookup(mapping: Narrow, page: int) -> int:
    """The flash page that holds a logical page, or -1."""
    return int(mapping[page]) - 1


@lean_kernel
def plan_row(plan: Integers, row: int, kind: int, place: int, source: int, logical: int, write_id: int, superseded: int) -> int:
    """Note one flash operation; return the number of rows."""
    plan[row, KIND] = kind
    plan[row, PLACE] = place
    plan[row, SOURCE] = source
    plan[row, LOGICAL] = logical
    plan[row, WRITE_ID] = write_id
    plan[row, SUPERSEDED] = superseded
    return row + 1


@lean_kernel
def next_die(control: Integers, dies: Integers) -> int:
    """The die that takes the next write: round robin, passing over dies whose valid pages are at their limit.

    Below the limit of (blocks - reserve) blocks' worth, one of the (blocks - reserve) closed blocks that a die has when it reclaims holds
    an invalid page, so reclaiming gains at least one.  All limits together exceed the logical pages: some die is always below its own.
    """
    die = control[NEXT_DIE]
    while dies[DIE_VALID, die] >= control[DIE_LIMIT]:
        die = (die + 1) % control[DIES]
    control[NEXT_DIE] = (die + 1) % control[DIES]
    return die


@lean_kernel
def join_ring(dies: Integers, blocks: Integers, start: int, links: int, die: int, block: int) -> None:
    """Put a block last in the ring of a die that starts at row `start` and is linked by rows `links` and ``links + 1``."""
    first = dies[start, die]
    if first < 0:
        dies[start, die] = first = block
    last = blocks[links + 1, first] if first != block else block
    blocks[links, last] = block
    blocks[links + 1, block] = last
    blocks[links, block] = first
    blocks[links + 1, first] = block


@lean_kernel
def leave_ring(dies: Integers, blocks: Integers, start: int, links: int, die: int, block: int) -> None:
    """Take a block out of its ring."""
    after, before = blocks[links, block], blocks[links + 1, block]
    blocks[links, before] = after
    blocks[links + 1, after] = before
    if dies[start, die] == block:
        dies[start, die] = after if after != block else -1


@lean_kernel
def close_block(dies: Integers, blocks: Integers, die: int, block: int, write_id: int) -> None:
    """A full block joins the closed ones, as changed by that write."""
    blocks[STATE, block] = CLOSED_BLOCK
    blocks[CHANGED, block] = write_id
    join_ring(dies, blocks, OLDEST, AFTER, die, block)
    join_ring(dies, blocks, WITH_VALID + blocks[VALID, block], PEER_AFTER, die, block)
    dies[LEAST_VALID, die] = min(dies[LEAST_VALID, die], blocks[VALID, block])


@lean_kernel
def withdraw_block(dies: Integers, blocks: Integers, die: int, block: int) -> None:
    """Take a closed block from the closed ones, to reclaim it."""
    leave_ring(dies, blocks, OLDEST, AFTER, die, block)
    leave_ring(dies, blocks, WITH_VALID + blocks[VALID, block], PEER_AFTER, die, block)
    blocks[STATE, block] = FREE_BLOCK


@lean_kernel
def emptiest_block(control: Integers, dies: Integers, blocks: Integers, die: int) -> int:
    """The closed block of a die with the fewest valid pages; among equals the one that has had it longest.  -1 if none is closed."""
    fewest = dies[LEAST_VALID, die]
    while fewest < control[PAGES_PER_BLOCK] and dies[WITH_VALID + fewest, die] < 0:
        fewest += 1
        control[GC_STEPS] += 1
    control[GC_STEPS] += 1
    dies[LEAST_VALID, die] = fewest
    return dies[WITH_VALID + fewest, die]


@lean_kernel
def open_block(control: Integers, dies: Integers, blocks: Integers, die: int) -> None:
    """Close a die's active block and make its oldest free block the active one."""
    close_block(dies, blocks, die, dies[ACTIVE, die], control[SEQUENCE])
    block = dies[FIRST_FREE, die]
    leave_ring(dies, blocks, FIRST_FREE, AFTER, die, block)
    dies[FREE, die] -= 1
    blocks[STATE, block] = ACTIVE_BLOCK
    dies[ACTIVE, die] = block


@lean_kernel
def free_block(control: Integers, dies: Integers, blocks: Integers, block: int) -> None:
    """Put a block behind its die's free blocks."""
    die = die_of_block(control, block)
    blocks[STATE, block] = FREE_BLOCK
    blocks[WRITTEN, block] = 0
    join_ring(dies, blocks, FIRST_FREE, AFTER, die, block)
    dies[FREE, die] += 1


@lean_kernel
def place_page(control: Integers, dies: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, die: int, page: int) -> int:
    """Give a logical page the next flash page of a die's active block (which has one); return it."""
    block = dies[ACTIVE, die]
    flash_page = block * control[PAGES_PER_BLOCK] + blocks[WRITTEN, block]
    blocks[WRITTEN, block] += 1
    blocks[VALID, block] += 1
    dies[DIE_VALID, die] += 1
    pages[flash_page, OWNER] = page + 1
    mapping[page] = flash_page + 1
    return flash_page


@lean_kernel
def drop_page(control: Integers, dies: Integers, blocks: Integers, mapping: Narrow, page: int) -> int:
    """Unmap a logical page; return the block that held it, or -1."""
    flash_page = lookup(mapping, page)
    if flash_page < 0:
        return -1
    block = block_of(control, flash_page)
    die = die_of_block(control, block)
    valid = blocks[VALID, block] - 1
    if blocks[STATE, block] == CLOSED_BLOCK:
        leave_ring(dies, blocks, WITH_VALID + valid + 1, PEER_AFTER, die, block)
        join_ring(dies, blocks, WITH_VALID + valid, PEER_AFTER, die, block)
        dies[LEAST_VALID, die] = min(dies[LEAST_VALID, die], valid)
        blocks[CHANGED, block] = control[SEQUENCE]
    blocks[VALID, block] = valid
    dies[DIE_VALID, die] -= 1
    mapping[page] = 0
    return block


@lean_kernel
def reclaim(
    control: Integers, dies: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, plan: Integers, row: int, victim: int
) -> int:
    """Plan to move a block's valid pages into its die's active block and to erase it; return the number of rows."""
    die = die_of_block(control, victim)
    first = victim * control[PAGES_PER_BLOCK]
    withdraw_block(dies, blocks, die, victim)
    for flash_page in range(first, first + blocks[WRITTEN, victim]):
        page = int(pages[flash_page, OWNER]) - 1
        if page >= 0 and lookup(mapping, page) == flash_page:
            drop_page(control, dies, blocks, mapping, page)
            target = place_page(control, dies, blocks, mapping, pages, die, page)
            row = plan_row(plan, row, MOVE_PAGE, target, flash_page, page, 0, -1)
    free_block(control, dies, blocks, victim)
    return plan_row(plan, row, ERASE_BLOCK, victim, -1, -1, 0, -1)


@lean_kernel
def closed_in(control: Integers, blocks: Integers, die: int, block: int) -> bool:
    """Whether a block is a closed one of the die."""
    if block < die * control[BLOCKS_PER_DIE] or block >= (die + 1) * control[BLOCKS_PER_DIE]:
        return False
    return blocks[STATE, block] == CLOSED_BLOCK


@lean_kernel
def next_write_id(control: Integers) -> int:
    """Number writes and trims of logical pages in order of admission, from 1."""
    control[SEQUENCE] += 1
    return control[SEQUENCE]


@lean_kernel
def started(spare: Integers, flash_page: int) -> None:
    """A program begins: until it ends, a power cut leaves a torn page."""
    spare[flash_page] = TORN


@lean_kernel
def programmed(pages: Narrow, spare: Integers, place: int, source: int, logical: int, write_id: int) -> None:
    """A program ends: the page's spare area says what it holds.  A move (it has a source) copies the write id."""
    spare[place] = write_id if source < 0 else spare[source]
    pages[place, SPARE_OWNER] = logical + 1


@lean_kernel
def erased(control: Integers, blocks: Integers, spare: Integers, block: int) -> None:
    """An erase ends."""
    first = block * control[PAGES_PER_BLOCK]
    spare[first : first + control[PAGES_PER_BLOCK]] = 0
    blocks[ERASES, block] += 1


def empty_arrays(parameters: SsdParameters) -> tuple[Integers, Integers]:
    """The die and block arrays of a drive that was never written: each die's first block is active, the others are free in order."""
    per_die, dies = parameters.blocks_per_die, parameters.dies
    die_array = np.zeros((DIE_ROWS + parameters.pages_per_block + 1, dies), np.int64)
    block_array = np.zeros((BLOCK_ROWS, dies * per_die), np.int64)
    first = np.arange(dies) * per_die
    die_array[ACTIVE] = first
    die_array[FREE] = per_die - 1
    die_array[FIRST_FREE] = first + 1
    forget_closed_blocks(parameters, die_array)
    block_array[STATE, first] = ACTIVE_BLOCK
    numbers = np.arange(dies * per_die).reshape(dies, per_die)
    block_array[AFTER, numbers[:, 1:]] = np.roll(numbers[:, 1:], -1, axis=1)
    block_array[BEFORE, numbers[:, 1:]] = np.roll(numbers[:, 1:], 1, axis=1)
    return die_array, block_array


def forget_closed_blocks(parameters: SsdParameters, dies: Integers) -> None:
    """Empty the rings of closed blocks."""
    dies[OLDEST] = -1
    dies[LEAST_VALID] = parameters.pages_per_block
    dies[WITH_VALID:] = -1
