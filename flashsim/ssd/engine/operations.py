"""The engine's tables: flash operations in progress, and the dies, channels, link and controller that they queue for."""

import numpy as np

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.state.flash_array import KIND, PLAN_COLUMNS

#: The KIND of a row of the operation table that stands for a whole command.
COMMAND_KIND = 9
# Columns of the operation table.  The first PLAN_COLUMNS are those of a plan (`flash_array`).  WAITS counts what must happen before the
# operation is ready for its die: the controller, or for a write its link transfer; what it needs; for an erase the programs that supersede
# a page of the block and the reads that may overtake it.  Those that wait for it are chained from FIRST_FOLLOWER by NEXT_FOLLOWER.  DUE is
# the time of its pending event (-1: none), LEFT_OVER what is left of an interrupted step, INTERRUPTED how often it was.  A command's
# operations are chained by NEXT_PART, those that queue for a die or work there together by NEXT_IN_DIE, those that wait for a channel, the
# link or the controller by NEXT_WAITING; unused rows by NEXT_WAITING too.  IS_BEHIND says of a host's program that it is acknowledged when
# its bytes have come (see `continuation`).
(
    ID, PHASE, WAITS, DIE, COMMAND, REQUEST, SECTORS, DUE, LEFT_OVER, INTERRUPTED, FIRST_FOLLOWER, NEXT_FOLLOWER,
    FIRST_READER, NEXT_READER, NEXT_PART, NEXT_IN_DIE, NEXT_WAITING, IS_BEHIND,
) = range(PLAN_COLUMNS, PLAN_COLUMNS + 18)  # fmt: skip
# Of a command alone.  LEFT counts the pages that it waits for, FIRST_PART and LAST_PART are its operations.  FLUSH_MARK is, of a flush, the
# first id after those that it waits for; NEXT_FLUSH chains flushes that wait.  ON_ITS_WAY says that one of its pages had the host link.
LEFT, FIRST_PART, LAST_PART, HOST_COMMAND, OVERHEAD, FLUSH_MARK, NEXT_FLUSH, ON_ITS_WAY = range(PLAN_COLUMNS + 18, PLAN_COLUMNS + 26)
# Of a BUFFER_PAGE alone, by which a page comes into the write buffer: its ENTRY there, the transfer BEFORE it of the same page (-1: none),
# whether it takes room and is a part that its command waits for, and the store that took the page away before it came (-1: none).
ENTRY, BEFORE, NEEDS_ROOM, IS_PART, DESTAGED_BY = range(PLAN_COLUMNS + 26, PLAN_COLUMNS + 31)
# Of a store of a page from the buffer, which is one for the host: the newest write id that came as a whole.
ARRIVED_ID = PLAN_COLUMNS + 31
OPERATION_COLUMNS = PLAN_COLUMNS + 32
# What an operation's pending event ends.
WAITING, ON_LINK, IN_CELLS, ON_CHANNEL, IN_PROGRAM = range(5)

# Columns of the server table: one row a die, then a channel, then the link, then the controller.  HEAD and TAIL are of the queue; a die has
# a second one of reads that overtake.  A die's BUSY is the operation at work, or the first of those that work together, plus 1 (0: none);
# SUSPENDED is the one that a read interrupted, and CACHED the one in the cache register, in the same way.  WOKEN says that the die is to
# look for work, and NEXT_WOKEN chains such dies.
HEAD, TAIL, BUSY, SINCE, BUSY_NS, READ_HEAD, READ_TAIL, SUSPENDED, WOKEN, NEXT_WOKEN, CACHED = range(11)
SERVER_COLUMNS = 11

# Rows of the gate array, shape (GATE_ROWS, blocks): what the next erase of the block must wait for and came after the last erase of it that
# was admitted; that erase's id; programs of the block's pages that have not ended.  A block may be reclaimed again while its earlier erase
# still waits in the queue.
HOLDERS, LAST_ERASE, PENDING = range(3)
GATE_ROWS = 3

# Scalars of the engine.  The dies that were woken stand between FIRST_WOKEN and LAST_WOKEN, operations that are ready for the link in this
# event between FIRST_READY and LAST_READY, those that wait for room in the write buffer between FIRST_WANTING and LAST_WANTING.  ROOM is
# the pages that it can still take, DESTAGING counts acknowledged pages that are on their way to flash, FIRST_FLUSH starts the chain (by
# NEXT_FLUSH) of flush commands that wait for such, and FLUSHING is one that is still being admitted.  HAPPENED
# counts the events since power came.  READ_END and WRITE_END are where the last read and write ended, and HELD counts the pages of writes
# that go on there which the controller holds.
(
    EVENTS, NEXT_ID, UNUSED, WATERMARK, LIVE, FIRST_WOKEN, LAST_WOKEN, FIRST_READY, LAST_READY, FIRST_WANTING, LAST_WANTING, ROOM,
    DESTAGING, FIRST_FLUSH, FLUSHING, HAPPENED, READ_END, WRITE_END, HELD,
) = range(19)  # fmt: skip
ENGINE_SCALARS = 19

