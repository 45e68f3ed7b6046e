"""The host's side of every engine: requests arrive, wait for what they depend on, and are dispatched command by command.

A request arrives at its own time, or `think` nanoseconds after the request that it depends on has completed.  Arrived requests
queue first come, first served; their commands are dispatched in order, at most `depth` at once.  A request completes with the last
of its commands.  Arrivals are ordered before device events of the same nanosecond, and among themselves by request id.

Rows of the tables are found by ``id - base``, so that finished rows can be dropped while work goes on.
"""

from __future__ import annotations

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import kernel, lean_kernel
from flashsim.core.request import COMMAND, COMPLETION, Commands, Completions, Integers, Requests
from flashsim.core.units import NEVER

# Columns of the request table.
(
    ARRIVAL, THINK, FIRST_DEPENDENT, NEXT_DEPENDENT, FIRST_COMMAND, COMMANDS, LEFT, TAG, SUBMITTED, STARTED, COMPLETED, NEXT_READY,
) = range(12)  # fmt: skip
REQUEST_COLUMNS = 12
# Columns of the command table.
OWNER, OPERATION, OFFSET, LENGTH, FLAGS = range(5)
COMMAND_COLUMNS = 5
# Scalars of the host: one int64 array.
(
    NOW, DEPTH, IN_FLIGHT, READY_HEAD, READY_TAIL, DISPATCHED, ARRIVED, DELAYED, FINISHED, REQUEST_BASE, COMMAND_BASE,
) = range(11)  # fmt: skip
HOST_SCALARS = 11

_COMPACT_AT = 4096


@lean_kernel
def _earlier(heap: Integers, left: int, right: int) -> bool:
    return heap[left, 0] < heap[right, 0] or (heap[left, 0] == heap[right, 0] and heap[left, 1] < heap[right, 1])


