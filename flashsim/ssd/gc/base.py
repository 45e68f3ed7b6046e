"""The contract of a garbage collection policy.

A member defines one function, decorated with `flashsim.core.kernel.lean_kernel`::

    victim(flash, collector) -> block

`flash` are the drive's arrays (`flashsim.ssd.state.flash`), of which a policy needs `control`, `pools` and `blocks`, named so below.

It is asked when free pages have run low.  `collector` is the row of `pools` in which closed blocks are counted: that of the pool (the
plane) that must collect, or 0 where all pools of the drive share their collection.  It returns the number of a closed block
(``blocks[block].state == CLOSED_BLOCK``) of that pool, or of any, with at least one invalid page (``blocks[block].valid`` below the
pages of a block); there always is one.  The arrays are described in `flashsim.ssd.state.geometry` (control) and
`flashsim.ssd.state.flash`.  Besides scanning them, a policy can follow the rings of closed blocks: ``pools[collector].oldest`` and
on by ``blocks[block].after`` in the order of closing, ``by_valid[collector, v]`` and on by ``blocks[block].peer_after`` those
with v valid pages.

It must not change `blocks`.  It may raise ``pools[collector].least_valid`` to the least count, take numbers from ``control.gc_draws``,
and should add the blocks and lists that it looks at to ``control.gc_steps``.

A member that may also return a block without an invalid page defines ``ROUNDS``, at least 2: how many times it is asked for one write.
If the last answer has no invalid page either, the closed block with the fewest valid pages is taken.  Every round lengthens the table of
operations that a write needs in the engine.
"""

from collections.abc import Callable
from typing import Any, Protocol

from numba import types

from flashsim.core.errors import FlashsimError
from flashsim.core.members import Family
from flashsim.core.policies import Policy
from flashsim.ssd.state.flash import FLASH, Flash


class GcPolicy(Protocol):
    """A member of the family."""

    victim: Callable[[Flash, int], int]
    ROUNDS: int = 1


FAMILY = Family("flashsim.ssd.gc", "garbage collection policy", GcPolicy)

VICTIM = Policy(FAMILY, "victim", 1, types.FunctionType(types.int64(FLASH, types.int64)))
victim_of = VICTIM.accessor()  #: ``victim_of(policies)(flash, collector)`` in a kernel.


def rounds_of(name: str) -> int:
    """Most choices of a policy for one write: its ROUNDS, or 1, where every answer must have an invalid page.

    Raises UnknownNameError or MissingFileError or FlashsimError: there is no such policy, or its ROUNDS is no number from 1 to 64.
    """
    rounds: Any = FAMILY.load(name).ROUNDS
    if not isinstance(rounds, int) or not 1 <= rounds <= 64:
        raise FlashsimError(f"{FAMILY.kind}: ROUNDS of '{name}' is {rounds!r}, but it must be a whole number from 1 to 64")
    return rounds
