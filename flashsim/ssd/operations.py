"""The engine's tables: flash operations in progress, and the dies, channels, link and controller that they queue for."""

from __future__ import annotations

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.flash_array import PLAN_COLUMNS

# Columns of the operation table.  The first PLAN_COLUMNS are those of a plan (`flash_array`); a row that stands for a whole command has
# KIND == COMMAND_KIND and uses them as follows.
COMMAND_KIND = 7
LEFT, FIRST_PART, LAST_PART, HOST_COMMAND, OVERHEAD = range(1, 6)
# The other columns.  WAITS counts what must happen before the operation is ready for its die: the controller, or for a write its link
# transfer; what it needs; for an erase the programs that supersede a page of the block and the reads that may overtake it.  Those that
# wait for this operation are chained from FIRST_FOLLOWER by NEXT_FOLLOWER.  DUE is the time of its pending event (-1: none), LEFT_OVER
# what is left of an interrupted step, INTERRUPTED how often it was.  A command's operations are chained by NEXT_PART, those that queue for
# a die or work there together by NEXT_IN_DIE, those that wait for a channel, the link or the controller by NEXT_WAITING; unused rows by
# NEXT_WAITING too.
(
    ID, PHASE, WAITS, DIE, COMMAND, REQUEST, SECTORS, DUE, LEFT_OVER, INTERRUPTED, FIRST_FOLLOWER, NEXT_FOLLOWER, NEXT_PART,
    NEXT_IN_DIE, NEXT_WAITING,
) = range(PLAN_COLUMNS, PLAN_COLUMNS + 15)  # fmt: skip
OPERATION_COLUMNS = PLAN_COLUMNS + 15
# What an operation's pending event ends.
WAITING, ON_LINK, IN_CELLS, ON_CHANNEL, IN_PROGRAM = range(5)

# Columns of the server table: one row a die, then a channel, then the link, then the controller.  HEAD and TAIL are of the queue; a die has
# a second one of reads that overtake.  A die's BUSY is the operation at work, or the first of those that work together, plus 1 (0: none);
# SUSPENDED is the one that a read interrupted, in the same way.  WOKEN says that the die is to look for work, and NEXT_WOKEN chains such
# dies.
HEAD, TAIL, BUSY, SINCE, BUSY_NS, READ_HEAD, READ_TAIL, SUSPENDED, WOKEN, NEXT_WOKEN = range(10)
SERVER_COLUMNS = 10

# Rows of the gate array, shape (GATE_ROWS, blocks): what the next erase of the block must wait for and came after the last erase of it that
# was admitted; that erase's id; programs of the block's pages that have not ended.  A block may be reclaimed again while its earlier erase
# still waits in the queue.
HOLDERS, LAST_ERASE, PENDING = range(3)
GATE_ROWS = 3

# Scalars of the engine; the dies that were woken stand between FIRST_WOKEN and LAST_WOKEN.
EVENTS, NEXT_ID, UNUSED, WATERMARK, LIVE, FIRST_WOKEN, LAST_WOKEN = range(7)
ENGINE_SCALARS = 7

#: An event's key is the operation's id and, below it, its row.
ROW_BITS = 24
ROW_MASK = (1 << ROW_BITS) - 1


@lean_kernel
def take_row(engine: Integers, operations: Integers, kind: int) -> int:
    """An unused row of the operation table, numbered and cleared (there must be one)."""
    row = engine[UNUSED]
    if row >= 0:
        engine[UNUSED] = operations[row, NEXT_WAITING]
    else:
        row = engine[WATERMARK]
        engine[WATERMARK] += 1
    engine[LIVE] += 1
    operations[row, 0] = kind
    operations[row, ID] = engine[NEXT_ID]
    engine[NEXT_ID] += 1
    operations[row, PHASE] = WAITING
    operations[row, WAITS] = 1
    operations[row, DUE] = -1
    operations[row, INTERRUPTED] = 0
    for column in (FIRST_FOLLOWER, NEXT_FOLLOWER, NEXT_PART, NEXT_IN_DIE, NEXT_WAITING):
        operations[row, column] = -1
    return row


@lean_kernel
def follow(operations: Integers, awaited: int, row: int) -> None:
    """Let an operation wait until another, which has not ended, has ended."""
    operations[row, WAITS] += 1
    last = operations[awaited, FIRST_FOLLOWER]
    if last < 0:
        operations[awaited, FIRST_FOLLOWER] = row
        return
    while operations[last, NEXT_FOLLOWER] >= 0:
        last = operations[last, NEXT_FOLLOWER]
    operations[last, NEXT_FOLLOWER] = row


@lean_kernel
def give_row(engine: Integers, operations: Integers, row: int) -> None:
    """Return a row of the operation table."""
    operations[row, ID] = -1
    operations[row, NEXT_WAITING] = engine[UNUSED]
    engine[UNUSED] = row
    engine[LIVE] -= 1


@lean_kernel
def acquire(servers: Integers, operations: Integers, server: int, row: int, now: int) -> bool:
    """Ask for a channel, the link or the controller: True if it is had at once, otherwise the operation waits its turn."""
    if servers[server, BUSY] == 0:
        servers[server, BUSY] = 1
        servers[server, SINCE] = now
        return True
    if servers[server, HEAD] < 0:
        servers[server, HEAD] = row
    else:
        operations[servers[server, TAIL], NEXT_WAITING] = row
    servers[server, TAIL] = row
    return False


@lean_kernel
def release(servers: Integers, operations: Integers, server: int, now: int) -> int:
    """Give up a channel, the link or the controller; return the operation that has it next, or -1."""
    servers[server, BUSY_NS] += now - servers[server, SINCE]
    servers[server, SINCE] = now
    row = servers[server, HEAD]
    if row < 0:
        servers[server, BUSY] = 0
    else:
        servers[server, HEAD] = operations[row, NEXT_WAITING]
        operations[row, NEXT_WAITING] = -1
    return row


@lean_kernel
def join_queue(servers: Integers, operations: Integers, die: int, head: int, row: int) -> None:
    """Take the last place in a die's queue, the one that starts in column `head` and ends in the next."""
    if servers[die, head] < 0:
        servers[die, head] = row
    else:
        operations[servers[die, head + 1], NEXT_IN_DIE] = row
    servers[die, head + 1] = row


def empty_servers(dies: int, channels: int) -> Integers:
    """The server table of an idle drive, shape (dies + channels + 2, SERVER_COLUMNS)."""
    servers = np.zeros((dies + channels + 2, SERVER_COLUMNS), np.int64)
    servers[:, [HEAD, TAIL, READ_HEAD, READ_TAIL, NEXT_WOKEN]] = -1
    return servers


def empty_gates(blocks: int) -> Integers:
    """The gate array of an idle drive, shape (GATE_ROWS, blocks)."""
    gates = np.zeros((GATE_ROWS, blocks), np.int64)
    gates[LAST_ERASE] = -1
    return gates


def empty_engine() -> Integers:
    """The engine's scalars before the first operation."""
    engine = np.zeros(ENGINE_SCALARS, np.int64)
    engine[[UNUSED, FIRST_WOKEN, LAST_WOKEN]] = -1
    return engine
