"""Block-associative log blocks (BAST): each log block takes what is written anew to one data block, in the order in which it comes.

A page goes to its offset in the data block as long as nothing at or behind that offset was written.  What comes later goes to the logical
block's log block, which is taken when it is first needed.  When the log block is full, or another logical block needs one and the plane has
no more, the logical block is merged: a log block that was filled in offset order from the start takes the place of the data block, after
taking in the pages behind if it is not full (a switch or a partial merge); otherwise both are merged into a new block.  The log block that
has to go is the one that was written least recently.

Source: J. Kim, J. M. Kim, S. H. Noh, S. L. Min, Y. Cho, "A space-efficient flash translation layer for CompactFlash systems", IEEE
Transactions on Consumer Electronics 48(2), 2002.
"""

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import WRITE, Integers
from flashsim.ssd.ftl import _merging as merging
from flashsim.ssd.ftl._merging import DATA, LOGICAL_BLOCKS
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import DATA_BLOCK, LOG_BLOCK
from flashsim.ssd.state.pools import read_or_trim

COLLECTS = False
USES = ("log_blocks",)
# What is kept of each plane: where the table has the log of each of its logical blocks (-1: none); then of each log its block (-1: not in
# use), the logical block that it belongs to, and the write id up to which it was written.
BLOCK, OWNED_BY, USED = range(3)
LOG_NUMBERS = 3


def check(parameters: SsdParameters) -> None:
    if parameters.log_blocks < 1:
        raise InvalidParameterError("log_blocks", parameters.log_blocks, "ftl 'bast' needs at least 1 on a plane")
    merging.check_merging(parameters, "bast", parameters.log_blocks)


def own_table(parameters: SsdParameters) -> Integers:
    return merging.merging_table(parameters, merging.logical_blocks(parameters) + LOG_NUMBERS * parameters.log_blocks)


recover = merging.recover_merging


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    if operation != WRITE:
        return read_or_trim(flash, operation, page)
    logical, offset = merging.logical_block_of(flash, page), merging.offset_of(flash.control, page)
    per_block, row = flash.control.pages_per_block, 0
    if flash.own[DATA + logical] < 0:
        flash.own[DATA + logical] = merging.take_block(flash, policies, merging.pool_of(flash, logical), DATA_BLOCK)
    log = flash.own[log_entry(flash, logical)]
    if log >= 0 and flash.blocks[flash.own[log + BLOCK]].written == per_block:
        row = end_log(flash, policies, row, log)
        log = -1
    data = flash.own[DATA + logical]
    if log < 0 and offset >= flash.blocks[data].written:
        return merging.write_page(flash, row, page, partial, data * per_block + offset)
    if log < 0:
        log = next_log(flash, logical)
        if flash.own[log + BLOCK] >= 0:
            row = end_log(flash, policies, row, log)
        flash.own[log + BLOCK] = merging.take_block(flash, policies, merging.pool_of(flash, logical), LOG_BLOCK)
        flash.own[log + OWNED_BY] = logical
        flash.own[log_entry(flash, logical)] = log
    flash.own[log + USED] = flash.control.sequence
    place = flash.own[log + BLOCK] * per_block + flash.blocks[flash.own[log + BLOCK]].written
    return merging.write_page(flash, row, page, partial, place)


@lean_kernel
def log_entry(flash: Flash, logical: int) -> int:
    """Place of a logical block's log in the table."""
    return merging.fields_of(flash, logical) + logical % flash.own[LOGICAL_BLOCKS]


@lean_kernel
def next_log(flash: Flash, logical: int) -> int:
    """A log of the plane that is not in use, or the one that was written least recently."""
    first = merging.fields_of(flash, logical) + flash.own[LOGICAL_BLOCKS]
    end = first + (flash.own.size - DATA) // flash.control.pools - 2 * flash.own[LOGICAL_BLOCKS]
    best = first
    for log in range(first, end, LOG_NUMBERS):
        if flash.own[log + BLOCK] < 0:
            return log
        if flash.own[log + USED] < flash.own[best + USED]:
            best = log
    return best


@lean_kernel
def end_log(flash: Flash, policies: Policies, row: int, log: int) -> int:
    """Plan to merge a log with its data block, so that it is not in use; the number of rows."""
    logical = flash.own[log + OWNED_BY]
    row = merging.merge(flash, policies, row, logical, flash.own[log + BLOCK])
    flash.own[log_entry(flash, logical)] = flash.own[log + BLOCK] = flash.own[log + OWNED_BY] = flash.own[log + USED] = -1
    return row
