"""The log and the frame table compiled: records, what waits until they are durable, and how changes of entries are hardened.

The counterpart of `flashsim.execution.pooled.log_writer` and `flashsim.execution.pooled.frame_table`.
"""

from flashsim.core.host import heap_pop, heap_push
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS
from flashsim.core.request import SECTOR, WRITE, Integers
from flashsim.core.state_table import State
from flashsim.execution.pooled import log_tables as of
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.logging_design import HURRY, LOG_BLOCK
from flashsim.execution.pooled.requests import get_ready, note, send, take_slot
from flashsim.storage.extension import state as ssd
from flashsim.storage.log import records as kinds
from flashsim.storage.log.recovery import IN_LOG, IN_LOG_AT_ONCE, IN_TABLE

#: How far a shutdown is: wanted, in its last checkpoint, over.
WANTED, LAST_CHECKPOINT, DOWN = range(1, 4)


@inlined_kernel
def append(
    sys: at.Tables, log: of.LogTables, kind: int, transaction: int, chain: int, page: int, previous: int, lsn: int, frame: int
) -> int:
    """Add a record to the end of the log in memory; returns its number."""
    scalars = log.scalars
    place = scalars.appended + 1 - scalars.first
    if place >= log.records.shape[0]:
        sys.numbers[at.BROKEN] = at.TOO_MANY_RECORDS
        return int(scalars.appended)
    record = log.records[place]
    record.kind, record.transaction, record.chain, record.page, record.previous = kind, transaction, chain, page, previous
    record.lsn, record.frame, record.state, record.bytes = lsn, frame, kinds.FREE, scalars.bytes
    scalars.bytes += kinds.RECORD_BYTES
    scalars.appended += 1
    return int(scalars.appended)


@inlined_kernel
def add_payload(sys: at.Tables, log: of.LogTables, length: int, first: int, second: int, third: int, fourth: int) -> None:
    """Let a row belong to the last record."""
    scalars = log.scalars
    scalars.bytes += length
    if length == kinds.ENTRY_BYTES and second == kinds.FREE:
        return
    if scalars.payload >= log.payload.shape[0]:
        sys.numbers[at.BROKEN] = at.TOO_MANY_RECORDS
        return
    row = log.payload[scalars.payload]
    row[0], row[1], row[2], row[3], row[4] = scalars.appended, first, second, third, fourth
    scalars.payload += 1


@lean_kernel
def want(state: State, outbox: Integers, lsn: int) -> int:
    """Have a record made durable, if it is not; returns its number."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    if lsn >= scalars.end:
        scalars.wanted = max(scalars.wanted, lsn)
        if sys.numbers[at.LOG_NUMBER] < 0:
            scalars.end = scalars.appended + 1
        elif scalars.behind == 0:
            write_records(state, outbox)
    return lsn


@lean_kernel
def write_records(state: State, outbox: Integers) -> None:
    """Write records that are not durable, as many as fit in a block."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    begin, behind, ends = log.records[scalars.end - scalars.first].bytes, scalars.end, 0
    while behind <= scalars.appended:
        following = log.records[behind + 1 - scalars.first].bytes if behind < scalars.appended else scalars.bytes
        if behind > scalars.end and following - begin > LOG_BLOCK:
            break
        behind, ends = behind + 1, following
    scalars.behind = behind
    place = take_place(log, int(scalars.end), int(behind), int(ends))
    length = min(scalars.place - place, scalars.ring)  # where the log is too small, the run is refused at its end
    note(sys, counted.LOG_WRITES)
    slot = take_slot(sys, at.THE_LOG, 0, 0, at.NOTHING)
    send(state, outbox, slot, int(sys.numbers[at.LOG_NUMBER]), WRITE, int(SECTOR + place % scalars.ring), int(length))


@lean_kernel
def take_place(log: of.LogTables, first: int, behind: int, ends: int) -> int:
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
def is_page_hardened(log: of.LogTables, page: int) -> bool:
    """True if it is hardened that a page left its former frames."""
    return log.pages[page].lsn < log.scalars.end and log.pages[page].leaves == 0


