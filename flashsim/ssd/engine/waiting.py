"""What operations of the engine wait for at a die: their places in its queue, what must end before, and gates before erases.

Room in the write buffer, link and bus are in `buffering`, a die's choice and the channel in `dies`.  All that a write waits for, from the
host to the cells, is a table in ``docs/explanation/ssd.md``.
"""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.engine import tables
from flashsim.ssd.engine.tables import FOLLOWER, IN_DIE, READER, Flow
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, PROGRAM_PAGE, READ_PAGE, ZERO_PAGE
from flashsim.ssd.state.geometry import block_of, die_of_block


@inlined_kernel
def wake(flow: Flow, die: int) -> None:
    """Let a die look for work once all that follows from this event has been done."""
    if flow.servers[die].woken:
        return
    flow.servers[die].woken = 1
    flow.servers[die].next_woken = -1
    if flow.engine.first_woken < 0:
        flow.engine.first_woken = die
    else:
        flow.servers[flow.engine.last_woken].next_woken = die
    flow.engine.last_woken = die


@inlined_kernel
def satisfy(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """One thing that an operation waited for has happened; with the last it is ready for its die, or for the link."""
    operation = flow.operations[row]
    operation.waits -= 1
    if operation.waits > 0:
        return
    if operation.kind in (ZERO_PAGE, flash_array.BUFFER_PAGE, flash_array.DROP_PAGE, flash_array.MEMORY_PAGE):
        tables.enqueue(flow, tables.READY, row, tables.QUEUED)
        return
    if operation.kind == READ_PAGE and timing.read_priority and operation.origin >= 0:
        place_read(flow, flash, row)
    if is_queued_late(flow, timing, row):
        tables.enqueue(flow, tables.reads_of(flow, operation.die), row, IN_DIE)
    wake(flow, operation.die)


@inlined_kernel
def is_queued_late(flow: Flow, timing: RecordArray, row: int) -> bool:
    """True if an operation has its place with its die only when it is ready: a read that overtakes, on a boundless die any."""
    kind = flow.operations[row].kind
    if flow.servers[flow.operations[row].die].boundless:
        return kind in (READ_PAGE, FETCH_PAGE)
    return kind == READ_PAGE and timing.read_priority != 0


@lean_kernel
def place_read(flow: Flow, flash: Flash, row: int) -> None:
    """A read that may overtake is ready: it goes to the page where its content stands now."""
    operation = flow.operations[row]
    operation.place, _ = tables.readable(flow, row)
    flash.pools[operation.die].queued -= 1
    operation.die = die_of_block(flash.control, block_of(flash.control, operation.place))
    flash.pools[operation.die].queued += 1


@inlined_kernel
def satisfy_followers(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """An operation has ended: tell those that wait for it."""
    for chain in (FOLLOWER, READER):
        last = follower = flow.operations[row].last[chain]
        while follower >= 0:
            follower = flow.operations[follower].next[chain]
            satisfy(flow, flash, timing, follower)
            if follower == last:
                break


@inlined_kernel
def hold_gate(flow: Flow, block: int, row: int) -> None:
    """An operation keeps a block from being erased: the erase admitted next after it waits."""
    flow.gates[block].holders += 1
    flow.operations[row].gate = flow.gates[block].newest_erase


@inlined_kernel
def close_gate(flow: Flow, block: int, row: int) -> None:
    """An erase of a block is admitted."""
    gate, operation = flow.gates[block], flow.operations[row]
    operation.waits += gate.holders
    operation.gate = -1
    if gate.oldest_erase < 0:
        gate.oldest_erase = row
    else:
        flow.operations[gate.newest_erase].gate = row
    gate.newest_erase = row
    gate.holders = 0
    gate.last_erase = operation.id


@inlined_kernel
def open_gate(flow: Flow, block: int, row: int) -> None:
    """An operation no longer keeps a block from being erased: the erase admitted next after it may go on.

    Erases of a block end in order.  So that is the oldest which has not ended, or the one behind the last that was admitted before.
    """
    gate, operation = flow.gates[block], flow.operations[row]
    if operation.id > gate.last_erase:
        gate.holders -= 1
        return
    erase = gate.oldest_erase
    if flow.operations[erase].id < operation.id:
        erase = flow.operations[operation.gate].gate
    flow.operations[erase].waits -= 1
    if flow.operations[erase].waits == 0:
        wake(flow, flow.operations[erase].die)


@inlined_kernel
def add_operations(flow: Flow, flash: Flash, timing: RecordArray, rows: int, command: int, sectors: int) -> None:
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = flash.plan[at].kind
        row = tables.take_row(flow, kind)
        planned, operation = flash.plan[at], flow.operations[row]
        operation.place, operation.source, operation.logical = planned.place, planned.source, planned.logical
        operation.write_id, operation.superseded, operation.cause = planned.write_id, planned.superseded, planned.cause
        operation.sectors = sectors
        if kind != ZERO_PAGE:
            enter_die(flow, flash, timing, row)
        if planned.superseded >= 0:
            hold_gate(flow, planned.superseded, row)
        if planned.needs >= 0:
            tables.follow(flow.operations, flash.plan[planned.needs].needs, row, FOLLOWER)
        planned.needs = row  # from here on the row of the operation, for those that need it
        tables.add_part(flow.operations, command, row, kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE))


@inlined_kernel
def enter_die(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission, and the next
    erase of that block waits for it; while that page is being moved there, it reads where it was.  Only for the host's programs it waits.
    """
    kind, place = flow.operations[row].kind, flow.operations[row].place
    block = place if kind == ERASE_BLOCK else block_of(flash.control, place)
    die = flow.operations[row].die = die_of_block(flash.control, block)
    flash.pools[die].queued += 1
    if timing.read_priority and (kind == READ_PAGE or flow.operations[row].source >= 0):
        reads = place if kind == READ_PAGE else flow.operations[row].source
        is_pending = flow.gates[block_of(flash.control, reads)].pending > 0
        flow.operations[row].origin = tables.pending_program(flow, reads) if is_pending else -1
    if kind == READ_PAGE and timing.read_priority:
        hold_gate(flow, block, row)
        flow.operations[row].superseded = block
        _, program = tables.readable(flow, row)
        if program >= 0:
            tables.follow(flow.operations, program, row, READER)
        return
    if not is_queued_late(flow, timing, row):
        tables.enqueue(flow, die, row, IN_DIE)
    if kind == ERASE_BLOCK:
        close_gate(flow, block, row)
    elif timing.read_priority and flash_array.is_program(kind):
        flow.gates[block].pending += 1
        tables.note_program(flow, row)
