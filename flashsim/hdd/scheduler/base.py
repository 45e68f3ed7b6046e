"""The contract of a disk scheduler.

A member defines one function, decorated with `flashsim.core.kernel.lean_kernel`::

    choose(candidates, count, cylinder, direction) -> index

It is asked when the drive is free and holds `count` commands, at least two.  They are rows of `candidates` in the order in which they came:
``candidates[i].cylinder`` is where the command's first sector lies, and ``candidates[i].delay`` how long, in ns, the mechanism would take
to begin with that sector if it left at once what it does in the background: the controller's work, the move of the arm, and the wait for
the platter.  A command that moves no data (a flush, a trim) lies where the arm is and has no delay.  `cylinder` is where the arm is, and
`direction` is 1 if its last move between commands went inwards, to higher cylinders, and -1 if outwards.  It returns the row of the command
that is served next.

It must not change `candidates`.  A drive never waits: a command is served even if a better one might come.
"""

from collections.abc import Callable
from typing import Protocol

from numba import types

from flashsim.core.members import Family
from flashsim.core.policies import Policy
from flashsim.core.records import RecordArray, record_dtype, table_type


class Scheduler(Protocol):
    """A member of the family."""

    choose: Callable[[RecordArray, int, int, int], int]


FAMILY = Family("flashsim.hdd.scheduler", "disk scheduler", Scheduler)

CANDIDATE = record_dtype(int64="cylinder delay")

CHOOSE = Policy(FAMILY, "choose", 0, types.FunctionType(types.int64(table_type(CANDIDATE), types.int64, types.int64, types.int64)))
choose_of = CHOOSE.accessor()  #: ``choose_of(policies)(candidates, count, cylinder, direction)`` in a kernel.
