"""How a die of the engine orders its work: what it starts next, what works together, and what a read interrupts."""

from __future__ import annotations

from flashsim.core.host import heap_push
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.operations import (
    BUSY,
    BUSY_NS,
    CACHED,
    DIE,
    DUE,
    EVENTS,
    FIRST_FOLLOWER,
    FIRST_READER,
    FIRST_READY,
    FIRST_WOKEN,
    HEAD,
    HOLDERS,
    ID,
    IN_CELLS,
    IN_PROGRAM,
    INTERRUPTED,
    LAST_ERASE,
    LAST_READY,
    LAST_WOKEN,
    LEFT_OVER,
    NEXT_FOLLOWER,
    NEXT_IN_DIE,
    NEXT_READER,
    NEXT_WAITING,
    NEXT_WOKEN,
    ON_CHANNEL,
    PHASE,
    READ_HEAD,
    ROW_BITS,
    SINCE,
    SUSPENDED,
    WAITS,
    WOKEN,
    acquire,
    join_queue,
)
from flashsim.ssd.engine.span_log import note_span
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    DROP_PAGE,
    ERASE_BLOCK,
    FETCH_PAGE,
    KIND,
    MOVE_PAGE,
    PLACE,
    PROGRAM_PAGE,
    READ_PAGE,
    STORE_PAGE,
    ZERO_PAGE,
)
from flashsim.ssd.state.geometry import BLOCKS_PER_POOL, DIES, PAGES_PER_BLOCK, channel_of, die_of_block
from flashsim.ssd.state.timing import (
    CACHE_PROGRAM,
    CELL_ERASE,
    CELL_READ,
    MULTI_PLANE,
    READ_PRIORITY,
    RESUME,
    SUSPEND_ERASE,
    SUSPEND_LIMIT,
    SUSPEND_PROGRAM,
    TRANSFER,
)


