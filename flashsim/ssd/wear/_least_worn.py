"""The free block with the fewest erases, which both kinds of wear levelling fill next."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import AFTER, CYCLES, FIRST_FREE

#: A drive in use has a few free blocks a plane; one that is being filled has many, and it does not pay to compare them all.
LOOKED_AT = 32


@lean_kernel
def least_worn_free(pools: Integers, blocks: Integers, pool: int) -> int:
    """Of the LOOKED_AT blocks of a pool that were freed first the one with the fewest erases, planned ones included."""
    best = block = pools[FIRST_FREE, pool]
    for _ in range(LOOKED_AT - 1):
        block = blocks[AFTER, block]
        if block == pools[FIRST_FREE, pool]:
            break
        if blocks[CYCLES, block] < blocks[CYCLES, best]:
            best = block
    return best
