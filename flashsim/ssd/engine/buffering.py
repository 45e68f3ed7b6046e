"""The write buffer in the engine: pages come in, are read there, leave for flash or are dropped, as `write_buffer` decides."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import WRITE, Integers
from flashsim.core.spans import HOST
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import (
    ARRIVED_ID,
    BEFORE,
    COMMAND,
    DESTAGED_BY,
    DESTAGING,
    ENTRY,
    FIRST_FLUSH,
    FLUSH_MARK,
    ID,
    IS_PART,
    LEFT,
    NEEDS_ROOM,
    NEXT_FLUSH,
    NEXT_ID,
    REQUEST,
    SECTORS,
    follow,
    take_row,
)
from flashsim.ssd.engine.queueing import add_operations, add_part
from flashsim.ssd.ftl.base import translate_of
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BUFFER_PAGE, CAUSE, DROP_PAGE, KIND, LOGICAL, NEEDS, WRITE_ID, ZERO_PAGE
from flashsim.ssd.state.geometry import BROKEN, SEQUENCE
from flashsim.ssd.state.write_buffer import ARRIVED, ENTRY_ID, FILLING, PAGE, first_needed, is_whole, leave_buffer, remove_entry


@lean_kernel
def add_transfer(flow: Flow, kind: int, command: int, request: int, page: int, sectors: int) -> int:
    """An operation of a command that needs no die; return its row."""
    row = take_row(flow, kind)
    flow.operations[row, LOGICAL] = page
    flow.operations[row, CAUSE] = HOST
    flow.operations[row, COMMAND] = command
    flow.operations[row, REQUEST] = request
    flow.operations[row, SECTORS] = sectors
    add_part(flow.operations, command, row)
    return row


@lean_kernel
def fill_entry(flow: Flow, buffer: Integers, command: int, request: int, entry: int, sectors: int, is_new: bool, is_part: bool) -> None:
    """The host's bytes are to come over the link into an entry, after those that are still to come there."""
    row = add_transfer(flow, BUFFER_PAGE, command, request, buffer[entry, PAGE], sectors)
    before = buffer[entry, FILLING]
    flow.operations[row, ENTRY] = entry
    flow.operations[row, BEFORE] = before
    flow.operations[row, WRITE_ID] = buffer[entry, ENTRY_ID]
    flow.operations[row, NEEDS_ROOM] = is_new
    flow.operations[row, IS_PART] = is_part
    flow.operations[row, DESTAGED_BY] = -1
    flow.operations[command, LEFT] += is_part
    if before >= 0:
        follow(flow.operations, before, row)
    buffer[entry, FILLING] = row


@lean_kernel
def read_entry(flow: Flow, buffer: Integers, command: int, request: int, entry: int, sectors: int) -> None:
    """The host reads what an entry holds, once it has come."""
    row = add_transfer(flow, ZERO_PAGE, command, request, buffer[entry, PAGE], sectors)
    flow.operations[command, LEFT] += 1
    if buffer[entry, FILLING] >= 0:
        follow(flow.operations, buffer[entry, FILLING], row)


@lean_kernel
def drop_entry(flow: Flow, buffer: Integers, command: int, request: int, entry: int) -> None:
    """A trimmed page need not be written; its room is free once its bytes have come."""
    row = add_transfer(flow, DROP_PAGE, command, request, buffer[entry, PAGE], 0)
    if buffer[entry, FILLING] >= 0:
        follow(flow.operations, buffer[entry, FILLING], row)
        mark_transfers(flow.operations, buffer[entry, FILLING], row)
    remove_entry(buffer, entry)


@lean_kernel
def mark_transfers(operations: Integers, last: int, taken_by: int) -> None:
    """Tell the transfers to an entry that are still to come who took the entry away."""
    row, page = last, operations[last, LOGICAL]
    while row >= 0:
        operations[row, DESTAGED_BY] = taken_by
        before, number = operations[row, BEFORE], operations[row, ID]
        still_to_come = before >= 0 and 0 <= operations[before, ID] < number
        if not still_to_come or operations[before, KIND] != BUFFER_PAGE or operations[before, LOGICAL] != page:
            break
        row = before


@lean_kernel
def destage(flow: Flow, flash: Flash, policies: Policies, timing: Integers, command: int, request: int, entry: int, is_part: bool) -> bool:
    """Plan to write an entry's page to flash, once it has come; False if a policy broke its contract.

    With `is_part` the command waits for that.
    """
    written, partial = flash.control[SEQUENCE], 0 if is_whole(flash, entry) else 1
    rows = translate_of(policies)(WRITE, flash.buffer[entry, PAGE], partial, flash, policies)
    if rows < 0 or flash.control[BROKEN]:
        return False
    at = leave_buffer(flash, entry, written)
    first = first_needed(flash.plan, at)
    add_operations(flow, flash, timing, rows, command, request, 0)
    store, filling = flash.plan[at, NEEDS], flash.buffer[entry, FILLING]
    flow.operations[store, ARRIVED_ID] = flash.buffer[entry, ARRIVED]
    flow.operations[store, COMMAND] = command if is_part else -1
    flow.operations[command, LEFT] += is_part
    flow.engine[DESTAGING] += 1
    if filling >= 0:
        follow(flow.operations, filling, flash.plan[first, NEEDS])
        mark_transfers(flow.operations, filling, store)
    return True


@lean_kernel
def arrive(operations: Integers, buffer: Integers, row: int) -> None:
    """A page has come over the link: note it in its entry, or with what took the entry away."""
    taken_by = operations[row, DESTAGED_BY]
    if taken_by >= 0:
        operations[taken_by, ARRIVED_ID] = operations[row, WRITE_ID]
        return
    entry = operations[row, ENTRY]
    buffer[entry, ARRIVED] = operations[row, WRITE_ID]
    if buffer[entry, FILLING] == row:
        buffer[entry, FILLING] = -1


@lean_kernel
def await_destaging(flow: Flow, command: int) -> None:
    """A flush waits for all pages on their way to flash, and for the controller."""
    flow.operations[command, FLUSH_MARK] = flow.engine[NEXT_ID]
    flow.operations[command, LEFT] = flow.engine[DESTAGING] + 1
    flow.operations[command, NEXT_FLUSH] = -1
    if flow.engine[FIRST_FLUSH] < 0:
        flow.engine[FIRST_FLUSH] = command
        return
    last = flow.engine[FIRST_FLUSH]
    while flow.operations[last, NEXT_FLUSH] >= 0:
        last = flow.operations[last, NEXT_FLUSH]
    flow.operations[last, NEXT_FLUSH] = command


@lean_kernel
def forget_flush(flow: Flow, command: int) -> None:
    if flow.engine[FIRST_FLUSH] == command:
        flow.engine[FIRST_FLUSH] = flow.operations[command, NEXT_FLUSH]
        return
    before = flow.engine[FIRST_FLUSH]
    while flow.operations[before, NEXT_FLUSH] != command:
        before = flow.operations[before, NEXT_FLUSH]
    flow.operations[before, NEXT_FLUSH] = flow.operations[command, NEXT_FLUSH]
