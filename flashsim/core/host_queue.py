"""The queue of a host in front of an engine: requests come in and completions go out, between calls of the compiled loop."""

from typing import Any

import numpy as np
from numba import types

from flashsim.core.errors import InvalidParameterError, check_least
from flashsim.core.host import (
    DONE_WITH,
    HOST_TABLES,
    NO_BOUND,
    Slots,
    add_command,
    add_request,
    drop_collected,
    empty_host,
    expect,
    next_arrival,
    with_rows,
)
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.records import COMMANDS, COMPLETIONS, REQUESTS, VECTOR, RecordArray, field_views
from flashsim.core.request import COMMAND, COMPLETION, REQUEST, Commands, Completions, Integers, Requests
from flashsim.core.state_table import State, StateTable, state_of
from flashsim.core.units import NEVER

_FIRST_ROWS = 64  #: Rows of the tables at first; they are made twice as long as what they hold when they are full.

_host_of = state_of(HOST_TABLES)


class HostQueue:
    """The tables that the kernels of `flashsim.core.host` work on; grown by `append`, emptied by `collect`.

    `depth`: the most commands of one submission queue in flight at once. `queues`: submission queues; a request's is its stream modulo
    their number. `submission`: nanoseconds that a read, and any other request, is on its way to the device; requests overlap in it.
    `slots`: what commands of all queues hold from their dispatch until they complete.

    `tables`: what the kernels work on; `append` makes it anew when it needs room.
    """

    def __init__(self, depth: int, queues: int = 1, submission: tuple[int, int] = (0, 0), slots: Slots = NO_BOUND) -> None:
        check_least(1, depth=depth, queues=queues)
        self.tables = empty_host(depth, queues, submission, _FIRST_ROWS, slots)
        self.scalars = self.tables.scalars
        self._see_scalars()
        self._empty_queues()
        self._table = StateTable(HOST_TABLES)
        self._at = np.zeros(1, np.int64)

    def _see_scalars(self) -> None:
        self._now, self._rows, self._command_rows, self._finished = field_views(self.scalars, "now", "rows", "command_rows", "finished")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._see_scalars()

    @property
    def requests(self) -> RecordArray:
        """The request table's rows in use, HOST_REQUEST."""
        return self.tables.requests[: self.scalars.rows]

    @property
    def commands(self) -> RecordArray:
        """The command table's rows in use, HOST_COMMAND."""
        return self.tables.commands[: self.scalars.command_rows]

    @property
    def now(self) -> int:
        return int(self._now[0])

    @property
    def outstanding(self) -> int:
        return int(self._rows[0] - self._finished[0] - self.scalars["collected"])

    @property
    def next_arrival(self) -> int:
        """Time of the next arrival of a request, ns; NEVER if none is due."""
        return int(_next_arrival(self._table.crossing(self.tables)))

    @property
    def unfinished_requests(self) -> Integers:
        """The ids of requests that have not completed, ascending."""
        return np.flatnonzero(self.requests.pending > 0) + self.scalars.request_base

    def append(self, requests: Requests, commands: Commands, at: int | Integers) -> Integers:
        """Take new requests; return their ids, shape (n,).

        `requests`: shape (n,), dtype REQUEST; a dependency names an earlier row of this array. `commands`: shape (m,), dtype COMMAND; those
        of a request stand together, in the requests' order, at least one for each. `at`: when each request is submitted, ns, that depends
        on none: a number or shape (n,); not before now.
        """
        requests, commands = np.ascontiguousarray(requests, REQUEST), np.ascontiguousarray(commands, COMMAND)
        count, arrivals = len(requests), self._at
        if isinstance(at, int):
            arrivals[0] = min(max(at, -1), NEVER)
        else:
            arrivals = np.ascontiguousarray(np.broadcast_to(at, count), np.int64)
        rows, command_rows = self._rows[0] + count, self._command_rows[0] + len(commands)
        if rows > len(self.tables.requests) or command_rows > len(self.tables.commands):
            self.make_room(count, len(commands))
        first = _enter(self._table.crossing(self.tables), requests, commands, arrivals)
        if first < 0:
            check_arrivals(requests, at, self.now)
            check_commands(commands, count)
        return np.arange(first, first + count)

    def collect(self) -> Completions:
        """The requests that completed since the last call, in order of completion, dtype COMPLETION."""
        completions = np.empty(self._finished[0], COMPLETION)
        _collect(self._table.crossing(self.tables), completions)
        return completions

    def clear(self) -> None:
        """Forget all requests that have not completed (a power cut)."""
        self.scalars.request_base += self.scalars.rows
        self.scalars.command_base += self.scalars.command_rows
        for name in ("able", "arrived", "delayed", "finished", "rows", "command_rows", "ordered", "collected", "slots_taken"):
            self.scalars[name] = 0
        self._empty_queues()

    def _empty_queues(self) -> None:
        self.scalars.turn = 0
        self.tables.queues[:] = np.array((-1, -1, 0, 0), self.tables.queues.dtype)  # head, tail, dispatched, in flight

    def make_room(self, requests: int = 1, commands: int = 1) -> None:
        """Drop what is done with, and make tables longer that what is left and what comes would fill by more than half."""
        drop_collected(self.tables)
        rows_to_have = (int(self.scalars.rows) + requests, int(self.scalars.command_rows) + commands)
        had = (len(self.tables.requests), len(self.tables.commands))
        sizes = tuple(max(2 * rows, size) for rows, size in zip(rows_to_have, had, strict=True))
        if sizes != had:
            old, self.tables = self.tables, with_rows(*self.tables[:2], *sizes)
            for table, longer in zip(old[2:], self.tables[2:], strict=True):
                longer[: len(table)] = table


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
    """True if the commands' owners count up from 0 to `requests` - 1."""
    owner = -1
    for row in range(commands.shape[0]):
        if commands[row]["request"] != owner:
            owner += 1
            if commands[row]["request"] != owner:
                return False
    return owner == requests - 1


