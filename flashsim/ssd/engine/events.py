"""What happens at each event of the engine: the rules of the specification, compiled.

One event ends one step of one operation.  What follows from it without delay is done at once, in this order: the channel, link or
controller passes to the next that waits; all that the step changes on the flash; what waited for it becomes ready; commands complete; at
last the dies that got free, or got something ready, look for work in the order in which that happened.
"""

from numba import types

from flashsim.core.host import HOST_TABLES, Host, command_done
from flashsim.core.kernel import compiled_apart, inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.core.spans import HOST
from flashsim.ssd.engine.buffering import arrive, forget_flush
from flashsim.ssd.engine.dies import (
    ask_channel,
    leave,
    let_dies_work,
    open_gate,
    pass_to_cache,
    satisfy,
    satisfy_followers,
    schedule,
    use_channel,
    wake,
)
from flashsim.ssd.engine.flow import FLOW, TIMES, Flow, Times
from flashsim.ssd.engine.link import ask_link, give_room, let_transfers_start, use_link
from flashsim.ssd.engine.operations import COMMAND_KIND, IN_PROGRAM, ON_CHANNEL, ON_LINK, WAITING, give_row, release
from flashsim.ssd.engine.span_log import note_span
from flashsim.ssd.state.flash import FLASH, Flash, Narrow
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    ERASE_BLOCK,
    FETCH_PAGE,
    MOVE_PAGE,
    PROGRAM_PAGE,
    READ_PAGE,
    STORE_PAGE,
    erased,
    programmed,
    started,
)
from flashsim.ssd.state.geometry import block_of, channel_of


@inlined_kernel
def done_with_die(flow: Flow, flash: Flash, die: int, cached: bool, row: int, now: int) -> None:
    """The operations chained from `row`, at work or in the cache register, are done with their die, which may look for work."""
    while row >= 0:
        flash.pools[die].queued -= 1
        row = flow.operations[row].next_in_die
    leave(flow, flash.control, die, cached, now)
    wake(flow, die)


@inlined_kernel
def finish_command(host: Host, flow: Flow, row: int) -> None:
    if flow.operations[row].flush_mark > 0:
        forget_flush(flow, row)
    command_done(host, flow.operations[row].host_command)
    give_row(flow, row)


@inlined_kernel
def finish_part(host: Host, flow: Flow, row: int) -> None:
    """A page of a command is done; the command completes with its last.  One that is programmed behind goes on."""
    command = flow.operations[row].command
    if flow.operations[row].is_behind:
        flow.operations[row].command = -1
    else:
        give_row(flow, row)
    flow.operations[command].left -= 1
    if flow.operations[command].left == 0:
        finish_command(host, flow, command)


@inlined_kernel
def destaged(host: Host, flow: Flow, number: int) -> None:
    """A page that was acknowledged before is on flash, by the operation of that number: flushes admitted after it wait for one less."""
    flow.engine.destaging -= 1
    command = flow.engine.first_flush
    while command >= 0:
        following = flow.operations[command].next_flush
        if flow.operations[command].flush_mark > number:
            flow.operations[command].left -= 1
            if flow.operations[command].left == 0:
                finish_command(host, flow, command)
        command = following


@inlined_kernel
def overhead_ends(flow: Flow, times: Times, control: RecordArray, row: int, now: int) -> None:
    """The controller has dealt with a command: its operations go on."""
    following = release(flow, control.dies + control.channels + 1, now)
    if following >= 0:
        schedule(flow, following, WAITING, now + flow.operations[following].overhead)
    part = flow.operations[row].first_part
    while part >= 0:
        if flow.operations[part].kind == PROGRAM_PAGE:
            ask_link(flow, control, times.links, part, now)
        else:
            satisfy(flow, times.timing, part)
        part = flow.operations[part].next_part


