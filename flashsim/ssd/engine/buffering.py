"""The engine's host link, memory bus and write buffer: pages come in, are read there, leave or are dropped, as `write_buffer` decides."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import WRITE, Integers
from flashsim.core.spans import HOST
from flashsim.ssd.engine import dies, tables, waiting
from flashsim.ssd.engine.tables import READY, WANTING, Flow
from flashsim.ssd.ftl.base import translate_of
from flashsim.ssd.state.collection import write_group_of
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BUFFER_PAGE, DROP_PAGE, MEMORY_PAGE, PROGRAM_PAGE
from flashsim.ssd.state.write_buffer import find_entry, first_needed, is_whole, leave_buffer, leave_together, remove_entry

#: Row of the times on the bus, behind those on the link.
BUS = 2


@inlined_kernel
def enters_drive(kind: int) -> bool:
    """True if operations of a kind that pass the link or the bus bring a page into the drive."""
    return kind in (PROGRAM_PAGE, BUFFER_PAGE, MEMORY_PAGE)


@inlined_kernel
def use_bus(flow: Flow, links: Integers, row: int, now: int) -> None:
    dies.schedule(flow, row, tables.ON_BUS, now + links[BUS, flow.operations[row].sectors])


@inlined_kernel
def ask_bus(flow: Flow, control: RecordArray, links: Integers, row: int, now: int) -> None:
    if tables.acquire(flow, control.dies + control.channels + 2, row, now):
        use_bus(flow, links, row, now)


@inlined_kernel
def ask_way(flow: Flow, control: RecordArray, links: Integers, row: int, now: int) -> None:
    """Ask for what an operation passes first: the bus if there is one and the page does not come from the host, or else the link."""
    if links[BUS, 1] > 0 and (not enters_drive(flow.operations[row].kind) or flow.operations[flow.operations[row].command].internal != 0):
        ask_bus(flow, control, links, row, now)
    else:
        ask_link(flow, control, links, row, now)


@inlined_kernel
def use_link(flow: Flow, links: Integers, row: int, now: int) -> None:
    """The link is the operation's: move its bytes, the first of a command after what that takes itself."""
    direction = 1 if enters_drive(flow.operations[row].kind) else 0
    duration, command = links[direction, flow.operations[row].sectors], flow.operations[row].command
    if flow.operations[command].on_its_way == 0:
        flow.operations[command].on_its_way = 1
        duration += links[direction, 0]
    dies.schedule(flow, row, tables.ON_LINK, now + duration)


@inlined_kernel
def ask_link(flow: Flow, control: RecordArray, links: Integers, row: int, now: int) -> None:
    if tables.acquire(flow, control.dies + control.channels, row, now):
        use_link(flow, links, row, now)


@inlined_kernel
def give_room(flow: Flow, control: RecordArray, links: Integers, now: int) -> None:
    """A page has left the write buffer: the first that waits for room has it."""
    row = tables.dequeue(flow, WANTING, tables.QUEUED)
    if row >= 0:
        ask_way(flow, control, links, row, now)
    else:
        flow.engine.room += 1


@inlined_kernel
def let_transfers_start(flow: Flow, control: RecordArray, links: Integers, now: int) -> None:
    """Let operations that got ready for link or bus in this event go there in order, into the write buffer as soon as there is room."""
    while flow.queues[READY].head >= 0:
        row = tables.dequeue(flow, READY, tables.QUEUED)
        if flow.operations[row].kind == DROP_PAGE:
            give_room(flow, control, links, now)
            tables.give_row(flow, row)
        elif flow.operations[row].needs_room and flow.engine.room == 0:
            tables.enqueue(flow, WANTING, row, tables.QUEUED)
        else:
            flow.engine.room -= flow.operations[row].needs_room
            ask_way(flow, control, links, row, now)


@lean_kernel
def add_transfer(flow: Flow, entries: RecordArray, kind: int, command: int, entry: int, sectors: int, is_part: bool) -> int:
    """An operation of a command that needs no die, after the transfers to its entry that are still to come; return its row."""
    row = tables.take_row(flow, kind)
    flow.operations[row].logical = entries[entry].page
    flow.operations[row].cause = HOST
    flow.operations[row].sectors = sectors
    tables.add_part(flow.operations, command, row, is_part)
    if entries[entry].filling >= 0:
        tables.follow(flow.operations, entries[entry].filling, row, tables.FOLLOWER)
    return row


