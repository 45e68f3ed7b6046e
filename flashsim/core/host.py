"""The host's side of every engine: requests arrive, wait for what they depend on, and are dispatched command by command.

A request arrives at its own time, or `think` nanoseconds after the request that it depends on has completed.  It then waits in the
submission queue that its stream has, modulo their number.  Each queue is first come, first served: commands are dispatched in order, and at
most `depth` of a queue are in flight.  Queues with a waiting command and room for it take turns, one command each.  A request completes
with the last of its commands.  Arrivals are ordered before device events of the same nanosecond, and among themselves by request id.

Rows of the tables are found by ``id - base``, so that finished rows can be dropped while work goes on.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.core.units import NEVER


class Host(NamedTuple):
    """The tables of the host's side."""

    #: The host's numbers, and those of each submission queue.
    scalars: Integers
    #: Shape (n, REQUEST_COLUMNS).
    requests: Integers
    #: Shape (m, COMMAND_COLUMNS).
    commands: Integers
    #: Ids of independent requests in the order of their arrival; the first ``scalars[ARRIVED]`` have arrived.
    order: Integers
    #: A heap of (time, id): requests whose dependency is met, and independent ones that were submitted too late for `order`.
    delayed: Integers
    #: Ids of requests that have completed and are not yet collected.
    finished: Integers


HOST_TABLES = types.NamedTuple((VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, VECTOR), Host)

# Columns of the request table.
(
    ARRIVAL, THINK, FIRST_DEPENDENT, NEXT_DEPENDENT, FIRST_COMMAND, COMMANDS, LEFT, TAG, SUBMITTED, STARTED, COMPLETED, NEXT_READY,
    QUEUE,
) = range(13)  # fmt: skip
REQUEST_COLUMNS = 13
# Columns of the command table.
OWNER, OPERATION, OFFSET, LENGTH, FLAGS = range(5)
COMMAND_COLUMNS = 5
# Scalars of the host: one int64 array, with those of each submission queue behind.  A queue is known by the place where its own begin.
NOW, DEPTH, ABLE, TURN, QUEUES_END, ARRIVED, DELAYED, FINISHED, REQUEST_BASE, COMMAND_BASE = range(10)
FIRST_QUEUE = 10
HEAD, TAIL, DISPATCHED, IN_FLIGHT = range(4)  # DISPATCHED: commands of the request at the head
QUEUE_SCALARS = 4


@inlined_kernel
def _earlier(heap: Integers, left: int, right: int) -> bool:
    return heap[left, 0] < heap[right, 0] or (heap[left, 0] == heap[right, 0] and heap[left, 1] < heap[right, 1])


@inlined_kernel
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


@inlined_kernel
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


@inlined_kernel
def next_arrival(host: Host) -> tuple[int, int]:
    """Time and id of the request that arrives next; (NEVER, -1) when none is due.

    `order` lists the ids of independent requests by arrival, `delayed` is a heap of (time, id) of requests whose dependency is met, and of
    independent ones that were submitted later than one in `order` and arrive before it.
    """
    time = NEVER
    request = -1
    if host.scalars[ARRIVED] < host.order.shape[0]:
        request = host.order[host.scalars[ARRIVED]]
        time = host.requests[request - host.scalars[REQUEST_BASE], ARRIVAL]
    if host.scalars[DELAYED] > 0 and (host.delayed[0, 0] < time or (host.delayed[0, 0] == time and host.delayed[0, 1] < request)):
        time = host.delayed[0, 0]
        request = host.delayed[0, 1]
    return time, request


