"""The engine's tables: flash operations in progress, and the dies, channels, link and controller that they queue for."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray, empty_record, empty_table
from flashsim.ssd.engine.flow import ENGINE, GATE, QUEUE, SERVER, Flow

#: The KIND of a row of the operation table that stands for a whole command.
COMMAND_KIND = 9
# What an operation's pending event ends.
WAITING, ON_LINK, IN_CELLS, ON_CHANNEL, IN_PROGRAM = range(5)

#: An event's key is the operation's id and, below it, its row.
ROW_BITS = 24
ROW_MASK = (1 << ROW_BITS) - 1


@inlined_kernel
def take_row(flow: Flow, kind: int) -> int:
    """An unused row of the operation table, numbered and cleared (there must be one)."""
    row = flow.engine.unused
    if row >= 0:
        flow.engine.unused = flow.operations[row].next_waiting
    else:
        row = flow.engine.watermark
        flow.engine.watermark += 1
    flow.engine.live += 1
    operation = flow.operations[row]
    operation.kind = kind
    operation.id = flow.engine.next_id
    flow.engine.next_id += 1
    operation.phase = WAITING
    operation.waits = 1
    operation.due = -1
    operation.interrupted = operation.is_behind = 0
    operation.first_follower = operation.next_follower = operation.first_reader = operation.next_reader = -1
    operation.next_part = operation.next_in_die = operation.next_waiting = -1
    return row


@inlined_kernel
def follow(operations: RecordArray, awaited: int, row: int) -> None:
    """Let an operation wait until another, which has not ended, has ended: it stands last in the other's chain."""
    operations[row].waits += 1
    last = operations[awaited].first_follower
    if last < 0:
        operations[awaited].first_follower = row
        return
    while operations[last].next_follower >= 0:
        last = operations[last].next_follower
    operations[last].next_follower = row


@inlined_kernel
def follow_program(operations: RecordArray, program: int, row: int) -> None:
    """Let a read that may overtake wait for the program of its flash page."""
    operations[row].waits += 1
    last = operations[program].first_reader
    if last < 0:
        operations[program].first_reader = row
        return
    while operations[last].next_reader >= 0:
        last = operations[last].next_reader
    operations[last].next_reader = row


@inlined_kernel
def give_row(flow: Flow, row: int) -> None:
    """Return a row of the operation table."""
    flow.operations[row].id = -1
    flow.operations[row].next_waiting = flow.engine.unused
    flow.engine.unused = row
    flow.engine.live -= 1


@inlined_kernel
def acquire(flow: Flow, server: int, row: int, now: int) -> bool:
    """Ask for a channel, the link or the controller: True if it is had at once, otherwise the operation waits its turn."""
    if flow.servers[server].busy == 0:
        flow.servers[server].busy = 1
        flow.servers[server].since = now
        return True
    queue = flow.queues[server]
    if queue.head < 0:
        queue.head = row
    else:
        flow.operations[queue.tail].next_waiting = row
    queue.tail = row
    return False


@inlined_kernel
def release(flow: Flow, server: int, now: int) -> int:
    """Give up a channel, the link or the controller; return the operation that has it next, or -1."""
    held = flow.servers[server]
    held.busy_ns += now - held.since
    held.since = now
    row = flow.queues[server].head
    if row < 0:
        held.busy = 0
    else:
        flow.queues[server].head = flow.operations[row].next_waiting
        flow.operations[row].next_waiting = -1
    return row


@inlined_kernel
def reads_of(flow: Flow, die: int) -> int:
    """The queue of a die's reads that overtake."""
    return flow.servers.shape[0] + die


@inlined_kernel
def join_queue(flow: Flow, queue: int, row: int) -> None:
    """Take the last place in a die's queue."""
    if flow.queues[queue].head < 0:
        flow.queues[queue].head = row
    else:
        flow.operations[flow.queues[queue].tail].next_in_die = row
    flow.queues[queue].tail = row


def empty_servers(dies: int, channels: int) -> tuple[RecordArray, RecordArray]:
    """The servers of an idle drive, and their queues."""
    count = dies + channels + 2
    queues = empty_table(count + dies, QUEUE)
    queues.head = queues.tail = -1
    return empty_table(count, SERVER), queues


def empty_gates(blocks: int) -> RecordArray:
    gates = empty_table(blocks, GATE)
    gates.last_erase = -1
    return gates


def empty_engine(room: int) -> RecordArray:
    """The engine's scalars before the first operation, with room for so many pages in the write buffer."""
    engine = empty_record(ENGINE)
    engine.unused = engine.first_woken = engine.last_woken = engine.first_ready = engine.last_ready = -1
    engine.first_wanting = engine.last_wanting = engine.first_flush = engine.flushing = engine.read_end = engine.write_end = -1
    engine.room = room
    return engine
