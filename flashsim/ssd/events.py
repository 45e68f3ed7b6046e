"""What happens at each event of the engine: the rules of the specification, compiled.

One event ends one step of one operation.  What follows from it without delay is done at once, in this order: the channel, link or
controller passes to the next that waits, then the die, then what waited for this operation, then the command completes.
"""

from __future__ import annotations

from flashsim.core.host import NOW, command_done, heap_push
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.drive_state import ERASES_FOR, FETCHES, PROGRAMS_FOR, READS_FOR
from flashsim.ssd.flash_array import (
    CAUSE,
    ERASE_BLOCK,
    HOST,
    KIND,
    LOGICAL,
    MOVE_PAGE,
    PLACE,
    PROGRAM_PAGE,
    READ_PAGE,
    SOURCE,
    STORE_PAGE,
    SUPERSEDED,
    WRITE_ID,
    ZERO_PAGE,
    Narrow,
    erased,
    programmed,
    started,
)
from flashsim.ssd.geometry import CHANNELS, COPYBACK, DIES, channel_of, die_of_block
from flashsim.ssd.operations import (
    COMMAND,
    COMMAND_KIND,
    DIE,
    EVENTS,
    FIRST_FOLLOWER,
    FIRST_PART,
    HEAD,
    HOST_COMMAND,
    ID,
    IN_CELLS,
    IN_PROGRAM,
    LAST_ERASE,
    LEFT,
    NEXT_FOLLOWER,
    NEXT_IN_DIE,
    NEXT_PART,
    ON_CHANNEL,
    ON_LINK,
    OVERHEAD,
    PHASE,
    ROW_BITS,
    SECTORS,
    SINCE,
    SUPERSEDING,
    WAITING,
    WAITS,
    acquire,
    give_row,
    leave_die,
    release,
)
from flashsim.ssd.timing import CELL_ERASE, CELL_PROGRAM, CELL_READ, TRANSFER


