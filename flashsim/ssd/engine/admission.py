"""A command enters the drive: the translation layer plans it page by page, and its operations take their places in the dies' queues.

Short commands that go on where the last one of their operation ended are quicker on a controller with a few KiB of memory.  It reads ahead:
a short read finds its pages in the controller, since they came out of their dies while those before crossed the link.  They are counted as
flash reads, but the time that dies and channels spend on reading ahead is left out.  It writes behind: a short write of whole flash pages
is acknowledged when they have crossed the link, if the controller can hold them beside those that it still holds; a page leaves it over the
channel, to be programmed.  Until it is programmed a power cut loses it, unless a flush was completed; forced unit access prevents that.
Either command takes `continuation_latency` and its transfer.  Any other takes what it takes on a drive without this.

What a command goes on from is the one admitted last, whether that has ended or not, so this is the same at any queue depth.
"""

from flashsim.core.hints import prefetch
from flashsim.core.host import Host, next_command, next_queue, take_command
from flashsim.core.kernel import inlined_kernel, kernel_of
from flashsim.core.policies import Policies
from flashsim.core.records import RecordArray
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, INTERNAL, READ, SECTOR, TRIM, WRITE
from flashsim.core.spans import HOST
from flashsim.ssd.engine import buffering, dies, tables, waiting
from flashsim.ssd.engine.tables import STEP, Flow, Timings
from flashsim.ssd.ftl.base import translate_of
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import MEMORY_PAGE, PROGRAM_PAGE, READ_PAGE, ZERO_PAGE, lookup
from flashsim.ssd.state.geometry import block_of, pool_of_block
from flashsim.ssd.state.pools import choose_stream, collector_of, next_write_id
from flashsim.ssd.state.write_buffer import begin_batch, enter_buffer, find_entry, is_whole, needs_medium, sector_mask

# How many commands ahead of its admission memory is asked for a page's place in the map, what a write finds there, and the block's peers.
_MAP_AHEAD, _PAGE_AHEAD, _PEERS_AHEAD = 12, 7, 3

# Why the engine stopped.
DONE, TABLE_FULL, POLICY_FAILED, LOG_FULL = 0, -1, -2, -3


@inlined_kernel
def goes_on(engine: RecordArray, flash: Flash, times: Timings, operation: int, offset: int, length: int, through: bool) -> bool:
    """Note and count a command that goes on from the last one of its operation; returns True if the command does."""
    if times.timing.continuation_latency == 0 or length == 0 or operation not in (READ, WRITE):
        return False
    last = engine.read_end if operation == READ else engine.write_end
    follows = last == offset and length <= times.timing.continuation_limit
    if operation == READ:
        engine.read_end = offset + length
    else:
        engine.write_end = offset + length
        size = flash.control.page_sectors * SECTOR
        whole = flash.buffer.coalescing != 0 or (offset % size == 0 and length % size == 0)
        follows = follows and whole and not through and engine.pages_behind + length // size <= times.timing.continuation_pages
    times.counters.continued[operation] += follows
    return follows


@inlined_kernel
def admit_page(flow: Flow, flash: Flash, times: Timings, policies: Policies, command: int, operation: int, page: int, sectors: int) -> bool:
    """Plan one page of a command that the write buffer has no part in; False if a policy broke its contract.

    The page that a command which goes on reads needs no die; the one that it programs is acknowledged before that.
    """
    rows = translate_of(policies)(operation, page, 0 if sectors == flash.control.page_sectors else 1, flash, policies)
    continues = flow.operations[command].continues
    if rows < 0 or flash.control.broken:
        return False
    for at in range(rows if continues else 0):
        if flash.plan[at].kind == READ_PAGE:
            flash.plan[at].kind = ZERO_PAGE
            times.counters.reads[flash.plan[at].cause] += 1
    waiting.add_operations(flow, flash, times.timing, rows, command, sectors)
    for at in range(rows if continues else 0):
        if flash.plan[at].kind == PROGRAM_PAGE:
            flow.operations[flash.plan[at].needs].is_behind = 1
            flow.engine.destaging += 1
            flow.engine.pages_behind += 1
    return True


@inlined_kernel
def takes(flash: Flash, sectors: int) -> bool:
    """True if the write buffer takes a write of so many sectors of a page."""
    return flash.buffer.coalescing == 0 or sectors != flash.control.page_sectors


