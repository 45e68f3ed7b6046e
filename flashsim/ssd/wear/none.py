"""No wear levelling: free blocks are filled in the order in which they were freed, and cold data stay where they are."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.state.flash_array import FIRST_FREE


@lean_kernel
def opens(control: Integers, pools: Integers, blocks: Integers, pool: int) -> int:
    """The block that was freed first."""
    return pools[FIRST_FREE, pool]


@lean_kernel
def levels(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """Nothing moves."""
    return -1
