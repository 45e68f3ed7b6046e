"""No wear levelling: free blocks are filled in the order in which they were freed, and cold data stay where they are."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash


@lean_kernel
def opens(flash: Flash, pool: int) -> int:
    """The block that was freed first."""
    return flash.pools[pool].first_free


@lean_kernel
def levels(flash: Flash, collector: int) -> int:
    return -1
