"""Greedy: reclaim the block with the fewest valid pages; among equals the one that has had that count longest."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.pools import emptiest_block


@lean_kernel
def victim(flash: Flash, collector: int) -> int:
    return emptiest_block(flash, collector)
