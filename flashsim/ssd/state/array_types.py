"""As `flashsim.core.array_types`, of the arrays that only flash drives have.

What is looked up at random blocks, `BLOCKS`, lies block by block in memory: a write asks for seven rows of one block, and on large drives a
single row outgrows the processor's caches.
"""

from __future__ import annotations

from numba import types

#: Shape (rows, blocks), in Fortran order.
BLOCKS = types.Array(types.int64, 2, "F")
#: An entry a page, narrower than the others.
MAP = types.Array(types.int32, 1, "C")
PAGES = types.Array(types.int32, 2, "C")
