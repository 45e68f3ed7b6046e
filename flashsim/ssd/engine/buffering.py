"""The write buffer in the engine: pages come in, are read there, leave for flash or are dropped, as `write_buffer` decides."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import WRITE
from flashsim.core.spans import HOST
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import follow, take_row
from flashsim.ssd.engine.queueing import add_operations, add_part
from flashsim.ssd.ftl.base import translate_of
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, ZERO_PAGE
from flashsim.ssd.state.write_buffer import first_needed, is_whole, leave_buffer, remove_entry


@lean_kernel
def add_transfer(flow: Flow, kind: int, command: int, request: int, page: int, sectors: int) -> int:
    """An operation of a command that needs no die; return its row."""
    row = take_row(flow, kind)
    flow.operations[row].logical = page
    flow.operations[row].cause = HOST
    flow.operations[row].command = command
    flow.operations[row].request = request
    flow.operations[row].sectors = sectors
    add_part(flow.operations, command, row)
    return row


@lean_kernel
def fill_entry(flow: Flow, entries: RecordArray, command: int, request: int, entry: int, sectors: int, is_new: bool, is_part: bool) -> None:
    """The host's bytes are to come over the link into an entry, after those that are still to come there."""
    row = add_transfer(flow, BUFFER_PAGE, command, request, entries[entry].page, sectors)
    before = entries[entry].filling
    flow.operations[row].entry = entry
    flow.operations[row].before = before
    flow.operations[row].write_id = entries[entry].write_id
    flow.operations[row].needs_room = is_new
    flow.operations[row].is_part = is_part
    flow.operations[row].destaged_by = -1
    flow.operations[command].left += is_part
    if before >= 0:
        follow(flow.operations, before, row)
    entries[entry].filling = row


@lean_kernel
def read_entry(flow: Flow, entries: RecordArray, command: int, request: int, entry: int, sectors: int) -> None:
    """The host reads what an entry holds, once it has come."""
    row = add_transfer(flow, ZERO_PAGE, command, request, entries[entry].page, sectors)
    flow.operations[command].left += 1
    if entries[entry].filling >= 0:
        follow(flow.operations, entries[entry].filling, row)


@lean_kernel
def drop_entry(flow: Flow, flash: Flash, command: int, request: int, entry: int) -> None:
    """A trimmed page need not be written; its room is free once its bytes have come."""
    row = add_transfer(flow, DROP_PAGE, command, request, flash.entries[entry].page, 0)
    if flash.entries[entry].filling >= 0:
        follow(flow.operations, flash.entries[entry].filling, row)
        mark_transfers(flow.operations, flash.entries[entry].filling, row)
    remove_entry(flash, entry)


@lean_kernel
def mark_transfers(operations: RecordArray, last: int, taken_by: int) -> None:
    """Tell the transfers to an entry that are still to come who took the entry away."""
    row, page = last, operations[last].logical
    while row >= 0:
        operations[row].destaged_by = taken_by
        before, number = operations[row].before, operations[row].id
        still_to_come = before >= 0 and 0 <= operations[before].id < number
        if not still_to_come or operations[before].kind != BUFFER_PAGE or operations[before].logical != page:
            break
        row = before


@lean_kernel
def destage(
    flow: Flow, flash: Flash, policies: Policies, timing: RecordArray, command: int, request: int, entry: int, is_part: bool
) -> bool:
    """Plan to write an entry's page to flash, once it has come; False if a policy broke its contract.

    With `is_part` the command waits for that.
    """
    written, partial = flash.control.sequence, 0 if is_whole(flash, entry) else 1
    rows = translate_of(policies)(WRITE, flash.entries[entry].page, partial, flash, policies)
    if rows < 0 or flash.control.broken:
        return False
    at = leave_buffer(flash, entry, written)
    first = first_needed(flash.plan, at)
    add_operations(flow, flash, timing, rows, command, request, 0)
    store, filling = flash.plan[at].needs, flash.entries[entry].filling
    flow.operations[store].arrived_id = flash.entries[entry].arrived
    flow.operations[store].command = command if is_part else -1
    flow.operations[command].left += is_part
    flow.engine.destaging += 1
    if filling >= 0:
        follow(flow.operations, filling, flash.plan[first].needs)
        mark_transfers(flow.operations, filling, store)
    return True


@lean_kernel
def arrive(operations: RecordArray, entries: RecordArray, row: int) -> None:
    """A page has come over the link: note it in its entry, or with what took the entry away."""
    taken_by = operations[row].destaged_by
    if taken_by >= 0:
        operations[taken_by].arrived_id = operations[row].write_id
        return
    entry = operations[row].entry
    entries[entry].arrived = operations[row].write_id
    if entries[entry].filling == row:
        entries[entry].filling = -1


@lean_kernel
def await_destaging(flow: Flow, command: int) -> None:
    """A flush waits for all pages on their way to flash, and for the controller."""
    flow.operations[command].flush_mark = flow.engine.next_id
    flow.operations[command].left = flow.engine.destaging + 1
    flow.operations[command].next_flush = -1
    if flow.engine.first_flush < 0:
        flow.engine.first_flush = command
        return
    last = flow.engine.first_flush
    while flow.operations[last].next_flush >= 0:
        last = flow.operations[last].next_flush
    flow.operations[last].next_flush = command


@lean_kernel
def forget_flush(flow: Flow, command: int) -> None:
    if flow.engine.first_flush == command:
        flow.engine.first_flush = flow.operations[command].next_flush
        return
    before = flow.engine.first_flush
    while flow.operations[before].next_flush != command:
        before = flow.operations[before].next_flush
    flow.operations[before].next_flush = flow.operations[command].next_flush
