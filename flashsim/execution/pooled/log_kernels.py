"""The log and the frame table compiled: records, what waits until they are durable, and how changes of entries are hardened.

The counterpart of `flashsim.execution.pooled.log_writer` and `flashsim.execution.pooled.frame_table`.
"""

from flashsim.core.host import heap_pop, heap_push
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import DIRTY, FLAGS
from flashsim.core.request import SECTOR, WRITE, Integers
from flashsim.execution.pooled.log_tables import LogTables
from flashsim.execution.pooled.logging_design import HURRY, LOG_BLOCK
from flashsim.execution.pooled.requests import counts_of, get_ready, send, take_slot, write_frame, write_pages
from flashsim.execution.pooled.tables import DISK_PAGES, NOTHING, TABLE_CHUNK, TABLE_SECTOR, THE_LOG, TOO_MANY_RECORDS, Tables
from flashsim.storage.extension.state import HOLD_SHIFT, PAGE, STATUS
from flashsim.storage.log import records
from flashsim.storage.log.recovery import IN_LOG, IN_LOG_AT_ONCE, IN_TABLE

#: How far a shutdown is: wanted, in its last checkpoint, over.
WANTED, LAST_CHECKPOINT, DOWN = range(1, 4)


@inlined_kernel
def append(system: Tables, kind: int, transaction: int, chain: int, page: int, previous: int, lsn: int, frame: int) -> int:
    """Add a record to the end of the log in memory; returns its number."""
    log, scalars = system.log, system.log.scalars
    place = scalars.appended + 1 - scalars.first
    if place >= log.records.shape[0]:
        system.scalars.stop_reason = TOO_MANY_RECORDS
        return int(scalars.appended)
    record = log.records[place]
    record.kind, record.transaction, record.chain, record.page, record.previous = kind, transaction, chain, page, previous
    record.lsn, record.frame, record.state, record.bytes = lsn, frame, records.FREE, scalars.bytes
    scalars.bytes += records.RECORD_BYTES
    scalars.appended += 1
    return int(scalars.appended)


@inlined_kernel
def add_payload(system: Tables, length: int, number: int, first: int, second: int, third: int) -> None:
    """Let a row belong to the last record."""
    log, scalars = system.log, system.log.scalars
    scalars.bytes += length
    if length == records.ENTRY_BYTES and first == records.FREE:
        return
    if scalars.payload >= log.payload.shape[0]:
        system.scalars.stop_reason = TOO_MANY_RECORDS
        return
    row = log.payload[scalars.payload]
    row.lsn, row.number, row.first, row.second, row.third = scalars.appended, number, first, second, third
    scalars.payload += 1


@lean_kernel
def want(system: Tables, outbox: Integers, lsn: int) -> int:
    """Have a record made durable, if it is not; returns its number."""
    scalars = system.log.scalars
    if lsn >= scalars.end:
        scalars.wanted = max(scalars.wanted, lsn)
        if system.scalars.log_device < 0:
            scalars.end = scalars.appended + 1
        elif scalars.behind == 0:
            write_records(system, outbox)
    return lsn


@lean_kernel
def write_records(system: Tables, outbox: Integers) -> None:
    """Write records that are not durable, as many as fit in a block."""
    log, scalars = system.log, system.log.scalars
    begin, behind, ends = log.records[scalars.end - scalars.first].bytes, scalars.end, 0
    while behind <= scalars.appended:
        following = log.records[behind + 1 - scalars.first].bytes if behind < scalars.appended else scalars.bytes
        if behind > scalars.end and following - begin > LOG_BLOCK:
            break
        behind, ends = behind + 1, following
    scalars.behind = behind
    place = take_place(log, int(scalars.end), int(behind), int(ends))
    length = min(scalars.place - place, scalars.ring)  # where the log is too small, the run is refused at its end
    counts_of(system).log_writes += 1
    slot = take_slot(system, THE_LOG, 0, 0, NOTHING)
    send(system, outbox, slot, int(system.scalars.log_device), WRITE, int(SECTOR + place % scalars.ring), int(length))