@inlined_kernel
def admit_buffered(
    flow: Flow, flash: Flash, times: Timings, policies: Policies, command: int, operation: int, page: int, first: int, sectors: int
) -> bool:
    """Plan one page of a command on a drive with a write buffer, from sector `first` of the page on; False if a policy broke its contract.

    A write through the buffer is acknowledged when it is programmed; `admit` lets its pages leave.
    """
    entry, mask, planned = find_entry(flash, page), sector_mask(first, sectors), True
    through = flow.operations[command].through != 0
    coalescing = flash.buffer.coalescing != 0
    if operation == WRITE and takes(flash, sectors):
        times.counters.buffer_overwrites += entry >= 0
        is_new = entry < 0
        entry = enter_buffer(flash, entry, page, mask)
        buffering.fill_entry(flow, flash.entries, command, entry, sectors, is_new, not through)
        complete = coalescing and is_whole(flash, entry)
        if not through and (complete or flash.buffer.waiting > flash.buffer.threshold):
            planned = buffering.destage_group(flow, flash, policies, times.timing, command, page, 1 if complete else 0, False)
            flow.engine.batch_leaves = begin_batch(flash.buffer)
        return planned
    if entry >= 0 and operation == READ and mask & ~flash.entries[entry].sector_mask == 0:
        times.counters.buffer_read_hits += 1
        buffering.add_transfer(flow, flash.entries, ZERO_PAGE, command, entry, sectors, True)
        return True
    if entry >= 0 and operation == READ:
        planned = buffering.destage_group(flow, flash, policies, times.timing, command, page, 1, False)
    elif entry >= 0:
        buffering.drop_entry(flow, flash, command, entry)
    return planned and admit_page(flow, flash, times, policies, command, operation, page, sectors)


@inlined_kernel
def pages_of(flash: Flash, offset: int, length: int) -> int:
    """Mapping units of which a command moves some bytes."""
    size = flash.control.page_sectors * SECTOR
    return (offset + length + size - 1) // size - offset // size


