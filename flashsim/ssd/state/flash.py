"""The arrays of a drive's flash as one thing, which kernels take; `flashsim.ssd.state.flash_array` says what their rows and columns mean.

What is looked up at random blocks, `blocks`, lies block by block in memory: a write asks for seven rows of one block, and on large drives a
single row outgrows the processor's caches.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.records import Records, record_dtype, table_type
from flashsim.core.request import Integers

#: The arrays with an entry a page are narrower than the others.
Narrow = npt.NDArray[np.int32]


class Planned(NamedTuple):
    """A row of a plan, which has the flash operations of one logical page in order; -1 for what an operation has not."""

    kind: int
    #: A flash page, or the block to erase.
    place: int
    #: What a move or a store copies.
    source: int
    logical: int
    write_id: int
    #: The block that holds the page's older version.
    superseded: int
    cause: int
    #: The row of the plan that must have ended before.
    needs: int


PLAN = record_dtype(int64=" ".join(Planned._fields))


class Flash(NamedTuple):
    """The state of a drive's flash, logical and physical."""

    #: Geometry and the scalars that allocation goes by (`flashsim.ssd.state.geometry`).
    control: Integers
    #: Planes as keepers of their blocks, shape (rows, pools).
    pools: Integers
    #: Shape (BLOCK_ROWS, blocks), in Fortran order.
    blocks: Integers
    #: One more than the flash page of each logical page, 0 for none.
    mapping: Narrow
    #: Shape (flash pages, PAGE_COLUMNS).
    pages: Narrow
    #: The write id of what each flash page holds: 0 erased, TORN unreadable.
    spare: Narrow
    #: The write id of each logical page's last trim.
    trimmed: Narrow
    #: The translation layer's own table.
    own: Integers
    #: PLAN.
    plan: Records
    #: The write buffer (`flashsim.ssd.state.write_buffer`).
    buffer: Integers


#: Shape (rows, blocks), in Fortran order.
BLOCKS = types.Array(types.int64, 2, "F")
#: An entry a page.
MAP = types.Array(types.int32, 1, "C")
PAGES = types.Array(types.int32, 2, "C")
FLASH = types.NamedTuple((VECTOR, MATRIX, BLOCKS, MAP, PAGES, MAP, MAP, VECTOR, table_type(PLAN), MATRIX), Flash)
