"""Order of the work of a die of the engine: the next start, and interruptions by reads."""

from flashsim.core.draws import mix_bits
from flashsim.core.hints import prefetch
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.units import NEVER
from flashsim.ssd.engine import agenda, tables
from flashsim.ssd.engine.groups import ALL_PASSED, goes_to_die, is_ready, take_work
from flashsim.ssd.engine.tables import IN_CELLS, IN_DIE, IN_PROGRAM, ON_CHANNEL, PAUSING, STOPPING, WAITING, Flow, Timings
from flashsim.ssd.engine.waiting import wake
from flashsim.ssd.parameters import GROWTH_ERASES
from flashsim.ssd.state import flash_array
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, IN_SLC, MOVE_PAGE, READ_PAGE
from flashsim.ssd.state.geometry import block_of, channel_of
from flashsim.ssd.timing import work_left_at_stop

#: Row of the times on the channel of what is read, behind those on the bus.
CHANNEL = 3


@inlined_kernel
def schedule(flow: Flow, row: int, phase: int, time: int) -> None:
    """The operation's next event ends `phase` at `time`."""
    flow.operations[row].phase = phase
    flow.operations[row].due = time
    kind = flow.operations[row].kind
    lane = agenda.lane_of(phase, kind == ERASE_BLOCK, kind == MOVE_PAGE, IN_CELLS, ON_CHANNEL)
    agenda.put(flow.agenda, lane, time, (flow.operations[row].id << tables.ROW_BITS) | row)


@inlined_kernel
def has_time(timing: RecordArray, cause: int) -> bool:
    """True unless work of a cause takes no time."""
    return (timing.free_causes >> cause) & 1 == 0


@inlined_kernel
def use_channel(flow: Flow, control: RecordArray, times: Timings, row: int, now: int) -> None:
    """The channel is the operation's: move a page, or out and back in for a move, or the code words that are read.

    If the program behind it is certain, a transfer has no event unless another waits, or comes to wait, for its end.
    """
    operation = flow.operations[row]
    kind = operation.kind
    pages = 2 if kind == MOVE_PAGE else 1
    duration = pages * times.timing.transfer if has_time(times.timing, operation.cause) else 1
    server = control.dies + channel_of(control, operation.die)
    is_certain = times.timing.unbroken and (kind == MOVE_PAGE or (goes_to_die(kind) and operation.is_behind == 0))
    if is_certain and flow.queues[server].head < 0 and flow.engine.recording == 0:
        flow.servers[server].busy, flow.servers[server].until = row + 1, now + duration
        operation.phase = IN_PROGRAM
        operation.due = now + duration + tables.program_time(control, times, operation.place)
        agenda.put(flow.agenda, agenda.UNBROKEN, operation.due, (operation.id << tables.ROW_BITS) | row)
        return
    if times.timing.code_word != 0 and kind == READ_PAGE and has_time(times.timing, operation.cause):
        duration = times.links[CHANNEL, operation.sectors]
    schedule(flow, row, ON_CHANNEL, now + duration)


@lean_kernel
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
def slot_time(flow: Flow, flash: Flash, times: Timings, row: int, slot: int, counts: int) -> int:
    """Time until a slot is out of the cells; it may have to be read once more, as a hash of the operation's id says."""
    timing = times.timing
    if not timing.read_levels:
        return timing.read
    block = flash.blocks[block_of(flash.control, slot)]
    again = mix_bits(int(flow.operations[row].id)) < timing.retry + timing.retry_growth * block.erases // GROWTH_ERASES
    times.counters.read_retries += counts * again
    time = timing.slc_read if block.slc else times.cells[0, tables.level_of(flash.control, timing, slot)]
    return time + (timing.retry_time if again else 0)


