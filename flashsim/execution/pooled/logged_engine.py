"""A log of records beside the compiled system of pools: the counterpart of `flashsim.execution.pooled.logged`, behind one address.

The system calls it where something is changed, written or completed; a system without a log neither calls nor compiles it.
"""

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR, WRITE, Integers
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import pause
from flashsim.execution.pooled import log_events, log_kernels, pages, tables
from flashsim.execution.pooled.log_tables import SLACK, LogTables
from flashsim.execution.pooled.requests import counts_of, send, take_slot
from flashsim.execution.pooled.tables import LOG_PART, Tables
from flashsim.storage.extension import manager
from flashsim.storage.extension.state import CHECKPOINT, FLIGHT, FRAME, NEWER, STATUS
from flashsim.storage.log import records

#: Stages of a checkpoint: what it does next.
_BEGIN, _PAGES, _PASS, _END, _BOOT = range(5)


@lean_kernel
def write_frame(system: Tables, outbox: Integers, page: int, frame: int) -> None:
    """Write a page to the SSD, not before the records of its changes and whatever is hardened first."""
    log = system.log
    scalars, row = log.scalars, log.pages[page]
    slot = take_slot(system, tables.WRITTEN_OUT, page, 1, tables.SSD_FRAME)
    need = log.needs[slot]
    row.to_frame, row.to_version = frame + 1, row.last
    need.frame, need.version, need.sector = frame, row.last, frame // log.scalars.in_a_sector
    need.lsn = log_kernels.want(system, outbox, int(row.last))
    if scalars.at_once:
        need.lsn = max(need.lsn, log_kernels.want(system, outbox, int(log.frames[frame].freed)))
    need.write = log.frames[frame].write
    if log.frames[frame].state != records.FREE or log.frames[frame].is_double:
        log.frames[frame].is_double = 0
        lsn, write = log_kernels.free(system, outbox, int(scalars.replaced), records.SSD_PRE_WRITE_INVALIDATE, frame)
        need.lsn, need.write = max(need.lsn, lsn), max(need.write, write)
    log_kernels.after(system, outbox, -slot - 1)


@lean_kernel
def take_versions(system: Tables, slot: int) -> None:
    """Take the versions that a write brings to disk: memory's, or for a cleaner the SSD's."""
    log = system.log
    first, is_cleaner = system.slots[slot].page, system.slots[slot].who >= 0
    for number in range(system.slots[slot].count):
        page = first + number
        log.pages[page].imaged = 0
        log.versions[slot, number] = log.frames[system.ext.pages[page, FRAME] - 1].version if is_cleaner else log.pages[page].last


@lean_kernel
def write_disk(system: Tables, outbox: Integers, slot: int) -> None:
    log = system.log
    need, newest = log.needs[slot], 0
    for number in range(system.slots[slot].count):
        newest = max(newest, log.versions[slot, number])
    need.lsn, need.write = log_kernels.want(system, outbox, newest), 0
    log_kernels.after(system, outbox, -slot - 1)


@lean_kernel
def complete(system: Tables, outbox: Integers, slot: int) -> None:
    """A request has completed: what it wrote is durable."""
    log, scalars = system.log, system.log.scalars
    who, page, held = system.slots[slot].who, system.slots[slot].page, system.slots[slot].held
    if held == tables.SSD_FRAME:
        need = log.needs[slot]
        log.frames[need.frame].holds, log.frames[need.frame].version = page, need.version
    elif held == tables.DISK_PAGES:
        for number in range(system.slots[slot].count):
            log_kernels.note_on_disk(system, page + number, log.versions[slot, number])
    elif who == tables.THE_LOG:
        scalars.end, scalars.behind = scalars.behind, 0
        log_kernels.check(system, outbox)
        if scalars.wanted >= scalars.end and scalars.behind == 0:
            log_kernels.write_records(system, outbox)
    elif who == tables.TABLE_SECTOR:
        log_kernels.end_sector_write(system, outbox, page)
    elif who == tables.TABLE_CHUNK:
        log_kernels.end_chunk_write(system, outbox)


