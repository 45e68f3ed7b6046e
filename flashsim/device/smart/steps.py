"""Work of a program inside a drive, as the drive sees it: extents to read, time of a core on each, and bytes of results."""

from typing import Any, NamedTuple

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import NEVER, SECONDS

#: Longest time of a core on a step, ns, as of any declared duration: a session that is being closed waits for its steps.
MOST_WORK = 3600 * SECONDS


class Steps(NamedTuple):
    """Extents in the order in which a program reads them, shape (n,) each."""

    #: Where each extent begins on the drive, bytes.
    offsets: Integers
    #: Bytes of each extent, multiples of the sector; a step of none reads nothing and begins when all before it have ended.
    lengths: Integers
    #: Time of one core on each extent, ns, at most an hour.
    work: Integers
    #: Bytes of results that each extent adds.
    results: Integers
    #: Bytes that each step writes to the drive when its work has ended, multiples of the sector, and where; nothing without them.
    outputs: Integers | None = None
    targets: Integers | None = None


class Task(NamedTuple):
    """Steps of a program on one drive, and its demands on that drive."""

    steps: Steps
    #: Bytes of the drive's memory for the program's own tables, beside extents and results.
    memory: int = 0
    #: Most cores at work on it at once.
    threads: int = 1
    #: Bytes of parameters that the host sends with OPEN: the program's arguments, a hash table, a Bloom filter.  They lie in the
    #: program's memory, which is at least as large.
    parameters: int = SECTOR
    #: Extents to read ahead of the one at work, and bytes of results to keep until the host gets them, if there is memory for so much.
    ahead: int = 7
    room: int = 1 << 20
    #: Row of the steps at which the program fails; -1 if it does not.
    failure: int = -1


def check(task: Task, capacity: int) -> None:
    """Refuse steps that no drive of that many bytes can carry out."""
    columns: list[Any] = list(task.steps if task.steps.outputs is not None or task.steps.targets is not None else task.steps[:4])
    for name, column in zip(Steps._fields, columns, strict=False):
        if not isinstance(column, np.ndarray) or column.dtype != np.int64 or column.ndim != 1:
            raise InvalidParameterError("steps", f"{name} of type {type(column).__name__}", "each column must be an array of int64")
    if len({len(column) for column in columns}) > 1:
        raise InvalidParameterError("steps", f"columns of {[len(column) for column in columns]} rows", "all need as many rows")
    _check_extents(columns[0], columns[1], capacity)
    if len(columns) == 6:
        _check_extents(columns[5], columns[4], capacity)
    for name, column, most in (("work", columns[2], MOST_WORK), ("results", columns[3], NEVER)):
        if np.any(wrong := (column < 0) | (column > most)):
            row = int(np.argmax(wrong))
            raise InvalidParameterError("steps", f"{name} {column[row]} in row {row}", f"it must be from 0 to {most}")
    values: list[tuple[str, Any, int, int]] = [
        ("memory", task.memory, 0, NEVER), ("threads", task.threads, 1, NEVER), ("parameters", task.parameters, 0, NEVER),
        ("ahead", task.ahead, 0, NEVER), ("room", task.room, 0, NEVER), ("failure", task.failure, -1, len(columns[0]) - 1),
    ]  # fmt: skip
    for name, value, least, most in values:
        if not isinstance(value, int | np.integer) or not least <= value <= most:
            raise InvalidParameterError(name, value, f"it must be a whole number from {least} to {most}")


def _check_extents(offsets: Integers, lengths: Integers, capacity: int) -> None:
    wrong = (offsets < 0) | (lengths < 0) | (offsets % SECTOR != 0) | (lengths % SECTOR != 0) | (offsets > capacity - lengths)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        bound = f"it must lie within the drive's {capacity} B, in sectors of {SECTOR} B"
        raise InvalidParameterError("steps", f"row {row}: {lengths[row]} B at {offsets[row]}", bound)
