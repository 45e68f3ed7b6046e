"""The contract of a flash translation layer.

A member defines one function, decorated with `flashsim.core.kernel.lean_kernel`::

    translate(operation, page, partial, control, dies, blocks, mapping, pages, plan, victim) -> rows

It is called for each flash page of the host's address space that a command touches, in order, when the command is admitted.  It changes the
logical state at once and notes in `plan` the flash operations that this takes, in order; it returns their number, at most
``control[PLAN_ROWS]``, or BAD_VICTIM.  `operation` is READ, WRITE or TRIM; `partial` says that a write covers only part of the flash page.

*Read*: one READ_PAGE, or ZERO_PAGE where nothing is mapped.  *Write*: perhaps MOVE_PAGE and ERASE_BLOCK rows of garbage collection, perhaps
one FETCH_PAGE, and last one PROGRAM_PAGE.  *Trim*: nothing.

The order of rows is the order of execution on each die, so a row may only rely on rows and commands before it.  In particular garbage
collection is planned while the page that is being written still counts as valid: its erase then never waits for that same write.
"""

from __future__ import annotations

from typing import Any

from numba import types

from flashsim.core.kernel import kernel_of
from flashsim.core.members import Family
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import Narrow
from flashsim.ssd.gc.base import VICTIM

FAMILY = Family("flashsim.ssd.ftl", "flash translation layer", ("translate",))

_INTEGER = types.int64
_VECTOR = types.Array(types.int64, 1, "C")
_MATRIX = types.Array(types.int64, 2, "C")
_MAP = types.Array(types.int32, 1, "C")
_PAGES = types.Array(types.int32, 2, "C")
_ARGUMENTS = (_INTEGER, _INTEGER, _INTEGER, _VECTOR, _MATRIX, _MATRIX, _MAP, _PAGES, _MATRIX, VICTIM)
#: The one signature of `translate`.
TRANSLATE: Any = types.FunctionType(_INTEGER(*_ARGUMENTS))


@kernel_of(_INTEGER(TRANSLATE, *_ARGUMENTS))
def plan_page(
    translate: Any,
    operation: int,
    page: int,
    partial: int,
    control: Integers,
    dies: Integers,
    blocks: Integers,
    mapping: Narrow,
    pages: Narrow,
    plan: Integers,
    victim: Any,
) -> int:
    """Call a member from Python without compiling it anew for each policy."""
    return int(translate(operation, page, partial, control, dies, blocks, mapping, pages, plan, victim))
