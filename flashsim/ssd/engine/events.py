"""Actions at each event of the engine: the rules of the specification, compiled.

One event ends one step of one operation.  What follows from it without delay is done at once, in this order: the channel, link or
controller passes to the next that waits; all that the step changes on the flash; what waited for it becomes ready; commands complete; at
last the dies that got free, or got something ready, look for work in the order in which that happened.
"""

from flashsim.core.host import Host, command_done
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.spans import HOST
from flashsim.ssd.engine import buffering, dies, tables, waiting
from flashsim.ssd.engine.tables import FLUSHES, IN_DIE, WAITING, Flow, Timings
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import BUFFER_PAGE, ERASE_BLOCK, FETCH_PAGE, IN_SLC, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE
from flashsim.ssd.state.geometry import block_of, channel_of
from flashsim.ssd.state.pacing import acknowledge


@inlined_kernel
def finish_command(host: Host, flow: Flow, row: int) -> None:
    """A command completes; of flushes that wait the first, since the others wait for no less."""
    if flow.operations[row].flush_mark > 0:
        tables.dequeue(flow, FLUSHES, IN_DIE)
    if flow.operations[row].host_command >= 0:
        command_done(host, flow.operations[row].host_command)
    tables.give_row(flow, row)


@lean_kernel
def acknowledge_paced(host: Host, flow: Flow, flash: Flash) -> None:
    """Writes that are complete are acknowledged in their order, at the pace of a drive that collects."""
    row = flow.queues[tables.PACED].head
    while row >= 0 and flash.buffer.opens <= host.scalars.now:
        tables.dequeue(flow, tables.PACED, tables.QUEUED)
        acknowledge(flash.buffer, flash.control.moved_share, flow.operations[row].sectors, host.scalars.now)
        finish_command(host, flow, row)
        row = flow.queues[tables.PACED].head
    if row >= 0:
        dies.schedule(flow, row, tables.COMPLETE, flash.buffer.opens)


@inlined_kernel
def complete(host: Host, flow: Flow, flash: Flash, row: int) -> None:
    """All is done that a command waits for: it completes, a paced write in its turn."""
    if flow.operations[row].sectors == 0:
        finish_command(host, flow, row)
        return
    tables.enqueue(flow, tables.PACED, row, tables.QUEUED)
    if flow.queues[tables.PACED].head == row:
        acknowledge_paced(host, flow, flash)


@inlined_kernel
def finish_part(host: Host, flow: Flow, flash: Flash, row: int) -> None:
    """A page of a command is done; the command completes with its last.  One that is programmed behind goes on."""
    command = flow.operations[row].command
    if flow.operations[row].is_behind:
        flow.operations[row].is_part = 0
    else:
        tables.give_row(flow, row)
    flow.operations[command].pending -= 1
    if flow.operations[command].pending == 0:
        complete(host, flow, flash, command)


@inlined_kernel
def note_destage(host: Host, flow: Flow, number: int) -> None:
    """A page that was acknowledged before is on flash, by the operation of that number: flushes admitted after it wait for one less."""
    flow.engine.destaging -= 1
    command = flow.queues[FLUSHES].head
    while command >= 0:
        following = flow.operations[command].next[IN_DIE]
        if flow.operations[command].flush_mark > number:
            flow.operations[command].pending -= 1
            if flow.operations[command].pending == 0:
                finish_command(host, flow, command)
        command = following


@inlined_kernel
def overhead_ends(host: Host, flow: Flow, flash: Flash, times: Timings, row: int, now: int) -> None:
    """The controller has dealt with a command: its operations go on."""
    following = tables.release(flow, flash.control.dies + flash.control.channels + 1, now)
    if following >= 0:
        dies.schedule(flow, following, WAITING, now + flow.operations[following].overhead)
    part = flow.operations[row].first_part
    while part >= 0:
        if flow.operations[part].kind == PROGRAM_PAGE:
            tables.enqueue(flow, tables.READY, part, tables.QUEUED)
        else:
            waiting.satisfy(flow, flash, times.timing, part)
        part = flow.operations[part].next_part
    if flow.operations[row].flush_mark > 0:
        flow.operations[row].pending -= 1
    if flow.operations[row].pending == 0:
        complete(host, flow, flash, row)