@lean_kernel
def schedule(engine: Integers, heap: Integers, operations: Integers, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    operations[row, PHASE] = phase
    engine[EVENTS] = heap_push(heap, engine[EVENTS], time, (operations[row, ID] << ROW_BITS) | row)


@lean_kernel
def use_link(engine: Integers, heap: Integers, operations: Integers, links: Integers, row: int, now: int) -> None:
    """The link is the operation's: move its bytes."""
    direction = 1 if operations[row, KIND] == PROGRAM_PAGE else 0
    schedule(engine, heap, operations, row, ON_LINK, now + links[direction, operations[row, SECTORS]])


@lean_kernel
def ask_link(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, links: Integers, row: int, now: int
) -> None:
    """Queue for the host link."""
    if acquire(servers, operations, control[DIES] + control[CHANNELS], row, now):
        use_link(engine, heap, operations, links, row, now)


@lean_kernel
def use_channel(engine: Integers, heap: Integers, operations: Integers, timing: Integers, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move."""
    pages = 2 if operations[row, KIND] == MOVE_PAGE else 1  # out and in
    schedule(engine, heap, operations, row, ON_CHANNEL, now + pages * timing[TRANSFER])


@lean_kernel
def ask_channel(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, timing: Integers, row: int, now: int
) -> None:
    """Queue for the channel of the operation's die."""
    if acquire(servers, operations, control[DIES] + channel_of(control, operations[row, DIE]), row, now):
        use_channel(engine, heap, operations, timing, row, now)


@lean_kernel
def try_start(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    row: int,
    now: int,
) -> None:
    """Start an operation if it is the head of its die's queue and waits for nothing else."""
    die = operations[row, DIE]
    if servers[die, HEAD] != row or operations[row, PHASE] != WAITING or operations[row, WAITS] > 0:
        return
    kind = operations[row, KIND]
    if kind == ERASE_BLOCK:
        schedule(engine, heap, operations, row, IN_CELLS, now + timing[CELL_ERASE])
    elif kind in (PROGRAM_PAGE, STORE_PAGE):
        operations[row, PHASE] = ON_CHANNEL
        ask_channel(engine, heap, operations, servers, control, timing, row, now)
    else:
        schedule(engine, heap, operations, row, IN_CELLS, now + timing[CELL_READ])
    servers[die, SINCE] = now


@lean_kernel
def free_die(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    row: int,
    now: int,
) -> None:
    """The operation is done with its die: the next may start."""
    following = leave_die(servers, operations, row, now)
    if following >= 0:
        try_start(engine, heap, operations, servers, control, timing, following, now)


@lean_kernel
def start_followers(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    row: int,
    now: int,
) -> None:
    """An operation has ended: those that needed it may start."""
    follower = operations[row, FIRST_FOLLOWER]
    while follower >= 0:
        operations[follower, WAITS] -= 1
        try_start(engine, heap, operations, servers, control, timing, follower, now)
        follower = operations[follower, NEXT_FOLLOWER]


@lean_kernel
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
    command_done(host, requests, commands, delayed, finished, operations[row, HOST_COMMAND])
    give_row(engine, operations, row)


@lean_kernel
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
    """A page of a command is done; the command completes with its last."""
    command = operations[row, COMMAND]
    give_row(engine, operations, row)
    operations[command, LEFT] -= 1
    if operations[command, LEFT] == 0:
        finish_command(engine, operations, host, requests, commands, delayed, finished, command)


@lean_kernel
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
    """The controller has dealt with a command: all its operations are ready."""
    following = release(servers, operations, control[DIES] + control[CHANNELS] + 1, now)
    if following >= 0:
        schedule(engine, heap, operations, following, WAITING, now + operations[following, OVERHEAD])
    part = operations[row, FIRST_PART]
    while part >= 0:
        if operations[part, KIND] == PROGRAM_PAGE or operations[part, KIND] == ZERO_PAGE:
            ask_link(engine, heap, operations, servers, control, links, part, now)
        else:
            operations[part, WAITS] -= 1
            try_start(engine, heap, operations, servers, control, timing, part, now)
        part = operations[part, NEXT_PART]


@lean_kernel
def link_ends(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    links: Integers,
    row: int,
    now: int,
) -> bool:
    """Bytes have passed over the link; whether the operation is done with that (a read) or may start on its die (a write)."""
    following = release(servers, operations, control[DIES] + control[CHANNELS], now)
    if following >= 0:
        use_link(engine, heap, operations, links, following, now)
    if operations[row, KIND] != PROGRAM_PAGE:
        return True
    operations[row, PHASE] = WAITING
    operations[row, WAITS] -= 1
    try_start(engine, heap, operations, servers, control, timing, row, now)
    return False


@lean_kernel
def channel_ends(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    spare: Narrow,
    timing: Integers,
    links: Integers,
    counters: Integers,
    row: int,
    now: int,
) -> None:
    """A page has passed over a channel: reads leave the die, programs begin."""
    following = release(servers, operations, control[DIES] + channel_of(control, operations[row, DIE]), now)
    if following >= 0:
        use_channel(engine, heap, operations, timing, following, now)
    kind = operations[row, KIND]
    if kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
        started(spare, operations[row, PLACE])
        schedule(engine, heap, operations, row, IN_PROGRAM, now + timing[CELL_PROGRAM])
        return
    counters[READS_FOR + operations[row, CAUSE]] += 1
    free_die(engine, heap, operations, servers, control, timing, row, now)
    if kind == READ_PAGE:
        ask_link(engine, heap, operations, servers, control, links, row, now)
    else:
        counters[FETCHES] += operations[row, CAUSE] == HOST
        start_followers(engine, heap, operations, servers, control, timing, row, now)
        give_row(engine, operations, row)


@lean_kernel
def open_gate(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    gates: Integers,
    timing: Integers,
    block: int,
    program: int,
    now: int,
) -> None:
    """A program that supersedes a page of a block has ended: the erase that was admitted next after it waits for it no more."""
    if program > gates[LAST_ERASE, block]:
        gates[SUPERSEDING, block] -= 1
        return
    row = servers[die_of_block(control, block), HEAD]
    while operations[row, KIND] != ERASE_BLOCK or operations[row, PLACE] != block or operations[row, ID] < program:
        row = operations[row, NEXT_IN_DIE]
    operations[row, WAITS] -= 1
    try_start(engine, heap, operations, servers, control, timing, row, now)


@lean_kernel
def program_ends(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    gates: Integers,
    pages: Narrow,
    spare: Narrow,
    timing: Integers,
    counters: Integers,
    row: int,
    now: int,
) -> None:
    """A flash page is programmed: its die is free, and so may be an erase that waited for it."""
    superseded = operations[row, SUPERSEDED]
    programmed(pages, spare, operations[row, PLACE], operations[row, SOURCE], operations[row, LOGICAL], operations[row, WRITE_ID])
    counters[PROGRAMS_FOR + operations[row, CAUSE]] += 1
    counters[READS_FOR + operations[row, CAUSE]] += operations[row, KIND] == MOVE_PAGE
    free_die(engine, heap, operations, servers, control, timing, row, now)
    if superseded >= 0:
        open_gate(engine, heap, operations, servers, control, gates, timing, superseded, operations[row, ID], now)


@lean_kernel
def cells_end(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    blocks: Integers,
    spare: Narrow,
    timing: Integers,
    counters: Integers,
    row: int,
    now: int,
) -> None:
    """A page is in the page register, or a block is erased."""
    if operations[row, KIND] == MOVE_PAGE and control[COPYBACK]:
        started(spare, operations[row, PLACE])
        schedule(engine, heap, operations, row, IN_PROGRAM, now + timing[CELL_PROGRAM])
        return
    if operations[row, KIND] != ERASE_BLOCK:
        operations[row, PHASE] = ON_CHANNEL
        ask_channel(engine, heap, operations, servers, control, timing, row, now)
        return
    erased(control, blocks, spare, operations[row, PLACE])
    counters[ERASES_FOR + operations[row, CAUSE]] += 1
    free_die(engine, heap, operations, servers, control, timing, row, now)
    give_row(engine, operations, row)


@lean_kernel
def happen(
    host: Integers,
    requests: Integers,
    commands: Integers,
    delayed: Integers,
    finished: Integers,
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    gates: Integers,
    control: Integers,
    blocks: Integers,
    pages: Narrow,
    spare: Narrow,
    timing: Integers,
    links: Integers,
    counters: Integers,
    row: int,
) -> None:
    """Let one operation's event happen, at the host's clock."""
    now = host[NOW]
    phase = operations[row, PHASE]
    if operations[row, KIND] == COMMAND_KIND:
        overhead_ends(engine, heap, operations, servers, control, timing, links, row, now)
        if operations[row, LEFT] == 0:
            finish_command(engine, operations, host, requests, commands, delayed, finished, row)
    elif phase == ON_LINK:
        if link_ends(engine, heap, operations, servers, control, timing, links, row, now):
            finish_part(engine, operations, host, requests, commands, delayed, finished, row)
    elif phase == ON_CHANNEL:
        channel_ends(engine, heap, operations, servers, control, spare, timing, links, counters, row, now)
    elif phase == IN_PROGRAM:
        program_ends(engine, heap, operations, servers, control, gates, pages, spare, timing, counters, row, now)
        if operations[row, KIND] == PROGRAM_PAGE:
            finish_part(engine, operations, host, requests, commands, delayed, finished, row)
        else:
            give_row(engine, operations, row)
    else:
        cells_end(engine, heap, operations, servers, control, blocks, spare, timing, counters, row, now)
