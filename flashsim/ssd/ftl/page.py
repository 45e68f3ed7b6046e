"""Page mapping: any logical page may lie on any flash page; the map is in the controller's memory."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import WRITE
from flashsim.ssd.state.collection import make_room, write_page
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BAD_VICTIM
from flashsim.ssd.state.pools import next_pool, read_or_trim

PLACES_FREELY = True
GATHERS = True


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    if operation != WRITE:
        return read_or_trim(flash, operation, page)
    pool = next_pool(flash, page)
    row = make_room(flash, policies, 0, pool)
    return BAD_VICTIM if row < 0 else write_page(flash, policies, row, pool, page, partial, -1)