@inlined_kernel
def link_ends(flow: Flow, flash: Flash, times: Times, row: int, now: int) -> bool:
    """Bytes have passed over the link; whether the operation is done with that."""
    following = release(flow, flash.control.dies + flash.control.channels, now)
    if following >= 0:
        use_link(flow, times.links, following, now)
    if flow.operations[row].kind == BUFFER_PAGE:
        arrive(flow.operations, flash.entries, row)
        satisfy_followers(flow, times.timing, row)
        return True
    if flow.operations[row].kind != PROGRAM_PAGE:
        return True
    flow.operations[row].phase = WAITING
    satisfy(flow, times.timing, row)
    return False


@inlined_kernel
def begin_program(flow: Flow, spare: Narrow, timing: RecordArray, die: int, now: int) -> None:
    """All pages of the operations at work are in their registers: into the cells with them; the next may come to the cache register."""
    first = row = flow.servers[die].busy - 1
    while row >= 0:
        started(spare, flow.operations[row].place)
        row = flow.operations[row].next_in_die
    schedule(flow, first, IN_PROGRAM, now + timing.program)
    if timing.cache_program:
        wake(flow, die)


@inlined_kernel
def read_ends(flow: Flow, flash: Flash, times: Times, row: int, now: int) -> None:
    """A page has left its die: the next of those that were read together may, or the one that waits for the cache register."""
    die, other = flow.operations[row].die, flow.operations[row].next_in_die
    times.counters.reads[flow.operations[row].cause] += 1
    if other >= 0:
        flash.pools[die].queued -= 1
        flow.servers[die].busy = other + 1
        ask_channel(flow, flash.control, times.timing, other, now)
    elif times.timing.cache_read:
        done_with_die(flow, flash, die, True, row, now)
        if flow.servers[die].busy != 0 and flow.operations[flow.servers[die].busy - 1].phase == WAITING:
            pass_to_cache(flow, flash.control, times.timing, die, now)
    else:
        done_with_die(flow, flash, die, False, row, now)
    if flow.operations[row].kind == FETCH_PAGE:
        times.counters.read_modify_write_reads += flow.operations[row].cause == HOST
        satisfy_followers(flow, times.timing, row)
        give_row(flow, row)
        return
    if times.timing.read_priority:
        open_gate(flow, flash.control, times.timing, block_of(flash.control, flow.operations[row].place), flow.operations[row].id)
    ask_link(flow, flash.control, times.links, row, now)


@inlined_kernel
def channel_ends(flow: Flow, flash: Flash, times: Times, row: int, now: int) -> None:
    """A page has passed over a channel: reads leave the die; programs begin once the pages of all planes are there."""
    die = flow.operations[row].die
    following = release(flow, flash.control.dies + channel_of(flash.control, die), now)
    if following >= 0:
        use_channel(flow, times.timing, following, now)
    flow.engine.held -= flow.operations[row].is_behind
    kind = flow.operations[row].kind
    if kind in (READ_PAGE, FETCH_PAGE):
        read_ends(flow, flash, times, row, now)
    elif flow.operations[row].next_in_die >= 0:
        ask_channel(flow, flash.control, times.timing, flow.operations[row].next_in_die, now)
    elif flow.servers[die].cached == row + 1:
        flow.operations[row].phase = WAITING
    else:
        begin_program(flow, flash.spare, times.timing, die, now)


@inlined_kernel
def program_ends(flow: Flow, flash: Flash, times: Times, first: int, now: int) -> None:
    """Flash pages are programmed: the die goes on with its cache register, or is free, and so may be what waited for them."""
    die = flow.operations[first].die
    row = first
    while row >= 0:
        cause, place = flow.operations[row].cause, flow.operations[row].place
        programmed(flash, place, flow.operations[row].source, flow.operations[row].logical, flow.operations[row].write_id)
        flow.gates[block_of(flash.control, place)].pending -= 1
        times.counters.programs[cause] += 1
        times.counters.reads[cause] += flow.operations[row].kind == MOVE_PAGE
        row = flow.operations[row].next_in_die
    done_with_die(flow, flash, die, False, first, now)
    if flow.servers[die].cached != 0:
        flow.servers[die].busy, flow.servers[die].cached = flow.servers[die].cached, 0
        if flow.operations[flow.servers[die].busy - 1].phase == WAITING:
            begin_program(flow, flash.spare, times.timing, die, now)
    row = first
    while row >= 0:
        satisfy_followers(flow, times.timing, row)
        if flow.operations[row].superseded >= 0:
            open_gate(flow, flash.control, times.timing, flow.operations[row].superseded, flow.operations[row].id)
        row = flow.operations[row].next_in_die