@inlined_kernel
def transfer_ends(host: Host, flow: Flow, flash: Flash, times: Timings, row: int, on_bus: bool, now: int) -> None:
    """Bytes have passed over the link or the bus, and may have to pass the other.

    Then a program is ready for its die; all else, and a program behind, is done with its command.
    """
    following = tables.release(flow, flash.control.dies + flash.control.channels + 2 * on_bus, now)
    enters = buffering.enters_drive(flow.operations[row].kind)
    if on_bus:
        if following >= 0:
            buffering.use_bus(flow, times.links, following, now)
        if not enters and flow.operations[flow.operations[row].command].internal == 0:
            buffering.ask_link(flow, flash.control, times.links, row, now)
            return
    else:
        if following >= 0:
            buffering.use_link(flow, times.links, following, now)
        if enters and times.links[buffering.BUS, 1] > 0:
            buffering.ask_bus(flow, flash.control, times.links, row, now)
            return
    if flow.operations[row].kind == PROGRAM_PAGE:
        flow.operations[row].phase = WAITING
        waiting.satisfy(flow, flash, times.timing, row)
        if flow.operations[row].is_behind:
            finish_part(host, flow, flash, row)
        return
    if flow.operations[row].kind == BUFFER_PAGE:
        buffering.arrive(flow.operations, flash.entries, row)
        waiting.satisfy_followers(flow, flash, times.timing, row)
    if flow.operations[row].is_part:
        finish_part(host, flow, flash, row)
    else:
        tables.give_row(flow, row)


@inlined_kernel
def read_ends(flow: Flow, flash: Flash, times: Timings, row: int, now: int) -> None:
    """A page has left its die: the next of those that were read together may, or the one that waits for the cache register."""
    operation = flow.operations[row]
    die, other, cached = operation.die, operation.next[IN_DIE], times.timing.cache_read != 0
    times.counters.reads[operation.cause] += 1
    flash.pools[die].queued -= 1
    if other >= 0:
        if cached:
            flow.servers[die].cached = other + 1
        elif flow.servers[die].boundless == 0:
            flow.servers[die].busy = other + 1
        dies.ask_channel(flow, flash.control, times, other, now)
    else:
        dies.give_up_die(flow, flash, times.timing, die, cached, now)
        waiting.wake(flow, die)
        if cached and flow.servers[die].busy != 0 and flow.operations[flow.servers[die].busy - 1].phase == WAITING:
            dies.pass_to_cache(flow, flash.control, times, die, now)
    if operation.kind == FETCH_PAGE:
        times.counters.read_modify_write_reads += operation.cause == HOST
        waiting.satisfy_followers(flow, flash, times.timing, row)
        tables.give_row(flow, row)
        return
    if times.timing.read_priority:
        waiting.open_gate(flow, operation.superseded, row)
    buffering.ask_way(flow, flash.control, times.links, row, now)


@inlined_kernel
def channel_ends(flow: Flow, flash: Flash, times: Timings, row: int, now: int) -> None:
    """A page has passed over a channel: reads leave the die; programs begin once the pages of all planes are there."""
    die, kind = flow.operations[row].die, flow.operations[row].kind
    following = tables.release(flow, flash.control.dies + channel_of(flash.control, die), now)
    if following >= 0:
        dies.use_channel(flow, flash.control, times, following, now)
    flow.engine.pages_behind -= flow.operations[row].is_behind
    if kind in (READ_PAGE, FETCH_PAGE):
        read_ends(flow, flash, times, row, now)
    elif flow.operations[row].next[IN_DIE] >= 0:
        dies.ask_channel(flow, flash.control, times, flow.operations[row].next[IN_DIE], now)
    elif flow.servers[die].cached != 0:
        flow.operations[flow.servers[die].cached - 1].phase = WAITING
    else:
        dies.begin_program(flow, flash, times, dies.first_at_work(flow, row), now)