@lean_kernel
def heap_push(heap: Integers, size: int, time: int, key: int) -> int:
    """Add (time, key) to a binary heap, shape (capacity, 2), of `size` entries; return the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent, 0] < time or (heap[parent, 0] == time and heap[parent, 1] < key):
            break
        heap[at, 0] = heap[parent, 0]
        heap[at, 1] = heap[parent, 1]
        at = parent
    heap[at, 0] = time
    heap[at, 1] = key
    return size + 1


@lean_kernel
def heap_pop(heap: Integers, size: int) -> int:
    """Remove the earliest entry, ``heap[0]`` (read it before), of `size` entries; return the new size."""
    size -= 1
    time = heap[size, 0]
    key = heap[size, 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _earlier(heap, child + 1, child):
            child += 1
        if time < heap[child, 0] or (time == heap[child, 0] and key < heap[child, 1]):
            break
        heap[at, 0] = heap[child, 0]
        heap[at, 1] = heap[child, 1]
        at = child
    heap[at, 0] = time
    heap[at, 1] = key
    return size


@lean_kernel
def next_arrival(host: Integers, requests: Integers, order: Integers, delayed: Integers) -> tuple[int, int]:
    """Time and id of the request that arrives next; (NEVER, -1) when none is due.

    `order` lists the ids of independent requests by arrival, `delayed` is a heap of (time, id) of requests whose dependency is met.
    """
    time = NEVER
    request = -1
    if host[ARRIVED] < order.shape[0]:
        request = order[host[ARRIVED]]
        time = requests[request - host[REQUEST_BASE], ARRIVAL]
    if host[DELAYED] > 0 and (delayed[0, 0] < time or (delayed[0, 0] == time and delayed[0, 1] < request)):
        time = delayed[0, 0]
        request = delayed[0, 1]
    return time, request


@lean_kernel
def arrive(host: Integers, requests: Integers, order: Integers, delayed: Integers) -> None:
    """Let the next arrival happen: the clock moves to it and the request queues."""
    time, request = next_arrival(host, requests, order, delayed)
    if host[DELAYED] > 0 and delayed[0, 1] == request:
        host[DELAYED] = heap_pop(delayed, host[DELAYED])
    else:
        host[ARRIVED] += 1
    row = request - host[REQUEST_BASE]
    host[NOW] = time
    requests[row, SUBMITTED] = time
    requests[row, NEXT_READY] = -1
    if host[READY_HEAD] < 0:
        host[READY_HEAD] = request
    else:
        requests[host[READY_TAIL] - host[REQUEST_BASE], NEXT_READY] = request
    host[READY_TAIL] = request


@lean_kernel
def take_command(host: Integers, requests: Integers) -> int:
    """The id of the next command to dispatch, or -1 while none waits or `depth` commands are in flight."""
    if host[READY_HEAD] < 0 or host[IN_FLIGHT] >= host[DEPTH]:
        return -1
    row = host[READY_HEAD] - host[REQUEST_BASE]
    if host[DISPATCHED] == 0:
        requests[row, STARTED] = host[NOW]
    command = requests[row, FIRST_COMMAND] + host[DISPATCHED]
    host[DISPATCHED] += 1
    host[IN_FLIGHT] += 1
    if host[DISPATCHED] == requests[row, COMMANDS]:
        host[DISPATCHED] = 0
        host[READY_HEAD] = requests[row, NEXT_READY]
    return command


@lean_kernel
def command_done(host: Integers, requests: Integers, commands: Integers, delayed: Integers, finished: Integers, command: int) -> bool:
    """Account for a command that completes now; whether its request completes with it.

    Requests that depended on that one are due `think` nanoseconds later.  `finished` takes the ids of completed requests.
    """
    host[IN_FLIGHT] -= 1
    request = commands[command - host[COMMAND_BASE], OWNER]
    row = request - host[REQUEST_BASE]
    requests[row, LEFT] -= 1
    if requests[row, LEFT] > 0:
        return False
    requests[row, COMPLETED] = host[NOW]
    finished[host[FINISHED]] = request
    host[FINISHED] += 1
    dependent = requests[row, FIRST_DEPENDENT]
    while dependent >= 0:
        other = dependent - host[REQUEST_BASE]
        host[DELAYED] = heap_push(delayed, host[DELAYED], host[NOW] + requests[other, THINK], dependent)
        dependent = requests[other, NEXT_DEPENDENT]
    return True


class HostQueue:
    """The tables that the kernels above work on; grown by `append`, emptied by `collect`.

    Parameters
    ----------
    depth
        The most commands in flight at once.

    Raises
    ------
    InvalidParameterError
        A depth below 1.
    """

    def __init__(self, depth: int) -> None:
        check_depth(depth)
        self.scalars = np.zeros(HOST_SCALARS, np.int64)
        self.scalars[DEPTH] = depth
        self.scalars[READY_HEAD] = self.scalars[READY_TAIL] = -1
        self.requests = np.zeros((0, REQUEST_COLUMNS), np.int64)
        self.commands = np.zeros((0, COMMAND_COLUMNS), np.int64)
        self.order = np.zeros(0, np.int64)
        self.delayed = np.zeros((0, 2), np.int64)
        self.finished = np.zeros(0, np.int64)
        self._collected = 0  # requests handed out, of all those in the table

    @property
    def now(self) -> int:
        """The clock, ns."""
        return int(self.scalars[NOW])

    @property
    def outstanding(self) -> int:
        """Requests submitted and not yet completed."""
        return len(self.requests) - self._collected - int(self.scalars[FINISHED])

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
        count = len(requests)
        first = int(self.scalars[REQUEST_BASE]) + len(self.requests)
        first_command = int(self.scalars[COMMAND_BASE]) + len(self.commands)
        ids = np.arange(first, first + count)
        rows = np.zeros((count, REQUEST_COLUMNS), np.int64)
        per_request = np.bincount(commands["request"], minlength=count)
        rows[:, ARRIVAL] = at
        rows[:, THINK] = requests["think"]
        rows[:, FIRST_DEPENDENT] = rows[:, NEXT_DEPENDENT] = rows[:, NEXT_READY] = -1
        rows[:, COMMANDS] = rows[:, LEFT] = per_request
        rows[:, FIRST_COMMAND] = first_command + np.cumsum(per_request) - per_request
        rows[:, TAG] = requests["tag"]
        _link_dependents(rows, requests["dependency"].astype(np.int64), first)
        table = np.empty((len(commands), COMMAND_COLUMNS), np.int64)
        table[:, OWNER] = first + commands["request"]
        table[:, OPERATION] = requests["operation"][commands["request"]]
        table[:, FLAGS] = requests["flags"][commands["request"]]
        table[:, OFFSET] = commands["offset"]
        table[:, LENGTH] = commands["length"]
        self.requests = np.concatenate([self.requests, rows])
        self.commands = np.concatenate([self.commands, table])
        independent = ids[requests["dependency"] < 0]
        waiting = np.concatenate([self.order[self.scalars[ARRIVED] :], independent])
        times = self.requests[waiting - self.scalars[REQUEST_BASE], ARRIVAL]
        self.order = waiting[np.lexsort((waiting, times))]
        self.scalars[ARRIVED] = 0
        self.delayed = _grown(self.delayed, int(self.scalars[DELAYED]), self.outstanding)
        self.finished = _grown(self.finished, int(self.scalars[FINISHED]), len(self.requests))
        return ids

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
        unfinished = len(self.requests)
        self.scalars[REQUEST_BASE] += unfinished
        self.scalars[COMMAND_BASE] += len(self.commands)
        self.requests, self.commands = self.requests[:0].copy(), self.commands[:0].copy()
        self.order = self.order[:0].copy()
        for scalar in (ARRIVED, DELAYED, IN_FLIGHT, DISPATCHED, FINISHED):
            self.scalars[scalar] = 0
        self.scalars[READY_HEAD] = self.scalars[READY_TAIL] = -1
        self._collected = 0

    def _compact(self) -> None:
        """Drop finished rows at the front of the tables, when they are many."""
        done = self.requests[:, LEFT] == 0
        drop = len(done) if done.all() else int(np.argmin(done))
        if drop < min(_COMPACT_AT, len(done)) or self.scalars[FINISHED] > 0:
            return
        first_command = (
            int(self.requests[drop, FIRST_COMMAND]) if drop < len(done) else int(self.scalars[COMMAND_BASE]) + len(self.commands)
        )
        self.requests = self.requests[drop:].copy()
        self.commands = self.commands[first_command - self.scalars[COMMAND_BASE] :].copy()
        self.scalars[REQUEST_BASE] += drop
        self.scalars[COMMAND_BASE] = first_command
        self._collected -= drop


def check_depth(depth: int) -> None:
    """Refuse a queue that would never dispatch anything."""
    if depth < 1:
        raise InvalidParameterError("depth", depth, "it must be at least 1")


def check_arrivals(requests: Requests, at: int | Integers, now: int) -> None:
    """Refuse arrivals outside ``[now, NEVER)``, negative think times, and dependencies that are no earlier row of the same array."""
    if np.any(np.asarray(at) < now):
        raise InvalidParameterError("at", f"{int(np.min(at))} ns", f"the device's clock is already at {now} ns")
    if np.any(np.asarray(at) >= NEVER):
        raise InvalidParameterError("at", f"{int(np.max(at))} ns", f"virtual time ends before {NEVER} ns")
    if np.any(requests["think"] < 0):
        raise InvalidParameterError("think", f"{int(requests['think'].min())} ns", "it must be at least 0")
    late = requests["dependency"] >= np.arange(len(requests))
    if late.any():
        row = int(np.argmax(late))
        raise InvalidParameterError(
            "dependency", f"request {row} waits for {requests['dependency'][row]}", "only earlier ones can be waited for"
        )


def check_commands(commands: Commands, requests: int) -> None:
    """Refuse commands that do not stand in the order of their requests, or of which a request has none."""
    owners = commands["request"]
    steps = np.diff(owners, prepend=-1, append=requests)
    if steps[0] != 1 or steps[-1] != 1 or np.any((steps != 0) & (steps != 1)):
        raise InvalidParameterError(
            "commands", f"{len(owners)} for {requests} requests", "each request needs its own, in the requests' order"
        )


def one_command_each(requests: Requests) -> Commands:
    """The commands of requests that are not split, shape (n,)."""
    commands = np.empty(len(requests), COMMAND)
    commands["request"] = np.arange(len(requests))
    commands["offset"], commands["length"] = requests["offset"], requests["length"]
    return commands


@kernel
def _link_dependents(rows: Integers, dependency: Integers, first: int) -> None:
    for row in range(rows.shape[0] - 1, -1, -1):  # backwards, so that the lists run in order of id
        before = dependency[row]
        if before >= 0:
            rows[row, NEXT_DEPENDENT] = rows[before, FIRST_DEPENDENT]
            rows[before, FIRST_DEPENDENT] = first + row


def _grown(array: Integers, used: int, needed: int) -> Integers:
    if needed <= len(array):
        return array
    grown = np.zeros((max(needed, 2 * len(array)), *array.shape[1:]), np.int64)
    grown[:used] = array[:used]
    return grown