@kernel_of(types.int64(VECTOR))
def _next_arrival(table: State) -> int:
    return next_arrival(_host_of(table))[0]


@kernel_of(types.int64(VECTOR, REQUESTS, COMMANDS, VECTOR))
def _enter(table: State, requests: Requests, commands: Commands, arrivals: Integers) -> int:
    """Take requests and their commands, for which there is room; return the first one's id, or -1 if something is wrong with them."""
    host = _host_of(table)
    for row in range(arrivals.shape[0]):
        if arrivals[row] < host.scalars.now or arrivals[row] >= NEVER:
            return -1
    if _first_impossible(requests) >= 0 or not _in_order(commands, requests.shape[0]):
        return -1
    first, command = host.scalars.rows, 0
    for row in range(requests.shape[0]):
        entered = add_request(
            host, arrivals[row if arrivals.shape[0] > 1 else 0], requests[row]["think"], requests[row]["tag"], int(requests[row]["stream"])
        )
        operation, flags = int(requests[row]["operation"]), int(requests[row]["flags"])
        while command < commands.shape[0] and commands[command]["request"] == row:
            add_command(host, entered, operation, flags, commands[command]["offset"], commands[command]["length"])
            command += 1
        if requests[row]["dependency"] < 0:
            expect(host, entered)
    for row in range(requests.shape[0] - 1, -1, -1):  # backwards, so that the lists of dependents run in order of id
        if requests[row]["dependency"] >= 0:
            before = first + requests[row]["dependency"]
            host.requests[first + row].next_dependent = host.requests[before].first_dependent
            host.requests[before].first_dependent = host.scalars.request_base + first + row
    return host.scalars.request_base + first


@kernel_of(types.int64(VECTOR, COMPLETIONS))
def _collect(table: State, completions: Completions) -> int:
    host = _host_of(table)
    count = completions.shape[0]
    for index in range(count):
        row = host.finished[index] - host.scalars.request_base
        completions[index]["id"] = host.finished[index]
        completions[index]["tag"] = host.requests[row].tag
        completions[index]["submitted"] = host.requests[row].submitted
        completions[index]["started"] = host.requests[row].started
        completions[index]["completed"] = host.requests[row].completed
        host.requests[row].pending = DONE_WITH
    host.scalars.finished = 0
    host.scalars.collected += count
    return count
