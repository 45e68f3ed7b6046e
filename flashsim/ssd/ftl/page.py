"""Page mapping: any logical page may lie on any flash page; writes go round robin over the dies, into one active block each.

When a die opens a free block and fewer than its reserve are left, one victim is reclaimed into the block just opened.  If it has an
invalid page, the new block keeps room for the write, and the die ends with as many free blocks as before: one victim a block suffices.
Policies that choose blindly may hit a block without one.  Its pages fill the new block, the next one is opened and another victim chosen;
after `flashsim.ssd.gc.base` ROUNDS of them the block with the fewest valid pages is taken.
"""

from __future__ import annotations

from typing import Any

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import READ, TRIM, Integers
from flashsim.ssd.flash_array import (
    ACTIVE,
    BAD_VICTIM,
    FETCH_PAGE,
    FREE,
    PROGRAM_PAGE,
    READ_PAGE,
    VALID,
    WRITTEN,
    ZERO_PAGE,
    Narrow,
    closed_in,
    drop_page,
    emptiest_block,
    lookup,
    next_die,
    next_write_id,
    open_block,
    place_page,
    plan_row,
    reclaim,
)
from flashsim.ssd.geometry import GC_ROUNDS, PAGES_PER_BLOCK, RESERVE


@lean_kernel
def make_room(
    control: Integers, dies: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, plan: Integers, victim: Any, die: int
) -> int:
    """Plan to reclaim victims until the active block, which was just opened, has room for a write; the number of rows, or BAD_VICTIM."""
    row = 0
    for rounds_left in range(control[GC_ROUNDS] - 1, -1, -1):
        chosen = victim(control, dies, blocks, die)
        if not closed_in(control, blocks, die, chosen):
            return BAD_VICTIM
        gains = blocks[VALID, chosen] < control[PAGES_PER_BLOCK]
        if not gains and rounds_left == 0:
            if control[GC_ROUNDS] == 1:
                return BAD_VICTIM
            chosen = emptiest_block(control, dies, blocks, die)
            gains = True
        row = reclaim(control, dies, blocks, mapping, pages, plan, row, chosen)
        if gains:
            return row
        open_block(control, dies, blocks, die)
    return row


@lean_kernel
def translate(
    operation: int,
    page: int,
    partial: int,
    control: Integers,
    dies: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    plan: Integers,
    victim: Any,
) -> int:
    """Plan the flash operations of one logical page."""
    here = lookup(mapping, page)
    if operation == READ:
        return plan_row(plan, 0, READ_PAGE if here >= 0 else ZERO_PAGE, here, -1, page, 0, -1)
    if operation == TRIM:
        drop_page(control, dies, blocks, mapping, page)
        return 0
    die = next_die(control, dies)
    row = 0
    if blocks[WRITTEN, dies[ACTIVE, die]] == control[PAGES_PER_BLOCK]:
        open_block(control, dies, blocks, die)
        if dies[FREE, die] < control[RESERVE]:
            row = make_room(control, dies, blocks, mapping, pages, plan, victim, die)
            if row < 0:
                return BAD_VICTIM
    if partial and here >= 0:
        row = plan_row(plan, row, FETCH_PAGE, lookup(mapping, page), -1, page, 0, -1)
    superseded = drop_page(control, dies, blocks, mapping, page)
    target = place_page(control, dies, blocks, mapping, pages, die, page)
    return plan_row(plan, row, PROGRAM_PAGE, target, -1, page, next_write_id(control), superseded)
