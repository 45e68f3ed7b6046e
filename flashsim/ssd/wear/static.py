"""Static wear levelling: as dynamic, and when blocks have drifted apart, cold data leave a hardly erased block for a worn one.

After each victim some blocks are looked at, in turn, so that the cost of looking does not depend on the size of the drive.  If the least
worn of those that hold closed data has `wear_gap` fewer erases than the block just reclaimed, its pages move, and it comes into use.  If
moved pages have a stream of their own, the cold data fill the most worn free block, which then rests; the spread stays near the gap.  With
one stream the host's pages follow them there, which would wear that block further: so they take the least worn one too, and the spread
settles at a few times the gap.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.spans import WEAR
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ACTIVE, CLOSED_BLOCK, CYCLES, FREED, STATE, VICTIM, VICTIM_CAUSE, WEAR_HAND
from flashsim.ssd.state.geometry import BLOCKS_PER_POOL, GC_STEPS, SHARED, STREAMS, WEAR_GAP
from flashsim.ssd.wear._free_blocks import LOOKED_AT, least_worn_free, most_worn_free


@lean_kernel
def opens(flash: Flash, pool: int) -> int:
    """The free block with the fewest erases, or with the most for cold data; among equals the one that was freed first."""
    collector = 0 if flash.control[SHARED] else pool
    levelling = flash.pools[VICTIM, collector] >= 0 and flash.pools[VICTIM_CAUSE, collector] == WEAR
    if levelling and flash.control[STREAMS] > 1 and flash.pools[ACTIVE + flash.control[STREAMS] - 1, pool] < 0:
        return most_worn_free(flash, pool)
    return least_worn_free(flash, pool)


@lean_kernel
def levels(flash: Flash, collector: int) -> int:
    """The least worn of the closed blocks looked at, if it is `wear_gap` erases behind; the hand moves on."""
    count = flash.blocks.shape[1] if flash.control[SHARED] else flash.control[BLOCKS_PER_POOL]
    best, fewest = -1, flash.blocks[CYCLES, flash.pools[FREED, collector]] - flash.control[WEAR_GAP] + 1
    for _ in range(min(LOOKED_AT, count)):
        flash.control[GC_STEPS] += 1
        block = collector * count + flash.pools[WEAR_HAND, collector]
        flash.pools[WEAR_HAND, collector] = (flash.pools[WEAR_HAND, collector] + 1) % count
        if flash.blocks[STATE, block] == CLOSED_BLOCK and flash.blocks[CYCLES, block] < fewest:
            best, fewest = block, flash.blocks[CYCLES, block]
    return best
