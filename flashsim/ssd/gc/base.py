"""The contract of a garbage collection policy.

A member defines one function, decorated with `flashsim.core.kernel.lean_kernel`::

    victim(control, dies, blocks, die) -> block

It is asked when a die has opened a free block and has fewer than its reserve left.  It returns the number of a closed block of that die
(``blocks[STATE, block] == CLOSED_BLOCK``) with at least one invalid page (``blocks[VALID, block]`` below the pages of a block); there
always is one.  It changes nothing.  The arrays are described in `flashsim.ssd.geometry` (control) and `flashsim.ssd.flash_array`.
"""

from __future__ import annotations

from typing import Any

from numba import types

from flashsim.core.members import Family

FAMILY = Family("flashsim.ssd.gc", "garbage collection policy", ("victim",))

_VECTOR = types.Array(types.int64, 1, "C")
_MATRIX = types.Array(types.int64, 2, "C")
#: The one signature of `victim`.
VICTIM: Any = types.FunctionType(types.int64(_VECTOR, _MATRIX, _MATRIX, types.int64))
