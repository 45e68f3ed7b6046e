"""Dynamic wear levelling: of a plane's free blocks the least worn is filled next; cold data stay where they are."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.pools import first_of_most


@lean_kernel
def opens(flash: Flash, pool: int) -> int:
    """The free block with the fewest erases; among equals the one that was freed first."""
    return first_of_most(flash, pool, -1)


@lean_kernel
def levels(flash: Flash, collector: int) -> int:
    return -1
