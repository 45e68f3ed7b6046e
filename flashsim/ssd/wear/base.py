"""The contract of a wear levelling policy.

A member defines two functions, decorated with `flashsim.core.kernel.lean_kernel`::

    opens(flash, pool) -> block
    levels(flash, collector) -> block

`flash` are the drive's arrays (`flashsim.ssd.state.flash`), of which a policy needs `control`, `pools` and `blocks`, named so below.

`opens` names the free block of a pool to fill next; there always is one.  The free blocks stand in a ring from ``pools[pool].first_free``
on by ``blocks[block].after``, the one that was freed first in front.

`levels` is asked after each victim that garbage collection has reclaimed; ``pools[collector].freed`` is that block, or the spare that took
its place.  It names a closed block whose pages are to move, so that a block that was hardly erased comes into use, or -1 for none.
`collector` is the row of `pools` in which the closed blocks are counted: the pool's own, or 0 where all pools share their collection; they
stand in a ring from ``pools[collector].oldest`` on by ``blocks[block].after``.

Neither may change `pools` or `blocks`, but for ``pools[collector].wear_hand``; both should add the blocks that they look at to
``control.gc_steps``.  ``blocks[block].cycles`` counts a block's erases, planned ones included.
"""

from collections.abc import Callable
from typing import Protocol

from numba import types

from flashsim.core.members import Family
from flashsim.core.policies import Policy
from flashsim.ssd.state.flash import FLASH, Flash


class WearPolicy(Protocol):
    """A member of the family."""

    opens: Callable[[Flash, int], int]
    levels: Callable[[Flash, int], int]


FAMILY = Family("flashsim.ssd.wear", "wear levelling policy", WearPolicy)

OPENS = Policy(FAMILY, "opens", 2, types.FunctionType(types.int64(FLASH, types.int64)))
LEVELS = Policy(FAMILY, "levels", 3, OPENS.function_type)
#: ``opens_of(policies)(flash, pool)`` and ``levels_of(policies)(flash, collector)`` in a kernel.
opens_of, levels_of = OPENS.accessor(), LEVELS.accessor()