@inlined_kernel
def admit(flow: Flow, flash: Flash, times: Timings, policies: Policies, command: int, operation: int, offset: int, length: int) -> bool:
    """Plan the pages of a command, in order; False if a policy broke its contract.  Only whole flash pages are trimmed."""
    size, gathered = flash.control.page_sectors * SECTOR, 0
    for page in range(offset // size, (offset + length + size - 1) // size):
        first = max(offset - page * size, 0) // SECTOR
        sectors = (min(offset + length - page * size, size)) // SECTOR - first
        if operation == WRITE and flash.control.read_only:
            flash.control.refused += 1
            break
        if operation == TRIM and sectors < flash.control.page_sectors:
            continue
        if flash.buffer.places > 0:
            planned = admit_buffered(flow, flash, times, policies, command, operation, page, first, sectors)
            gathered += operation == WRITE and flow.operations[command].through != 0 and takes(flash, sectors)
            is_last = (page + 1) * size >= offset + length
            if gathered > 0 and (gathered == flash.control.group or is_last or flash.buffer.waiting > flash.buffer.threshold):
                planned = planned and buffering.destage_group(flow, flash, policies, times.timing, command, page, gathered, True)
                gathered = 0
        else:
            planned = admit_page(flow, flash, times, policies, command, operation, page, sectors)
        if not planned:
            return False
        if operation == TRIM:
            flash.trimmed[page] = next_write_id(flash.control)
    return True


@inlined_kernel
def admit_inside(flow: Flow, flash: Flash, times: Timings, command: int, operation: int, flags: int, length: int) -> bool:
    """Count a command of a program inside, or plan one for the drive's memory: then the result is True, and no flash is concerned."""
    if flags & INTERNAL != 0:
        flow.operations[command].internal = 1
        times.counters.internal_commands[operation] += 1
        times.counters.internal_bytes[operation] += length
        return False
    times.counters.memory_bytes[operation] += length
    left = length // SECTOR
    while left > 0:
        row = tables.take_row(flow, ZERO_PAGE if operation == READ else MEMORY_PAGE)
        flow.operations[row].logical = -1
        flow.operations[row].cause = HOST
        flow.operations[row].sectors = min(left, flash.control.page_sectors)
        tables.add_part(flow.operations, command, row, True)
        left -= flash.control.page_sectors
    return True


@inlined_kernel
def empty_command(flow: Flow) -> int:
    """A row for a command without operations."""
    row = tables.take_row(flow, tables.COMMAND_KIND)
    command = flow.operations[row]
    command.pending = command.flush_mark = command.on_its_way = command.continues = command.internal = command.sectors = 0
    command.first_part = -1
    return row


@inlined_kernel
def take_command_row(host: Host, flow: Flow, queue: int, timing: RecordArray, operation: int) -> int:
    """A row for the next command of a submission queue."""
    row = empty_command(flow)
    command = flow.operations[row]
    command.request = host.queues[queue].head
    flow.engine.folds_on = 0
    command.host_command = take_command(host, queue)
    command.overhead = timing.read_overhead if operation == READ else timing.write_overhead
    return row


@inlined_kernel
def enter_controller(flow: Flow, control: RecordArray, command: int, now: int) -> None:
    if tables.acquire(flow, control.dies + control.channels + 1, command, now):
        dies.schedule(flow, command, tables.WAITING, now + flow.operations[command].overhead)


@inlined_kernel
def admit_flush(flow: Flow, flash: Flash, policies: Policies, timing: RecordArray, now: int) -> int:
    """Plan to write all that the buffer holds; the flush waits for all pages on their way to flash, and for the controller.

    Or plan to write the rest of a batch that leaves with a command.  Returns DONE, or why it stopped short.
    """
    command, batch = flow.engine.flushing, flow.engine.batch_leaves != 0
    most = flash.buffer.threshold + 1 - flash.buffer.batch if batch else 0
    while flash.buffer.waiting > most:
        if flow.engine.live + flash.control.plan_rows > flow.operations.shape[0]:
            return TABLE_FULL
        if not buffering.destage_group(flow, flash, policies, timing, command, -1, 0, False):
            return POLICY_FAILED
    flow.engine.flushing, flow.engine.batch_leaves = -1, 0
    if not batch:
        flow.operations[command].flush_mark = flow.engine.next_id
        flow.operations[command].pending = flow.engine.destaging + 1
        tables.enqueue(flow, tables.FLUSHES, command, tables.IN_DIE)
    enter_controller(flow, flash.control, command, now)
    return DONE


@kernel_of(STEP, seconds=4)
def dispatch(host: Host, flow: Flow, flash: Flash, times: Timings, policies: Policies) -> int:
    """Admit waiting commands, the submission queues in turn, while those have room; DONE, or why it stopped short."""
    while True:
        if flow.engine.flushing >= 0:
            status = admit_flush(flow, flash, policies, times.timing, host.scalars.now)
            if status != DONE:
                return int(status)
            continue
        queue = next_queue(host)
        if queue < 0:
            return DONE
        row = next_command(host, queue) - host.scalars.command_base
        operation, offset, length = host.commands[row].operation, host.commands[row].offset, host.commands[row].length
        if flow.engine.live + rows_needed(flash, operation, length) > flow.operations.shape[0]:
            return TABLE_FULL
        look_ahead(host, flow, flash, row)
        command = take_command_row(host, flow, queue, times.timing, operation)
        choose_stream(flash.control, queue)
        flags = host.commands[row].request_flags
        if operation == WRITE and flash.control.read_only:
            flash.control.refused += 1
            length = 0
        elif flags <= FORCE_UNIT_ACCESS:
            times.counters.commands[operation] += 1
            times.counters.bytes[operation] += length
        through = needs_medium(flash.buffer, operation, flags)
        if operation == FLUSH and through:
            flow.engine.flushing = command
            continue
        flow.operations[command].through = through
        if flags > FORCE_UNIT_ACCESS:
            if admit_inside(flow, flash, times, command, operation, flags, length):
                length = 0
        elif goes_on(flow.engine, flash, times, operation, offset, length, through):
            flow.operations[command].continues = 1
            flow.operations[command].overhead = times.timing.continuation_latency
        if operation == FLUSH:
            length = 0
        if length > 0 and not admit(flow, flash, times, policies, command, operation, offset, length):
            return POLICY_FAILED
        if flash.buffer.unit_time > 0 and operation == WRITE and length > 0 and not through:
            flow.operations[command].sectors = pages_of(flash, offset, length)
        if flow.engine.batch_leaves:
            flow.engine.flushing = command
        else:
            enter_controller(flow, flash.control, command, host.scalars.now)


@inlined_kernel
def look_ahead(host: Host, flow: Flow, flash: Flash, row: int) -> None:
    """Ask memory for what the commands after a row of the host's table will touch at random: the map, then what it leads to."""
    size, last = flash.control.page_sectors * SECTOR, host.scalars.command_rows - 1
    prefetch(flash.mapping, host.commands[min(row + _MAP_AHEAD, last)].offset // size)
    for ahead in (_PAGE_AHEAD, _PEERS_AHEAD):
        coming = host.commands[min(row + ahead, last)]
        if coming.operation != WRITE or coming.request_flags > FORCE_UNIT_ACCESS:
            continue
        flash_page = max(0, lookup(flash.mapping, coming.offset // size))
        block = block_of(flash.control, flash_page)
        if ahead == _PAGE_AHEAD:
            prefetch(flash.pages, flash_page)
            prefetch(flash.blocks, block)
            prefetch(flow.gates, block)
        else:
            of_block = flash.blocks[block]
            collector = collector_of(flash.control, pool_of_block(flash.control, block))
            for peer in (of_block.peer_after, of_block.peer_before, flash.by_valid[collector, max(0, of_block.valid - 1)]):
                prefetch(flash.blocks, peer)


@inlined_kernel
def rows_needed(flash: Flash, operation: int, length: int) -> int:
    """The most rows of the operation table that a command can take; a flush asks for them as it goes."""
    if operation == FLUSH:
        return 1
    pages = length // (flash.control.page_sectors * SECTOR) + 2
    plans = operation == WRITE or flash.control.map_pages > 0 or flash.buffer.places > 0
    return pages * (flash.control.plan_rows + 1 if plans else 1) + 1
