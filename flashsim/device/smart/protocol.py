"""The commands OPEN, GET and CLOSE: states of a session, what moves it from one to another, answers and grants.

Both the compiled runtime and the specification go by this table; the picture of the state machine is drawn from it.
"""

from enum import Enum, IntEnum
from typing import NamedTuple

import numpy as np

from flashsim.device.smart.inside import Inside
from flashsim.device.smart.steps import Task, can_be


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