@inlined_kernel
def on_flash(host: Host, flow: Flow, flash: Flash, times: Times, row: int, now: int) -> None:
    """A page is on flash: what left the write buffer gives up its room there, and the command that waits for the page has it."""
    kind, for_host = flow.operations[row].kind, flow.operations[row].cause == HOST
    from_buffer = kind == STORE_PAGE and for_host
    if from_buffer:
        give_room(flow, flash.control, times.links, now)
    if from_buffer or flow.operations[row].is_behind:
        destaged(host, flow, flow.operations[row].id)
    if for_host and kind in (PROGRAM_PAGE, STORE_PAGE) and flow.operations[row].command >= 0:
        finish_part(host, flow, row)
    else:
        give_row(flow, row)


@inlined_kernel
def cells_end(flow: Flow, flash: Flash, times: Times, first: int, now: int) -> None:
    """Pages are in their registers, or blocks are erased."""
    if flow.operations[first].kind == MOVE_PAGE and flash.control.copyback:
        begin_program(flow, flash.spare, times.timing, flow.operations[first].die, now)
        return
    if times.timing.cache_read and flow.operations[first].kind in (READ_PAGE, FETCH_PAGE):
        if flow.servers[flow.operations[first].die].cached == 0:
            pass_to_cache(flow, flash.control, times.timing, flow.operations[first].die, now)
        else:
            flow.operations[first].phase = WAITING
        return
    if flow.operations[first].kind != ERASE_BLOCK:
        ask_channel(flow, flash.control, times.timing, first, now)
        return
    row = first
    while row >= 0:
        erased(flash, flow.operations[row].place)
        times.counters.erases[flow.operations[row].cause] += 1
        row = flow.operations[row].next_in_die
    done_with_die(flow, flash, flow.operations[first].die, False, first, now)
    row = first
    while row >= 0:
        following = flow.operations[row].next_in_die
        give_row(flow, row)
        row = following


@compiled_apart(HOST_TABLES, FLOW, FLASH, TIMES, types.int64)
@inlined_kernel
def happen(host: Host, flow: Flow, flash: Flash, times: Times, row: int) -> None:
    """Let one operation's event happen, at the host's clock."""
    now = host.scalars.now
    phase = flow.operations[row].phase
    if flow.operations[row].kind == COMMAND_KIND:
        note_span(flow, flash.control, flash.control.dies + flash.control.channels + 1, row, now)
        overhead_ends(flow, times, flash.control, row, now)
        if flow.operations[row].flush_mark > 0:
            flow.operations[row].left -= 1
        if flow.operations[row].left == 0:
            finish_command(host, flow, row)
    elif phase == ON_LINK:
        note_span(flow, flash.control, flash.control.dies + flash.control.channels, row, now)
        is_part = flow.operations[row].kind != BUFFER_PAGE or flow.operations[row].is_part
        if link_ends(flow, flash, times, row, now) and not is_part:
            give_row(flow, row)
        elif flow.operations[row].phase == ON_LINK or flow.operations[row].is_behind:
            finish_part(host, flow, row)
    elif phase == ON_CHANNEL:
        note_span(flow, flash.control, flash.control.dies + channel_of(flash.control, flow.operations[row].die), row, now)
        channel_ends(flow, flash, times, row, now)
    elif phase == IN_PROGRAM:
        program_ends(flow, flash, times, row, now)
        while row >= 0:
            following = flow.operations[row].next_in_die
            on_flash(host, flow, flash, times, row, now)
            row = following
    else:
        cells_end(flow, flash, times, row, now)
    let_transfers_start(flow, flash.control, times.links, now)
    let_dies_work(flow, flash.control, times.timing, now)