@lean_kernel
def end_writes_out(system: Tables, outbox: Integers, page: int, count: int) -> None:
    """A copy of a page counts as valid when it is on the SSD, and on disk as well if it had to be."""
    log = system.log
    for each in range(page, page + count):
        row = log.pages[each]
        if row.to_frame == 0 or system.ext.pages[each, FLIGHT] > 0:
            continue
        frame = row.to_frame - 1
        row.to_frame = 0
        if manager.frame_of(system.ext, each) == frame and log.frames[frame].state == records.FREE:
            is_newer = system.ext.pages[each, STATUS] & NEWER
            if row.entry:  # in another frame that it had before
                log_kernels.free(system, outbox, int(log.scalars.replaced), records.SSD_PRE_WRITE_INVALIDATE, int(row.entry) - 1)
            log_kernels.set_entry(log, frame, records.DIRTY if is_newer else records.CLEAN, each, row.to_version)
            log_kernels.harden(system, outbox, int(log.scalars.written), records.SSD_POST_WRITE, frame)


@lean_kernel
def clean(system: Tables, outbox: Integers, page: int) -> None:
    """The disk got what was newer on the SSD."""
    log = system.log
    frame = manager.frame_of(system.ext, page)
    if frame >= 0 and log.frames[frame].state == records.DIRTY:
        log.frames[frame].state = records.CLEAN
        log_kernels.harden(system, outbox, int(log.scalars.cleaned), records.SSD_LAZY_CLEANED, frame)


@lean_kernel
def modify(system: Tables, outbox: Integers, page: int) -> None:
    """A page of memory is about to be changed by the next record: a frame that has it is freed."""
    log = system.log
    pages.modify(system, page)
    row = log.pages[page]
    if manager.frame_of(system.ext, page) < 0 and row.entry:
        frame = int(row.entry) - 1
        log.frames[frame].freed = log.scalars.appended + 1
        row.lsn, _ = log_kernels.free(system, outbox, int(log.scalars.modified), records.SSD_PRE_WRITE_INVALIDATE, frame)


@lean_kernel
def note_change(log: LogTables, page: int, lsn: int) -> None:
    """The last record changed a page, and has an image of the page if none has since the page's last write to disk began."""
    row = log.pages[page]
    if row.imaged == 0:
        log.scalars.bytes += log.scalars.images
        row.imaged = 1
    row.last = lsn
    if row.dirty == 0:
        row.dirty = lsn
    log_kernels.enqueue(log, page)


@lean_kernel
def wait_until_durable(system: Tables, who: int) -> int:
    """Let a client or the checkpointer wait until what it needs is durable, if it is not."""
    if log_kernels.is_durable(system, who):
        return log_events.GO_ON
    log_kernels.line_up(system, who)
    return log_events.WAIT


@lean_kernel
def change(system: Tables, outbox: Integers, client: int, page: int) -> int:
    """An update of the client's row; the client waits until a changed entry of the frame table is hardened."""
    log = system.log
    mine, scalars = log.transactions[client], log.scalars
    if mine.transaction == 0:
        scalars.began += 1
        mine.transaction = scalars.began
        mine.first = mine.last = log_kernels.append(system, records.BEGIN, int(scalars.began), 0, 0, 0, 0, 0)
    modify(system, outbox, page)
    mine.last = log_kernels.append(system, records.UPDATE, int(mine.transaction), int(mine.last), page, int(log.pages[page].last), 0, 0)
    note_change(log, page, int(mine.last))
    log.needs[system.slots.shape[0] + client].lsn, mine.page = 0, page
    return wait_until_durable(system, client)


