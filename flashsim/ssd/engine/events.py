"""What happens at each event of the engine: the rules of the specification, compiled.

One event ends one step of one operation.  What follows from it without delay is done at once, in this order: the channel, link or
controller passes to the next that waits; all that the step changes on the flash; what waited for it becomes ready; commands complete; at
last the dies that got free, or got something ready, look for work in the order in which that happened.
"""

from __future__ import annotations

from flashsim.core.host import NOW, command_done
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
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
from flashsim.ssd.engine.link import ask_link, give_room, let_transfers_start, use_link
from flashsim.ssd.engine.operations import (
    BUSY,
    CACHED,
    COMMAND,
    COMMAND_KIND,
    DESTAGING,
    DIE,
    FIRST_FLUSH,
    FIRST_PART,
    FLUSH_MARK,
    HELD,
    HOST_COMMAND,
    ID,
    IN_PROGRAM,
    IS_BEHIND,
    IS_PART,
    LEFT,
    NEXT_IN_DIE,
    NEXT_PART,
    ON_CHANNEL,
    ON_LINK,
    OVERHEAD,
    PENDING,
    PHASE,
    WAITING,
    give_row,
    release,
)
from flashsim.ssd.engine.span_log import note_span
from flashsim.ssd.state.drive_state import ERASES_FOR, FETCHES, PROGRAMS_FOR, READS_FOR
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    CAUSE,
    ERASE_BLOCK,
    FETCH_PAGE,
    HOST,
    KIND,
    LOGICAL,
    MOVE_PAGE,
    PLACE,
    PROGRAM_PAGE,
    QUEUED,
    READ_PAGE,
    SOURCE,
    STORE_PAGE,
    SUPERSEDED,
    WRITE_ID,
    Narrow,
    erased,
    programmed,
    started,
)
from flashsim.ssd.state.geometry import CHANNELS, COPYBACK, DIES, block_of, channel_of
from flashsim.ssd.state.timing import CACHE_PROGRAM, CACHE_READ, CELL_PROGRAM, READ_PRIORITY


@inlined_kernel
def done_with_die(
    engine: Integers,
    log: Integers,
    control: Integers,
    operations: Integers,
    servers: Integers,
    pools: Integers,
    die: int,
    place: int,
    row: int,
    now: int,
) -> None:
    """The operations chained from `row`, in that `place` of `leave`, are done with their die, which may look for work."""
    while row >= 0:
        pools[QUEUED, die] -= 1
        row = operations[row, NEXT_IN_DIE]
    leave(log, control, operations, servers, die, place, now)
    wake(engine, servers, die)


@inlined_kernel
def finish_command(
    engine: Integers,
    operations: Integers,
    host: Integers,
    requests: Integers,
    commands: Integers,
    delayed: Integers,
    finished: Integers,
    row: int,
) -> None:
    """Tell the host that a command completes."""
    if operations[row, FLUSH_MARK] > 0:
        forget_flush(engine, operations, row)
    command_done(host, requests, commands, delayed, finished, operations[row, HOST_COMMAND])
    give_row(engine, operations, row)


@inlined_kernel
def finish_part(
    engine: Integers,
    operations: Integers,
    host: Integers,
    requests: Integers,
    commands: Integers,
    delayed: Integers,
    finished: Integers,
    row: int,
) -> None:
    """A page of a command is done; the command completes with its last.  One that is programmed behind goes on."""
    command = operations[row, COMMAND]
    if operations[row, IS_BEHIND]:
        operations[row, COMMAND] = -1
    else:
        give_row(engine, operations, row)
    operations[command, LEFT] -= 1
    if operations[command, LEFT] == 0:
        finish_command(engine, operations, host, requests, commands, delayed, finished, command)


@inlined_kernel
def destaged(
    engine: Integers,
    operations: Integers,
    host: Integers,
    requests: Integers,
    commands: Integers,
    delayed: Integers,
    finished: Integers,
    number: int,
) -> None:
    """A page that was acknowledged before is on flash, by the operation of that number: flushes admitted after it wait for one less."""
    engine[DESTAGING] -= 1
    command = engine[FIRST_FLUSH]
    while command >= 0:
        following = operations[command, NEXT_IN_DIE]
        if operations[command, FLUSH_MARK] > number:
            operations[command, LEFT] -= 1
            if operations[command, LEFT] == 0:
                finish_command(engine, operations, host, requests, commands, delayed, finished, command)
        command = following


@inlined_kernel
def overhead_ends(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    links: Integers,
    row: int,
    now: int,
) -> None:
    """The controller has dealt with a command: its operations go on."""
    following = release(servers, operations, control[DIES] + control[CHANNELS] + 1, now)
    if following >= 0:
        schedule(engine, heap, operations, following, WAITING, now + operations[following, OVERHEAD])
    part = operations[row, FIRST_PART]
    while part >= 0:
        if operations[part, KIND] == PROGRAM_PAGE:
            ask_link(engine, heap, operations, servers, control, links, part, now)
        else:
            satisfy(engine, operations, servers, timing, part)
        part = operations[part, NEXT_PART]


