"""Page mapping: any logical page may lie on any flash page; the map is in the controller's memory."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import READ, TRIM
from flashsim.core.spans import HOST
from flashsim.ssd.state.collection import make_room
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BAD_VICTIM, FETCH_PAGE, PROGRAM_PAGE, READ_PAGE, ZERO_PAGE, lookup, plan_row
from flashsim.ssd.state.pools import drop_page, next_pool, next_write_id, place_page, takes_writes

PLACES_FREELY = True


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    """Plan the flash operations of one logical page."""
    here = lookup(flash.mapping, page)
    if operation == READ:
        return plan_row(flash.plan, 0, READ_PAGE if here >= 0 else ZERO_PAGE, here, -1, page, 0, -1, HOST, -1)
    if operation == TRIM:
        drop_page(flash, page)
        return 0
    pool = next_pool(flash, page)
    row = make_room(flash, policies, 0, pool)
    if row < 0:
        return BAD_VICTIM
    if not takes_writes(flash, pool):  # garbage collection took its free blocks
        pool = next_pool(flash, page)
    fetch = -1
    if partial and here >= 0:
        fetch = row
        row = plan_row(flash.plan, row, FETCH_PAGE, lookup(flash.mapping, page), -1, page, 0, -1, HOST, -1)
    superseded = drop_page(flash, page)
    write_id = next_write_id(flash.control)
    target = place_page(flash, policies, pool, 0, page)
    return plan_row(flash.plan, row, PROGRAM_PAGE, target, -1, page, write_id, superseded, HOST, fetch)
