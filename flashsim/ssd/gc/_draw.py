"""Draws that are a function of how many there were before: engine and specification draw alike, and no generator has a state."""

from flashsim.core.draws import mixed
from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import CLOSED_BLOCK

#: A wholly valid block is often hit where writes amplify much: with 32 pages a block and 7 % over-provisioning 31 % of the blocks are.
#: Eight in a row then happen once in ten thousand.
BLIND_ROUNDS = 8


@lean_kernel
def draw_closed(flash: Flash, collector: int) -> int:
    """A closed block, each as likely: blocks that are not closed are drawn again."""
    count = flash.blocks.shape[0] if flash.control.shared else flash.control.blocks_per_pool
    while True:
        flash.control.gc_draws += 1
        flash.control.gc_steps += 1
        block = collector * count + ((mixed(int(flash.control.gc_draws)) * count) >> 32)
        if flash.blocks[block].state == CLOSED_BLOCK:
            return block
