"""The queue of a host in front of an engine: requests come in and completions go out, between calls of the compiled loop."""

from __future__ import annotations

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.host import (
    ABLE,
    ARRIVAL,
    ARRIVED,
    COMMAND_BASE,
    COMMAND_COLUMNS,
    COMMANDS,
    COMPLETED,
    DELAYED,
    DEPTH,
    FINISHED,
    FIRST_COMMAND,
    FIRST_DEPENDENT,
    FIRST_QUEUE,
    FLAGS,
    LEFT,
    LENGTH,
    NEXT_DEPENDENT,
    NEXT_READY,
    NOW,
    OFFSET,
    OPERATION,
    OWNER,
    QUEUE,
    QUEUE_SCALARS,
    QUEUES_END,
    REQUEST_BASE,
    REQUEST_COLUMNS,
    STARTED,
    SUBMITTED,
    TAG,
    THINK,
    TURN,
    Host,
    heap_push,
)
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import COMMAND, COMPLETION, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER

_COMPACT_AT = 4096


class _Rows:
    """A table of int64 that grows at its end and shrinks at its front, each in constant time a row."""

    def __init__(self, *columns: int) -> None:
        self._buffer = np.empty((0, *columns), np.int64)
        self._first = 0
        self.rows = self._buffer

    def extend(self, count: int) -> Integers:
        """Add rows, not yet filled in, and return them."""
        used = len(self.rows)
        if self._first + used + count > len(self._buffer):
            buffer = np.empty((2 * (used + count), *self._buffer.shape[1:]), np.int64)
            buffer[:used] = self.rows
            self._buffer, self._first = buffer, 0
        self.rows = self._buffer[self._first : self._first + used + count]
        return self.rows[used:]

    def drop(self, count: int) -> None:
        """Remove rows at the front."""
        self._first += count
        self.rows = self.rows[count:]

    def shorten(self, count: int) -> None:
        """Keep only so many rows, those at the front."""
        self.rows = self.rows[:count]