@lean_kernel
def is_durable(state: State, who: int) -> bool:
    """True if what a slot (-1 and less) or whoever waits needs is durable."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    if who < 0:
        slot = -who - 1
        need = log.needs[slot]
        if need.lsn >= scalars.end or (need.write > 0 and log.sectors[need.sector].ended < need.write):
            return False
        if sys.slots[slot, at.HELD] == at.DISK_PAGES:
            for page in range(sys.slots[slot, at.PAGE], sys.slots[slot, at.PAGE] + sys.slots[slot, at.COUNT]):
                if not is_page_hardened(log, page):
                    return False
        return True
    if who < sys.numbers[at.CLIENTS]:
        need = log.needs[sys.slots.shape[0] + who]
        return need.lsn < scalars.end and is_page_hardened(log, log.transactions[who].page)
    return scalars.lsn < scalars.end and scalars.passes >= scalars.awaited


@lean_kernel
def begin(state: State, outbox: Integers, who: int) -> None:
    """Let go on who need not wait any longer, or send a slot's request."""
    sys, log = of.tables_of(state)
    if who >= 0:
        get_ready(sys, who)
        return
    slot = -who - 1
    size, page, count = sys.numbers[at.PAGE_SIZE], sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT]
    if sys.slots[slot, at.HELD] == at.DISK_PAGES:
        send(state, outbox, slot, int(sys.numbers[at.DISK_NUMBER]), WRITE, int((page - FIRST_PAGE) * size), int(count * size))
    else:
        sys.numbers[at.SSD_PENDING] += 1
        send(state, outbox, slot, int(sys.numbers[at.SSD_NUMBER]), WRITE, int(log.needs[slot].frame * size), int(size))


@lean_kernel
def after(state: State, outbox: Integers, who: int) -> None:
    """Send a slot's request once what it needs is durable."""
    if is_durable(state, who):
        begin(state, outbox, who)
    else:
        line_up(state, who)


@lean_kernel
def line_up(state: State, who: int) -> None:
    """Let a slot's request, or whoever goes on, wait until what it needs is durable."""
    log = of.tables_of(state)[1]
    log.waiting[log.scalars.waiting] = who
    log.scalars.waiting += 1


@lean_kernel
def check(state: State, outbox: Integers) -> None:
    """Begin what need not wait any longer, after something became durable."""
    log = of.tables_of(state)[1]
    scalars, left = log.scalars, 0
    for place in range(scalars.waiting):
        who = log.waiting[place]
        if is_durable(state, who):
            begin(state, outbox, who)
        else:
            log.waiting[left] = who
            left += 1
    scalars.waiting = left


@inlined_kernel
def set_entry(log: of.LogTables, frame: int, entry_state: int, page: int, lsn: int) -> None:
    """Change a frame's entry."""
    row = log.frames[frame]
    if row.state != kinds.FREE and log.pages[row.page].entry == frame + 1:
        log.pages[row.page].entry = 0
    row.state, row.page, row.lsn = entry_state, page, lsn
    if entry_state != kinds.FREE:
        log.pages[page].entry = frame + 1