@lean_kernel
def end(system: Tables, outbox: Integers, client: int) -> int:
    """Commit, or undo all updates."""
    log = system.log
    mine = log.transactions[client]
    if mine.transaction == 0:
        return log_events.GO_ON
    if mix_bits(int(mine.transaction)) % 100 < log.scalars.aborts:
        mine.undo = mine.last
        return log_events.UNDO
    lsn = log_kernels.append(system, records.COMMIT, int(mine.transaction), int(mine.last), 0, 0, 0, 0)
    mine.transaction = 0
    log.needs[system.slots.shape[0] + client].lsn, mine.page = log_kernels.want(system, outbox, lsn), 0
    return wait_until_durable(system, client)


@lean_kernel
def undo_page(system: Tables, client: int) -> int:
    """The page of the update that a transaction undoes next; 0 if none is left, and the transaction has ended."""
    log = system.log
    mine = log.transactions[client]
    record = log.records[mine.undo - log.scalars.first]
    if record.kind == records.UPDATE:
        return int(record.page)
    log_kernels.append(system, records.ABORT, int(mine.transaction), int(mine.last), 0, 0, 0, 0)
    mine.transaction = 0
    counts_of(system).aborted += 1
    return 0


@lean_kernel
def compensate(system: Tables, outbox: Integers, client: int, page: int) -> None:
    log = system.log
    mine = log.transactions[client]
    following = log.records[mine.undo - log.scalars.first].chain
    modify(system, outbox, page)
    before = int(log.pages[page].last)
    mine.last = log_kernels.append(system, records.COMPENSATION, int(mine.transaction), int(following), page, before, 0, 0)
    mine.undo = following
    note_change(log, page, int(mine.last))


@lean_kernel
def wait(system: Tables, outbox: Integers, lsn: int) -> int:
    """Let the checkpointer wait for a record, or for a pass of the flusher, if it must."""
    log = system.log
    log.scalars.lsn = log_kernels.want(system, outbox, lsn)
    return wait_until_durable(system, int(system.scalars.checkpointer))


@inlined_kernel
def is_to_end(log: LogTables) -> bool:
    return log.scalars.last == log_kernels.WANTED and log.scalars.left == log.transactions.shape[0]


@lean_kernel
def checkpoint(system: Tables, outbox: Integers, has_written: int) -> int:
    """Go on with a checkpoint (Do, 2012, figure 4.3): `GO_ON` when it is over, `WRITE_PAGES` while its pages are written."""
    log, scalars = system.log, system.log.scalars
    if scalars.stage == _BEGIN:
        if is_to_end(log):
            scalars.last = log_kernels.LAST_CHECKPOINT
        scalars.stage, scalars.next_begin = _PAGES, log_kernels.append(system, records.BEGIN_CHECKPOINT, 0, 0, 0, 0, 0, 0)
        system.scalars.checkpoint_row = 0
        if wait(system, outbox, int(scalars.next_begin)):
            return log_events.WAIT
    if scalars.stage == _PAGES:
        if not has_written and (scalars.last == log_kernels.LAST_CHECKPOINT or not scalars.indirect):
            if system.scalars.checkpoint_row == 0:
                system.scalars.checkpoint_row = FIRST_PAGE
                system.ext.numbers[CHECKPOINT] = not system.scalars.fuzzy
            return log_events.WRITE_PAGES
        scalars.stage = _PASS
        if scalars.flushes:
            scalars.awaited = scalars.passes + (2 if scalars.flushed or scalars.last == log_kernels.LAST_CHECKPOINT else 1)
        if wait(system, outbox, 0):
            return log_events.WAIT
    if scalars.stage == _PASS:
        if scalars.logs_table:
            log_kernels.append_all(system)
        scalars.next_transaction = log_kernels.append_active(system)
        oldest = scalars.appended + 1
        for page in range(FIRST_PAGE, log.pages.shape[0]):
            if log.pages[page].dirty:
                oldest = min(oldest, log.pages[page].dirty)
        scalars.next_dirty, scalars.stage = oldest, _END
        if wait(system, outbox, log_kernels.append(system, records.END_CHECKPOINT, 0, 0, 0, 0, 0, 0)):
            return log_events.WAIT
    if scalars.stage == _END:
        scalars.stage = _BOOT
        if system.scalars.log_device >= 0:
            slot = take_slot(system, tables.BOOT_PAGE, 0, 0, tables.NOTHING)
            send(system, outbox, slot, int(system.scalars.log_device), WRITE, 0, SECTOR)
            return log_events.WAIT
    scalars.stage = _BEGIN
    scalars.boot_begin, scalars.boot_dirty, scalars.boot_transaction = scalars.next_begin, scalars.next_dirty, scalars.next_transaction
    scalars.kept = max(scalars.kept, min(scalars.boot_begin, scalars.boot_dirty, scalars.boot_transaction))
    if scalars.last == log_kernels.LAST_CHECKPOINT:
        scalars.boot_last, scalars.last = 1, log_kernels.DOWN
        system.scalars.checkpoint = NEVER - system.scalars.now
    elif is_to_end(log):
        system.scalars.checkpoint = 0
    return log_events.GO_ON


