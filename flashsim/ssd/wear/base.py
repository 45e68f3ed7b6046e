"""The contract of a wear levelling policy.

A member defines two functions, decorated with `flashsim.core.kernel.lean_kernel`::

    opens(control, pools, blocks, pool) -> block
    levels(control, pools, blocks, collector) -> block

`opens` names the free block of a pool to fill next; there always is one.  The free blocks stand in a ring from ``pools[FIRST_FREE, pool]``
on by ``blocks[AFTER, block]``, the one that was freed first in front.

`levels` is asked after each victim that garbage collection has reclaimed; ``pools[FREED, collector]`` is that block, or the spare that took
its place.  It names a closed block whose pages are to move, so that a block that was hardly erased comes into use, or -1 for none.
`collector` is the column of `pools` in which the closed blocks are counted:
the pool's own, or 0 where all pools share their collection; they stand in a ring from ``pools[OLDEST, collector]`` on by ``blocks[AFTER,
block]``.

Neither may change `pools` or `blocks`, but for ``pools[WEAR_HAND, collector]``; both should add the blocks that they look at to
``control[GC_STEPS]``.  ``blocks[CYCLES, block]`` counts a block's erases, planned ones included.
"""

from __future__ import annotations

from typing import Any

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.members import Family
from flashsim.ssd.state.array_types import BLOCKS

FAMILY = Family("flashsim.ssd.wear", "wear levelling policy", ("opens", "levels"))

#: The one signature of `opens` and of `levels`.
WEAR_FUNCTION: Any = types.FunctionType(types.int64(VECTOR, MATRIX, BLOCKS, types.int64))
