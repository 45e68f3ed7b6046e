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
from flashsim.ssd.state.flash_array import CLOSED_BLOCK
from flashsim.ssd.state.pools import LOOKED_AT, first_of_most


@lean_kernel
def opens(flash: Flash, pool: int) -> int:
    """The free block with the fewest erases, or with the most for cold data; among equals the one that was freed first."""
    collector = 0 if flash.control.shared else pool
    levelling = flash.pools[collector].victim >= 0 and flash.pools[collector].victim_cause == WEAR
    rests = levelling and flash.control.streams > 1 and flash.active[pool, flash.control.streams - 1] < 0
    return first_of_most(flash, pool, 1 if rests else -1)


@lean_kernel
def levels(flash: Flash, collector: int) -> int:
    """The least worn of the closed blocks looked at, if it is `wear_gap` erases behind; the hand moves on."""
    count = flash.blocks.shape[0] if flash.control.shared else flash.control.blocks_per_pool
    best, fewest = -1, flash.blocks[flash.pools[collector].freed].cycles - flash.control.wear_gap + 1
    for _ in range(min(LOOKED_AT, count)):
        flash.control.gc_steps += 1
        block = collector * count + flash.pools[collector].wear_hand
        flash.pools[collector].wear_hand = (flash.pools[collector].wear_hand + 1) % count
        if flash.blocks[block].state == CLOSED_BLOCK and flash.blocks[block].cycles < fewest:
            best, fewest = block, flash.blocks[block].cycles
    return best