@lean_kernel
def leave(system: Tables) -> None:
    """A client runs no more transactions; the last one's leaving begins a shutdown's checkpoint, if none is being taken."""
    log = system.log
    log.scalars.left += 1
    if is_to_end(log) and log.scalars.stage == _BEGIN:
        system.scalars.checkpoint_at = system.scalars.now
        system.causes[system.scalars.checkpointer] = system.scalars.cause


@lean_kernel
def write_in_background(system: Tables, outbox: Integers, is_over: int) -> None:
    """Write the page of memory that has been dirty longest, or say when to look again."""
    scalars = system.scalars
    page = 0 if is_over else log_kernels.oldest_page(system)
    if page:
        scalars.writer_at = NEVER
        pages.flush_page(system, outbox, page)
        pages.write_to_disk(system, outbox, page, 1, tables.BACKGROUND)
    else:
        scalars.writer_at, system.causes[scalars.writer] = scalars.now + system.log.scalars.indirect, scalars.cause


@lean_kernel
def pass_time(system: Tables, outbox: Integers, is_over: int) -> None:
    """Let the flusher or the background writer go on; `is_over`: the latter's write is."""
    scalars = system.scalars
    if not is_over and scalars.flusher_at <= scalars.now:
        scalars.flusher_at = NEVER
        scalars.cause = system.causes[scalars.flusher]
        log_kernels.flush(system, outbox)
        return
    if not is_over:
        scalars.cause = system.causes[scalars.writer]
    write_in_background(system, outbox, is_over)


@kernel_of(LOG_PART, seconds=3)
def log_part(system: Tables, outbox: Integers, event: int, first: int, second: int) -> int:
    """The log's part in what happens (`flashsim.execution.pooled.log_events`)."""
    log, scalars, least = system.log, system.log.scalars, SLACK + system.log.frames.shape[0]
    if log.records.shape[0] - (scalars.appended + 1 - scalars.first) < least or log.payload.shape[0] - scalars.payload < least:
        pause(outbox)  # to have room made for the records of any one event
    if event == log_events.CHANGE:
        return change(system, outbox, first, second)
    if event == log_events.END:
        return end(system, outbox, first)
    if event == log_events.UNDO_PAGE:
        return undo_page(system, first)
    if event == log_events.CHECKPOINT:
        return checkpoint(system, outbox, first)
    if event == log_events.WRITE_FRAME:
        write_frame(system, outbox, first, second)
    elif event == log_events.TAKE_VERSIONS:
        take_versions(system, first)
    elif event == log_events.WRITE_DISK:
        write_disk(system, outbox, first)
    elif event == log_events.COMPLETION:
        complete(system, outbox, first)
    elif event == log_events.END_WRITES_OUT:
        end_writes_out(system, outbox, first, second)
    elif event == log_events.CLEANED:
        clean(system, outbox, first)
    elif event == log_events.SERVED:
        log_kernels.enqueue(system.log, first)
    elif event == log_events.LEFT:
        leave(system)
    elif event == log_events.COMPENSATE:
        compensate(system, outbox, first, second)
    else:
        pass_time(system, outbox, first)
    return log_events.GO_ON
