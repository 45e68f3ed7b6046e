"""The host's side of every engine: requests arrive, wait for what they depend on, and are dispatched command by command.

A request arrives at its own time, or `think` nanoseconds after the request that it depends on has completed.  It then waits in the
submission queue that its stream has, modulo their number.  Before that it may spend some time on its way to the device, in which requests
overlap: as submitted counts when it set out.  Each queue is first come, first served: commands are dispatched in order, and at
most `depth` of a queue are in flight.  Queues with a waiting command and room for it take turns, one command each.  A request completes
with the last of its commands.  Arrivals are ordered before device events of the same nanosecond, and among themselves by request id.

Rows of the tables are found by ``id - base``, so that finished rows can be dropped while work goes on.
"""

from typing import NamedTuple

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import READ, Integers
from flashsim.core.units import NEVER


class Host(NamedTuple):
    """The tables of the host's side."""

    #: The host's numbers, and those of each submission queue.
    scalars: Integers
    #: Shape (capacity, REQUEST_COLUMNS), of which ``scalars[ROWS]`` are in use, and so below.
    requests: Integers
    #: Shape (capacity, COMMAND_COLUMNS).
    commands: Integers
    #: Ids of independent requests in the order of their arrival; the first ``scalars[ARRIVED]`` have arrived.
    order: Integers
    #: A heap of times and ids of requests whose dependency is met, and of independent ones that were submitted too late for `order`.
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
#: LEFT of a request whose completion was collected: its row may be dropped.
DONE_WITH = -1
# Columns of the command table.
OWNER, OPERATION, OFFSET, LENGTH, FLAGS = range(5)
COMMAND_COLUMNS = 5
# Scalars of the host: one int64 array, with those of each submission queue behind.  A queue is known by the place where its own begin.
(
    NOW, DEPTH, ABLE, TURN, QUEUES_END, ARRIVED, DELAYED, FINISHED, REQUEST_BASE, COMMAND_BASE, ROWS, COMMAND_ROWS, ORDERED, COLLECTED,
    READ_SUBMISSION, WRITE_SUBMISSION,
) = range(16)  # fmt: skip
FIRST_QUEUE = 16
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
    if host.scalars[ARRIVED] < host.scalars[ORDERED]:
        request = host.order[host.scalars[ARRIVED]]
        time = host.requests[request - host.scalars[REQUEST_BASE], ARRIVAL]
    if host.scalars[DELAYED] > 0 and (host.delayed[0, 0] < time or (host.delayed[0, 0] == time and host.delayed[0, 1] < request)):
        time = host.delayed[0, 0]
        request = host.delayed[0, 1]
    return time, request


@inlined_kernel
def submission_of(host: Host, row: int) -> int:
    """How long a request, whose commands are entered, is on its way to the device."""
    command = host.requests[row, FIRST_COMMAND] - host.scalars[COMMAND_BASE]
    return host.scalars[READ_SUBMISSION] if host.commands[command, OPERATION] == READ else host.scalars[WRITE_SUBMISSION]


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
    host.requests[row, SUBMITTED] = time - submission_of(host, row)
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

    Requests that depended on that one are submitted `think` nanoseconds later.  `finished` takes the ids of completed requests.
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
        due = host.scalars[NOW] + host.requests[other, THINK] + submission_of(host, other)
        host.scalars[DELAYED] = heap_push(host.delayed, host.scalars[DELAYED], due, dependent)
        dependent = host.requests[other, NEXT_DEPENDENT]
    return True


@inlined_kernel
def add_request(host: Host, arrival: int, think: int, tag: int, stream: int) -> int:
    """Enter a request, for which there is room, and return its row; its commands must follow."""
    row = host.scalars[ROWS]
    host.scalars[ROWS] += 1
    queues = (host.scalars[QUEUES_END] - FIRST_QUEUE) // QUEUE_SCALARS
    host.requests[row, ARRIVAL] = arrival
    host.requests[row, THINK] = think
    host.requests[row, TAG] = tag
    host.requests[row, QUEUE] = FIRST_QUEUE + stream % queues * QUEUE_SCALARS
    host.requests[row, FIRST_COMMAND] = host.scalars[COMMAND_BASE] + host.scalars[COMMAND_ROWS]
    host.requests[row, COMMANDS] = host.requests[row, LEFT] = 0
    host.requests[row, FIRST_DEPENDENT] = host.requests[row, NEXT_DEPENDENT] = host.requests[row, NEXT_READY] = -1
    return row


@inlined_kernel
def add_command(host: Host, row: int, operation: int, flags: int, offset: int, length: int) -> None:
    """Enter the next command of the request that was entered last."""
    command = host.scalars[COMMAND_ROWS]
    host.scalars[COMMAND_ROWS] += 1
    host.commands[command, OWNER] = host.scalars[REQUEST_BASE] + row
    host.commands[command, OPERATION] = operation
    host.commands[command, OFFSET] = offset
    host.commands[command, LENGTH] = length
    host.commands[command, FLAGS] = flags
    host.requests[row, COMMANDS] += 1
    host.requests[row, LEFT] += 1


@inlined_kernel
def expect(host: Host, row: int) -> None:
    """Let an independent request, entered with when it is submitted, arrive in time: last in `order`, or else by the heap."""
    request, last = host.scalars[REQUEST_BASE] + row, host.scalars[ORDERED] - 1
    arrival = host.requests[row, ARRIVAL] = host.requests[row, ARRIVAL] + submission_of(host, row)
    if last < host.scalars[ARRIVED] or host.requests[host.order[last] - host.scalars[REQUEST_BASE], ARRIVAL] <= arrival:
        host.order[last + 1] = request
        host.scalars[ORDERED] += 1
    else:
        host.scalars[DELAYED] = heap_push(host.delayed, host.scalars[DELAYED], arrival, request)


@lean_kernel
def drop_collected(host: Host) -> None:
    """Move rows to the front of the tables, over those of requests whose completions were collected, up to the first other."""
    requests, commands = host.scalars[ROWS], host.scalars[COMMAND_ROWS]
    first = 0
    while first < requests and host.requests[first, LEFT] == DONE_WITH:
        first += 1
    first_command = host.requests[first, FIRST_COMMAND] - host.scalars[COMMAND_BASE] if first < requests else commands
    for row in range(first, requests):
        for column in range(REQUEST_COLUMNS):
            host.requests[row - first, column] = host.requests[row, column]
    for row in range(first_command, commands):
        for column in range(COMMAND_COLUMNS):
            host.commands[row - first_command, column] = host.commands[row, column]
    for index in range(host.scalars[ARRIVED], host.scalars[ORDERED]):
        host.order[index - host.scalars[ARRIVED]] = host.order[index]
    host.scalars[ORDERED] -= host.scalars[ARRIVED]
    host.scalars[ARRIVED] = 0
    host.scalars[ROWS] -= first
    host.scalars[COLLECTED] -= first
    host.scalars[REQUEST_BASE] += first
    host.scalars[COMMAND_ROWS] -= first_command
    host.scalars[COMMAND_BASE] += first_command
