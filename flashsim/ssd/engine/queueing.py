"""Planned flash operations take their places in the queues of dies, and wait for what must come before."""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.engine.dies import pending_program
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import follow, follow_program, join_queue, take_row
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE
from flashsim.ssd.state.geometry import block_of, die_of_block


@inlined_kernel
def is_part(kind: int) -> bool:
    """Whether a command completes only after operations of this kind."""
    return kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE)


@inlined_kernel
def add_part(operations: RecordArray, command: int, row: int) -> None:
    """Chain an operation to its command: it goes on when the controller has dealt with that."""
    if operations[command].first_part < 0:
        operations[command].first_part = row
    else:
        operations[operations[command].last_part].next_part = row
    operations[command].last_part = row


@inlined_kernel
def enter_die(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission: it waits for a
    program of that page, and the next erase of the block waits for it.
    """
    kind, place = flow.operations[row].kind, flow.operations[row].place
    block = place if kind == ERASE_BLOCK else block_of(flash.control, place)
    die = flow.operations[row].die = die_of_block(flash.control, block)
    flash.pools[die].queued += 1
    if kind == READ_PAGE and timing.read_priority:
        flow.gates[block].holders += 1
        awaited = pending_program(flow, die, place) if flow.gates[block].pending > 0 else -1
        if awaited >= 0:
            follow_program(flow.operations, awaited, row)
        return
    join_queue(flow, die, row)
    if kind == ERASE_BLOCK:
        flow.operations[row].waits += flow.gates[block].holders
        flow.gates[block].holders = 0
        flow.gates[block].last_erase = flow.operations[row].id
    elif kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        flow.gates[block].pending += 1


@inlined_kernel
def add_operations(flow: Flow, flash: Flash, timing: RecordArray, rows: int, command: int, request: int, sectors: int) -> None:
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = flash.plan[at].kind
        row = take_row(flow, kind)
        planned, operation = flash.plan[at], flow.operations[row]
        operation.place, operation.source, operation.logical = planned.place, planned.source, planned.logical
        operation.write_id, operation.superseded, operation.cause = planned.write_id, planned.superseded, planned.cause
        operation.command, operation.request, operation.sectors = command, request, sectors
        if kind != ZERO_PAGE:
            enter_die(flow, flash, timing, row)
        if planned.superseded >= 0:
            flow.gates[planned.superseded].holders += 1
        if planned.needs >= 0:
            follow(flow.operations, flash.plan[planned.needs].needs, row)
        planned.needs = row  # from here on the row of the operation, for those that need it
        if is_part(kind):
            flow.operations[command].left += 1
        add_part(flow.operations, command, row)
