"""Block mapping: each logical block has one erase block, which is written in offset order; when the order is broken valid pages move.

A page goes to its offset in the data block as long as nothing at or behind that offset was written.  Otherwise the order is broken, and a
new block is opened: the valid pages before the new one move there, and it follows them.  Then there are two cases.

*The page was there before.*  The pages behind it stay where they are, since they are likely to be rewritten as well, and the new block is
the plane's *replacement block*.  Writes that go on in offset order are programmed there; valid pages that they pass over move there first.
When no valid page is left in the old block, the new one takes its place and the old one is erased.  If the order is broken again, or
another logical block of the plane needs a replacement block, the remaining pages move and end it: a plane has one at a time.  So a block
that is rewritten in order costs one erase and no moves.

*The page was not there before.*  It comes too late, or those behind it came too early: they move at once, and the old block is erased.

The slides of Do and Patel, "Join Processing for Flash SSDs: Remembering Past Lessons", DaMoN 2009, count erases, moves and writes of such a
drive (tests/theory/test_slides_erase.py).
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import WRITE, Integers
from flashsim.ssd.ftl import _merging as merging
from flashsim.ssd.ftl._merging import DATA
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import DATA_BLOCK, lookup
from flashsim.ssd.state.pools import read_or_trim

COLLECTS = False
# What is kept of each plane: its replacement block, and the logical block that this is for.
REPLACEMENT, REPLACED = range(2)
FIELDS = 2


def check(parameters: SsdParameters) -> None:
    merging.check_merging(parameters, "block", 1)


def own_table(parameters: SsdParameters) -> Integers:
    return merging.merging_table(parameters, FIELDS)


recover = merging.recover_merging


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    if operation != WRITE:
        return read_or_trim(flash, operation, page)
    logical, offset = merging.logical_block_of(flash, page), merging.offset_of(flash.control, page)
    at = merging.fields_of(flash, logical)
    if flash.own[DATA + logical] < 0:
        flash.own[DATA + logical] = merging.take_block(flash, policies, merging.pool_of(flash, logical), DATA_BLOCK)
    newest = flash.own[at + REPLACEMENT] if flash.own[at + REPLACED] == logical else flash.own[DATA + logical]
    if offset < flash.blocks[newest].written:
        return break_order(flash, policies, page, partial)
    row = 0
    if newest != flash.own[DATA + logical]:
        row = merging.gather(flash, row, logical, 0, offset, newest)
    row = merging.write_page(flash, row, page, partial, newest * flash.control.pages_per_block + offset)
    return end_if_empty(flash, row, at)


@lean_kernel
def break_order(flash: Flash, policies: Policies, page: int, partial: int) -> int:
    """Plan a write to an offset that was passed; the number of rows."""
    logical, offset = merging.logical_block_of(flash, page), merging.offset_of(flash.control, page)
    at = merging.fields_of(flash, logical)
    was_there = lookup(flash.mapping, page) >= 0
    row = 0
    if flash.own[at + REPLACED] == logical or (was_there and flash.own[at + REPLACED] >= 0):
        row = merging.merge(flash, policies, row, flash.own[at + REPLACED], flash.own[at + REPLACEMENT])
        flash.own[at + REPLACEMENT] = flash.own[at + REPLACED] = -1
    old = flash.own[DATA + logical]
    new = merging.take_block(flash, policies, merging.pool_of(flash, logical), DATA_BLOCK)
    row = merging.gather(flash, row, logical, 0, offset, new)
    row = merging.write_page(flash, row, page, partial, new * flash.control.pages_per_block + offset)
    if was_there:
        flash.own[at + REPLACEMENT], flash.own[at + REPLACED] = new, logical
        return end_if_empty(flash, row, at)
    row = merging.gather(flash, row, logical, offset + 1, flash.control.pages_per_block, new)
    flash.own[DATA + logical] = new
    return merging.discard(flash, row, old)


@lean_kernel
def end_if_empty(flash: Flash, row: int, at: int) -> int:
    """Let a plane's replacement block take its place if the old one has no valid page left; the number of rows."""
    if flash.own[at + REPLACED] < 0 or flash.blocks[flash.own[DATA + flash.own[at + REPLACED]]].valid > 0:
        return row
    old = flash.own[DATA + flash.own[at + REPLACED]]
    flash.own[DATA + flash.own[at + REPLACED]] = flash.own[at + REPLACEMENT]
    flash.own[at + REPLACEMENT] = flash.own[at + REPLACED] = -1
    return merging.discard(flash, row, old)
