"""Block mapping: each logical block has one erase block, which is written in offset order; when the order is broken valid pages move.

A page goes to its offset in the data block as long as nothing at or behind that offset was written.  Otherwise the order is broken, and a
new block is opened: the valid pages before the new one move there, and it follows them.  Then there are two cases.

*The page was there before.*  The pages behind it stay where they are, since they are likely to be rewritten as well, and the new block is
the plane's *replacement block*.  Writes that go on in offset order are programmed there; valid pages that they pass over move there first.
When no valid page is left in the old block, the new one takes its place and the old one is erased.  If the order is broken again, or
another logical block of the plane needs a replacement block, the remaining pages move and end it: a plane has one at a time.  So a block
that is rewritten in order costs one erase and no moves.

*The page was not there before.*  It comes too late, or those behind it came too early: they move at once, and the old block is erased.

References
----------
The slides of Do and Patel, "Join Processing for Flash SSDs: Remembering Past Lessons", DaMoN 2009, count erases, moves and writes of such a
drive (tests/theory/test_slides_erase.py).
"""

from __future__ import annotations

from typing import Any

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import READ, TRIM, Integers
from flashsim.ssd.ftl._merging import (
    DATA,
    check_merging,
    discard,
    fields_of,
    gather,
    logical_block_of,
    merge,
    merging_table,
    offset_of,
    pool_of,
    take_block,
    write_page,
)
from flashsim.ssd.ftl._merging_recovery import recover_merging
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import DATA_BLOCK, HOST, READ_PAGE, VALID, WRITTEN, ZERO_PAGE, Narrow, lookup, plan_row
from flashsim.ssd.state.geometry import PAGES_PER_BLOCK
from flashsim.ssd.state.pools import drop_page

COLLECTS = False
# What is kept of each plane: its replacement block, and the logical block that this is for.
REPLACEMENT, REPLACED = range(2)
FIELDS = 2


def check(parameters: SsdParameters) -> None:
    """Refuse what no layer that merges works with."""
    check_merging(parameters, "block", 1)


def own_table(parameters: SsdParameters) -> Integers:
    """Data blocks, and a replacement block a plane."""
    return merging_table(parameters, FIELDS)


def recover(state: DriveState) -> None:
    """Gather each logical block in one data block; there are no replacement blocks."""
    recover_merging(state)


@lean_kernel
def translate(
    operation: int,
    page: int,
    partial: int,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    own: Integers,
    plan: Integers,
    victim: Any,
    opens: Any,
    levels: Any,
) -> int:
    """Plan the flash operations of one logical page."""
    here = lookup(mapping, page)
    if operation == READ:
        return plan_row(plan, 0, READ_PAGE if here >= 0 else ZERO_PAGE, here, -1, page, 0, -1, HOST, -1)
    if operation == TRIM:
        drop_page(control, pools, blocks, mapping, page)
        return 0
    logical, offset = logical_block_of(control, own, page), offset_of(control, page)
    at = fields_of(control, own, logical)
    if own[DATA + logical] < 0:
        own[DATA + logical] = take_block(control, pools, blocks, opens, pool_of(pools, own, logical), DATA_BLOCK)
    newest = own[at + REPLACEMENT] if own[at + REPLACED] == logical else own[DATA + logical]
    if offset < blocks[WRITTEN, newest]:
        return break_order(control, pools, blocks, mapping, pages, opens, own, plan, page, partial)
    row = 0
    if newest != own[DATA + logical]:
        row = gather(control, pools, blocks, mapping, pages, own, plan, row, logical, 0, offset, newest)
    row = write_page(control, pools, blocks, mapping, pages, plan, row, page, partial, newest * control[PAGES_PER_BLOCK] + offset)
    return end_if_empty(control, pools, blocks, own, plan, row, at)


@lean_kernel
def break_order(
    control: Integers, pools: Integers, blocks: Integers, mapping: Narrow, pages: Narrow, opens: Any, own: Integers, plan: Integers,
    page: int, partial: int,
) -> int:  # fmt: skip
    """Plan a write to an offset that was passed; the number of rows."""
    logical, offset = logical_block_of(control, own, page), offset_of(control, page)
    at = fields_of(control, own, logical)
    was_there = lookup(mapping, page) >= 0
    row = 0
    if own[at + REPLACED] == logical or (was_there and own[at + REPLACED] >= 0):
        row = merge(control, pools, blocks, mapping, pages, opens, own, plan, row, own[at + REPLACED], own[at + REPLACEMENT])
        own[at + REPLACEMENT] = own[at + REPLACED] = -1
    old = own[DATA + logical]
    new = take_block(control, pools, blocks, opens, pool_of(pools, own, logical), DATA_BLOCK)
    row = gather(control, pools, blocks, mapping, pages, own, plan, row, logical, 0, offset, new)
    row = write_page(control, pools, blocks, mapping, pages, plan, row, page, partial, new * control[PAGES_PER_BLOCK] + offset)
    if was_there:
        own[at + REPLACEMENT], own[at + REPLACED] = new, logical
        return end_if_empty(control, pools, blocks, own, plan, row, at)
    row = gather(control, pools, blocks, mapping, pages, own, plan, row, logical, offset + 1, control[PAGES_PER_BLOCK], new)
    own[DATA + logical] = new
    return discard(control, pools, blocks, plan, row, old)


@lean_kernel
def end_if_empty(control: Integers, pools: Integers, blocks: Integers, own: Integers, plan: Integers, row: int, at: int) -> int:
    """Let a plane's replacement block take its place if the old one has no valid page left; the number of rows."""
    if own[at + REPLACED] < 0 or blocks[VALID, own[DATA + own[at + REPLACED]]] > 0:
        return row
    old = own[DATA + own[at + REPLACED]]
    own[DATA + own[at + REPLACED]] = own[at + REPLACEMENT]
    own[at + REPLACEMENT] = own[at + REPLACED] = -1
    return discard(control, pools, blocks, plan, row, old)