@lean_kernel
def harden(state: State, outbox: Integers, how: int, kind: int, frame: int) -> tuple[int, int]:
    """Harden a change of an entry; returns the record and the write of its sector that whoever waits for it needs, 0 for none."""
    sys, log = of.tables_of(state)
    row = log.frames[frame]
    if how == IN_TABLE:
        sector = log.sectors[frame // log.scalars.in_a_sector]
        sector.wanted = sector.begun + 1
        if sector.begun == sector.ended:
            write_sector(state, outbox, frame // log.scalars.in_a_sector)
        row.write = sector.wanted
        return 0, int(row.write)
    if how in (IN_LOG, IN_LOG_AT_ONCE):
        lsn = append(sys, log, kind, 0, 0, 0, 0, 0, frame)
        if kind == kinds.SSD_POST_WRITE:
            add_payload(sys, log, kinds.ENTRY_BYTES, frame, int(row.state), int(row.page), int(row.lsn))
        if how == IN_LOG_AT_ONCE:
            return want(state, outbox, lsn), 0
    return 0, 0


@lean_kernel
def free(state: State, outbox: Integers, how: int, kind: int, frame: int) -> tuple[int, int]:
    """Free a frame, and harden that; see `harden`."""
    log = of.tables_of(state)[1]
    row, page = log.frames[frame], int(log.frames[frame].page)
    set_entry(log, frame, kinds.FREE, 0, 0)
    lsn, write = harden(state, outbox, how, kind, frame)
    if lsn:
        row.freed = lsn
    if write:
        row.left, row.left_write = page, write
        log.pages[page].leaves += 1
    return lsn, write


@lean_kernel
def write_sector(state: State, outbox: Integers, number: int) -> None:
    """Write the entries of a sector to the table's file."""
    log = of.tables_of(state)[1]
    log.sectors[number].begun += 1
    log.sectors[number].left = log.scalars.flush_writes
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        row.sent_state, row.sent_page, row.sent_lsn = row.state, row.page, row.lsn
    write_table(state, outbox, at.TABLE_SECTOR, number, 1)


@inlined_kernel
def write_table(state: State, outbox: Integers, who: int, first: int, sectors: int) -> None:
    sys, log = of.tables_of(state)
    note(sys, counted.TABLE_WRITES)
    sys.numbers[at.SSD_PENDING] += 1
    slot = take_slot(sys, who, first, sectors, at.NOTHING)
    send(state, outbox, slot, int(sys.numbers[at.SSD_NUMBER]), WRITE, int(log.scalars.table_place + first * SECTOR), int(sectors * SECTOR))


@lean_kernel
def sector_written(state: State, outbox: Integers, number: int) -> None:
    log = of.tables_of(state)[1]
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        row.file_state, row.file_page, row.file_lsn, row.file_hardened = row.sent_state, row.sent_page, row.sent_lsn, 0
    sector = log.sectors[number]
    sector.left -= 1
    if sector.left:
        write_table(state, outbox, at.TABLE_SECTOR, number, 1)
        return
    sector.ended += 1
    for frame in range(number * log.scalars.in_a_sector, min(log.frames.shape[0], (number + 1) * log.scalars.in_a_sector)):
        row = log.frames[frame]
        if row.left and row.left_write <= sector.ended:
            log.pages[row.left].leaves -= 1
            row.left = 0
    check(state, outbox)
    if sector.wanted > sector.begun and sector.begun == sector.ended:
        write_sector(state, outbox, number)


@lean_kernel
def flush(state: State, outbox: Integers) -> None:
    """Write the next chunk of the frame table but for frames that are being read or written (Do, 2012, figure 4.6)."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    first = scalars.flushed * scalars.chunk
    behind = min(scalars.frames, first + scalars.chunk)
    scalars.hardened = scalars.end - 1
    for frame in range(first, behind):
        page, row, brings = sys.ext.frames[frame, ssd.PAGE], log.frames[frame], log.chunk[frame - first]
        is_in_use = scalars.last < LAST_CHECKPOINT and page > 0 and sys.ext.pages[page, ssd.STATUS] >> ssd.HOLD_SHIFT > 0
        brings.state, brings.page, brings.lsn, brings.freed = row.state, row.page, row.lsn, 0 if is_in_use else frame + 1
    begins = first // log.scalars.in_a_sector
    write_table(state, outbox, at.TABLE_CHUNK, int(begins), int(-(-behind // log.scalars.in_a_sector) - begins))


@lean_kernel
def chunk_written(state: State, outbox: Integers) -> None:
    sys, log = of.tables_of(state)
    scalars, numbers = log.scalars, sys.numbers
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
        check(state, outbox)
    pause = scalars.pause // (HURRY if scalars.awaited > scalars.passes else 1)
    numbers[at.FLUSHER_AT] = numbers[at.NOW] + max(1, pause)
    sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS] + 1] = numbers[at.CAUSE]


@lean_kernel
def append_all(state: State) -> None:
    """Append records of all entries to the log."""
    sys, log = of.tables_of(state)
    for first in range(0, log.scalars.frames, log.scalars.chunk):
        append(sys, log, kinds.SSD_CHECKPOINT, 0, 0, 0, 0, 0, first)
        for frame in range(first, min(log.scalars.frames, first + log.scalars.chunk)):
            row = log.frames[frame]
            add_payload(sys, log, kinds.ENTRY_BYTES, frame, int(row.state), int(row.page), int(row.lsn))


@lean_kernel
def append_active(state: State) -> int:
    """Append the record of transactions that run; returns the first record of them, or the end of the log without it."""
    sys, log = of.tables_of(state)
    append(sys, log, kinds.TRANSACTIONS, 0, 0, 0, 0, 0, 0)
    oldest = log.scalars.appended + 1
    for client in range(log.transactions.shape[0]):
        mine = log.transactions[client]
        if mine.transaction:
            add_payload(sys, log, kinds.ACTIVE_BYTES, int(mine.transaction), int(mine.first), int(mine.last), 0)
            oldest = min(oldest, mine.first)
    return int(oldest)


@lean_kernel
def enqueue(log: of.LogTables, page: int) -> None:
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
def oldest_page(state: State) -> int:
    """The page of memory that has been dirty longest, 0 for none."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    while scalars.queued:
        lsn, page = log.oldest[0, 0], log.oldest[0, 1]
        row = log.pages[page]
        if row.queued == lsn and row.dirty == lsn and sys.memory.pages[page, FLAGS] & DIRTY:
            return int(page)
        if row.queued == lsn:
            row.queued = 0
        scalars.queued = heap_pop(log.oldest, scalars.queued)
    return 0


@lean_kernel
def reached_disk(state: State, page: int, version: int) -> None:
    """The disk has a version of a page; with others that is logged."""
    sys, log = of.tables_of(state)
    scalars, row = log.scalars, log.pages[page]
    row.disk = version
    if row.dirty and row.dirty <= version:
        lsn, first = row.last, 0
        while lsn > version:
            first, lsn = lsn, log.records[lsn - scalars.first].previous
        row.dirty = first
        enqueue(log, page)
    log.on_disk[scalars.on_disk, 0], log.on_disk[scalars.on_disk, 1] = page, version
    scalars.on_disk += 1
    if scalars.on_disk == scalars.batch:
        for place in range(scalars.batch):
            append(sys, log, kinds.BUF_WRITE, 0, 0, log.on_disk[place, 0], 0, log.on_disk[place, 1], 0)
        scalars.on_disk = 0
