"""Page mapping: any logical page may lie on any flash page; writes go round robin over the dies, into one active block each.

When a die opens a free block and fewer than its reserve are left, one victim is reclaimed into the block just opened.  The victim has an
invalid page, so the new block keeps room for the write, and the die ends with as many free blocks as before: one victim a block suffices.
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
    WRITTEN,
    ZERO_PAGE,
    Narrow,
    drop_page,
    lookup,
    next_die,
    next_write_id,
    open_block,
    place_page,
    plan_row,
    reclaim,
    reclaimable,
)
from flashsim.ssd.geometry import PAGES_PER_BLOCK, RESERVE


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
        open_block(dies, blocks, die)
        if dies[FREE, die] < control[RESERVE]:
            chosen = victim(control, dies, blocks, die)
            if not reclaimable(control, blocks, die, chosen):
                return BAD_VICTIM
            row = reclaim(control, dies, blocks, mapping, pages, plan, row, chosen)
    if partial and here >= 0:
        row = plan_row(plan, row, FETCH_PAGE, lookup(mapping, page), -1, page, 0, -1)
    superseded = drop_page(control, dies, blocks, mapping, page)
    target = place_page(control, dies, blocks, mapping, pages, die, page)
    return plan_row(plan, row, PROGRAM_PAGE, target, -1, page, next_write_id(control), superseded)