#: An event's key is the operation's id and, below it, its row.
ROW_BITS = 24
ROW_MASK = (1 << ROW_BITS) - 1


@inlined_kernel
def take_row(flow: Flow, kind: int) -> int:
    """An unused row of the operation table, numbered and cleared (there must be one)."""
    row = flow.engine[UNUSED]
    if row >= 0:
        flow.engine[UNUSED] = flow.operations[row, NEXT_WAITING]
    else:
        row = flow.engine[WATERMARK]
        flow.engine[WATERMARK] += 1
    flow.engine[LIVE] += 1
    flow.operations[row, KIND] = kind
    flow.operations[row, ID] = flow.engine[NEXT_ID]
    flow.engine[NEXT_ID] += 1
    flow.operations[row, PHASE] = WAITING
    flow.operations[row, WAITS] = 1
    flow.operations[row, DUE] = -1
    flow.operations[row, INTERRUPTED] = 0
    flow.operations[row, IS_BEHIND] = 0
    for column in (FIRST_FOLLOWER, NEXT_FOLLOWER, FIRST_READER, NEXT_READER, NEXT_PART, NEXT_IN_DIE, NEXT_WAITING):
        flow.operations[row, column] = -1
    return row


@inlined_kernel
def join_chain(operations: Integers, first: int, following: int, awaited: int, row: int) -> None:
    """Let an operation wait until another, which has not ended, has ended: it stands last in the other's chain."""
    operations[row, WAITS] += 1
    last = operations[awaited, first]
    if last < 0:
        operations[awaited, first] = row
        return
    while operations[last, following] >= 0:
        last = operations[last, following]
    operations[last, following] = row


@inlined_kernel
def follow(operations: Integers, awaited: int, row: int) -> None:
    join_chain(operations, FIRST_FOLLOWER, NEXT_FOLLOWER, awaited, row)


@inlined_kernel
def follow_program(operations: Integers, program: int, row: int) -> None:
    """Let a read that may overtake wait for the program of its flash page."""
    join_chain(operations, FIRST_READER, NEXT_READER, program, row)


@inlined_kernel
def give_row(flow: Flow, row: int) -> None:
    """Return a row of the operation table."""
    flow.operations[row, ID] = -1
    flow.operations[row, NEXT_WAITING] = flow.engine[UNUSED]
    flow.engine[UNUSED] = row
    flow.engine[LIVE] -= 1


@inlined_kernel
def acquire(flow: Flow, server: int, row: int, now: int) -> bool:
    """Ask for a channel, the link or the controller: True if it is had at once, otherwise the operation waits its turn."""
    if flow.servers[server, BUSY] == 0:
        flow.servers[server, BUSY] = 1
        flow.servers[server, SINCE] = now
        return True
    if flow.servers[server, HEAD] < 0:
        flow.servers[server, HEAD] = row
    else:
        flow.operations[flow.servers[server, TAIL], NEXT_WAITING] = row
    flow.servers[server, TAIL] = row
    return False


@inlined_kernel
def release(flow: Flow, server: int, now: int) -> int:
    """Give up a channel, the link or the controller; return the operation that has it next, or -1."""
    flow.servers[server, BUSY_NS] += now - flow.servers[server, SINCE]
    flow.servers[server, SINCE] = now
    row = flow.servers[server, HEAD]
    if row < 0:
        flow.servers[server, BUSY] = 0
    else:
        flow.servers[server, HEAD] = flow.operations[row, NEXT_WAITING]
        flow.operations[row, NEXT_WAITING] = -1
    return row


@inlined_kernel
def join_queue(flow: Flow, die: int, head: int, row: int) -> None:
    """Take the last place in a die's queue, the one that starts in column `head` and ends in the next."""
    if flow.servers[die, head] < 0:
        flow.servers[die, head] = row
    else:
        flow.operations[flow.servers[die, head + 1], NEXT_IN_DIE] = row
    flow.servers[die, head + 1] = row


def empty_servers(dies: int, channels: int) -> Integers:
    """The server table of an idle drive, shape (dies + channels + 2, SERVER_COLUMNS)."""
    servers = np.zeros((dies + channels + 2, SERVER_COLUMNS), np.int64)
    servers[:, [HEAD, TAIL, READ_HEAD, READ_TAIL, NEXT_WOKEN]] = -1
    return servers


def empty_gates(blocks: int) -> Integers:
    """The gate array of an idle drive, shape (GATE_ROWS, blocks)."""
    gates = np.zeros((GATE_ROWS, blocks), np.int64, order="F")
    gates[LAST_ERASE] = -1
    return gates


def empty_engine(room: int) -> Integers:
    """The engine's scalars before the first operation, with room for so many pages in the write buffer."""
    engine = np.zeros(ENGINE_SCALARS, np.int64)
    engine[[UNUSED, FIRST_WOKEN, LAST_WOKEN, FIRST_READY, LAST_READY, FIRST_WANTING, LAST_WANTING, FIRST_FLUSH, FLUSHING]] = -1
    engine[[READ_END, WRITE_END]] = -1
    engine[ROOM] = room
    return engine
