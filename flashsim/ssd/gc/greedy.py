"""Greedy: reclaim the block with the fewest valid pages; among equals the one that has had that count longest."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import emptiest_block


@lean_kernel
def victim(control: Integers, dies: Integers, blocks: Integers, die: int) -> int:
    """The closed block of a die with the fewest valid pages."""
    return emptiest_block(control, dies, blocks, die)
