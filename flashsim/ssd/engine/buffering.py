"""The write buffer in the engine: pages come in, are read there, leave for flash or are dropped, as `write_buffer` decides."""

from __future__ import annotations

from typing import Any

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import WRITE, Integers
from flashsim.ssd.engine.operations import (
    ARRIVED_ID,
    COMMAND,
    DESTAGED_BY,
    DESTAGING,
    FIRST_FLUSH,
    FLUSH_MARK,
    ID,
    IS_PART,
    LEFT,
    NEEDS_ROOM,
    NEXT_ID,
    NEXT_IN_DIE,
    REQUEST,
    SECTORS,
    follow,
    take_row,
)
from flashsim.ssd.engine.queueing import add_operations, add_part
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    CAUSE,
    DROP_PAGE,
    HOST,
    KIND,
    LOGICAL,
    NEEDS,
    PLACE,
    SOURCE,
    WRITE_ID,
    ZERO_PAGE,
    Narrow,
)
from flashsim.ssd.state.geometry import BROKEN, SEQUENCE
from flashsim.ssd.state.write_buffer import ARRIVED, ENTRY_ID, FILLING, PAGE, first_needed, is_whole, leave_buffer, remove_entry


@lean_kernel
def add_transfer(engine: Integers, operations: Integers, kind: int, command: int, request: int, page: int, sectors: int) -> int:
    """An operation of a command that needs no die; return its row."""
    row = take_row(engine, operations, kind)
    operations[row, LOGICAL] = page
    operations[row, CAUSE] = HOST
    operations[row, COMMAND] = command
    operations[row, REQUEST] = request
    operations[row, SECTORS] = sectors
    add_part(operations, command, row)
    return row


@lean_kernel
def fill_entry(
    engine: Integers,
    operations: Integers,
    buffer: Integers,
    command: int,
    request: int,
    entry: int,
    sectors: int,
    is_new: bool,
    is_part: bool,
) -> None:
    """The host's bytes are to come over the link into an entry, after those that are still to come there."""
    row = add_transfer(engine, operations, BUFFER_PAGE, command, request, buffer[entry, PAGE], sectors)
    before = buffer[entry, FILLING]
    operations[row, PLACE] = entry
    operations[row, SOURCE] = before
    operations[row, WRITE_ID] = buffer[entry, ENTRY_ID]
    operations[row, NEEDS_ROOM] = is_new
    operations[row, IS_PART] = is_part
    operations[row, DESTAGED_BY] = -1
    operations[command, LEFT] += is_part
    if before >= 0:
        follow(operations, before, row)
    buffer[entry, FILLING] = row


@lean_kernel
def read_entry(engine: Integers, operations: Integers, buffer: Integers, command: int, request: int, entry: int, sectors: int) -> None:
    """The host reads what an entry holds, once it has come."""
    row = add_transfer(engine, operations, ZERO_PAGE, command, request, buffer[entry, PAGE], sectors)
    operations[command, LEFT] += 1
    if buffer[entry, FILLING] >= 0:
        follow(operations, buffer[entry, FILLING], row)


@lean_kernel
def drop_entry(engine: Integers, operations: Integers, buffer: Integers, command: int, request: int, entry: int) -> None:
    """A trimmed page need not be written; its room is free once its bytes have come."""
    row = add_transfer(engine, operations, DROP_PAGE, command, request, buffer[entry, PAGE], 0)
    if buffer[entry, FILLING] >= 0:
        follow(operations, buffer[entry, FILLING], row)
        mark_transfers(operations, buffer[entry, FILLING], row)
    remove_entry(buffer, entry)


@lean_kernel
def mark_transfers(operations: Integers, last: int, taken_by: int) -> None:
    """Tell the transfers to an entry that are still to come who took the entry away."""
    row, page = last, operations[last, LOGICAL]
    while row >= 0:
        operations[row, DESTAGED_BY] = taken_by
        before, number = operations[row, SOURCE], operations[row, ID]
        still_to_come = before >= 0 and 0 <= operations[before, ID] < number
        if not still_to_come or operations[before, KIND] != BUFFER_PAGE or operations[before, LOGICAL] != page:
            break
        row = before


@lean_kernel
def destage(
    engine: Integers, operations: Integers, servers: Integers, gates: Integers, control: Integers, pools: Integers, blocks: Integers,
    mapping: Narrow, pages: Narrow, own: Integers, plan: Integers, buffer: Integers, timing: Integers, translate: Any, victim: Any,
    opens: Any, levels: Any, command: int, request: int, entry: int, is_part: bool,
) -> bool:  # fmt: skip
    """Plan to write an entry's page to flash, once it has come; False if a policy broke its contract.

    With `is_part` the command waits for that.
    """
    written, partial = control[SEQUENCE], 0 if is_whole(control, buffer, entry) else 1
    rows = translate(
        WRITE, buffer[entry, PAGE], partial, control, pools, blocks, mapping, pages, own, plan, victim, opens, levels
    )  # fmt: skip
    if rows < 0 or control[BROKEN]:
        return False
    at = leave_buffer(control, buffer, entry, plan, written)
    first = first_needed(plan, at)
    add_operations(engine, operations, servers, gates, control, pools, plan, timing, rows, command, request, 0)
    store, filling = plan[at, NEEDS], buffer[entry, FILLING]
    operations[store, ARRIVED_ID] = buffer[entry, ARRIVED]
    operations[store, COMMAND] = command if is_part else -1
    operations[command, LEFT] += is_part
    engine[DESTAGING] += 1
    if filling >= 0:
        follow(operations, filling, plan[first, NEEDS])
        mark_transfers(operations, filling, store)
    return True


@lean_kernel
def arrive(operations: Integers, buffer: Integers, row: int) -> None:
    """A page has come over the link: note it in its entry, or with what took the entry away."""
    taken_by = operations[row, DESTAGED_BY]
    if taken_by >= 0:
        operations[taken_by, ARRIVED_ID] = operations[row, WRITE_ID]
        return
    entry = operations[row, PLACE]
    buffer[entry, ARRIVED] = operations[row, WRITE_ID]
    if buffer[entry, FILLING] == row:
        buffer[entry, FILLING] = -1


@lean_kernel
def await_destaging(engine: Integers, operations: Integers, command: int) -> None:
    """A flush waits for all pages on their way to flash, and for the controller."""
    operations[command, FLUSH_MARK] = engine[NEXT_ID]
    operations[command, LEFT] = engine[DESTAGING] + 1
    operations[command, NEXT_IN_DIE] = -1
    if engine[FIRST_FLUSH] < 0:
        engine[FIRST_FLUSH] = command
        return
    last = engine[FIRST_FLUSH]
    while operations[last, NEXT_IN_DIE] >= 0:
        last = operations[last, NEXT_IN_DIE]
    operations[last, NEXT_IN_DIE] = command


@lean_kernel
def forget_flush(engine: Integers, operations: Integers, command: int) -> None:
    """A flush has completed."""
    if engine[FIRST_FLUSH] == command:
        engine[FIRST_FLUSH] = operations[command, NEXT_IN_DIE]
        return
    before = engine[FIRST_FLUSH]
    while operations[before, NEXT_IN_DIE] != command:
        before = operations[before, NEXT_IN_DIE]
    operations[before, NEXT_IN_DIE] = operations[command, NEXT_IN_DIE]