@inlined_kernel
def arrive(host: Host) -> None:
    """Let the next arrival happen: the clock moves to it and the request queues."""
    time, request = next_arrival(host)
    if host.scalars[DELAYED] > 0 and host.delayed[0, 1] == request:
        host.scalars[DELAYED] = heap_pop(host.delayed, host.scalars[DELAYED])
    else:
        host.scalars[ARRIVED] += 1
    row = request - host.scalars[REQUEST_BASE]
    host.scalars[NOW] = time
    host.requests[row, SUBMITTED] = time
    host.requests[row, NEXT_READY] = -1
    queue = host.requests[row, QUEUE]
    if host.scalars[queue + HEAD] < 0:
        host.scalars[queue + HEAD] = request
        host.scalars[ABLE] += host.scalars[queue + IN_FLIGHT] < host.scalars[DEPTH]
    else:
        host.requests[host.scalars[queue + TAIL] - host.scalars[REQUEST_BASE], NEXT_READY] = request
    host.scalars[queue + TAIL] = request


@inlined_kernel
def _after(host: Host, queue: int) -> int:
    """The queue whose turn comes after another's."""
    return queue + QUEUE_SCALARS if queue + QUEUE_SCALARS < host.scalars[QUEUES_END] else FIRST_QUEUE


@inlined_kernel
def next_queue(host: Host) -> int:
    """The queue that dispatches next: from the one whose turn it is on, the first with a command that waits and room for it; -1 if none.

    This is asked after every event, so ``host[ABLE]`` counts those queues.
    """
    if host.scalars[ABLE] == 0:
        return -1
    queue = host.scalars[TURN]
    while host.scalars[queue + HEAD] < 0 or host.scalars[queue + IN_FLIGHT] >= host.scalars[DEPTH]:
        queue = _after(host, queue)
    return queue


@inlined_kernel
def next_command(host: Host, queue: int) -> int:
    """The id of the command that waits first in a queue that is not empty."""
    return host.requests[host.scalars[queue + HEAD] - host.scalars[REQUEST_BASE], FIRST_COMMAND] + host.scalars[queue + DISPATCHED]


@inlined_kernel
def take_command(host: Host, queue: int) -> int:
    """Dispatch the next command of a queue, which `next_queue` found; return its id."""
    command = next_command(host, queue)
    row = host.scalars[queue + HEAD] - host.scalars[REQUEST_BASE]
    if host.scalars[queue + DISPATCHED] == 0:
        host.requests[row, STARTED] = host.scalars[NOW]
    host.scalars[queue + DISPATCHED] += 1
    host.scalars[queue + IN_FLIGHT] += 1
    if host.scalars[queue + DISPATCHED] == host.requests[row, COMMANDS]:
        host.scalars[queue + DISPATCHED] = 0
        host.scalars[queue + HEAD] = host.requests[row, NEXT_READY]
    host.scalars[ABLE] -= host.scalars[queue + HEAD] < 0 or host.scalars[queue + IN_FLIGHT] == host.scalars[DEPTH]
    host.scalars[TURN] = _after(host, queue)
    return command


@inlined_kernel
def command_done(host: Host, command: int) -> bool:
    """Account for a command that completes now; whether its request completes with it.

    Requests that depended on that one are due `think` nanoseconds later.  `finished` takes the ids of completed requests.
    """
    request = host.commands[command - host.scalars[COMMAND_BASE], OWNER]
    row = request - host.scalars[REQUEST_BASE]
    queue = host.requests[row, QUEUE]
    host.scalars[ABLE] += host.scalars[queue + HEAD] >= 0 and host.scalars[queue + IN_FLIGHT] == host.scalars[DEPTH]
    host.scalars[queue + IN_FLIGHT] -= 1
    host.requests[row, LEFT] -= 1
    if host.requests[row, LEFT] > 0:
        return False
    host.requests[row, COMPLETED] = host.scalars[NOW]
    host.finished[host.scalars[FINISHED]] = request
    host.scalars[FINISHED] += 1
    dependent = host.requests[row, FIRST_DEPENDENT]
    while dependent >= 0:
        other = dependent - host.scalars[REQUEST_BASE]
        host.scalars[DELAYED] = heap_push(host.delayed, host.scalars[DELAYED], host.scalars[NOW] + host.requests[other, THINK], dependent)
        dependent = host.requests[other, NEXT_DEPENDENT]
    return True
