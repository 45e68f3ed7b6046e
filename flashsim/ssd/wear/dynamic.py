"""Dynamic wear levelling: of a plane's free blocks the least worn is filled next; cold data stay where they are."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.wear._free_blocks import least_worn_free


@lean_kernel
def opens(control: Integers, pools: Integers, blocks: Integers, pool: int) -> int:
    """The free block with the fewest erases; among equals the one that was freed first."""
    return least_worn_free(control, pools, blocks, pool)


@lean_kernel
def levels(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """Nothing moves."""
    return -1
