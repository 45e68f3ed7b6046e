"""Static wear levelling: as dynamic, and when blocks have drifted apart, cold data leave a block that was hardly erased.

After each victim one block is looked at, in turn.  If it holds closed data and the most worn block has `wear_gap` more erases, its pages
move, and it comes into use.  So the cost of looking does not depend on the size of the drive.
"""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import CLOSED_BLOCK, CYCLES, STATE, WEAR_HAND, WEAR_MOST
from flashsim.ssd.geometry import BLOCKS_PER_POOL, SHARED, WEAR_GAP
from flashsim.ssd.wear._least_worn import least_worn_free


@lean_kernel
def opens(control: Integers, pools: Integers, blocks: Integers, pool: int) -> int:
    """The free block with the fewest erases; among equals the one that was freed first."""
    return least_worn_free(pools, blocks, pool)


@lean_kernel
def levels(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """The block at the hand, if it is closed and was erased `wear_gap` times less than the most worn one; the hand moves on."""
    count = blocks.shape[1] if control[SHARED] else control[BLOCKS_PER_POOL]
    block = collector * count + pools[WEAR_HAND, collector]
    pools[WEAR_HAND, collector] = (pools[WEAR_HAND, collector] + 1) % count
    if blocks[STATE, block] == CLOSED_BLOCK and pools[WEAR_MOST, collector] - blocks[CYCLES, block] >= control[WEAR_GAP]:
        return block
    return -1