@lean_kernel
def take_place(log: LogTables, first: int, behind: int, ends: int) -> int:
    """Let a write of records, behind whose last one there are so many bytes, take the next sectors of the device; returns its place."""
    scalars = log.scalars
    begin, place = log.records[first - scalars.first].bytes, scalars.place
    length = -(-(ends - begin) // SECTOR) * SECTOR
    if place % scalars.ring + length > scalars.ring:
        place += -place % scalars.ring
    for lsn in range(first, behind):
        row = log.records[lsn - scalars.first]
        row.place = place + row.bytes - begin
    scalars.place = place + length
    oldest = log.records[scalars.kept - scalars.first].place if scalars.kept < behind else place
    scalars.needed = max(scalars.needed, SECTOR + scalars.place - oldest // SECTOR * SECTOR)
    return int(place)


@inlined_kernel
def is_page_hardened(log: LogTables, page: int) -> bool:
    """True if it is hardened that a page left its former frames."""
    return log.pages[page].lsn < log.scalars.end and log.pages[page].leaves == 0


@lean_kernel
def is_durable(system: Tables, who: int) -> bool:
    """True if what a slot (-1 and less) or whoever waits needs is durable."""
    log, scalars = system.log, system.log.scalars
    if who < 0:
        slot = -who - 1
        need = log.needs[slot]
        if need.lsn >= scalars.end or (need.write > 0 and log.sectors[need.sector].ended < need.write):
            return False
        if system.slots[slot].held == DISK_PAGES:
            for page in range(system.slots[slot].page, system.slots[slot].page + system.slots[slot].count):
                if not is_page_hardened(log, page):
                    return False
        return True
    if who < system.scalars.clients:
        need = log.needs[system.slots.shape[0] + who]
        return need.lsn < scalars.end and is_page_hardened(log, log.transactions[who].page)
    return scalars.lsn < scalars.end and scalars.passes >= scalars.awaited


@lean_kernel
def begin(system: Tables, outbox: Integers, who: int) -> None:
    """Let go on who need not wait any longer, or send a slot's request."""
    slot = -who - 1
    if who >= 0:
        get_ready(system, who)
    elif system.slots[slot].held == DISK_PAGES:
        write_pages(system, outbox, slot)
    else:
        write_frame(system, outbox, slot, int(system.log.needs[slot].frame))


@lean_kernel
def after(system: Tables, outbox: Integers, who: int) -> None:
    """Send a slot's request once what it needs is durable."""
    if is_durable(system, who):
        begin(system, outbox, who)
    else:
        line_up(system, who)


@lean_kernel
def line_up(system: Tables, who: int) -> None:
    """Let a slot's request, or whoever goes on, wait until what it needs is durable."""
    log = system.log
    log.waiting[log.scalars.waiting] = who
    log.scalars.waiting += 1


@lean_kernel
def check(system: Tables, outbox: Integers) -> None:
    """Begin what need not wait any longer, after something became durable."""
    log = system.log
    scalars, left = log.scalars, 0
    for place in range(scalars.waiting):
        who = log.waiting[place]
        if is_durable(system, who):
            begin(system, outbox, who)
        else:
            log.waiting[left] = who
            left += 1
    scalars.waiting = left


@inlined_kernel
def set_entry(log: LogTables, frame: int, entry_state: int, page: int, lsn: int) -> None:
    """Change a frame's entry."""
    row = log.frames[frame]
    if row.state != records.FREE and log.pages[row.page].entry == frame + 1:
        log.pages[row.page].entry = 0
    row.state, row.page, row.lsn = entry_state, page, lsn
    if entry_state != records.FREE:
        log.pages[page].entry = frame + 1


@lean_kernel
def harden(system: Tables, outbox: Integers, how: int, kind: int, frame: int) -> tuple[int, int]:
    """Harden a change of an entry; returns the record and the write of its sector that whoever waits for it needs, 0 for none."""
    log = system.log
    row = log.frames[frame]
    if how == IN_TABLE:
        sector = log.sectors[frame // log.scalars.in_a_sector]
        sector.wanted = sector.begun + 1
        if sector.begun == sector.ended:
            write_sector(system, outbox, frame // log.scalars.in_a_sector)
        row.write = sector.wanted
        return 0, int(row.write)
    if how in (IN_LOG, IN_LOG_AT_ONCE):
        lsn = append(system, kind, 0, 0, 0, 0, 0, frame)
        if kind == records.SSD_POST_WRITE:
            add_payload(system, records.ENTRY_BYTES, frame, int(row.state), int(row.page), int(row.lsn))
        if how == IN_LOG_AT_ONCE:
            return want(system, outbox, lsn), 0
    return 0, 0


@lean_kernel
def free(system: Tables, outbox: Integers, how: int, kind: int, frame: int) -> tuple[int, int]:
    """Free a frame, and harden that; see `harden`."""
    log = system.log
    row, page = log.frames[frame], int(log.frames[frame].page)
    set_entry(log, frame, records.FREE, 0, 0)
    lsn, write = harden(system, outbox, how, kind, frame)
    if lsn:
        row.freed = lsn
    if write:
        row.left, row.left_write = page, write
        log.pages[page].leaves += 1
    return lsn, write


@lean_kernel
def write_sector(system: Tables, outbox: Integers, number: int) -> None:
    """Write the entries of a sector to the table's file."""
    log = system.log
    log.sectors[number].begun += 1
    log.sectors[number].left = log.scalars.flush_writes
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        row.sent_state, row.sent_page, row.sent_lsn = row.state, row.page, row.lsn
    write_table(system, outbox, TABLE_SECTOR, number, 1)


@inlined_kernel
def write_table(system: Tables, outbox: Integers, who: int, first: int, sectors: int) -> None:
    log = system.log
    counts_of(system).table_writes += 1
    slot = take_slot(system, who, first, sectors, NOTHING)
    send(system, outbox, slot, int(system.scalars.ssd_device), WRITE, int(log.scalars.table_place + first * SECTOR), int(sectors * SECTOR))


@lean_kernel
def end_sector_write(system: Tables, outbox: Integers, number: int) -> None:
    log = system.log
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        row.file_state, row.file_page, row.file_lsn, row.file_hardened = row.sent_state, row.sent_page, row.sent_lsn, 0
    sector = log.sectors[number]
    sector.left -= 1
    if sector.left:
        write_table(system, outbox, TABLE_SECTOR, number, 1)
        return
    sector.ended += 1
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        if row.left and row.left_write <= sector.ended:
            log.pages[row.left].leaves -= 1
            row.left = 0
    check(system, outbox)
    if sector.wanted > sector.begun and sector.begun == sector.ended:
        write_sector(system, outbox, number)


@lean_kernel
def flush(system: Tables, outbox: Integers) -> None:
    """Write the next chunk of the frame table but for frames that are being read or written (Do, 2012, figure 4.6)."""
    log, scalars = system.log, system.log.scalars
    first = scalars.flushed * scalars.chunk
    behind = min(scalars.frames, first + scalars.chunk)
    scalars.hardened = scalars.end - 1
    for frame in range(first, behind):
        page, row, brings = system.ext.frames[frame, PAGE], log.frames[frame], log.chunk[frame - first]
        is_in_use = scalars.last < LAST_CHECKPOINT and page > 0 and system.ext.pages[page, STATUS] >> HOLD_SHIFT > 0
        brings.state, brings.page, brings.lsn, brings.freed = row.state, row.page, row.lsn, 0 if is_in_use else frame + 1
    begins = first // log.scalars.in_a_sector
    write_table(system, outbox, TABLE_CHUNK, int(begins), int(-(-behind // log.scalars.in_a_sector) - begins))


@lean_kernel
def end_chunk_write(system: Tables, outbox: Integers) -> None:
    log, scalars = system.log, system.log.scalars
    first = scalars.flushed * scalars.chunk
    for place in range(min(scalars.frames, first + scalars.chunk) - first):
        brings = log.chunk[place]
        if brings.freed:
            row = log.frames[brings.freed - 1]
            row.file_state, row.file_page, row.file_lsn, row.file_hardened = brings.state, brings.page, brings.lsn, scalars.hardened
    scalars.flushed += 1
    if scalars.flushed * scalars.chunk >= scalars.frames:
        scalars.flushed = 0
        scalars.passes += 1
        check(system, outbox)
    pause = scalars.pause // (HURRY if scalars.awaited > scalars.passes else 1)
    system.scalars.flusher_at = system.scalars.now + max(1, pause)
    system.causes[system.scalars.flusher] = system.scalars.cause


@lean_kernel
def append_all(system: Tables) -> None:
    """Append records of all entries to the log."""
    log = system.log
    for first in range(0, log.scalars.frames, log.scalars.chunk):
        append(system, records.SSD_CHECKPOINT, 0, 0, 0, 0, 0, first)
        for frame in range(first, min(log.scalars.frames, first + log.scalars.chunk)):
            row = log.frames[frame]
            add_payload(system, records.ENTRY_BYTES, frame, int(row.state), int(row.page), int(row.lsn))


@lean_kernel
def append_active(system: Tables) -> int:
    """Append the record of transactions that run; returns the first record of them, or the end of the log without it."""
    log = system.log
    append(system, records.TRANSACTIONS, 0, 0, 0, 0, 0, 0)
    oldest = log.scalars.appended + 1
    for client in range(log.transactions.shape[0]):
        mine = log.transactions[client]
        if mine.transaction:
            add_payload(system, records.ACTIVE_BYTES, int(mine.transaction), int(mine.first), int(mine.last), 0)
            oldest = min(oldest, mine.first)
    return int(oldest)


@lean_kernel
def enqueue(log: LogTables, page: int) -> None:
    """Let the background writer know the first record of a page that the disk lacks."""
    scalars, row = log.scalars, log.pages[page]
    if scalars.indirect == 0 or row.dirty == 0 or row.queued == row.dirty:
        return
    if scalars.queued == log.oldest.shape[0]:  # keep what still says something: at most one entry a page
        size = scalars.queued
        scalars.queued = 0
        for place in range(size):
            lsn, each = log.oldest[place, 0], log.oldest[place, 1]
            if log.pages[each].queued == lsn:
                scalars.queued = heap_push(log.oldest, scalars.queued, lsn, each)
    row.queued = row.dirty
    scalars.queued = heap_push(log.oldest, scalars.queued, row.dirty, page)


@lean_kernel
def oldest_page(system: Tables) -> int:
    """The page of memory that has been dirty longest, 0 for none."""
    log, scalars = system.log, system.log.scalars
    while scalars.queued:
        lsn, page = log.oldest[0, 0], log.oldest[0, 1]
        row = log.pages[page]
        if row.queued == lsn and row.dirty == lsn and system.memory.pages[page, FLAGS] & DIRTY:
            return int(page)
        if row.queued == lsn:
            row.queued = 0
        scalars.queued = heap_pop(log.oldest, scalars.queued)
    return 0


@lean_kernel
def note_on_disk(system: Tables, page: int, version: int) -> None:
    """The disk has a version of a page; with others that is logged."""
    log = system.log
    scalars, row = log.scalars, log.pages[page]
    row.disk = version
    if row.dirty and row.dirty <= version:
        lsn, first = row.last, 0
        while lsn > version:
            first, lsn = lsn, log.records[lsn - scalars.first].previous
        row.dirty = first
        enqueue(log, page)
    log.on_disk[scalars.on_disk].page, log.on_disk[scalars.on_disk].version = page, version
    scalars.on_disk += 1
    if scalars.on_disk == scalars.batch:
        for place in range(scalars.batch):
            append(system, records.BUF_WRITE, 0, 0, log.on_disk[place].page, 0, log.on_disk[place].version, 0)
        scalars.on_disk = 0