@inlined_kernel
def link_ends(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    buffer: Integers,
    timing: Integers,
    links: Integers,
    row: int,
    now: int,
) -> bool:
    """Bytes have passed over the link; whether the operation is done with that."""
    following = release(servers, operations, control[DIES] + control[CHANNELS], now)
    if following >= 0:
        use_link(engine, heap, operations, links, following, now)
    if operations[row, KIND] == BUFFER_PAGE:
        arrive(operations, buffer, row)
        satisfy_followers(engine, operations, servers, timing, row)
        return True
    if operations[row, KIND] != PROGRAM_PAGE:
        return True
    operations[row, PHASE] = WAITING
    satisfy(engine, operations, servers, timing, row)
    return False


@inlined_kernel
def begin_program(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, spare: Narrow, timing: Integers, die: int, now: int
) -> None:
    """All pages of the operations at work are in their registers: into the cells with them; the next may come to the cache register."""
    first = row = servers[die, BUSY] - 1
    while row >= 0:
        started(spare, operations[row, PLACE])
        row = operations[row, NEXT_IN_DIE]
    schedule(engine, heap, operations, first, IN_PROGRAM, now + timing[CELL_PROGRAM])
    if timing[CACHE_PROGRAM]:
        wake(engine, servers, die)


@inlined_kernel
def read_ends(
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    timing: Integers,
    links: Integers,
    counters: Integers,
    row: int,
    now: int,
) -> None:
    """A page has left its die: the next of those that were read together may, or the one that waits for the cache register."""
    die, other = operations[row, DIE], operations[row, NEXT_IN_DIE]
    counters[READS_FOR + operations[row, CAUSE]] += 1
    if other >= 0:
        pools[QUEUED, die] -= 1
        servers[die, BUSY] = other + 1
        ask_channel(engine, heap, operations, servers, control, timing, other, now)
    elif timing[CACHE_READ]:
        done_with_die(engine, log, control, operations, servers, pools, die, CACHED, row, now)
        if servers[die, BUSY] != 0 and operations[servers[die, BUSY] - 1, PHASE] == WAITING:
            pass_to_cache(engine, heap, operations, servers, control, timing, die, now)
    else:
        done_with_die(engine, log, control, operations, servers, pools, die, BUSY, row, now)
    if operations[row, KIND] == FETCH_PAGE:
        counters[FETCHES] += operations[row, CAUSE] == HOST
        satisfy_followers(engine, operations, servers, timing, row)
        give_row(engine, operations, row)
        return
    if timing[READ_PRIORITY]:
        open_gate(engine, operations, servers, gates, control, timing, block_of(control, operations[row, PLACE]), operations[row, ID])
    ask_link(engine, heap, operations, servers, control, links, row, now)


@inlined_kernel
def channel_ends(
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    spare: Narrow,
    timing: Integers,
    links: Integers,
    counters: Integers,
    row: int,
    now: int,
) -> None:
    """A page has passed over a channel: reads leave the die; programs begin once the pages of all planes are there."""
    die = operations[row, DIE]
    following = release(servers, operations, control[DIES] + channel_of(control, die), now)
    if following >= 0:
        use_channel(engine, heap, operations, timing, following, now)
    engine[HELD] -= operations[row, IS_BEHIND]
    kind = operations[row, KIND]
    if kind in (READ_PAGE, FETCH_PAGE):
        read_ends(engine, heap, log, operations, servers, gates, control, pools, timing, links, counters, row, now)
    elif operations[row, NEXT_IN_DIE] >= 0:
        ask_channel(engine, heap, operations, servers, control, timing, operations[row, NEXT_IN_DIE], now)
    elif servers[die, CACHED] == row + 1:
        operations[row, PHASE] = WAITING
    else:
        begin_program(engine, heap, operations, servers, spare, timing, die, now)


@inlined_kernel
def program_ends(
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    pages: Narrow,
    spare: Narrow,
    timing: Integers,
    counters: Integers,
    first: int,
    now: int,
) -> None:
    """Flash pages are programmed: the die goes on with its cache register, or is free, and so may be what waited for them."""
    die = operations[first, DIE]
    row = first
    while row >= 0:
        cause, place = operations[row, CAUSE], operations[row, PLACE]
        programmed(pages, spare, place, operations[row, SOURCE], operations[row, LOGICAL], operations[row, WRITE_ID])
        gates[PENDING, block_of(control, place)] -= 1
        counters[PROGRAMS_FOR + cause] += 1
        counters[READS_FOR + cause] += operations[row, KIND] == MOVE_PAGE
        row = operations[row, NEXT_IN_DIE]
    done_with_die(engine, log, control, operations, servers, pools, die, BUSY, first, now)
    if servers[die, CACHED] != 0:
        servers[die, BUSY], servers[die, CACHED] = servers[die, CACHED], 0
        if operations[servers[die, BUSY] - 1, PHASE] == WAITING:
            begin_program(engine, heap, operations, servers, spare, timing, die, now)
    row = first
    while row >= 0:
        satisfy_followers(engine, operations, servers, timing, row)
        if operations[row, SUPERSEDED] >= 0:
            open_gate(engine, operations, servers, gates, control, timing, operations[row, SUPERSEDED], operations[row, ID])
        row = operations[row, NEXT_IN_DIE]


