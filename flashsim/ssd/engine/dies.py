"""How a die of the engine orders its work: what it starts next, what works together, and what a read interrupts."""

from flashsim.core.host import heap_push
from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.engine.flow import Flow
from flashsim.ssd.engine.operations import IN_CELLS, IN_PROGRAM, ON_CHANNEL, ROW_BITS, acquire, join_queue, reads_of
from flashsim.ssd.engine.span_log import note_span
from flashsim.ssd.state.flash_array import (
    BUFFER_PAGE,
    DROP_PAGE,
    ERASE_BLOCK,
    FETCH_PAGE,
    MOVE_PAGE,
    PROGRAM_PAGE,
    READ_PAGE,
    STORE_PAGE,
    ZERO_PAGE,
)
from flashsim.ssd.state.geometry import channel_of, die_of_block


@inlined_kernel
def schedule(flow: Flow, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    flow.operations[row].phase = phase
    flow.operations[row].due = time
    flow.engine.events = heap_push(flow.heap, flow.engine.events, time, (flow.operations[row].id << ROW_BITS) | row)


@inlined_kernel
def use_channel(flow: Flow, timing: RecordArray, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move."""
    pages = 2 if flow.operations[row].kind == MOVE_PAGE else 1
    schedule(flow, row, ON_CHANNEL, now + pages * timing.transfer)


@inlined_kernel
def ask_channel(flow: Flow, control: RecordArray, timing: RecordArray, row: int, now: int) -> None:
    flow.operations[row].phase = ON_CHANNEL
    if acquire(flow, control.dies + channel_of(control, flow.operations[row].die), row, now):
        use_channel(flow, timing, row, now)


@inlined_kernel
def wake(flow: Flow, die: int) -> None:
    """Let a die look for work once all that follows from this event has been done."""
    if flow.servers[die].woken:
        return
    flow.servers[die].woken = 1
    flow.servers[die].next_woken = -1
    if flow.engine.first_woken < 0:
        flow.engine.first_woken = die
    else:
        flow.servers[flow.engine.last_woken].next_woken = die
    flow.engine.last_woken = die


@inlined_kernel
def satisfy(flow: Flow, timing: RecordArray, row: int) -> None:
    """One thing that an operation waited for has happened; with the last it is ready for its die, or for the link."""
    flow.operations[row].waits -= 1
    if flow.operations[row].waits > 0:
        return
    if flow.operations[row].kind in (ZERO_PAGE, BUFFER_PAGE, DROP_PAGE):
        if flow.engine.first_ready < 0:
            flow.engine.first_ready = row
        else:
            flow.operations[flow.engine.last_ready].next_waiting = row
        flow.engine.last_ready = row
        return
    if flow.operations[row].kind == READ_PAGE and timing.read_priority:
        join_queue(flow, reads_of(flow, flow.operations[row].die), row)
    wake(flow, flow.operations[row].die)


@inlined_kernel
def satisfy_followers(flow: Flow, timing: RecordArray, row: int) -> None:
    """An operation has ended: tell those that wait for it."""
    follower = flow.operations[row].first_follower
    while follower >= 0:
        satisfy(flow, timing, follower)
        follower = flow.operations[follower].next_follower
    follower = flow.operations[row].first_reader
    while follower >= 0:
        satisfy(flow, timing, follower)
        follower = flow.operations[follower].next_reader


@inlined_kernel
def open_gate(flow: Flow, control: RecordArray, timing: RecordArray, block: int, number: int) -> None:
    """The operation of that number no longer keeps a block from being erased: the erase admitted next after it may go on."""
    if number > flow.gates[block].last_erase:
        flow.gates[block].holders -= 1
        return
    row = flow.queues[die_of_block(control, block)].head
    while flow.operations[row].kind != ERASE_BLOCK or flow.operations[row].place != block or flow.operations[row].id < number:
        row = flow.operations[row].next_in_die
    satisfy(flow, timing, row)


@inlined_kernel
def same_work(kind: int, other: int) -> bool:
    """Whether operations of these kinds can be one multi-plane command."""
    if kind in (PROGRAM_PAGE, STORE_PAGE):
        return other in (PROGRAM_PAGE, STORE_PAGE)
    return kind == other and kind in (READ_PAGE, FETCH_PAGE, ERASE_BLOCK)


@inlined_kernel
def works_with(operations: RecordArray, control: RecordArray, first: int, row: int) -> bool:
    """Whether a ready operation joins those chained from `first`: of one kind, on a plane of its own, at the same page of its block."""
    kind, place = operations[first].kind, operations[row].place
    if operations[row].waits > 0 or not same_work(kind, operations[row].kind):
        return False
    if kind != ERASE_BLOCK and (operations[first].place - place) % control.pages_per_block != 0:
        return False
    size = control.blocks_per_pool if kind == ERASE_BLOCK else control.blocks_per_pool * control.pages_per_block
    member = first
    while member >= 0:
        if operations[member].place // size == place // size:
            return False
        member = operations[member].next_in_die
    return True


@inlined_kernel
def take_work(flow: Flow, control: RecordArray, timing: RecordArray, number: int) -> int:
    """Take the first operation off a die's queue, with those behind it that work together with it, chained by `next_in_die`."""
    queue = flow.queues[number]
    first = last = queue.head
    queue.head = flow.operations[first].next_in_die
    flow.operations[first].next_in_die = -1
    while timing.multi_plane and queue.head >= 0 and works_with(flow.operations, control, first, queue.head):
        row = queue.head
        queue.head = flow.operations[row].next_in_die
        flow.operations[row].next_in_die = -1
        flow.operations[last].next_in_die = row
        last = row
    return first


@inlined_kernel
def start(flow: Flow, control: RecordArray, timing: RecordArray, die: int, row: int, now: int) -> None:
    """The die is the operation's and those chained to it; what is in the cache register held it before, until it ends."""
    flow.servers[die].busy = row + 1
    if flow.servers[die].cached == 0:
        flow.servers[die].since = now
    kind = flow.operations[row].kind
    if kind == ERASE_BLOCK:
        schedule(flow, row, IN_CELLS, now + timing.erase)
    elif kind in (PROGRAM_PAGE, STORE_PAGE):
        ask_channel(flow, control, timing, row, now)
    else:
        schedule(flow, row, IN_CELLS, now + timing.read)


@inlined_kernel
def interrupt(flow: Flow, control: RecordArray, timing: RecordArray, die: int, now: int) -> bool:
    """Suspend what the die does, if a read may interrupt it and it does not end just now; whether the die is free."""
    row = flow.servers[die].busy - 1
    phase = flow.operations[row].phase
    erasing = flow.operations[row].kind == ERASE_BLOCK and phase == IN_CELLS
    if not (erasing and timing.suspend_erase) and not (phase == IN_PROGRAM and timing.suspend_program):
        return False
    if flow.operations[row].interrupted == timing.suspend_limit or flow.operations[row].due == now:
        return False
    flow.operations[row].interrupted += 1
    flow.operations[row].left_over = flow.operations[row].due - now
    flow.operations[row].due = -1
    flow.servers[die].suspended = row + 1
    leave(flow, control, die, False, now)
    return True


@inlined_kernel
def leave(flow: Flow, control: RecordArray, die: int, cached: bool, now: int) -> None:
    """The operation at work, or the one in the cache register, gives up its die, which the other holds from now."""
    server = flow.servers[die]
    note_span(flow, control, die, (server.cached if cached else server.busy) - 1, now)
    server.busy_ns += now - server.since
    server.since = now
    if cached:
        server.cached = 0
    else:
        server.busy = 0


@inlined_kernel
def pass_to_cache(flow: Flow, control: RecordArray, timing: RecordArray, die: int, now: int) -> None:
    """The page that was read moves to the cache register, and from there over the channel; the cells may go on."""
    flow.servers[die].cached = flow.servers[die].busy
    flow.servers[die].busy = 0
    ask_channel(flow, control, timing, flow.servers[die].cached - 1, now)
    wake(flow, die)


@inlined_kernel
def read_comes_next(flow: Flow, die: int) -> bool:
    """Whether what a die would start next, once ready, is a read."""
    head = flow.queues[die].head
    return flow.queues[reads_of(flow, die)].head >= 0 or (head >= 0 and flow.operations[head].kind in (READ_PAGE, FETCH_PAGE))


@inlined_kernel
def may_fill_cache(flow: Flow, die: int) -> bool:
    """Whether the cells program a page, the cache register is free, and what comes next is ready to be programmed too."""
    head, row = flow.queues[die].head, flow.servers[die].busy - 1
    if head < 0 or flow.servers[die].cached != 0 or flow.queues[reads_of(flow, die)].head >= 0:
        return False
    programming = flow.operations[row].phase == IN_PROGRAM and flow.operations[row].kind in (PROGRAM_PAGE, STORE_PAGE)
    return programming and flow.operations[head].waits == 0 and flow.operations[head].kind in (PROGRAM_PAGE, STORE_PAGE)


@inlined_kernel
def look_for_work(flow: Flow, control: RecordArray, timing: RecordArray, die: int, now: int) -> None:
    """Start what comes next: reads that overtake, then what they interrupted, then the first of the others if it is ready.

    While a page that was read leaves through the cache register, only reads start; while one is programmed, the next may come there.
    """
    reads = flow.queues[reads_of(flow, die)].head >= 0
    if flow.servers[die].busy != 0 and not (reads and interrupt(flow, control, timing, die, now)):
        if timing.cache_program and may_fill_cache(flow, die):
            row = take_work(flow, control, timing, die)
            flow.servers[die].cached = row + 1
            ask_channel(flow, control, timing, row, now)
        return
    if flow.servers[die].cached != 0 and not read_comes_next(flow, die):
        return
    if reads:
        row = take_work(flow, control, timing, reads_of(flow, die))
        start(flow, control, timing, die, row, now)
    elif flow.servers[die].suspended != 0:
        row = flow.servers[die].suspended - 1
        flow.servers[die].suspended = 0
        flow.servers[die].busy = row + 1
        flow.servers[die].since = now
        schedule(flow, row, flow.operations[row].phase, now + flow.operations[row].left_over + timing.resume)
    elif flow.queues[die].head >= 0 and flow.operations[flow.queues[die].head].waits == 0:
        row = take_work(flow, control, timing, die)
        start(flow, control, timing, die, row, now)


@inlined_kernel
def let_dies_work(flow: Flow, control: RecordArray, timing: RecordArray, now: int) -> None:
    """All dies that were woken look for work, in the order in which they were woken."""
    while flow.engine.first_woken >= 0:
        die = flow.engine.first_woken
        flow.engine.first_woken = flow.servers[die].next_woken
        flow.servers[die].woken = 0
        look_for_work(flow, control, timing, die, now)


@inlined_kernel
def pending_program(flow: Flow, die: int, flash_page: int) -> int:
    """The operation, not yet ended, that programs a flash page; of several the last admitted; -1 if there is none."""
    found = -1
    for first in (flow.servers[die].suspended - 1, flow.servers[die].busy - 1, flow.servers[die].cached - 1, flow.queues[die].head):
        row = first
        while row >= 0:
            kind = flow.operations[row].kind
            if flow.operations[row].place == flash_page and kind in (PROGRAM_PAGE, STORE_PAGE, MOVE_PAGE):
                found = row
            row = flow.operations[row].next_in_die
    return found
