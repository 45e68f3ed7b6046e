"""The host's side of every engine: requests arrive, wait for what they depend on, and are dispatched command by command.

A request arrives at its own time, or `think` nanoseconds after the request that it depends on has completed.  It then waits in the
submission queue that its stream has, modulo their number.  Before that it may spend some time on its way to the device, in which requests
overlap: as submitted counts when it set out.  Each queue is first come, first served: commands are dispatched in order, and at most
`depth` of a queue are in flight.  Queues with a waiting command and room for it take turns, one command each.  A request completes with
the last of its commands.  A device may have a bounded number of slots, which commands of all queues hold from their dispatch until they
complete; the next waits until it finds as many as it takes, and the others behind it.  Arrivals are ordered before device events of the
same nanosecond, and among themselves by request id.

Rows of the tables are found by ``id - base``, so that finished rows can be dropped while work goes on.
"""

from typing import NamedTuple

import numpy as np

from flashsim.core.groups import group_type
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import MATRIX, VECTOR, RecordArray, empty_record, empty_table, record_dtype, record_of_type, table_type
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.units import NEVER


class Slots(NamedTuple):
    """What commands hold in a device, from their dispatch until they complete: `number` in all, 0 for no bound, of `size` bytes each."""

    number: int = 0
    size: int = 1
    by_arrival: bool = False  #: Whether the queues' oldest command is next, and not that of the queue whose turn it is.

    def count_for(self, operation: int, length: int) -> int:
        """Slots of a command of so many bytes, which only reads and writes move: one at least, and all at most."""
        return min(self.number, max(1, -(-length // self.size) if operation <= WRITE else 1))


NO_BOUND = Slots()

# The host's scalars: `able` queues have a waiting command and room for it, and it is the `turn` of one; `rows` and `command_rows` of the
# tables are in use, the first of which are those of ids `request_base` and `command_base`; of `ordered` ids in `order`, `arrived` are past;
# `delayed` ids stand in the heap, `finished` are not yet collected, and `collected` are, but still have their rows.
# `slots_taken` is of the device's `slots` (0: it has no bound), and `by_arrival` says that the oldest command is next, whatever its queue.
_SCALARS = record_dtype(
    int64="now depth able turn arrived delayed finished request_base command_base rows command_rows ordered collected "
    "read_submission write_submission slots slot_size by_arrival slots_taken"
)
#: A submission queue; `dispatched` counts commands of the request at its head.
QUEUE = record_dtype(int64="head tail dispatched in_flight")
#: `started` is when the first command was dispatched to the device, where its work may begin later; `pending` is DONE_WITH once the
#: completion was collected.
HOST_REQUEST = record_dtype(
    int64="arrival think first_dependent next_dependent first_command commands pending tag submitted started completed next_ready queue"
)
HOST_COMMAND = record_dtype(int64="owner operation offset length request_flags")
DONE_WITH = -1  #: `pending` of a request whose completion was collected: its row may be dropped.


class Host(NamedTuple):
    """The tables of the host's side."""

    scalars: RecordArray
    queues: RecordArray  #: QUEUE.
    requests: RecordArray  #: HOST_REQUEST, of which ``scalars.rows`` are in use, and so below.
    commands: RecordArray  #: HOST_COMMAND.
    order: Integers  #: Ids of independent requests in the order of their arrival; the first ``scalars.arrived`` have arrived.
    #: A heap of times and ids of requests whose dependency is met, and of independent ones that were submitted too late for `order`.
    delayed: Integers
    finished: Integers  #: Ids of requests that have completed and are not yet collected.


HOST_TABLES = group_type((record_of_type(_SCALARS), *map(table_type, (QUEUE, HOST_REQUEST, HOST_COMMAND)), VECTOR, MATRIX, VECTOR), Host)


def empty_host(depth: int, queues: int, submission: tuple[int, int], rows: int, slots: Slots) -> Host:
    """The tables of a host that has asked for nothing."""
    scalars = empty_record(_SCALARS)
    scalars.depth = depth
    scalars.read_submission, scalars.write_submission = submission
    scalars.slots, scalars.slot_size, scalars.by_arrival = slots
    return with_rows(scalars, empty_table(queues, QUEUE), rows, rows)


def with_rows(scalars: RecordArray, queues: RecordArray, rows: int, commands: int) -> Host:
    """Empty tables of so many requests and commands."""
    arrays = (np.empty(size, np.int64) for size in (rows, (rows, 2), rows))
    return Host(scalars, queues, empty_table(rows, HOST_REQUEST), empty_table(commands, HOST_COMMAND), *arrays)


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
    if host.scalars.arrived < host.scalars.ordered:
        request = host.order[host.scalars.arrived]
        time = host.requests[request - host.scalars.request_base].arrival
    if host.scalars.delayed > 0 and (host.delayed[0, 0] < time or (host.delayed[0, 0] == time and host.delayed[0, 1] < request)):
        time = host.delayed[0, 0]
        request = host.delayed[0, 1]
    return time, request


@inlined_kernel
def submission_of(host: Host, row: int) -> int:
    """Time in which a request, whose commands are entered, is on its way to the device."""
    command = host.requests[row].first_command - host.scalars.command_base
    return host.scalars.read_submission if host.commands[command].operation == READ else host.scalars.write_submission


@inlined_kernel
def arrive(host: Host) -> None:
    """Let the next arrival happen: the clock moves to it and the request queues."""
    time, request = next_arrival(host)
    if host.scalars.delayed > 0 and host.delayed[0, 1] == request:
        host.scalars.delayed = heap_pop(host.delayed, host.scalars.delayed)
    else:
        host.scalars.arrived += 1
    row = request - host.scalars.request_base
    host.scalars.now = time
    host.requests[row].arrival = time
    host.requests[row].submitted = time - submission_of(host, row)
    host.requests[row].next_ready = -1
    queue = host.requests[row].queue
    if host.queues[queue].head < 0:
        host.queues[queue].head = request
        host.scalars.able += host.queues[queue].in_flight < host.scalars.depth
    else:
        host.requests[host.queues[queue].tail - host.scalars.request_base].next_ready = request
    host.queues[queue].tail = request


@inlined_kernel
def _after(host: Host, queue: int) -> int:
    return queue + 1 if queue + 1 < host.queues.shape[0] else 0


@inlined_kernel
def next_command(host: Host, queue: int) -> int:
    """The id of the command that waits first in a queue that is not empty."""
    return host.requests[host.queues[queue].head - host.scalars.request_base].first_command + host.queues[queue].dispatched


@inlined_kernel
def slots_of(host: Host, command: int) -> int:
    """Slots of a command in a device that has a bounded number; see `Slots.count_for`."""
    row = command - host.scalars.command_base
    length = host.commands[row].length if host.commands[row].operation <= WRITE else 0
    return min(host.scalars.slots, max(1, -(-length // host.scalars.slot_size)))


@inlined_kernel
def _oldest(host: Host) -> int:
    """Of the queues with a command that waits and room for it, the one whose request arrived first."""
    chosen, base = -1, host.scalars.request_base
    for queue in range(host.queues.shape[0]):
        request = host.queues[queue].head
        if request >= 0 and host.queues[queue].in_flight < host.scalars.depth:
            first, arrival = host.queues[chosen].head, host.requests[request - base].arrival
            earlier = chosen < 0 or arrival < host.requests[first - base].arrival
            if earlier or (arrival == host.requests[first - base].arrival and request < first):
                chosen = queue
    return chosen


@lean_kernel
def _queue_with_slots(host: Host, queue: int) -> int:
    """The queue that dispatches next, given whose turn it is, if its command finds slots; -1 if not."""
    if host.scalars.by_arrival:
        queue = _oldest(host)
    free = host.scalars.slots - host.scalars.slots_taken
    return queue if slots_of(host, next_command(host, queue)) <= free else -1


@inlined_kernel
def next_queue(host: Host) -> int:
    """The queue that dispatches next: from the one whose turn it is on, the first with a command that waits and room for it; -1 if none.

    This is asked after every event, so ``scalars.able`` counts those queues.
    """
    if host.scalars.able == 0:
        return -1
    queue = host.scalars.turn
    while host.queues[queue].head < 0 or host.queues[queue].in_flight >= host.scalars.depth:
        queue = _after(host, queue)
    return queue if host.scalars.slots == 0 else _queue_with_slots(host, queue)


@inlined_kernel
def take_command(host: Host, queue: int) -> int:
    """Dispatch the next command of a queue, which `next_queue` found; return its id."""
    command = next_command(host, queue)
    if host.scalars.slots > 0:
        host.scalars.slots_taken += slots_of(host, command)
    row = host.queues[queue].head - host.scalars.request_base
    if host.queues[queue].dispatched == 0:
        host.requests[row].started = host.scalars.now
    host.queues[queue].dispatched += 1
    host.queues[queue].in_flight += 1
    if host.queues[queue].dispatched == host.requests[row].commands:
        host.queues[queue].dispatched = 0
        host.queues[queue].head = host.requests[row].next_ready
    host.scalars.able -= host.queues[queue].head < 0 or host.queues[queue].in_flight == host.scalars.depth
    host.scalars.turn = _after(host, queue)
    return command


@inlined_kernel
def command_done(host: Host, command: int) -> bool:
    """Account for a command that completes now; whether its request completes with it.

    Requests that depended on that one are submitted `think` nanoseconds later.  `finished` takes the ids of completed requests.
    """
    request = host.commands[command - host.scalars.command_base].owner
    row = request - host.scalars.request_base
    queue = host.requests[row].queue
    host.scalars.able += host.queues[queue].head >= 0 and host.queues[queue].in_flight == host.scalars.depth
    host.queues[queue].in_flight -= 1
    if host.scalars.slots > 0:
        host.scalars.slots_taken -= slots_of(host, command)
    host.requests[row].pending -= 1
    if host.requests[row].pending > 0:
        return False
    host.requests[row].completed = host.scalars.now
    host.finished[host.scalars.finished] = request
    host.scalars.finished += 1
    dependent = host.requests[row].first_dependent
    while dependent >= 0:
        other = dependent - host.scalars.request_base
        due = host.scalars.now + host.requests[other].think + submission_of(host, other)
        host.scalars.delayed = heap_push(host.delayed, host.scalars.delayed, due, dependent)
        dependent = host.requests[other].next_dependent
    return True


@inlined_kernel
def add_request(host: Host, arrival: int, think: int, tag: int, stream: int) -> int:
    """Enter a request, for which there is room, and return its row; its commands must follow."""
    row = host.scalars.rows
    host.scalars.rows += 1
    host.requests[row].arrival = arrival
    host.requests[row].think = think
    host.requests[row].tag = tag
    host.requests[row].queue = stream % host.queues.shape[0]
    host.requests[row].first_command = host.scalars.command_base + host.scalars.command_rows
    host.requests[row].commands = host.requests[row].pending = 0
    host.requests[row].first_dependent = host.requests[row].next_dependent = host.requests[row].next_ready = -1
    return row


@inlined_kernel
def add_command(host: Host, row: int, operation: int, flags: int, offset: int, length: int) -> None:
    """Enter the next command of the request that was entered last."""
    command = host.scalars.command_rows
    host.scalars.command_rows += 1
    host.commands[command].owner = host.scalars.request_base + row
    host.commands[command].operation = operation
    host.commands[command].offset = offset
    host.commands[command].length = length
    host.commands[command].request_flags = flags
    host.requests[row].commands += 1
    host.requests[row].pending += 1


@inlined_kernel
def expect(host: Host, row: int) -> None:
    """Let an independent request, entered with when it is submitted, arrive in time: last in `order`, or else by the heap."""
    request, last = host.scalars.request_base + row, host.scalars.ordered - 1
    arrival = host.requests[row].arrival = host.requests[row].arrival + submission_of(host, row)
    if last < host.scalars.arrived or host.requests[host.order[last] - host.scalars.request_base].arrival <= arrival:
        host.order[last + 1] = request
        host.scalars.ordered += 1
    else:
        host.scalars.delayed = heap_push(host.delayed, host.scalars.delayed, arrival, request)


@lean_kernel
def drop_collected(host: Host) -> None:
    """Move rows to the front of the tables, over those of requests whose completions were collected, up to the first other."""
    requests, commands = host.scalars.rows, host.scalars.command_rows
    first = 0
    while first < requests and host.requests[first].pending == DONE_WITH:
        first += 1
    first_command = host.requests[first].first_command - host.scalars.command_base if first < requests else commands
    for row in range(first, requests):
        host.requests[row - first] = host.requests[row]
    for row in range(first_command, commands):
        host.commands[row - first_command] = host.commands[row]
    for index in range(host.scalars.arrived, host.scalars.ordered):
        host.order[index - host.scalars.arrived] = host.order[index]
    host.scalars.ordered -= host.scalars.arrived
    host.scalars.arrived = 0
    host.scalars.rows -= first
    host.scalars.collected -= first
    host.scalars.request_base += first
    host.scalars.command_rows -= first_command
    host.scalars.command_base += first_command