@inlined_kernel
def cells_end(
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    spare: Narrow,
    timing: Integers,
    counters: Integers,
    first: int,
    now: int,
) -> None:
    """Pages are in their registers, or blocks are erased."""
    if operations[first, KIND] == MOVE_PAGE and control[COPYBACK]:
        begin_program(engine, heap, operations, servers, spare, timing, operations[first, DIE], now)
        return
    if timing[CACHE_READ] and operations[first, KIND] in (READ_PAGE, FETCH_PAGE):
        if servers[operations[first, DIE], CACHED] == 0:
            pass_to_cache(engine, heap, operations, servers, control, timing, operations[first, DIE], now)
        else:
            operations[first, PHASE] = WAITING
        return
    if operations[first, KIND] != ERASE_BLOCK:
        ask_channel(engine, heap, operations, servers, control, timing, first, now)
        return
    row = first
    while row >= 0:
        erased(control, blocks, spare, operations[row, PLACE])
        counters[ERASES_FOR + operations[row, CAUSE]] += 1
        row = operations[row, NEXT_IN_DIE]
    done_with_die(engine, log, control, operations, servers, pools, operations[first, DIE], BUSY, first, now)
    row = first
    while row >= 0:
        following = operations[row, NEXT_IN_DIE]
        give_row(engine, operations, row)
        row = following


@inlined_kernel
def happen(
    host: Integers,
    requests: Integers,
    commands: Integers,
    delayed: Integers,
    finished: Integers,
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    pools: Integers,
    blocks: Integers,
    pages: Narrow,
    spare: Narrow,
    buffer: Integers,
    timing: Integers,
    links: Integers,
    counters: Integers,
    row: int,
) -> None:
    """Let one operation's event happen, at the host's clock."""
    now = host[NOW]
    phase = operations[row, PHASE]
    if operations[row, KIND] == COMMAND_KIND:
        note_span(log, control, operations, servers, control[DIES] + control[CHANNELS] + 1, row, now)
        overhead_ends(engine, heap, operations, servers, control, timing, links, row, now)
        if operations[row, FLUSH_MARK] > 0:
            operations[row, LEFT] -= 1
        if operations[row, LEFT] == 0:
            finish_command(engine, operations, host, requests, commands, delayed, finished, row)
    elif phase == ON_LINK:
        note_span(log, control, operations, servers, control[DIES] + control[CHANNELS], row, now)
        is_part = operations[row, KIND] != BUFFER_PAGE or operations[row, IS_PART]
        if link_ends(engine, heap, operations, servers, control, buffer, timing, links, row, now) and not is_part:
            give_row(engine, operations, row)
        elif operations[row, PHASE] == ON_LINK or operations[row, IS_BEHIND]:
            finish_part(engine, operations, host, requests, commands, delayed, finished, row)
    elif phase == ON_CHANNEL:
        note_span(log, control, operations, servers, control[DIES] + channel_of(control, operations[row, DIE]), row, now)
        channel_ends(engine, heap, log, operations, servers, gates, control, pools, spare, timing, links, counters, row, now)
    elif phase == IN_PROGRAM:
        program_ends(engine, heap, log, operations, servers, gates, control, pools, pages, spare, timing, counters, row, now)
        while row >= 0:
            following = operations[row, NEXT_IN_DIE]
            if operations[row, KIND] == STORE_PAGE and operations[row, CAUSE] == HOST:
                give_room(engine, heap, operations, servers, control, links, now)
                destaged(engine, operations, host, requests, commands, delayed, finished, operations[row, ID])
            elif operations[row, IS_BEHIND]:
                destaged(engine, operations, host, requests, commands, delayed, finished, operations[row, ID])
            if operations[row, KIND] in (PROGRAM_PAGE, STORE_PAGE) and operations[row, CAUSE] == HOST and operations[row, COMMAND] >= 0:
                finish_part(engine, operations, host, requests, commands, delayed, finished, row)
            else:
                give_row(engine, operations, row)
            row = following
    else:
        cells_end(engine, heap, log, operations, servers, control, pools, blocks, spare, timing, counters, row, now)
    let_transfers_start(engine, heap, operations, servers, control, links, now)
    let_dies_work(engine, heap, log, operations, servers, control, timing, now)