@inlined_kernel
def schedule(engine: Integers, heap: Integers, operations: Integers, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    operations[row, PHASE] = phase
    operations[row, DUE] = time
    engine[EVENTS] = heap_push(heap, engine[EVENTS], time, (operations[row, ID] << ROW_BITS) | row)


@inlined_kernel
def use_channel(engine: Integers, heap: Integers, operations: Integers, timing: Integers, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move."""
    pages = 2 if operations[row, KIND] == MOVE_PAGE else 1
    schedule(engine, heap, operations, row, ON_CHANNEL, now + pages * timing[TRANSFER])


@inlined_kernel
def ask_channel(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, timing: Integers, row: int, now: int
) -> None:
    """Queue for the channel of the operation's die."""
    operations[row, PHASE] = ON_CHANNEL
    if acquire(servers, operations, control[DIES] + channel_of(control, operations[row, DIE]), row, now):
        use_channel(engine, heap, operations, timing, row, now)


@inlined_kernel
def wake(engine: Integers, servers: Integers, die: int) -> None:
    """Let a die look for work once all that follows from this event has been done."""
    if servers[die, WOKEN]:
        return
    servers[die, WOKEN] = 1
    servers[die, NEXT_WOKEN] = -1
    if engine[FIRST_WOKEN] < 0:
        engine[FIRST_WOKEN] = die
    else:
        servers[engine[LAST_WOKEN], NEXT_WOKEN] = die
    engine[LAST_WOKEN] = die


@inlined_kernel
def satisfy(engine: Integers, operations: Integers, servers: Integers, timing: Integers, row: int) -> None:
    """One thing that an operation waited for has happened; with the last it is ready for its die, or for the link."""
    operations[row, WAITS] -= 1
    if operations[row, WAITS] > 0:
        return
    if operations[row, KIND] in (ZERO_PAGE, BUFFER_PAGE, DROP_PAGE):
        if engine[FIRST_READY] < 0:
            engine[FIRST_READY] = row
        else:
            operations[engine[LAST_READY], NEXT_WAITING] = row
        engine[LAST_READY] = row
        return
    if operations[row, KIND] == READ_PAGE and timing[READ_PRIORITY]:
        join_queue(servers, operations, operations[row, DIE], READ_HEAD, row)
    wake(engine, servers, operations[row, DIE])


@inlined_kernel
def satisfy_followers(engine: Integers, operations: Integers, servers: Integers, timing: Integers, row: int) -> None:
    """An operation has ended: tell those that wait for it."""
    follower = operations[row, FIRST_FOLLOWER]
    while follower >= 0:
        satisfy(engine, operations, servers, timing, follower)
        follower = operations[follower, NEXT_FOLLOWER]
    follower = operations[row, FIRST_READER]
    while follower >= 0:
        satisfy(engine, operations, servers, timing, follower)
        follower = operations[follower, NEXT_READER]


@inlined_kernel
def open_gate(
    engine: Integers, operations: Integers, servers: Integers, gates: Integers, control: Integers, timing: Integers, block: int, number: int
) -> None:
    """The operation of that number no longer keeps a block from being erased: the erase admitted next after it may go on."""
    if number > gates[LAST_ERASE, block]:
        gates[HOLDERS, block] -= 1
        return
    row = servers[die_of_block(control, block), HEAD]
    while operations[row, KIND] != ERASE_BLOCK or operations[row, PLACE] != block or operations[row, ID] < number:
        row = operations[row, NEXT_IN_DIE]
    satisfy(engine, operations, servers, timing, row)


@inlined_kernel
def same_work(kind: int, other: int) -> bool:
    """Whether operations of these kinds can be one multi-plane command."""
    if kind in (PROGRAM_PAGE, STORE_PAGE):
        return other in (PROGRAM_PAGE, STORE_PAGE)
    return kind == other and kind in (READ_PAGE, FETCH_PAGE, ERASE_BLOCK)


@inlined_kernel
def works_with(operations: Integers, control: Integers, first: int, row: int) -> bool:
    """Whether a ready operation joins those chained from `first`: of one kind, on a plane of its own, at the same page of its block."""
    kind, place = operations[first, KIND], operations[row, PLACE]
    if operations[row, WAITS] > 0 or not same_work(kind, operations[row, KIND]):
        return False
    if kind != ERASE_BLOCK and (operations[first, PLACE] - place) % control[PAGES_PER_BLOCK] != 0:
        return False
    size = control[BLOCKS_PER_POOL] if kind == ERASE_BLOCK else control[BLOCKS_PER_POOL] * control[PAGES_PER_BLOCK]
    member = first
    while member >= 0:
        if operations[member, PLACE] // size == place // size:
            return False
        member = operations[member, NEXT_IN_DIE]
    return True


@inlined_kernel
def take_work(operations: Integers, servers: Integers, control: Integers, timing: Integers, die: int, head: int) -> int:
    """Take the first operation off a die's queue, with those behind it that work together with it, chained by NEXT_IN_DIE."""
    first = last = servers[die, head]
    servers[die, head] = operations[first, NEXT_IN_DIE]
    operations[first, NEXT_IN_DIE] = -1
    while timing[MULTI_PLANE] and servers[die, head] >= 0 and works_with(operations, control, first, servers[die, head]):
        row = servers[die, head]
        servers[die, head] = operations[row, NEXT_IN_DIE]
        operations[row, NEXT_IN_DIE] = -1
        operations[last, NEXT_IN_DIE] = row
        last = row
    return first


@inlined_kernel
def start(
    engine: Integers,
    heap: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    die: int,
    row: int,
    now: int,
) -> None:
    """The die is the operation's and those chained to it; what is in the cache register held it before, until it ends."""
    servers[die, BUSY] = row + 1
    if servers[die, CACHED] == 0:
        servers[die, SINCE] = now
    kind = operations[row, KIND]
    if kind == ERASE_BLOCK:
        schedule(engine, heap, operations, row, IN_CELLS, now + timing[CELL_ERASE])
    elif kind in (PROGRAM_PAGE, STORE_PAGE):
        ask_channel(engine, heap, operations, servers, control, timing, row, now)
    else:
        schedule(engine, heap, operations, row, IN_CELLS, now + timing[CELL_READ])


@inlined_kernel
def interrupt(log: Integers, control: Integers, operations: Integers, servers: Integers, timing: Integers, die: int, now: int) -> bool:
    """Suspend what the die does, if a read may interrupt it and it does not end just now; whether the die is free."""
    row = servers[die, BUSY] - 1
    phase = operations[row, PHASE]
    erasing = operations[row, KIND] == ERASE_BLOCK and phase == IN_CELLS
    if not (erasing and timing[SUSPEND_ERASE]) and not (phase == IN_PROGRAM and timing[SUSPEND_PROGRAM]):
        return False
    if operations[row, INTERRUPTED] == timing[SUSPEND_LIMIT] or operations[row, DUE] == now:
        return False
    operations[row, INTERRUPTED] += 1
    operations[row, LEFT_OVER] = operations[row, DUE] - now
    operations[row, DUE] = -1
    servers[die, SUSPENDED] = row + 1
    leave(log, control, operations, servers, die, BUSY, now)
    return True


@inlined_kernel
def leave(log: Integers, control: Integers, operations: Integers, servers: Integers, die: int, place: int, now: int) -> None:
    """The operation at work (`place` is BUSY) or in the cache register (CACHED) gives up its die, which the other holds from now."""
    note_span(log, control, operations, servers, die, servers[die, place] - 1, now)
    servers[die, BUSY_NS] += now - servers[die, SINCE]
    servers[die, SINCE] = now
    servers[die, place] = 0


@inlined_kernel
def pass_to_cache(
    engine: Integers, heap: Integers, operations: Integers, servers: Integers, control: Integers, timing: Integers, die: int, now: int
) -> None:
    """The page that was read moves to the cache register, and from there over the channel; the cells may go on."""
    servers[die, CACHED] = servers[die, BUSY]
    servers[die, BUSY] = 0
    ask_channel(engine, heap, operations, servers, control, timing, servers[die, CACHED] - 1, now)
    wake(engine, servers, die)


@inlined_kernel
def read_comes_next(operations: Integers, servers: Integers, die: int) -> bool:
    """Whether what a die would start next, once ready, is a read."""
    head = servers[die, HEAD]
    return servers[die, READ_HEAD] >= 0 or (head >= 0 and operations[head, KIND] in (READ_PAGE, FETCH_PAGE))


@inlined_kernel
def may_fill_cache(operations: Integers, servers: Integers, die: int) -> bool:
    """Whether the cells program a page, the cache register is free, and what comes next is ready to be programmed too."""
    head, row = servers[die, HEAD], servers[die, BUSY] - 1
    if head < 0 or servers[die, CACHED] != 0 or servers[die, READ_HEAD] >= 0:
        return False
    programming = operations[row, PHASE] == IN_PROGRAM and operations[row, KIND] in (PROGRAM_PAGE, STORE_PAGE)
    return programming and operations[head, WAITS] == 0 and operations[head, KIND] in (PROGRAM_PAGE, STORE_PAGE)


@inlined_kernel
def look_for_work(
    engine: Integers,
    heap: Integers,
    log: Integers,
    operations: Integers,
    servers: Integers,
    control: Integers,
    timing: Integers,
    die: int,
    now: int,
) -> None:
    """Start what comes next: reads that overtake, then what they interrupted, then the first of the others if it is ready.

    While a page that was read leaves through the cache register, only reads start; while one is programmed, the next may come there.
    """
    reads = servers[die, READ_HEAD] >= 0
    if servers[die, BUSY] != 0 and not (reads and interrupt(log, control, operations, servers, timing, die, now)):
        if timing[CACHE_PROGRAM] and may_fill_cache(operations, servers, die):
            row = take_work(operations, servers, control, timing, die, HEAD)
            servers[die, CACHED] = row + 1
            ask_channel(engine, heap, operations, servers, control, timing, row, now)
        return
    if servers[die, CACHED] != 0 and not read_comes_next(operations, servers, die):
        return
    if reads:
        row = take_work(operations, servers, control, timing, die, READ_HEAD)
        start(engine, heap, operations, servers, control, timing, die, row, now)
    elif servers[die, SUSPENDED] != 0:
        row = servers[die, SUSPENDED] - 1
        servers[die, SUSPENDED] = 0
        servers[die, BUSY] = row + 1
        servers[die, SINCE] = now
        schedule(engine, heap, operations, row, operations[row, PHASE], now + operations[row, LEFT_OVER] + timing[RESUME])
    elif servers[die, HEAD] >= 0 and operations[servers[die, HEAD], WAITS] == 0:
        row = take_work(operations, servers, control, timing, die, HEAD)
        start(engine, heap, operations, servers, control, timing, die, row, now)


@inlined_kernel
def let_dies_work(
    engine: Integers, heap: Integers, log: Integers, operations: Integers, servers: Integers, control: Integers, timing: Integers, now: int
) -> None:
    """All dies that were woken look for work, in the order in which they were woken."""
    while engine[FIRST_WOKEN] >= 0:
        die = engine[FIRST_WOKEN]
        engine[FIRST_WOKEN] = servers[die, NEXT_WOKEN]
        servers[die, WOKEN] = 0
        look_for_work(engine, heap, log, operations, servers, control, timing, die, now)


@inlined_kernel
def pending_program(operations: Integers, servers: Integers, die: int, flash_page: int) -> int:
    """The operation, not yet ended, that programs a flash page; of several the last admitted; -1 if there is none."""
    found = -1
    for first in (servers[die, SUSPENDED] - 1, servers[die, BUSY] - 1, servers[die, CACHED] - 1, servers[die, HEAD]):
        row = first
        while row >= 0:
            kind = operations[row, KIND]
            if operations[row, PLACE] == flash_page and kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
                found = row
            row = operations[row, NEXT_IN_DIE]
    return found
