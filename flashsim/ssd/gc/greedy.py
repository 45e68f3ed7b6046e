"""Greedy: reclaim the block with the fewest valid pages; among equals the lowest block."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import CLOSED_BLOCK, STATE, VALID
from flashsim.ssd.geometry import BLOCKS_PER_DIE, PAGES_PER_BLOCK


@lean_kernel
def victim(control: Integers, dies: Integers, blocks: Integers, die: int) -> int:
    """The closed block of a die with the fewest valid pages."""
    first = die * control[BLOCKS_PER_DIE]
    fewest = control[PAGES_PER_BLOCK]
    best = -1
    for block in range(first, first + control[BLOCKS_PER_DIE]):
        if blocks[VALID, block] < fewest and blocks[STATE, block] == CLOSED_BLOCK:
            best = block
            fewest = blocks[VALID, block]
    return best