@lean_kernel
def fill_entry(flow: Flow, entries: RecordArray, command: int, entry: int, sectors: int, is_new: bool, is_part: bool) -> None:
    """The host's bytes are to come over the link into an entry."""
    row = add_transfer(flow, entries, BUFFER_PAGE, command, entry, sectors, is_part)
    flow.operations[row].entry = entry
    flow.operations[row].before = entries[entry].filling
    flow.operations[row].write_id = entries[entry].write_id
    flow.operations[row].needs_room = is_new
    flow.operations[row].destaged_by = -1
    entries[entry].filling = row


@lean_kernel
def drop_entry(flow: Flow, flash: Flash, command: int, entry: int) -> None:
    """A trimmed page need not be written; its room is free once its bytes have come."""
    row = add_transfer(flow, flash.entries, DROP_PAGE, command, entry, 0, False)
    mark_transfers(flow.operations, flash.entries[entry].filling, row)
    remove_entry(flash, entry)


@lean_kernel
def mark_transfers(operations: RecordArray, last: int, taken_by: int) -> None:
    """Tell the transfers to an entry that are still to come, of which `last` is the newest (-1: none), who took the entry away."""
    row = last
    while row >= 0:
        operations[row].destaged_by = taken_by
        before, number = operations[row].before, operations[row].id
        still_to_come = before >= 0 and 0 <= operations[before].id < number
        if not still_to_come or operations[before].kind != BUFFER_PAGE or operations[before].logical != operations[last].logical:
            break
        row = before


@lean_kernel
def destage(flow: Flow, flash: Flash, policies: Policies, timing: RecordArray, command: int, entry: int, is_part: bool) -> bool:
    """Plan to write an entry's page to flash, once it has come; False if a policy broke its contract.

    With `is_part` the command waits for that.
    """
    write_id, partial = flash.control.sequence, 0 if is_whole(flash, entry) else 1
    stream, flash.control.stream = flash.control.stream, flash.entries[entry].stream
    rows = translate_of(policies)(WRITE, flash.entries[entry].page, partial, flash, policies)
    flash.control.stream = stream
    if rows < 0 or flash.control.broken:
        return False
    at = leave_buffer(flash, entry, write_id)
    first = first_needed(flash.plan, at)
    waiting.add_operations(flow, flash, timing, rows, command, 0)
    let_go(flow, flash.entries, command, entry, flash.plan[at].needs, flash.plan[first].needs, is_part)
    return True


@lean_kernel
def let_go(flow: Flow, entries: RecordArray, command: int, entry: int, store: int, first: int, is_part: bool) -> None:
    """An entry's page is stored once it has come: the operation `first` waits for that."""
    filling = entries[entry].filling
    flow.operations[store].arrived_id = entries[entry].arrived
    flow.operations[store].is_part = is_part
    flow.operations[command].pending += is_part
    flow.engine.destaging += 1
    if filling >= 0:
        tables.follow(flow.operations, filling, first, tables.FOLLOWER)
        mark_transfers(flow.operations, filling, store)


@lean_kernel
def destage_group(
    flow: Flow, flash: Flash, policies: Policies, timing: RecordArray, command: int, page: int, own: int, is_part: bool
) -> bool:  # fmt: skip
    """The `own` pages up to `page` leave for flash, and with them the oldest, as many as are programmed at once.

    With `is_part` the command waits for its own.  Returns False if a policy broke its contract.
    """
    if flash.control.group == 1:
        entry = find_entry(flash, page) if own > 0 else flash.buffer.oldest
        return destage(flow, flash, policies, timing, command, entry, is_part)
    count = leave_together(flash, page, own)
    stream, flash.control.stream = flash.control.stream, flash.entries[flash.group[0].entry].stream
    rows = write_group_of(policies)(flash, policies, count)
    flash.control.stream = stream
    if rows < 0 or flash.control.broken:
        return False
    waiting.add_operations(flow, flash, timing, rows, command, 0)
    for at in range(count):
        store, fetch = flash.plan[rows - count + at].needs, flash.group[at].fetch
        first = flash.plan[fetch].needs if fetch >= 0 else store
        let_go(flow, flash.entries, command, flash.group[at].entry, store, first, is_part and at < own)
    return True


@lean_kernel
def arrive(operations: RecordArray, entries: RecordArray, row: int) -> None:
    """A page has come over the link: note it in its entry, or with what took the entry away."""
    taken_by, entry = operations[row].destaged_by, operations[row].entry
    if taken_by >= 0:
        operations[taken_by].arrived_id = operations[row].write_id
        return
    entries[entry].arrived = operations[row].write_id
    if entries[entry].filling == row:
        entries[entry].filling = -1
