"""d choices: draw some blocks at random and reclaim the one with the fewest valid pages; among equals the one drawn first.

Van Houdt (*A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid State Drives*, SIGMETRICS 2013).  The
same block may be drawn twice.  The parameter `gc_choices` says how many are drawn.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.pools import BLIND_ROUNDS, draw_closed

ROUNDS = BLIND_ROUNDS


@lean_kernel
def victim(flash: Flash, collector: int) -> int:
    """The block with the fewest valid pages among those drawn."""
    best = draw_closed(flash, collector)
    for _ in range(flash.control.gc_choices - 1):
        block = draw_closed(flash, collector)
        if flash.blocks[block].valid < flash.blocks[best].valid:
            best = block
    return best
