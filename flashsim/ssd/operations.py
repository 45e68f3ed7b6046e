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
# The other columns.  WAITS counts what must happen before the operation may start at the head of its die: the controller, or for a write
# its link transfer; the operation that it needs; for an erase the programs that supersede a page of the block.  The operations that need
# this one are chained from FIRST_FOLLOWER by NEXT_FOLLOWER.  A command's operations are chained by NEXT_PART, those of a die by
# NEXT_IN_DIE, those that wait for a channel, the link or the controller by NEXT_WAITING; unused rows by NEXT_WAITING too.
(
    ID, PHASE, WAITS, DIE, COMMAND, SECTORS, FIRST_FOLLOWER, NEXT_FOLLOWER, NEXT_PART, NEXT_IN_DIE, NEXT_WAITING,
) = range(PLAN_COLUMNS, PLAN_COLUMNS + 11)  # fmt: skip
OPERATION_COLUMNS = PLAN_COLUMNS + 11
# What an operation's pending event ends.
WAITING, ON_LINK, IN_CELLS, ON_CHANNEL, IN_PROGRAM = range(5)

# Columns of the server table: one row a die, then a channel, then the link, then the controller.
HEAD, TAIL, BUSY, SINCE, BUSY_NS = range(5)
SERVER_COLUMNS = 5

# Rows of the gate array, shape (GATE_ROWS, blocks): the programs not yet ended that supersede a page of the block and came after the last
# erase of it that was admitted, and that erase's id.  A block may be reclaimed again while its earlier erase still waits in the queue.
SUPERSEDING, LAST_ERASE = range(2)
GATE_ROWS = 2

# Scalars of the engine.
EVENTS, NEXT_ID, UNUSED, WATERMARK, LIVE = range(5)
ENGINE_SCALARS = 5

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
    operations[row, FIRST_FOLLOWER] = -1
    operations[row, NEXT_FOLLOWER] = -1
    operations[row, NEXT_PART] = -1
    operations[row, NEXT_IN_DIE] = -1
    operations[row, NEXT_WAITING] = -1
    return row


@lean_kernel
def follow(operations: Integers, needed: int, row: int) -> None:
    """Let an operation wait until another, which has not ended, has ended."""
    operations[row, WAITS] += 1
    last = operations[needed, FIRST_FOLLOWER]
    if last < 0:
        operations[needed, FIRST_FOLLOWER] = row
        return
    while operations[last, NEXT_FOLLOWER] >= 0:
        last = operations[last, NEXT_FOLLOWER]
    operations[last, NEXT_FOLLOWER] = row


@lean_kernel
def give_row(engine: Integers, operations: Integers, row: int) -> None:
    """Return a row of the operation table."""
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
def join_die(servers: Integers, operations: Integers, die: int, row: int) -> None:
    """Take the last place in a die's queue."""
    operations[row, DIE] = die
    if servers[die, HEAD] < 0:
        servers[die, HEAD] = row
    else:
        operations[servers[die, TAIL], NEXT_IN_DIE] = row
    servers[die, TAIL] = row


@lean_kernel
def leave_die(servers: Integers, operations: Integers, row: int, now: int) -> int:
    """The head of a die's queue is done with it; return the next operation, or -1."""
    die = operations[row, DIE]
    servers[die, BUSY_NS] += now - servers[die, SINCE]
    servers[die, HEAD] = operations[row, NEXT_IN_DIE]
    return servers[die, HEAD]


def empty_servers(dies: int, channels: int) -> Integers:
    """The server table of an idle drive, shape (dies + channels + 2, SERVER_COLUMNS)."""
    servers = np.zeros((dies + channels + 2, SERVER_COLUMNS), np.int64)
    servers[:, HEAD] = servers[:, TAIL] = -1
    return servers


def empty_gates(blocks: int) -> Integers:
    """The gate array of an idle drive, shape (GATE_ROWS, blocks)."""
    gates = np.zeros((GATE_ROWS, blocks), np.int64)
    gates[LAST_ERASE] = -1
    return gates


def empty_engine() -> Integers:
    """The engine's scalars before the first operation."""
    engine = np.zeros(ENGINE_SCALARS, np.int64)
    engine[UNUSED] = -1
    return engine
