"""A program's work as a drive sees it, and the commands OPEN, GET and CLOSE: states of a session, what moves it on, answers and grants.

Both the compiled runtime and the specification go by the table of transitions; the picture of the state machine is drawn from it.
"""

from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np

from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import NEVER, SECONDS
from flashsim.device.smart.inside import Inside

#: Longest time of a core on a step, ns, as of any declared duration: a session that is being closed waits for its steps.
MOST_WORK = 3600 * SECONDS


class ProgramSteps(NamedTuple):
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

    steps: ProgramSteps
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


class State(Enum):
    """State of a session in the drive."""

    NONE = "none"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CLOSING = "closing"
    CLOSED = "closed"


class Event(Enum):
    """Cause of a change of state."""

    OPEN = "OPEN is granted"
    LAST_STEP = "the last step ends"
    FAULT = "the program fails"
    CLOSE = "CLOSE"
    SILENCE = "the host is silent for too long"
    DRAINED = "no read, step or answer is under way"


TRANSITIONS = {
    (State.NONE, Event.OPEN): State.RUNNING,
    (State.RUNNING, Event.LAST_STEP): State.FINISHED,
    (State.RUNNING, Event.FAULT): State.FAILED,
    **{(state, event): State.CLOSING for event in (Event.CLOSE, Event.SILENCE) for state in (State.RUNNING, State.FINISHED, State.FAILED)},
    (State.CLOSING, Event.DRAINED): State.CLOSED,
}


class Verb(Enum):
    """Command of the protocol, as an ordinary command of the drive: OPEN and CLOSE write to its memory, GET reads there."""

    OPEN = "open"
    GET = "get"
    CLOSE = "close"


class Status(IntEnum):
    """Answer to a command; from NO_SESSION on, an error."""

    DONE = 0
    MORE = 1  #: GET: there may be more results later.
    NO_SESSION = 2  #: There is no such session, or it is being closed.
    TOO_MANY = 3  #: OPEN: the drive has as many sessions as it takes.
    NO_MEMORY = 4  #: OPEN: the memory that is free is too small for the program and one extent.
    BAD_PROGRAM = 5  #: OPEN: the program's steps cannot be carried out.
    PROGRAM_FAILED = 6  #: GET: the program has failed.

    @property
    def is_error(self) -> bool:
        return self >= Status.NO_SESSION


class Grant(NamedTuple):
    """Resources of a session, at most what it asked for."""

    memory: int  #: Bytes of memory in all.
    extents: int  #: Extents in memory at once: being read, waiting for a core, or at work.
    room: int  #: Bytes of results that wait for the host.
    threads: int  #: Cores at once.


class Answer(NamedTuple):
    """Answer to a command, when its last byte has passed the link."""

    command: int
    verb: Verb
    session: int
    status: Status
    #: Bytes of results that came with it.
    results: int
    at: int


def grant_of(task: Task, inside: Inside, capacity: int, sessions: int, free: int) -> Grant | Status:
    """Grant what a program asks for, as far as memory is free beside so many sessions; or the reason for a refusal.

    Read-ahead goes before room for results: with a step's results at least, and one extent, a program ends.
    """
    if not can_be(task, capacity):
        return Status.BAD_PROGRAM
    if sessions >= inside.sessions:
        return Status.TOO_MANY
    longest, largest = (int(np.max(column, initial=0)) for column in (task.steps.lengths, task.steps.results))
    own = max(task.memory, task.parameters)
    spare = free - own - longest - largest
    if spare < 0:
        return Status.NO_MEMORY
    ahead = min(task.ahead, spare // longest if longest else 0)
    room = largest + min(max(0, task.room - largest), spare - ahead * longest)
    extents = 1 + ahead
    return Grant(own + extents * longest + room, extents, room, min(task.threads, inside.cores))