@lean_kernel
def work_ends(host: Host, flow: Flow, flash: Flash, times: Timings, first: int) -> None:
    """Pages are programmed, or blocks erased: the die goes on with its cache register, or is free, and so may be what waited for them."""
    now, die, row = host.scalars.now, flow.operations[first].die, first
    while row >= 0:
        operation = flow.operations[row]
        if operation.kind == ERASE_BLOCK:
            flash_array.end_erase(flash, operation.place)
            flow.gates[operation.place].oldest_erase = operation.gate
            times.counters.erases[operation.cause] += 1
        else:
            flash_array.end_program(flash, operation.place, operation.source, operation.logical, operation.write_id)
            if times.timing.read_priority:
                flow.gates[block_of(flash.control, operation.place)].pending -= 1
                tables.forget_program(flow, row)
            times.counters.programs[operation.cause] += 1
            times.counters.reads[operation.cause] += operation.kind == MOVE_PAGE
            times.counters.slc_programs += operation.source <= IN_SLC
            if flash.control.group > 1:
                following = flow.operations[operation.next[IN_DIE]].place if operation.next[IN_DIE] >= 0 else -1
                empty = flash_array.empty_slots(flash.control, operation.place, operation.source, following)
                times.counters.padded_programs += empty
                times.counters.programs[operation.cause] += empty
                times.counters.slc_programs += empty if operation.source <= IN_SLC else 0
        flash.pools[die].queued -= 1
        row = operation.next[IN_DIE]
    dies.give_up_die(flow, flash, times.timing, die, False, now)
    waiting.wake(flow, die)
    if flow.servers[die].cached != 0:
        flow.servers[die].busy, flow.servers[die].cached = flow.servers[die].cached, 0
        if flow.operations[flow.servers[die].busy - 1].phase == WAITING:
            dies.begin_program(flow, flash, times, flow.servers[die].busy - 1, now)
    row = first
    while row >= 0:
        waiting.satisfy_followers(flow, flash, times.timing, row)
        if flow.operations[row].superseded >= 0:
            waiting.open_gate(flow, flow.operations[row].superseded, row)
        row = flow.operations[row].next[IN_DIE]
    row = first
    while row >= 0:  # what left the write buffer gives up its room there, and the command that waits for the page has it
        following = flow.operations[row].next[IN_DIE]
        from_buffer = flow.operations[row].kind == STORE_PAGE and flow.operations[row].cause == HOST
        if from_buffer:
            buffering.give_room(flow, flash.control, times.links, now)
        if from_buffer or flow.operations[row].is_behind:
            note_destage(host, flow, flow.operations[row].id)
        if flow.operations[row].is_part:
            finish_part(host, flow, flash, row)
        else:
            tables.give_row(flow, row)
        row = following


@inlined_kernel
def reading_ends(flow: Flow, flash: Flash, times: Timings, first: int, now: int) -> None:
    """Pages have come out of the cells and are in their registers."""
    kind, die = flow.operations[first].kind, flow.operations[first].die
    if kind != MOVE_PAGE:
        tables.note_cells(flow, flash, times.timing, first, now)
    if kind == MOVE_PAGE and flash.control.copyback:
        dies.begin_program(flow, flash, times, first, now)
    elif not times.timing.cache_read or kind == MOVE_PAGE:
        dies.ask_channel(flow, flash.control, times, first, now)
    elif flow.servers[die].cached == 0:
        dies.pass_to_cache(flow, flash.control, times, die, now)
    else:
        flow.operations[first].phase = WAITING


@inlined_kernel
def happen(host: Host, flow: Flow, flash: Flash, times: Timings, row: int) -> None:
    """Let one operation's event happen, at the host's clock."""
    now, phase, control = host.scalars.now, flow.operations[row].phase, flash.control
    if phase == tables.COMPLETE:
        acknowledge_paced(host, flow, flash)
    elif flow.operations[row].kind == tables.COMMAND_KIND:
        tables.note_span(flow, flash, times.timing, control.dies + control.channels + 1, row, now)
        overhead_ends(host, flow, flash, times, row, now)
    elif phase == tables.ON_LINK or phase == tables.ON_BUS:
        on_bus = phase == tables.ON_BUS
        tables.note_span(flow, flash, times.timing, control.dies + control.channels + 2 * on_bus, row, now)
        transfer_ends(host, flow, flash, times, row, on_bus, now)
    elif phase == tables.ON_CHANNEL:
        tables.note_span(flow, flash, times.timing, control.dies + channel_of(control, flow.operations[row].die), row, now)
        channel_ends(flow, flash, times, row, now)
    elif phase >= tables.STOPPING:
        dies.give_way(flow, flash, times.timing, flow.operations[row].die, now)
    elif phase == tables.IN_PROGRAM or flow.operations[row].kind == ERASE_BLOCK:
        work_ends(host, flow, flash, times, row)
    else:
        reading_ends(flow, flash, times, row, now)
    buffering.let_transfers_start(flow, control, times.links, now)
    dies.let_dies_work(flow, flash, times, now)
