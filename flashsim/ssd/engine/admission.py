"""A command enters the drive: the translation layer plans it page by page, and its operations take their places in the dies' queues."""

from flashsim.core.host import HOST_TABLES, Host, next_command, next_queue, take_command
from flashsim.core.kernel import compiled_apart, inlined_kernel
from flashsim.core.policies import Policies
from flashsim.core.records import VECTOR, RecordArray
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE
from flashsim.ssd.engine.buffering import await_destaging, destage, drop_entry, fill_entry, read_entry
from flashsim.ssd.engine.continuation import goes_on, read_ahead, write_behind
from flashsim.ssd.engine.dies import schedule
from flashsim.ssd.engine.flow import FLOW, TIMES, Flow, Times
from flashsim.ssd.engine.operations import COMMAND_KIND, WAITING, acquire, take_row
from flashsim.ssd.engine.queueing import add_operations
from flashsim.ssd.ftl.base import translate_of
from flashsim.ssd.state.flash import FLASH, Flash
from flashsim.ssd.state.pools import next_write_id
from flashsim.ssd.state.write_buffer import enter_buffer, find_entry, sector_mask

# Why the engine stopped.
DONE, TABLE_FULL, POLICY_FAILED, LOG_FULL = 0, -1, -2, -3


@inlined_kernel
def count_command(counters: RecordArray, operation: int, length: int) -> None:
    if operation == READ:
        counters.host_reads += 1
        counters.host_read_bytes += length
    elif operation == WRITE:
        counters.host_writes += 1
        counters.host_write_bytes += length
    elif operation == TRIM:
        counters.host_trims += 1
    else:
        counters.host_flushes += 1


@inlined_kernel
def admit_page(
    flow: Flow,
    flash: Flash,
    times: Times,
    policies: Policies,
    command: int,
    request: int,
    operation: int,
    page: int,
    sectors: int,
    continues: bool,
) -> bool:
    """Plan one page of a command that the write buffer has no part in; False if a policy broke its contract."""
    partial = 0 if sectors == flash.control.page_sectors else 1
    rows = translate_of(policies)(operation, page, partial, flash, policies)
    if rows < 0 or flash.control.broken:
        return False
    if continues and operation == READ:
        read_ahead(flash.plan, rows, times.counters)
    add_operations(flow, flash, times.timing, rows, command, request, sectors)
    if continues and operation == WRITE:
        write_behind(flow, flash.plan, rows)
    return True


@inlined_kernel
def admit_buffered(
    flow: Flow,
    flash: Flash,
    times: Times,
    policies: Policies,
    command: int,
    request: int,
    operation: int,
    page: int,
    first: int,
    sectors: int,
    through: bool,
) -> bool:
    """Plan one page of a command on a drive with a write buffer, from sector `first` of the page on; False if a policy broke its contract.

    A write `through` the buffer is acknowledged when it is programmed.
    """
    entry, done = find_entry(flash, page), True
    if operation == WRITE:
        times.counters.buffer_overwrites += entry >= 0
        is_new = entry < 0
        entry = enter_buffer(flash, entry, page, sector_mask(first, sectors))
        fill_entry(flow, flash.entries, command, request, entry, sectors, is_new, not through)
        leaving = entry if through else flash.buffer.oldest
        if through or flash.buffer.waiting > flash.buffer.threshold:
            done = destage(flow, flash, policies, times.timing, command, request, leaving, through)
        return done
    if entry >= 0 and operation == READ and sector_mask(first, sectors) & ~flash.entries[entry].sector_mask == 0:
        times.counters.buffer_read_hits += 1
        read_entry(flow, flash.entries, command, request, entry, sectors)
        return True
    if entry >= 0 and operation == READ:
        done = destage(flow, flash, policies, times.timing, command, request, entry, False)
    elif entry >= 0:
        drop_entry(flow, flash, command, request, entry)
    return done and admit_page(flow, flash, times, policies, command, request, operation, page, sectors, False)


