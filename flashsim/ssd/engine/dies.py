"""How a die of the engine orders its work: what it starts next, what works together, and what a read interrupts."""

from flashsim.core.host import heap_push
from flashsim.core.kernel import inlined_kernel
from flashsim.core.request import Integers
from flashsim.ssd.engine.flow import Flow
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
def schedule(flow: Flow, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    flow.operations[row, PHASE] = phase
    flow.operations[row, DUE] = time
    flow.engine[EVENTS] = heap_push(flow.heap, flow.engine[EVENTS], time, (flow.operations[row, ID] << ROW_BITS) | row)


@inlined_kernel
def use_channel(flow: Flow, timing: Integers, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move."""
    pages = 2 if flow.operations[row, KIND] == MOVE_PAGE else 1
    schedule(flow, row, ON_CHANNEL, now + pages * timing[TRANSFER])


@inlined_kernel
def ask_channel(flow: Flow, control: Integers, timing: Integers, row: int, now: int) -> None:
    flow.operations[row, PHASE] = ON_CHANNEL
    if acquire(flow, control[DIES] + channel_of(control, flow.operations[row, DIE]), row, now):
        use_channel(flow, timing, row, now)


@inlined_kernel
def wake(flow: Flow, die: int) -> None:
    """Let a die look for work once all that follows from this event has been done."""
    if flow.servers[die, WOKEN]:
        return
    flow.servers[die, WOKEN] = 1
    flow.servers[die, NEXT_WOKEN] = -1
    if flow.engine[FIRST_WOKEN] < 0:
        flow.engine[FIRST_WOKEN] = die
    else:
        flow.servers[flow.engine[LAST_WOKEN], NEXT_WOKEN] = die
    flow.engine[LAST_WOKEN] = die


@inlined_kernel
def satisfy(flow: Flow, timing: Integers, row: int) -> None:
    """One thing that an operation waited for has happened; with the last it is ready for its die, or for the link."""
    flow.operations[row, WAITS] -= 1
    if flow.operations[row, WAITS] > 0:
        return
    if flow.operations[row, KIND] in (ZERO_PAGE, BUFFER_PAGE, DROP_PAGE):
        if flow.engine[FIRST_READY] < 0:
            flow.engine[FIRST_READY] = row
        else:
            flow.operations[flow.engine[LAST_READY], NEXT_WAITING] = row
        flow.engine[LAST_READY] = row
        return
    if flow.operations[row, KIND] == READ_PAGE and timing[READ_PRIORITY]:
        join_queue(flow, flow.operations[row, DIE], READ_HEAD, row)
    wake(flow, flow.operations[row, DIE])


@inlined_kernel
def satisfy_followers(flow: Flow, timing: Integers, row: int) -> None:
    """An operation has ended: tell those that wait for it."""
    follower = flow.operations[row, FIRST_FOLLOWER]
    while follower >= 0:
        satisfy(flow, timing, follower)
        follower = flow.operations[follower, NEXT_FOLLOWER]
    follower = flow.operations[row, FIRST_READER]
    while follower >= 0:
        satisfy(flow, timing, follower)
        follower = flow.operations[follower, NEXT_READER]


@inlined_kernel
def open_gate(flow: Flow, control: Integers, timing: Integers, block: int, number: int) -> None:
    """The operation of that number no longer keeps a block from being erased: the erase admitted next after it may go on."""
    if number > flow.gates[LAST_ERASE, block]:
        flow.gates[HOLDERS, block] -= 1
        return
    row = flow.servers[die_of_block(control, block), HEAD]
    while flow.operations[row, KIND] != ERASE_BLOCK or flow.operations[row, PLACE] != block or flow.operations[row, ID] < number:
        row = flow.operations[row, NEXT_IN_DIE]
    satisfy(flow, timing, row)


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
def take_work(flow: Flow, control: Integers, timing: Integers, die: int, head: int) -> int:
    """Take the first operation off a die's queue, with those behind it that work together with it, chained by NEXT_IN_DIE."""
    first = last = flow.servers[die, head]
    flow.servers[die, head] = flow.operations[first, NEXT_IN_DIE]
    flow.operations[first, NEXT_IN_DIE] = -1
    while timing[MULTI_PLANE] and flow.servers[die, head] >= 0 and works_with(flow.operations, control, first, flow.servers[die, head]):
        row = flow.servers[die, head]
        flow.servers[die, head] = flow.operations[row, NEXT_IN_DIE]
        flow.operations[row, NEXT_IN_DIE] = -1
        flow.operations[last, NEXT_IN_DIE] = row
        last = row
    return first


@inlined_kernel
def start(flow: Flow, control: Integers, timing: Integers, die: int, row: int, now: int) -> None:
    """The die is the operation's and those chained to it; what is in the cache register held it before, until it ends."""
    flow.servers[die, BUSY] = row + 1
    if flow.servers[die, CACHED] == 0:
        flow.servers[die, SINCE] = now
    kind = flow.operations[row, KIND]
    if kind == ERASE_BLOCK:
        schedule(flow, row, IN_CELLS, now + timing[CELL_ERASE])
    elif kind in (PROGRAM_PAGE, STORE_PAGE):
        ask_channel(flow, control, timing, row, now)
    else:
        schedule(flow, row, IN_CELLS, now + timing[CELL_READ])


@inlined_kernel
def interrupt(flow: Flow, control: Integers, timing: Integers, die: int, now: int) -> bool:
    """Suspend what the die does, if a read may interrupt it and it does not end just now; whether the die is free."""
    row = flow.servers[die, BUSY] - 1
    phase = flow.operations[row, PHASE]
    erasing = flow.operations[row, KIND] == ERASE_BLOCK and phase == IN_CELLS
    if not (erasing and timing[SUSPEND_ERASE]) and not (phase == IN_PROGRAM and timing[SUSPEND_PROGRAM]):
        return False
    if flow.operations[row, INTERRUPTED] == timing[SUSPEND_LIMIT] or flow.operations[row, DUE] == now:
        return False
    flow.operations[row, INTERRUPTED] += 1
    flow.operations[row, LEFT_OVER] = flow.operations[row, DUE] - now
    flow.operations[row, DUE] = -1
    flow.servers[die, SUSPENDED] = row + 1
    leave(flow, control, die, BUSY, now)
    return True


@inlined_kernel
def leave(flow: Flow, control: Integers, die: int, place: int, now: int) -> None:
    """The operation at work (`place` is BUSY) or in the cache register (CACHED) gives up its die, which the other holds from now."""
    note_span(flow, control, die, flow.servers[die, place] - 1, now)
    flow.servers[die, BUSY_NS] += now - flow.servers[die, SINCE]
    flow.servers[die, SINCE] = now
    flow.servers[die, place] = 0


@inlined_kernel
def pass_to_cache(flow: Flow, control: Integers, timing: Integers, die: int, now: int) -> None:
    """The page that was read moves to the cache register, and from there over the channel; the cells may go on."""
    flow.servers[die, CACHED] = flow.servers[die, BUSY]
    flow.servers[die, BUSY] = 0
    ask_channel(flow, control, timing, flow.servers[die, CACHED] - 1, now)
    wake(flow, die)


@inlined_kernel
def read_comes_next(flow: Flow, die: int) -> bool:
    """Whether what a die would start next, once ready, is a read."""
    head = flow.servers[die, HEAD]
    return flow.servers[die, READ_HEAD] >= 0 or (head >= 0 and flow.operations[head, KIND] in (READ_PAGE, FETCH_PAGE))


@inlined_kernel
def may_fill_cache(flow: Flow, die: int) -> bool:
    """Whether the cells program a page, the cache register is free, and what comes next is ready to be programmed too."""
    head, row = flow.servers[die, HEAD], flow.servers[die, BUSY] - 1
    if head < 0 or flow.servers[die, CACHED] != 0 or flow.servers[die, READ_HEAD] >= 0:
        return False
    programming = flow.operations[row, PHASE] == IN_PROGRAM and flow.operations[row, KIND] in (PROGRAM_PAGE, STORE_PAGE)
    return programming and flow.operations[head, WAITS] == 0 and flow.operations[head, KIND] in (PROGRAM_PAGE, STORE_PAGE)


@inlined_kernel
def look_for_work(flow: Flow, control: Integers, timing: Integers, die: int, now: int) -> None:
    """Start what comes next: reads that overtake, then what they interrupted, then the first of the others if it is ready.

    While a page that was read leaves through the cache register, only reads start; while one is programmed, the next may come there.
    """
    reads = flow.servers[die, READ_HEAD] >= 0
    if flow.servers[die, BUSY] != 0 and not (reads and interrupt(flow, control, timing, die, now)):
        if timing[CACHE_PROGRAM] and may_fill_cache(flow, die):
            row = take_work(flow, control, timing, die, HEAD)
            flow.servers[die, CACHED] = row + 1
            ask_channel(flow, control, timing, row, now)
        return
    if flow.servers[die, CACHED] != 0 and not read_comes_next(flow, die):
        return
    if reads:
        row = take_work(flow, control, timing, die, READ_HEAD)
        start(flow, control, timing, die, row, now)
    elif flow.servers[die, SUSPENDED] != 0:
        row = flow.servers[die, SUSPENDED] - 1
        flow.servers[die, SUSPENDED] = 0
        flow.servers[die, BUSY] = row + 1
        flow.servers[die, SINCE] = now
        schedule(flow, row, flow.operations[row, PHASE], now + flow.operations[row, LEFT_OVER] + timing[RESUME])
    elif flow.servers[die, HEAD] >= 0 and flow.operations[flow.servers[die, HEAD], WAITS] == 0:
        row = take_work(flow, control, timing, die, HEAD)
        start(flow, control, timing, die, row, now)


@inlined_kernel
def let_dies_work(flow: Flow, control: Integers, timing: Integers, now: int) -> None:
    """All dies that were woken look for work, in the order in which they were woken."""
    while flow.engine[FIRST_WOKEN] >= 0:
        die = flow.engine[FIRST_WOKEN]
        flow.engine[FIRST_WOKEN] = flow.servers[die, NEXT_WOKEN]
        flow.servers[die, WOKEN] = 0
        look_for_work(flow, control, timing, die, now)


@inlined_kernel
def pending_program(flow: Flow, die: int, flash_page: int) -> int:
    """The operation, not yet ended, that programs a flash page; of several the last admitted; -1 if there is none."""
    found = -1
    for first in (flow.servers[die, SUSPENDED] - 1, flow.servers[die, BUSY] - 1, flow.servers[die, CACHED] - 1, flow.servers[die, HEAD]):
        row = first
        while row >= 0:
            kind = flow.operations[row, KIND]
            if flow.operations[row, PLACE] == flash_page and kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
                found = row
            row = flow.operations[row, NEXT_IN_DIE]
    return found