@lean_kernel
def group_time(flow: Flow, flash: Flash, times: Timings, first: int, least: int, counts: int) -> int:
    """Time in the cells of what is chained from `first`: of reads the longest, of moves that of each flash page, of erases the longest.

    Of moves it is that of as many flash pages as take `least` at least.  Only with `counts` the counters change.
    """
    units, row, last, total, longest = flash.control.units, first, -1, 0, 0
    kind = flow.operations[first].kind
    while row >= 0:
        operation = flow.operations[row]
        if kind == ERASE_BLOCK:
            time = times.timing.erase + times.timing.erase_growth * flash.blocks[operation.place].erases // GROWTH_ERASES
        else:
            time = slot_time(flow, flash, times, row, operation.source if kind == MOVE_PAGE else operation.place, counts)
        if kind == MOVE_PAGE:
            times.counters.shared_reads += counts * (operation.source // units == last)
            if operation.source // units != last:
                total += longest
                if total >= least:
                    return total
                longest = 0
            last = operation.source // units
        longest = max(longest, time)
        row = operation.next[IN_DIE]
    return total + longest


@inlined_kernel
def start(flow: Flow, flash: Flash, times: Timings, die: int, queue: int, now: int) -> None:
    """Take the first work of a queue; what is in the cache register holds the die before it, until it ends."""
    row, timing = take_work(flow, flash.control, times, queue), times.timing
    if flow.servers[die].boundless:
        note_first(flow.operations, row)
    else:
        flow.servers[die].busy = row + 1
    if flow.servers[die].cached == 0:
        flow.servers[die].since = now
    kind = flow.operations[row].kind
    if goes_to_die(kind):
        ask_channel(flow, flash.control, times, row, now)
        return
    duration = timing.erase if kind == ERASE_BLOCK else timing.read
    if kind == MOVE_PAGE:
        prefetch(flash.spare, flow.operations[row].source)  # its write id is copied in the end
    elif flow.engine.recording:
        flow.operations[row].left_over = now
    if timing.erase_growth != 0 or timing.read_levels or (flash.control.group > 1 and kind == MOVE_PAGE):
        duration = group_time(flow, flash, times, row, NEVER, 1)
    if not has_time(timing, flow.operations[row].cause):
        duration = 1
    if (kind == ERASE_BLOCK and timing.suspend_erase) or (kind == MOVE_PAGE and timing.suspend_program):
        flow.operations[row].left_over = duration
        schedule_end(flow, row, IN_CELLS, now + duration)
    else:
        schedule(flow, row, IN_CELLS, now + duration)


@inlined_kernel
def note_first(operations: RecordArray, first: int) -> None:
    """Let what works together on a boundless die, chained from `first`, know that one."""
    row = first
    while row >= 0:
        operations[row].left_over = first
        row = operations[row].next[IN_DIE]


@inlined_kernel
def first_at_work(flow: Flow, row: int) -> int:
    """The first of those that an operation works with."""
    die = flow.operations[row].die
    return flow.operations[row].left_over if flow.servers[die].boundless else flow.servers[die].busy - 1


@inlined_kernel
def ask_to_stop(flow: Flow, flash: Flash, times: Timings, die: int, now: int) -> None:
    """Reads wait: what the die does stops at the end of a step, or between flash pages to move, if they may interrupt it there."""
    row, timing = flow.servers[die].busy - 1, times.timing
    operation = flow.operations[row]
    most = min(operation.due - now, operation.left_over)
    if operation.kind == MOVE_PAGE and operation.phase == IN_CELLS and timing.suspend_program:
        whole = group_time(flow, flash, times, row, NEVER, 0)
        left = whole - group_time(flow, flash, times, row, whole - most, 0)
        if left > 0:
            operation.left_over = left
            schedule(flow, row, PAUSING, operation.due - left)
        return
    erasing = operation.kind == ERASE_BLOCK and operation.phase == IN_CELLS
    if not (erasing and timing.suspend_erase) and not (operation.phase == IN_PROGRAM and timing.suspend_program):
        return
    step, chance = (timing.erase_step, 0) if erasing else (timing.program_step, timing.long_chance)
    left = work_left_at_stop(int(operation.id), most, step, timing.program_long_step, chance)
    if left > timing.suspend_stop:
        operation.left_over = left
        schedule(flow, row, STOPPING, operation.due - left + timing.suspend_stop)


@inlined_kernel
def give_way(flow: Flow, flash: Flash, timing: RecordArray, die: int, now: int) -> None:
    """The operation at work leaves its die to reads."""
    flow.operations[flow.servers[die].busy - 1].due = -1
    flow.servers[die].suspended = flow.servers[die].busy
    give_up_die(flow, flash, timing, die, False, now)
    wake(flow, die)


@inlined_kernel
def go_on(flow: Flow, flash: Flash, times: Timings, die: int, now: int) -> None:
    """The operation that gave way to reads has its die again."""
    row, timing = flow.servers[die].suspended - 1, times.timing
    flow.servers[die].busy, flow.servers[die].suspended, flow.servers[die].since = row + 1, 0, now
    operation = flow.operations[row]
    wake(flow, die)  # for reads that wait
    if operation.phase == WAITING:
        begin_program(flow, flash, times, row, now)
        return
    pauses = operation.phase == PAUSING
    due = now + operation.left_over + (0 if pauses else timing.suspend_overhead)
    operation.left_over -= 1 if pauses else timing.suspend_progress
    operation.phase = IN_CELLS if pauses or operation.kind == ERASE_BLOCK else IN_PROGRAM
    if operation.entered >= now:
        operation.due = due  # the event of its end is put off when it comes
    else:
        schedule_end(flow, row, int(operation.phase), due)


@inlined_kernel
def give_up_die(flow: Flow, flash: Flash, timing: RecordArray, die: int, cached: bool, now: int) -> None:
    """The operation at work, or the one in the cache register, gives up its die, which the other holds from now."""
    server = flow.servers[die]
    if server.boundless:
        return
    tables.note_span(flow, flash, timing, die, (server.cached if cached else server.busy) - 1, now)
    server.busy_ns += now - server.since
    server.since = now
    if cached:
        server.cached = 0
    else:
        server.busy = 0


@inlined_kernel
def schedule_end(flow: Flow, row: int, phase: int, time: int) -> None:
    """The end of what reads may interrupt is the operation's next event."""
    schedule(flow, row, phase, time)
    flow.operations[row].entered = time


@inlined_kernel
def put_off(flow: Flow, row: int, time: int) -> None:
    """The event of an end that was due at `time` has come too early, since the operation was interrupted meanwhile."""
    operation = flow.operations[row]
    if operation.entered == time:
        operation.entered = -1
        if operation.due > time and operation.phase in (IN_CELLS, IN_PROGRAM):
            schedule_end(flow, row, int(operation.phase), int(operation.due))


@inlined_kernel
def pages_from(operations: RecordArray, control: RecordArray, first: int) -> int:
    """Flash pages of a plane that operations chained from `first` program, one after the other."""
    row = first
    begin = end = operations[first].place % control.pages_per_block // control.units
    while row >= 0:
        end = max(end, operations[row].place % control.pages_per_block // control.units)
        row = operations[row].next[IN_DIE]
    return end - begin + 1


@inlined_kernel
def begin_program(flow: Flow, flash: Flash, times: Timings, first: int, now: int) -> None:
    """All pages of operations at work are in their registers: into the cells with them; the next may come to the cache register."""
    row, die = first, flow.operations[first].die
    reads = flow.queues[tables.reads_of(flow, die)].head >= 0
    if times.timing.suspend_program and reads and flow.operations[first].phase != WAITING:  # they come before, once
        flow.operations[first].phase = WAITING
        give_way(flow, flash, times.timing, die, now)
        return
    while row >= 0:
        flash_array.start_program(flash, flow.operations[row].place, flow.operations[row].source)
        row = flow.operations[row].next[IN_DIE]
    duration = tables.program_time(flash.control, times, flow.operations[first].place)
    if flow.operations[first].source <= IN_SLC:
        duration = times.timing.slc_program * pages_from(flow.operations, flash.control, first)
    if not has_time(times.timing, flow.operations[first].cause):
        duration = 1
    if times.timing.suspend_program:
        flow.operations[first].left_over = duration
        schedule_end(flow, first, IN_PROGRAM, now + duration)
    else:
        schedule(flow, first, IN_PROGRAM, now + duration)
    if times.timing.cache_program:
        wake(flow, die)


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
    programming = flow.operations[row].phase == IN_PROGRAM and goes_to_die(flow.operations[row].kind)
    return programming and goes_to_die(flow.operations[head].kind) and is_ready(flow.operations, control, head)


@inlined_kernel
def work_waits(flow: Flow, control: RecordArray, timing: RecordArray, die: int) -> bool:
    """True if the die has other work than reads: what they interrupted, or what they may interrupt and is ready to begin."""
    head = flow.queues[die].head
    if flow.servers[die].suspended != 0 or head < 0:
        return flow.servers[die].suspended != 0
    suspends = timing.suspend_erase if flow.operations[head].kind == ERASE_BLOCK else timing.suspend_program
    return suspends != 0 and is_ready(flow.operations, control, head)


@inlined_kernel
def reads_pass(flow: Flow, control: RecordArray, timing: RecordArray, die: int) -> bool:
    """True if a read comes next: of work that waits, those come first that were ready when the die first had the choice."""
    queue, server = flow.queues[tables.reads_of(flow, die)], flow.servers[die]
    if queue.head < 0 or not work_waits(flow, control, timing, die):
        return queue.head >= 0
    if server.last_read == 0:
        server.last_read = queue.tail + 1
    return server.last_read != ALL_PASSED


@lean_kernel
def start_all(flow: Flow, flash: Flash, times: Timings, die: int, now: int) -> None:
    """Start all that is ready on a boundless die, in order."""
    for queue in (tables.reads_of(flow, die), die):
        while flow.queues[queue].head >= 0 and is_ready(flow.operations, flash.control, flow.queues[queue].head):
            start(flow, flash, times, die, queue, now)


@inlined_kernel
def look_for_work(flow: Flow, flash: Flash, times: Timings, die: int, now: int) -> None:
    """Start what comes next: reads that overtake, then what they interrupted, then the first of the others if it is ready.

    While a page that was read leaves through the cache register, only reads start; while one is programmed, the next may come there.
    """
    control, server, head = flash.control, flow.servers[die], flow.queues[die].head
    if server.boundless:
        start_all(flow, flash, times, die, now)
        return
    if server.busy != 0:
        if flow.queues[tables.reads_of(flow, die)].head >= 0:
            ask_to_stop(flow, flash, times, die, now)
        elif times.timing.cache_program and may_fill_cache(flow, control, die):
            row = take_work(flow, control, times, die)
            server.cached = row + 1
            ask_channel(flow, control, times, row, now)
        return
    reads = reads_pass(flow, control, times.timing, die)
    if server.cached != 0 and not reads and (head < 0 or flow.operations[head].kind not in (READ_PAGE, FETCH_PAGE)):
        return
    if reads:
        start(flow, flash, times, die, tables.reads_of(flow, die), now)
        return
    server.last_read = 0
    if server.suspended != 0:
        go_on(flow, flash, times, die, now)
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
