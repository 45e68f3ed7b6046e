"""Work of a program inside a drive, as the drive sees it: extents to read, time of a core on each, and bytes of results."""

from typing import Any, NamedTuple

import numpy as np

from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import NEVER, SECONDS

#: Longest time of a core on a step, ns, as of any declared duration: a session that is being closed waits for its steps.
MOST_WORK = 3600 * SECONDS


class Steps(NamedTuple):
    """Extents in the order in which a program reads them, shape (n,) each."""

    offsets: Integers  #: Where each extent begins on the drive, bytes.
    #: Bytes of each extent, multiples of the sector; a step of none reads nothing and begins when all before it have ended.
    lengths: Integers
    work: Integers  #: Time of one core on each extent, ns, at most an hour.
    results: Integers  #: Bytes of results that each extent adds.
    #: Bytes that each step writes to the drive when its work has ended, multiples of the sector, and where; nothing without them.
    outputs: Integers | None = None
    targets: Integers | None = None


class Task(NamedTuple):
    """Steps of a program on one drive, and its demands on that drive."""

    steps: Steps
    memory: int = 0  #: Bytes of the drive's memory for the program's own tables, beside extents and results.
    threads: int = 1  #: Most cores at work on it at once.
    #: Bytes of parameters that the host sends with OPEN: the program's arguments, a hash table, a Bloom filter.  They lie in the
    #: program's memory, which is at least as large.
    parameters: int = SECTOR
    #: Extents to read ahead of the one at work, and bytes of results to keep until the host gets them, if there is memory for so much.
    ahead: int = 7
    room: int = 1 << 20
    failure: int = -1  #: Row of the steps at which the program fails; -1 if it does not.


def can_be(task: Task, capacity: int) -> bool:
    """True of what a drive of that many bytes can carry out: columns of int64 that are as long, extents within the drive, and bounds."""
    steps = task.steps
    columns: list[Any] = list(steps if steps.outputs is not None or steps.targets is not None else steps[:4])
    are_columns = all(isinstance(each, np.ndarray) and each.dtype == np.int64 and each.ndim == 1 for each in columns)
    if not are_columns or len(set(map(len, columns))) > 1:
        return False
    extents = [(steps.offsets, steps.lengths)]
    if steps.outputs is not None and steps.targets is not None:
        extents.append((steps.targets, steps.outputs))
    for offsets, lengths in extents:
        if np.any((offsets < 0) | (lengths < 0) | (offsets % SECTOR != 0) | (lengths % SECTOR != 0) | (offsets > capacity - lengths)):
            return False
    if np.any((steps.work < 0) | (steps.work > MOST_WORK) | (steps.results < 0) | (steps.results > NEVER)):
        return False
    least = {"memory": 0, "threads": 1, "parameters": 0, "ahead": 0, "room": 0, "failure": -1}
    most = dict.fromkeys(least, NEVER) | {"failure": len(steps.offsets) - 1}
    values = {name: getattr(task, name) for name in least}
    return all(isinstance(value, int | np.integer) and least[name] <= value <= most[name] for name, value in values.items())
