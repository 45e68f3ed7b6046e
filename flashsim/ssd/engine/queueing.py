"""Planned flash operations take their places in the queues of dies, and wait for what must come before."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.dies import pending_program
from flashsim.ssd.engine.flow import Flow
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
from flashsim.ssd.state.flash import Flash
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
def enter_die(flow: Flow, flash: Flash, timing: Integers, row: int) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission: it waits for a
    program of that page, and the next erase of the block waits for it.
    """
    kind, place = flow.operations[row, KIND], flow.operations[row, PLACE]
    block = place if kind == ERASE_BLOCK else block_of(flash.control, place)
    die = flow.operations[row, DIE] = die_of_block(flash.control, block)
    flash.pools[QUEUED, die] += 1
    if kind == READ_PAGE and timing[READ_PRIORITY]:
        flow.gates[HOLDERS, block] += 1
        awaited = pending_program(flow, die, place) if flow.gates[PENDING, block] > 0 else -1
        if awaited >= 0:
            follow_program(flow.operations, awaited, row)
        return
    join_queue(flow, die, HEAD, row)
    if kind == ERASE_BLOCK:
        flow.operations[row, WAITS] += flow.gates[HOLDERS, block]
        flow.gates[HOLDERS, block] = 0
        flow.gates[LAST_ERASE, block] = flow.operations[row, ID]
    elif kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        flow.gates[PENDING, block] += 1


@inlined_kernel
def add_operations(flow: Flow, flash: Flash, timing: Integers, rows: int, command: int, request: int, sectors: int) -> None:
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = flash.plan[at, KIND]
        row = take_row(flow, kind)
        for column in range(PLAN_COLUMNS):
            flow.operations[row, column] = flash.plan[at, column]
        flow.operations[row, COMMAND] = command
        flow.operations[row, REQUEST] = request
        flow.operations[row, SECTORS] = sectors
        if kind != ZERO_PAGE:
            enter_die(flow, flash, timing, row)
        if flash.plan[at, SUPERSEDED] >= 0:
            flow.gates[HOLDERS, flash.plan[at, SUPERSEDED]] += 1
        if flash.plan[at, NEEDS] >= 0:
            follow(flow.operations, flash.plan[flash.plan[at, NEEDS], NEEDS], row)
        flash.plan[at, NEEDS] = row  # from here on the row of the operation, for those that need it
        if is_part(kind):
            flow.operations[command, LEFT] += 1
        add_part(flow.operations, command, row)
