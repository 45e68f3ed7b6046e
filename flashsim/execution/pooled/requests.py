"""Requests to devices, the log of bytes, counters, lines of clients that wait, and who goes on without delay."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import READ, SECTOR, WRITE, Integers
from flashsim.execution.compiled_loop import issue
from flashsim.execution.pooled.tables import NOTHING, THE_LOG, Tables, log_part_at
from flashsim.storage.extension.state import INVALID, NEWER_FRAMES, USED


@inlined_kernel
def counts_of(system: Tables) -> RecordArray:
    """The counters of the present interval."""
    return system.series[system.scalars.interval_now]


@inlined_kernel
def begin_interval(system: Tables, now: int) -> None:
    """Begin the interval in which it is now; the last one goes on for ever."""
    scalars = system.scalars
    while now >= scalars.interval_ends and scalars.interval_now < system.series.shape[0] - 1:
        counts, frames = system.series[scalars.interval_now], system.ext.numbers
        counts.ssd_used, counts.ssd_newer, counts.ssd_invalid = frames[USED], frames[NEWER_FRAMES], frames[INVALID]
        scalars.interval_now += 1
        scalars.interval_ends += scalars.interval


@inlined_kernel
def get_ready(system: Tables, who: int) -> None:
    scalars = system.scalars
    system.causes[who] = scalars.cause
    system.ready[scalars.ready_last % system.ready.shape[0]] = who
    scalars.ready_last += 1


@inlined_kernel
def line_up(system: Tables, first: int, last: int, client: int) -> int:
    """Let a client, who is its last one from now on, join a line with these ends, 1 more than their numbers; returns the first one."""
    system.clients[client].next_waiting = 0
    if last == 0:
        return client + 1
    system.clients[last - 1].next_waiting = client + 1
    return first


@inlined_kernel
def wake_line(system: Tables, first: int) -> None:
    """Let all in a line go on, from the first one on, given as one more than its number."""
    client = int(first) - 1
    while client >= 0:
        get_ready(system, client)
        client = int(system.clients[client].next_waiting) - 1


@inlined_kernel
def take_slot(system: Tables, who: int, page: int, count: int, hold: int) -> int:
    """Enter a request, or a write that is deferred; returns its slot."""
    number = system.scalars.free_slot
    slot = system.slots[number]
    system.scalars.free_slot = slot.following
    slot.who, slot.page, slot.count, slot.held = who, page, count, hold
    return int(number)


@inlined_kernel
def send(system: Tables, outbox: Integers, slot: int, device: int, operation: int, offset: int, length: int) -> None:
    """Send a request that has been entered."""
    scalars = system.scalars
    number, is_work = scalars.issued, device == scalars.cpu_device
    system.slots[slot].cause = scalars.cause if is_work else number
    place = number - scalars.kept_first
    if place < system.requests.shape[0]:
        row = system.requests[place]
        row.time, row.device_number, row.operation, row.offset, row.length = scalars.now, device, operation, offset, length
        row.cause, row.completed, row.who = scalars.cause, scalars.now if is_work else -1, system.slots[slot].who
    scalars.issued = number + 1
    if device == scalars.ssd_device:
        scalars.ssd_pending += 1
    issue(outbox, device, operation, offset, length, slot)


@lean_kernel
def write_pages(system: Tables, outbox: Integers, slot: int) -> None:
    """Send a slot's write of pages to the disk."""
    size, write = system.scalars.page_size, system.slots[slot]
    send(system, outbox, slot, int(system.scalars.disk_device), WRITE, int((write.page - FIRST_PAGE) * size), int(write.count * size))


@lean_kernel
def write_frame(system: Tables, outbox: Integers, slot: int, frame: int) -> None:
    """Send a slot's write of a page to a frame of the SSD."""
    size = system.scalars.page_size
    send(system, outbox, slot, int(system.scalars.ssd_device), WRITE, int(frame * size), int(size))


@lean_kernel
def tell_log(system: Tables, outbox: Integers, event: int, first: int, second: int) -> int:
    """Let the log of records and the restart design take note; a function of its own, since most systems have none."""
    return log_part_at(system.log_part[0])(system, outbox, event, first, second)


@lean_kernel
def read_pages(system: Tables, outbox: Integers, device: int, first: int, count: int, who: int, page: int) -> None:
    """Read pages from a place of the disk or the SSD on, for a client or a cleaner that waits for a page."""
    size = system.scalars.page_size
    send(system, outbox, take_slot(system, who, page, 1, NOTHING), device, READ, first * size, count * size)


@inlined_kernel
def chunk_of(system: Tables, page: int) -> tuple[int, int]:
    """The pages that one request may hold with a page: the first, and the one behind the last."""
    chunk = system.scalars.chunk
    begin = (page - FIRST_PAGE) // chunk * chunk + FIRST_PAGE
    return begin, min(begin + chunk, system.ext.pages.shape[0])


@lean_kernel
def write_log(system: Tables, outbox: Integers) -> None:
    """Write what has been committed, all together."""
    scalars = system.scalars
    length = -(-scalars.commit_bytes // SECTOR) * SECTOR
    scalars.writing_first, scalars.is_log_writing = scalars.commit_first, 1
    scalars.commit_first = scalars.commit_last = scalars.commit_bytes = 0
    if scalars.log_end + length > scalars.log_room:
        scalars.log_end = 0
    counts_of(system).log_writes += 1
    send(system, outbox, take_slot(system, THE_LOG, 0, 0, NOTHING), int(scalars.log_device), WRITE, int(scalars.log_end), length)
    scalars.log_end += length


@lean_kernel
def commit(system: Tables, outbox: Integers, client: int, length: int) -> None:
    """A client commits: so many bytes of log are to be written."""
    scalars = system.scalars
    scalars.commit_first = line_up(system, scalars.commit_first, scalars.commit_last, client)
    scalars.commit_last = client + 1
    scalars.commit_bytes += length
    if not scalars.is_log_writing:
        write_log(system, outbox)


@lean_kernel
def end_commits(system: Tables, outbox: Integers) -> None:
    """The log has been written, and those whose commits it held go on."""
    scalars = system.scalars
    wake_line(system, scalars.writing_first)
    scalars.writing_first = scalars.is_log_writing = 0
    if scalars.commit_first:
        write_log(system, outbox)
