"""Planned flash operations take their places in the queues of dies, and wait for what must come before."""

from __future__ import annotations

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.dies import pending_program
from flashsim.ssd.engine.operations import (
    COMMAND,
    DIE,
    FIRST_PART,
    HEAD,
    HOLDERS,
    ID,
    LAST_ERASE,
    LAST_PART,
    LEFT,
    NEXT_PART,
    PENDING,
    REQUEST,
    SECTORS,
    WAITS,
    follow,
    follow_program,
    join_queue,
    take_row,
)
from flashsim.ssd.state.flash_array import (
    ERASE_BLOCK,
    KIND,
    MOVE_PAGE,
    NEEDS,
    PLACE,
    PLAN_COLUMNS,
    PROGRAM_PAGE,
    QUEUED,
    READ_PAGE,
    STORE_PAGE,
    SUPERSEDED,
    ZERO_PAGE,
)
from flashsim.ssd.state.geometry import block_of, die_of_block
from flashsim.ssd.state.timing import READ_PRIORITY


@inlined_kernel
def is_part(kind: int) -> bool:
    """Whether a command completes only after operations of this kind."""
    return kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE)


@inlined_kernel
def add_part(operations: Integers, command: int, row: int) -> None:
    """Chain an operation to its command: it goes on when the controller has dealt with that."""
    if operations[command, FIRST_PART] < 0:
        operations[command, FIRST_PART] = row
    else:
        operations[operations[command, LAST_PART], NEXT_PART] = row
    operations[command, LAST_PART] = row


@inlined_kernel
def enter_die(
    operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers, timing: Integers, row: int
) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission: it waits for a
    program of that page, and the next erase of the block waits for it.
    """
    kind, place = operations[row, KIND], operations[row, PLACE]
    block = place if kind == ERASE_BLOCK else block_of(control, place)
    die = operations[row, DIE] = die_of_block(control, block)
    pools[QUEUED, die] += 1
    if kind == READ_PAGE and timing[READ_PRIORITY]:
        gates[HOLDERS, block] += 1
        awaited = pending_program(operations, servers, die, place) if gates[PENDING, block] > 0 else -1
        if awaited >= 0:
            follow_program(operations, awaited, row)
        return
    join_queue(servers, operations, die, HEAD, row)
    if kind == ERASE_BLOCK:
        operations[row, WAITS] += gates[HOLDERS, block]
        gates[HOLDERS, block] = 0
        gates[LAST_ERASE, block] = operations[row, ID]
    elif kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        gates[PENDING, block] += 1


@inlined_kernel
def add_operations(
    engine: Integers, operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers, plan: Integers,
    timing: Integers, rows: int, command: int, request: int, sectors: int,
) -> None:  # fmt: skip
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = plan[at, KIND]
        row = take_row(engine, operations, kind)
        for column in range(PLAN_COLUMNS):
            operations[row, column] = plan[at, column]
        operations[row, COMMAND] = command
        operations[row, REQUEST] = request
        operations[row, SECTORS] = sectors
        if kind != ZERO_PAGE:
            enter_die(operations, servers, gates, control, pools, timing, row)
        if plan[at, SUPERSEDED] >= 0:
            gates[HOLDERS, plan[at, SUPERSEDED]] += 1
        if plan[at, NEEDS] >= 0:
            follow(operations, plan[plan[at, NEEDS], NEEDS], row)
        plan[at, NEEDS] = row  # from here on the row of the operation, for those that need it
        if is_part(kind):
            operations[command, LEFT] += 1
        add_part(operations, command, row)
