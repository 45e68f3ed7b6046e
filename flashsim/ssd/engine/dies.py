"""Order of the work of a die of the engine: its queue, the next start, operations that work together, and interruptions by reads."""

from flashsim.core.draws import mixed
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.engine import agenda, tables
from flashsim.ssd.engine.tables import FOLLOWER, IN_CELLS, IN_DIE, IN_PROGRAM, ON_CHANNEL, READER, Flow, Timings
from flashsim.ssd.parameters import GROWTH_ERASES
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, IN_SLC, MOVE_PAGE, PROGRAM_PAGE, READ_PAGE, STORE_PAGE, ZERO_PAGE
from flashsim.ssd.state.geometry import block_of, channel_of, die_of_block

#: Row of the times on the channel of what is read, behind those on the bus.
CHANNEL = 3


@inlined_kernel
def comes_in(kind: int) -> bool:
    """True if operations of a kind take a page over the channel into a die, to program it there."""
    return kind in (PROGRAM_PAGE, STORE_PAGE)


@inlined_kernel
def schedule(flow: Flow, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    flow.operations[row].phase = phase
    flow.operations[row].due = time
    kind = flow.operations[row].kind
    lane = agenda.lane_of(phase, kind == ERASE_BLOCK, kind == MOVE_PAGE, IN_CELLS, ON_CHANNEL)
    agenda.put(flow.agenda, lane, time, (flow.operations[row].id << tables.ROW_BITS) | row)


@inlined_kernel
def use_channel(flow: Flow, control: RecordArray, times: Timings, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move, or the code words that are read.

    If the program behind it is certain, a transfer has no event unless another waits, or comes to wait, for its end.
    """
    operation = flow.operations[row]
    kind = operation.kind
    pages = 2 if kind == MOVE_PAGE else 1
    duration = pages * times.timing.transfer
    server = control.dies + channel_of(control, operation.die)
    is_certain = times.timing.unbroken and (kind == MOVE_PAGE or (comes_in(kind) and operation.is_behind == 0))
    if is_certain and flow.queues[server].head < 0 and flow.engine.recording == 0:
        flow.servers[server].busy, flow.servers[server].until = row + 1, now + duration
        operation.phase = IN_PROGRAM
        operation.due = now + duration + tables.program_time(control, times, operation.place)
        agenda.put(flow.agenda, agenda.UNBROKEN, operation.due, (operation.id << tables.ROW_BITS) | row)
        return
    if times.timing.code_word != 0 and kind == READ_PAGE:
        duration = times.links[CHANNEL, operation.sectors]
    schedule(flow, row, ON_CHANNEL, now + duration)


@inlined_kernel
def ask_channel(flow: Flow, control: RecordArray, times: Timings, row: int, now: int) -> None:
    """Use the channel, or wait for it: a transfer there that has no event gets one, or is over."""
    server = control.dies + channel_of(control, flow.operations[row].die)
    part = flow.servers[server]
    if part.until > now:
        schedule(flow, part.busy - 1, ON_CHANNEL, part.until)
    elif part.until > 0:
        part.busy_ns += part.until - part.since
        part.busy = 0
    part.until = 0
    flow.operations[row].phase = ON_CHANNEL
    if tables.acquire(flow, server, row, now):
        use_channel(flow, control, times, row, now)


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
def satisfy(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """One thing that an operation waited for has happened; with the last it is ready for its die, or for the link."""
    operation = flow.operations[row]
    operation.waits -= 1
    if operation.waits > 0:
        return
    if operation.kind in (ZERO_PAGE, flash_array.BUFFER_PAGE, flash_array.DROP_PAGE, flash_array.MEMORY_PAGE):
        tables.enqueue(flow, tables.READY, row, tables.QUEUED)
        return
    if operation.kind == READ_PAGE and timing.read_priority:
        if operation.origin >= 0:
            place_read(flow, flash, row)
        tables.enqueue(flow, tables.reads_of(flow, operation.die), row, IN_DIE)
    wake(flow, operation.die)


@lean_kernel
def place_read(flow: Flow, flash: Flash, row: int) -> None:
    """A read that may overtake is ready: it goes to the page where its content stands now."""
    operation = flow.operations[row]
    operation.place, _ = tables.readable(flow, row)
    flash.pools[operation.die].queued -= 1
    operation.die = die_of_block(flash.control, block_of(flash.control, operation.place))
    flash.pools[operation.die].queued += 1


@inlined_kernel
def satisfy_followers(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """An operation has ended: tell those that wait for it."""
    for chain in (FOLLOWER, READER):
        last = follower = flow.operations[row].last[chain]
        while follower >= 0:
            follower = flow.operations[follower].next[chain]
            satisfy(flow, flash, timing, follower)
            if follower == last:
                break


@inlined_kernel
def hold_gate(flow: Flow, block: int, row: int) -> None:
    """An operation keeps a block from being erased: the erase admitted next after it waits."""
    flow.gates[block].holders += 1
    flow.operations[row].gate = flow.gates[block].newest_erase


@inlined_kernel
def close_gate(flow: Flow, block: int, row: int) -> None:
    """An erase of a block is admitted."""
    gate, operation = flow.gates[block], flow.operations[row]
    operation.waits += gate.holders
    operation.gate = -1
    if gate.oldest_erase < 0:
        gate.oldest_erase = row
    else:
        flow.operations[gate.newest_erase].gate = row
    gate.newest_erase = row
    gate.holders = 0
    gate.last_erase = operation.id


@inlined_kernel
def open_gate(flow: Flow, block: int, row: int) -> None:
    """An operation no longer keeps a block from being erased: the erase admitted next after it may go on.

    Erases of a block end in order.  So that is the oldest which has not ended, or the one behind the last that was admitted before.
    """
    gate, operation = flow.gates[block], flow.operations[row]
    if operation.id > gate.last_erase:
        gate.holders -= 1
        return
    erase = gate.oldest_erase
    if flow.operations[erase].id < operation.id:
        erase = flow.operations[operation.gate].gate
    flow.operations[erase].waits -= 1
    if flow.operations[erase].waits == 0:
        wake(flow, flow.operations[erase].die)


@inlined_kernel
def add_operations(flow: Flow, flash: Flash, timing: RecordArray, rows: int, command: int, sectors: int) -> None:
    """Give the planned operations of one logical page their ids, their command and their places in the queues of dies."""
    for at in range(rows):
        kind = flash.plan[at].kind
        row = tables.take_row(flow, kind)
        planned, operation = flash.plan[at], flow.operations[row]
        operation.place, operation.source, operation.logical = planned.place, planned.source, planned.logical
        operation.write_id, operation.superseded, operation.cause = planned.write_id, planned.superseded, planned.cause
        operation.sectors = sectors
        if kind != ZERO_PAGE:
            enter_die(flow, flash, timing, row)
        if planned.superseded >= 0:
            hold_gate(flow, planned.superseded, row)
        if planned.needs >= 0:
            tables.follow(flow.operations, flash.plan[planned.needs].needs, row, FOLLOWER)
        planned.needs = row  # from here on the row of the operation, for those that need it
        tables.add_part(flow.operations, command, row, kind in (READ_PAGE, ZERO_PAGE, PROGRAM_PAGE))


@inlined_kernel
def enter_die(flow: Flow, flash: Flash, timing: RecordArray, row: int) -> None:
    """Give an operation its place in the queue of its die, and let it wait for what must come before.

    A read that may overtake gets its place when it is ready.  It reads the flash page that the map named at its admission, and the next
    erase of that block waits for it; while that page is being moved there, it reads where it was.  Only for the host's programs it waits.
    """
    kind, place = flow.operations[row].kind, flow.operations[row].place
    block = place if kind == ERASE_BLOCK else block_of(flash.control, place)
    die = flow.operations[row].die = die_of_block(flash.control, block)
    flash.pools[die].queued += 1
    if timing.read_priority and (kind == READ_PAGE or flow.operations[row].source >= 0):
        reads = place if kind == READ_PAGE else flow.operations[row].source
        is_pending = flow.gates[block_of(flash.control, reads)].pending > 0
        flow.operations[row].origin = tables.pending_program(flow, reads) if is_pending else -1
    if kind == READ_PAGE and timing.read_priority:
        hold_gate(flow, block, row)
        flow.operations[row].superseded = block
        _, program = tables.readable(flow, row)
        if program >= 0:
            tables.follow(flow.operations, program, row, READER)
        return
    tables.enqueue(flow, die, row, IN_DIE)
    if kind == ERASE_BLOCK:
        close_gate(flow, block, row)
    elif timing.read_priority and flash_array.is_program(kind):
        flow.gates[block].pending += 1
        tables.note_program(flow, row)


@inlined_kernel
def is_one_program(operations: RecordArray, control: RecordArray, row: int, other: int) -> bool:
    """True if two operations, of which one stands behind the other, fill slots that are programmed at once."""
    if not (flash_array.is_program(operations[row].kind) and flash_array.is_program(operations[other].kind)):
        return False
    return flash_array.is_one_program(control, operations[row].place, operations[row].source, operations[other].place)


@inlined_kernel
def is_ready(operations: RecordArray, control: RecordArray, first: int) -> bool:
    """True if the first operation of a queue may start, and all that are programmed at once with it."""
    ready, row = operations[first].waits == 0, first
    while ready and control.group > 1:
        row = operations[row].next[IN_DIE]
        if row < 0 or not is_one_program(operations, control, first, row):
            break
        ready = operations[row].waits == 0
    return ready


@inlined_kernel
def is_one_read(operations: RecordArray, control: RecordArray, first: int, row: int) -> bool:
    """True if a ready operation reads a unit of a flash page that comes out of the cells anyway, for one of those chained from `first`."""
    kind, member = operations[first].kind, first
    if control.units == 1 or operations[row].waits > 0 or kind != operations[row].kind or kind not in (READ_PAGE, FETCH_PAGE):
        return False
    while member >= 0:
        if operations[member].place // control.units == operations[row].place // control.units:
            return True
        member = operations[member].next[IN_DIE]
    return False


@inlined_kernel
def works_with(operations: RecordArray, control: RecordArray, first: int, row: int) -> bool:
    """True if a ready operation joins those from `first`: of one kind, on another plane, at the same page, of as many bits a cell."""
    kind, other, place = operations[first].kind, operations[row].kind, operations[row].place
    one_kind = comes_in(other) if comes_in(kind) else kind == other and kind in (READ_PAGE, FETCH_PAGE, ERASE_BLOCK)
    same_cells = (operations[first].source <= IN_SLC) == (operations[row].source <= IN_SLC)
    if not one_kind or not same_cells or not is_ready(operations, control, row):
        return False
    apart = operations[first].place - place
    if control.units > 1 and not comes_in(kind):  # programs begin a flash page, reads need not
        apart = operations[first].place // control.units * control.units - place // control.units * control.units
    if kind != ERASE_BLOCK and apart % control.pages_per_block != 0:
        return False
    size = control.blocks_per_pool if kind == ERASE_BLOCK else control.blocks_per_pool * control.pages_per_block
    member = first
    while member >= 0:
        if operations[member].place // size == place // size:
            return False
        member = operations[member].next[IN_DIE]
    return True


@inlined_kernel
def take_work(flow: Flow, control: RecordArray, times: Timings, queue: int) -> int:
    """Take the first operation off a die's queue, with those behind it that work together with it, chained by IN_DIE."""
    first = last = tables.dequeue(flow, queue, IN_DIE)
    together = 1
    while (times.timing.multi_plane or control.group > 1) and flow.queues[queue].head >= 0:
        row = flow.queues[queue].head
        shared = is_one_read(flow.operations, control, first, row)
        joins = shared or (control.group > 1 and is_one_program(flow.operations, control, last, row))
        if not joins and not (times.timing.multi_plane and works_with(flow.operations, control, first, row)):
            break
        times.counters.shared_reads += shared
        tables.dequeue(flow, queue, IN_DIE)
        flow.operations[last].next[IN_DIE] = row
        last = row
        together += 1
    flow.operations[first].together = flow.operations[last].together = together
    prefetch(flow.operations, flow.queues[queue].head)
    return first


@inlined_kernel
def slot_time(flow: Flow, flash: Flash, times: Timings, row: int, slot: int) -> int:
    """Time until a slot is out of the cells; it may have to be read once more, as a hash of the operation's id says."""
    timing = times.timing
    if not timing.read_levels:
        return timing.read
    block = flash.blocks[block_of(flash.control, slot)]
    again = mixed(int(flow.operations[row].id)) < timing.retry + timing.retry_growth * block.erases // GROWTH_ERASES
    times.counters.read_retries += again
    time = timing.slc_read if block.slc else times.cells[0, tables.level_of(flash.control, timing, slot)]
    return time + (timing.retry_time if again else 0)


@lean_kernel
def group_time(flow: Flow, flash: Flash, times: Timings, first: int) -> int:
    """Time in the cells of what is chained from `first`: of reads the longest, of moves that of each flash page, of erases the longest."""
    units, row, last, total, longest = flash.control.units, first, -1, 0, 0
    kind = flow.operations[first].kind
    while row >= 0:
        operation = flow.operations[row]
        if kind == ERASE_BLOCK:
            time = times.timing.erase + times.timing.erase_growth * flash.blocks[operation.place].erases // GROWTH_ERASES
        else:
            time = slot_time(flow, flash, times, row, operation.source if kind == MOVE_PAGE else operation.place)
        if kind == MOVE_PAGE:
            times.counters.shared_reads += operation.source // units == last
            if operation.source // units != last:
                total += longest
                longest = 0
            last = operation.source // units
        longest = max(longest, time)
        row = operation.next[IN_DIE]
    return total + longest


@inlined_kernel
def start(flow: Flow, flash: Flash, times: Timings, die: int, queue: int, now: int) -> None:
    """Take the first work of a queue; what is in the cache register holds the die before it, until it ends."""
    row, timing = take_work(flow, flash.control, times, queue), times.timing
    flow.servers[die].busy = row + 1
    if flow.servers[die].cached == 0:
        flow.servers[die].since = now
    kind = flow.operations[row].kind
    if comes_in(kind):
        ask_channel(flow, flash.control, times, row, now)
        return
    duration = timing.erase if kind == ERASE_BLOCK else timing.read
    if kind == MOVE_PAGE:
        prefetch(flash.spare, flow.operations[row].source)  # its write id is copied in the end
    if timing.erase_growth != 0 or timing.read_levels or (flash.control.group > 1 and kind == MOVE_PAGE):
        duration = group_time(flow, flash, times, row)
    schedule(flow, row, IN_CELLS, now + duration)


@inlined_kernel
def interrupt(flow: Flow, flash: Flash, timing: RecordArray, die: int, now: int) -> bool:
    """Suspend what the die does, if a read may interrupt it and it does not end just now; whether the die is free."""
    operation = flow.operations[flow.servers[die].busy - 1]
    erasing = operation.kind == ERASE_BLOCK and operation.phase == IN_CELLS
    if not (erasing and timing.suspend_erase) and not (operation.phase == IN_PROGRAM and timing.suspend_program):
        return False
    if operation.interrupted == timing.suspend_limit or operation.due == now:
        return False
    operation.interrupted += 1
    operation.left_over = operation.due - now
    operation.due = -1
    flow.servers[die].suspended = flow.servers[die].busy
    leave(flow, flash, timing, die, False, now)
    return True


@inlined_kernel
def leave(flow: Flow, flash: Flash, timing: RecordArray, die: int, cached: bool, now: int) -> None:
    """The operation at work, or the one in the cache register, gives up its die, which the other holds from now."""
    server = flow.servers[die]
    tables.note_span(flow, flash, timing, die, (server.cached if cached else server.busy) - 1, now)
    server.busy_ns += now - server.since
    server.since = now
    if cached:
        server.cached = 0
    else:
        server.busy = 0


@inlined_kernel
def pass_to_cache(flow: Flow, control: RecordArray, times: Timings, die: int, now: int) -> None:
    """The page that was read moves to the cache register, and from there over the channel; the cells may go on."""
    flow.servers[die].cached = flow.servers[die].busy
    flow.servers[die].busy = 0
    ask_channel(flow, control, times, flow.servers[die].cached - 1, now)
    wake(flow, die)


@inlined_kernel
def may_fill_cache(flow: Flow, control: RecordArray, die: int) -> bool:
    """True if the cells program a page, the cache register is free, and the next operation is ready to be programmed too."""
    head, row = flow.queues[die].head, flow.servers[die].busy - 1
    if head < 0 or flow.servers[die].cached != 0 or flow.queues[tables.reads_of(flow, die)].head >= 0:
        return False
    programming = flow.operations[row].phase == IN_PROGRAM and comes_in(flow.operations[row].kind)
    return programming and comes_in(flow.operations[head].kind) and is_ready(flow.operations, control, head)


@inlined_kernel
def look_for_work(flow: Flow, flash: Flash, times: Timings, die: int, now: int) -> None:
    """Start what comes next: reads that overtake, then what they interrupted, then the first of the others if it is ready.

    While a page that was read leaves through the cache register, only reads start; while one is programmed, the next may come there.
    """
    control, server, head = flash.control, flow.servers[die], flow.queues[die].head
    reads = flow.queues[tables.reads_of(flow, die)].head >= 0
    if server.busy != 0 and not (reads and interrupt(flow, flash, times.timing, die, now)):
        if times.timing.cache_program and may_fill_cache(flow, control, die):
            row = take_work(flow, control, times, die)
            server.cached = row + 1
            ask_channel(flow, control, times, row, now)
        return
    if server.cached != 0 and not reads and (head < 0 or flow.operations[head].kind not in (READ_PAGE, FETCH_PAGE)):
        return
    if reads:
        start(flow, flash, times, die, tables.reads_of(flow, die), now)
    elif server.suspended != 0:
        row = server.suspended - 1
        server.busy, server.suspended, server.since = row + 1, 0, now
        schedule(flow, row, int(flow.operations[row].phase), now + flow.operations[row].left_over + times.timing.suspend_overhead)
    elif head >= 0 and is_ready(flow.operations, control, head):
        start(flow, flash, times, die, die, now)


@inlined_kernel
def let_dies_work(flow: Flow, flash: Flash, times: Timings, now: int) -> None:
    """All dies that were woken look for work, in the order in which they were woken."""
    while flow.engine.first_woken >= 0:
        die = flow.engine.first_woken
        flow.engine.first_woken = flow.servers[die].next_woken
        flow.servers[die].woken = 0
        look_for_work(flow, flash, times, die, now)
