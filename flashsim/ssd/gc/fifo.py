"""First in, first out: reclaim the block that was closed longest ago (also called LRU or age-threshold cleaning).

A block without an invalid page goes behind the others instead: reclaiming it would copy it there and gain nothing.
"""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import AFTER, OLDEST, VALID
from flashsim.ssd.geometry import GC_STEPS, PAGES_PER_BLOCK


@lean_kernel
def victim(control: Integers, dies: Integers, blocks: Integers, die: int) -> int:
    """The closed block of a die that comes first in the order of closing and has an invalid page."""
    block = dies[OLDEST, die]
    control[GC_STEPS] += 1
    while blocks[VALID, block] == control[PAGES_PER_BLOCK]:
        block = blocks[AFTER, block]
        control[GC_STEPS] += 1
    dies[OLDEST, die] = block
    return block