@inlined_kernel
def admit(
    flow: Flow,
    flash: Flash,
    times: Times,
    policies: Policies,
    command: int,
    request: int,
    operation: int,
    offset: int,
    length: int,
    through: bool,
    continues: bool,
) -> bool:
    """Plan the pages of a command, in order; False if a policy broke its contract.  Only whole flash pages are trimmed."""
    size = flash.control.page_sectors * SECTOR
    end = offset + length
    page = offset // size
    while page * size < end:
        first = max(offset, page * size)
        sectors = (min(end, (page + 1) * size) - first) // SECTOR
        if operation == WRITE and flash.control.read_only:
            flash.control.refused += 1
            break
        if operation == TRIM and sectors < flash.control.page_sectors:
            page += 1
            continue
        if flash.buffer.places > 0:
            done = admit_buffered(
                flow, flash, times, policies, command, request, operation, page, (first - page * size) // SECTOR, sectors, through
            )
        else:
            done = admit_page(flow, flash, times, policies, command, request, operation, page, sectors, continues)
        if not done:
            return False
        if operation == TRIM:
            flash.trimmed[page] = next_write_id(flash.control)
        page += 1
    return True


@inlined_kernel
def take_command_row(host: Host, flow: Flow, queue: int, timing: RecordArray, operation: int) -> int:
    """A row for the next command of a submission queue."""
    command = take_row(flow, COMMAND_KIND)
    flow.operations[command].request = host.queues[queue].head
    flow.operations[command].left = 0
    flow.operations[command].first_part = -1
    flow.operations[command].flush_mark = flow.operations[command].on_its_way = 0
    flow.operations[command].host_command = take_command(host, queue)
    flow.operations[command].overhead = timing.read_overhead if operation == READ else timing.write_overhead
    return command


@inlined_kernel
def enter_controller(flow: Flow, control: RecordArray, command: int, now: int) -> None:
    if acquire(flow, control.dies + control.channels + 1, command, now):
        schedule(flow, command, WAITING, now + flow.operations[command].overhead)


@inlined_kernel
def admit_flush(flow: Flow, flash: Flash, policies: Policies, timing: RecordArray, now: int) -> int:
    """Plan to write all that the buffer holds, and let the flush wait for it; DONE, or why it stopped short."""
    command = flow.engine.flushing
    while flash.buffer.waiting > 0:
        if flow.engine.live + flash.control.plan_rows > flow.operations.shape[0]:
            return TABLE_FULL
        if not destage(flow, flash, policies, timing, command, flow.operations[command].request, flash.buffer.oldest, False):
            return POLICY_FAILED
    flow.engine.flushing = -1
    await_destaging(flow, command)
    enter_controller(flow, flash.control, command, now)
    return DONE


@compiled_apart(HOST_TABLES, FLOW, FLASH, TIMES, VECTOR)
@inlined_kernel
def dispatch(host: Host, flow: Flow, flash: Flash, times: Times, policies: Policies) -> int:
    """Admit waiting commands, the submission queues in turn, while those have room; DONE, or why it stopped short."""
    while True:
        if flow.engine.flushing >= 0:
            status = admit_flush(flow, flash, policies, times.timing, host.scalars.now)
            if status != DONE:
                return status
            continue
        queue = next_queue(host)
        if queue < 0:
            return DONE
        request = host.queues[queue].head
        row = next_command(host, queue) - host.scalars.command_base
        operation, offset, length = host.commands[row].operation, host.commands[row].offset, host.commands[row].length
        if flow.engine.live + rows_needed(flash, operation, length) > flow.operations.shape[0]:
            return TABLE_FULL
        command = take_command_row(host, flow, queue, times.timing, operation)
        if operation == WRITE and flash.control.read_only:
            flash.control.refused += 1
            length = 0
        else:
            count_command(times.counters, operation, length)
        if operation == FLUSH and (flash.buffer.places > 0 or times.timing.continuation > 0) and not times.timing.power_protected:
            flow.engine.flushing = command
            continue
        forced = host.commands[row].request_flags & FORCE_UNIT_ACCESS != 0
        through = flash.buffer.write_through != 0 or forced
        continues = goes_on(flow.engine, flash.control, times, operation, offset, length, forced)
        if continues:
            flow.operations[command].overhead = times.timing.continuation
        if (
            operation != FLUSH
            and length > 0
            and not admit(flow, flash, times, policies, command, request, operation, offset, length, through, continues)
        ):
            return POLICY_FAILED
        enter_controller(flow, flash.control, command, host.scalars.now)


@inlined_kernel
def rows_needed(flash: Flash, operation: int, length: int) -> int:
    """The most rows of the operation table that a command can take; a flush asks for them as it goes."""
    touched = length // (flash.control.page_sectors * SECTOR) + 2
    if operation == WRITE or (operation != FLUSH and (flash.control.map_pages > 0 or flash.buffer.places > 0)):
        return touched * (flash.control.plan_rows + 1) + 1
    return (touched if operation != FLUSH else 0) + 1
