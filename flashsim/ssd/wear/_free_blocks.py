"""The free blocks of a plane with the fewest and with the most erases."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash

#: The most blocks that one decision compares.  A drive in use has a few free blocks a plane; one that is being filled has many, and it does
#: not pay to compare them all.
LOOKED_AT = 32


@lean_kernel
def least_worn_free(flash: Flash, pool: int) -> int:
    """Of the LOOKED_AT blocks of a pool that were freed first the one with the fewest erases, planned ones included."""
    return _first_of_most(flash, pool, -1)


@lean_kernel
def most_worn_free(flash: Flash, pool: int) -> int:
    """As `least_worn_free`, but the one with the most erases."""
    return _first_of_most(flash, pool, 1)


@lean_kernel
def _first_of_most(flash: Flash, pool: int, sign: int) -> int:
    best = block = flash.pools[pool].first_free
    for _ in range(LOOKED_AT - 1):
        flash.control.gc_steps += 1
        block = flash.blocks[block].after
        if block == flash.pools[pool].first_free:
            break
        if sign * flash.blocks[block].cycles > sign * flash.blocks[best].cycles:
            best = block
    return best