class HostQueue:
    """The tables that the kernels of `flashsim.core.host` work on; grown by `append`, emptied by `collect`.

    Parameters
    ----------
    depth
        The most commands of one submission queue in flight at once.
    queues
        Submission queues; a request's is its stream modulo their number.

    Raises
    ------
    InvalidParameterError
        A depth, or a number of queues, below 1.
    """

    def __init__(self, depth: int, queues: int = 1) -> None:
        check_queues(depth, queues)
        self.scalars = np.zeros(FIRST_QUEUE + queues * QUEUE_SCALARS, np.int64)
        self.scalars[DEPTH] = depth
        self.scalars[QUEUES_END] = len(self.scalars)
        self._empty_queues()
        self._requests = _Rows(REQUEST_COLUMNS)
        self._commands = _Rows(COMMAND_COLUMNS)
        self._order = _Rows()
        self.delayed = np.zeros((0, 2), np.int64)
        self.finished = np.zeros(0, np.int64)
        self._collected = 0  # requests handed out, of all those in the table

    @property
    def requests(self) -> Integers:
        """The request table, shape (n, REQUEST_COLUMNS)."""
        return self._requests.rows

    @property
    def commands(self) -> Integers:
        """The command table, shape (m, COMMAND_COLUMNS)."""
        return self._commands.rows

    @property
    def order(self) -> Integers:
        """Ids of independent requests in the order of their arrival; the first ``scalars[ARRIVED]`` have arrived."""
        return self._order.rows

    @property
    def tables(self) -> Host:
        """What the kernels work on, until the next call of `append` or `clear`."""
        return Host(self.scalars, self.requests, self.commands, self.order, self.delayed, self.finished)

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self.scalars[NOW])

    @property
    def queues(self) -> int:
        """How many submission queues there are."""
        return (len(self.scalars) - FIRST_QUEUE) // QUEUE_SCALARS

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return len(self.requests) - self._collected - int(self.scalars[FINISHED])

    @property
    def next_arrival(self) -> int:
        """When a request arrives next, ns; NEVER if none is due."""
        arrived, due = int(self.scalars[ARRIVED]), NEVER
        if arrived < len(self.order):
            due = int(self.requests[self.order[arrived] - self.scalars[REQUEST_BASE], ARRIVAL])
        return min(due, int(self.delayed[0, 0])) if self.scalars[DELAYED] else due

    def append(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take new requests; return their ids, shape (n,).

        Parameters
        ----------
        requests
            Shape (n,), dtype REQUEST; a dependency names an earlier row of this array.
        commands
            Shape (m,), dtype COMMAND; those of a request stand together, in the requests' order, at least one for each.
        at
            Arrival time, ns, of each request that depends on none: a number or shape (n,); not before now.

        Raises
        ------
        InvalidParameterError
            An arrival in the past, a dependency that is not an earlier row, a negative think time, or commands out of order.
        """
        check_arrivals(requests, at, self.now)
        check_commands(commands, len(requests))
        self._compact()
        first = int(self.scalars[REQUEST_BASE]) + len(self.requests)
        first_command = int(self.scalars[COMMAND_BASE]) + len(self.commands)
        arrivals = np.broadcast_to(at, len(requests))
        rows, table = self._requests.extend(len(requests)), self._commands.extend(len(commands))
        rows[:, ARRIVAL] = arrivals
        requests = np.ascontiguousarray(requests)
        _fill(rows, table, requests, np.ascontiguousarray(commands), first, first_command, self.queues)
        self.delayed = _grown(self.delayed, int(self.scalars[DELAYED]), self.outstanding)
        self.finished = _grown(self.finished, int(self.scalars[FINISHED]), len(self.requests))
        self._order.drop(int(self.scalars[ARRIVED]))
        self.scalars[ARRIVED] = 0
        queued = len(self.order)
        self._order.extend(len(requests))
        self._order.shorten(_enqueue(self.scalars, self.requests, self.order, queued, self.delayed, requests, first))
        return np.arange(first, first + len(requests))

    def collect(self) -> Completions:
        """The requests that completed since the last call, in order of completion, dtype COMPLETION."""
        ids = self.finished[: self.scalars[FINISHED]].copy()
        rows = self.requests[ids - self.scalars[REQUEST_BASE]]
        completions = np.empty(len(ids), COMPLETION)
        completions["id"] = ids
        for name, column in (("tag", TAG), ("submitted", SUBMITTED), ("started", STARTED), ("completed", COMPLETED)):
            completions[name] = rows[:, column]
        self.scalars[FINISHED] = 0
        self._collected += len(ids)
        return completions

    def clear(self) -> None:
        """Forget all requests that have not completed (a power cut)."""
        self.scalars[REQUEST_BASE] += len(self.requests)
        self.scalars[COMMAND_BASE] += len(self.commands)
        for table in (self._requests, self._commands, self._order):
            table.shorten(0)
        for scalar in (ABLE, ARRIVED, DELAYED, FINISHED):
            self.scalars[scalar] = 0
        self._empty_queues()
        self._collected = 0

    def _empty_queues(self) -> None:
        self.scalars[TURN] = FIRST_QUEUE
        self.scalars[FIRST_QUEUE:].reshape(-1, QUEUE_SCALARS)[:] = (-1, -1, 0, 0)  # HEAD, TAIL, DISPATCHED, IN_FLIGHT

    def _compact(self) -> None:
        """Drop finished rows at the front of the tables, when they are many."""
        had = len(self.requests)
        settled = self.scalars[FINISHED] == 0
        if not settled or self._collected < min(_COMPACT_AT, had):
            return
        drop = _finished_rows(self.requests)
        if drop < min(_COMPACT_AT, had):
            return
        commands = int(self.requests[drop, FIRST_COMMAND] - self.scalars[COMMAND_BASE]) if drop < had else len(self.commands)
        self._requests.drop(drop)
        self._commands.drop(commands)
        self.scalars[REQUEST_BASE] += drop
        self.scalars[COMMAND_BASE] += commands
        self._collected -= drop


def check_queues(depth: int, queues: int) -> None:
    """Refuse queues that would never dispatch anything."""
    for name, value in (("depth", depth), ("queues", queues)):
        if value < 1:
            raise InvalidParameterError(name, value, "it must be at least 1")


def check_arrivals(requests: Requests, at: int | Integers, now: int) -> None:
    """Refuse arrivals outside ``[now, NEVER)``, negative think times, and dependencies that are no earlier row of the same array."""
    earliest, latest = (at, at) if isinstance(at, int) else (int(np.min(at, initial=now)), int(np.max(at, initial=now)))
    if earliest < now:
        raise InvalidParameterError("at", f"{earliest} ns", f"the device's clock is already at {now} ns")
    if latest >= NEVER:
        raise InvalidParameterError("at", f"{latest} ns", f"virtual time ends before {NEVER} ns")
    row = _first_impossible(np.ascontiguousarray(requests))
    if row >= 0 and requests["think"][row] < 0:
        raise InvalidParameterError("think", f"{requests['think'][row]} ns", "it must be at least 0")
    if row >= 0:
        raise InvalidParameterError(
            "dependency", f"request {row} waits for {requests['dependency'][row]}", "only earlier ones can be waited for"
        )


def check_commands(commands: Commands, requests: int) -> None:
    """Refuse commands that do not stand in the order of their requests, or of which a request has none."""
    if not _in_order(np.ascontiguousarray(commands), requests):
        raise InvalidParameterError(
            "commands", f"{len(commands)} for {requests} requests", "each request needs its own, in the requests' order"
        )


def one_command_each(requests: Requests) -> Commands:
    """The commands of requests that are not split, shape (n,)."""
    commands = np.empty(len(requests), COMMAND)
    commands["request"] = np.arange(len(requests))
    commands["offset"], commands["length"] = requests["offset"], requests["length"]
    return commands


@lean_kernel
def _first_impossible(requests: Requests) -> int:
    """The first row with a negative think time or a dependency that is no earlier row; -1 if there is none."""
    for row in range(requests.shape[0]):
        if requests[row]["think"] < 0 or requests[row]["dependency"] >= row:
            return row
    return -1


@lean_kernel
def _in_order(commands: Commands, requests: int) -> bool:
    """Whether the commands' owners count up from 0 to `requests` - 1."""
    owner = -1
    for row in range(commands.shape[0]):
        if commands[row]["request"] != owner:
            owner += 1
            if commands[row]["request"] != owner:
                return False
    return owner == requests - 1


@lean_kernel
def _fill(rows: Integers, table: Integers, requests: Requests, commands: Commands, first: int, first_command: int, queues: int) -> None:
    """Enter requests and their commands, whose ids count from `first` and `first_command`, into rows that hold the arrivals."""
    command = 0
    for row in range(requests.shape[0]):
        began = command
        while command < commands.shape[0] and commands[command]["request"] == row:
            table[command, OWNER] = first + row
            table[command, OPERATION] = requests[row]["operation"]
            table[command, OFFSET] = commands[command]["offset"]
            table[command, LENGTH] = commands[command]["length"]
            table[command, FLAGS] = requests[row]["flags"]
            command += 1
        rows[row, THINK] = requests[row]["think"]
        rows[row, TAG] = requests[row]["tag"]
        rows[row, QUEUE] = FIRST_QUEUE + requests[row]["stream"] % queues * QUEUE_SCALARS
        rows[row, FIRST_COMMAND] = first_command + began
        rows[row, COMMANDS] = rows[row, LEFT] = command - began
        rows[row, FIRST_DEPENDENT] = rows[row, NEXT_DEPENDENT] = rows[row, NEXT_READY] = -1
    for row in range(requests.shape[0] - 1, -1, -1):  # backwards, so that the lists of dependents run in order of id
        before = requests[row]["dependency"]
        if before >= 0:
            rows[row, NEXT_DEPENDENT] = rows[before, FIRST_DEPENDENT]
            rows[before, FIRST_DEPENDENT] = first + row


@lean_kernel
def _enqueue(host: Integers, table: Integers, order: Integers, queued: int, delayed: Integers, requests: Requests, first: int) -> int:
    """Queue new independent requests: after the `queued` ones where they arrive last, or else in the heap; returns how many are queued."""
    for row in range(requests.shape[0]):
        if requests[row]["dependency"] < 0:
            arrival = table[first + row - host[REQUEST_BASE], ARRIVAL]
            if queued == 0 or table[order[queued - 1] - host[REQUEST_BASE], ARRIVAL] <= arrival:
                order[queued] = first + row
                queued += 1
            else:
                host[DELAYED] = heap_push(delayed, host[DELAYED], arrival, first + row)
    return queued


@lean_kernel
def _finished_rows(requests: Integers) -> int:
    """How many rows at the front of the table are of requests that have completed."""
    row = 0
    while row < requests.shape[0] and requests[row, LEFT] == 0:
        row += 1
    return row


def _grown(array: Integers, used: int, needed: int) -> Integers:
    if needed <= len(array):
        return array
    grown = np.zeros((max(needed, 2 * len(array)), *array.shape[1:]), np.int64)
    grown[:used] = array[:used]
    return grown
