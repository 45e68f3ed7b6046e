"""A log of records beside the compiled system of pools: the counterpart of `flashsim.execution.pooled.logged`, behind one address.

The system calls it where something is changed, written or completed; a system without a log neither calls nor compiles it.
"""

from flashsim.core.draws import mixed
from flashsim.core.kernel import inlined_kernel, kernel_of, lean_kernel
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS
from flashsim.core.request import SECTOR, WRITE, Integers
from flashsim.core.state_table import State
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT, pause
from flashsim.execution.pooled import log_tables as of
from flashsim.execution.pooled import pages as moves
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.log_kernels import (
    DOWN,
    LAST_CHECKPOINT,
    WANTED,
    after,
    append,
    append_active,
    append_all,
    check,
    chunk_written,
    enqueue,
    flush,
    free,
    harden,
    is_durable,
    line_up,
    oldest_page,
    reached_disk,
    sector_written,
    set_entry,
    want,
    write_records,
)  # fmt: skip
from flashsim.execution.pooled.requests import note, send, take_slot
from flashsim.storage.extension import state as ssd
from flashsim.storage.extension.design import CHECKPOINTED, TO_SSD
from flashsim.storage.extension.manager import frame_of, when_evicted
from flashsim.storage.log import records as kinds

#: Stages of a checkpoint: what it does next.
_BEGIN, _PAGES, _PASS, _END, _BOOT = range(5)


@lean_kernel
def write_frame(state: State, outbox: Integers, page: int, frame: int) -> None:
    """Write a page to the SSD, not before the records of its changes and whatever is hardened first."""
    sys, log = of.tables_of(state)
    scalars, row = log.scalars, log.pages[page]
    slot = take_slot(sys, at.WRITTEN_OUT, page, 1, at.SSD_FRAME)
    need = log.needs[slot]
    row.to_frame, row.to_version = frame + 1, row.last
    need.frame, need.version, need.sector = frame, row.last, frame // log.scalars.in_a_sector
    need.lsn = want(state, outbox, int(row.last))
    if scalars.at_once:
        need.lsn = max(need.lsn, want(state, outbox, int(log.frames[frame].freed)))
    need.write = log.frames[frame].write
    if log.frames[frame].state != kinds.FREE or log.frames[frame].is_double:
        log.frames[frame].is_double = 0
        lsn, write = free(state, outbox, int(scalars.replaced), kinds.SSD_PRE_WRITE_INVALIDATE, frame)
        need.lsn, need.write = max(need.lsn, lsn), max(need.write, write)
    after(state, outbox, -slot - 1)


@lean_kernel
def put(state: State, slot: int) -> None:
    """Take the versions that a write brings to disk: memory's, or for a cleaner the SSD's."""
    sys, log = of.tables_of(state)
    first, is_cleaner = sys.slots[slot, at.PAGE], sys.slots[slot, at.WHO] >= 0
    for number in range(sys.slots[slot, at.COUNT]):
        page = first + number
        log.pages[page].imaged = 0
        log.versions[slot, number] = log.frames[sys.ext.pages[page, ssd.FRAME] - 1].version if is_cleaner else log.pages[page].last


@lean_kernel
def write_disk(state: State, outbox: Integers, slot: int) -> None:
    log = of.tables_of(state)[1]
    need, newest = log.needs[slot], 0
    for number in range(of.tables_of(state)[0].slots[slot, at.COUNT]):
        newest = max(newest, log.versions[slot, number])
    need.lsn, need.write = want(state, outbox, newest), 0
    after(state, outbox, -slot - 1)


@lean_kernel
def complete(state: State, outbox: Integers, slot: int) -> None:
    """A request has completed: what it wrote is durable."""
    sys, log = of.tables_of(state)
    scalars = log.scalars
    who, page, held = sys.slots[slot, at.WHO], sys.slots[slot, at.PAGE], sys.slots[slot, at.HELD]
    if held == at.SSD_FRAME:
        need = log.needs[slot]
        log.frames[need.frame].holds, log.frames[need.frame].version = page, need.version
    elif held == at.DISK_PAGES:
        for number in range(sys.slots[slot, at.COUNT]):
            reached_disk(state, page + number, log.versions[slot, number])
    elif who == at.THE_LOG:
        scalars.end, scalars.behind = scalars.behind, 0
        check(state, outbox)
        if scalars.wanted >= scalars.end and scalars.behind == 0:
            write_records(state, outbox)
    elif who == at.TABLE_SECTOR:
        sector_written(state, outbox, page)
    elif who == at.TABLE_CHUNK:
        chunk_written(state, outbox)


@lean_kernel
def writes_over(state: State, outbox: Integers, page: int, count: int) -> None:
    """A copy of a page counts as valid when it is on the SSD, and on disk as well if it had to be."""
    sys, log = of.tables_of(state)
    for each in range(page, page + count):
        row = log.pages[each]
        if row.to_frame == 0 or sys.ext.pages[each, ssd.FLIGHT] > 0:
            continue
        frame = row.to_frame - 1
        row.to_frame = 0
        if frame_of(sys.ext, each) == frame and log.frames[frame].state == kinds.FREE:
            is_newer = sys.ext.pages[each, ssd.STATUS] & ssd.NEWER
            if row.entry:  # in another frame that it had before
                free(state, outbox, int(log.scalars.replaced), kinds.SSD_PRE_WRITE_INVALIDATE, int(row.entry) - 1)
            set_entry(log, frame, kinds.DIRTY if is_newer else kinds.CLEAN, each, row.to_version)
            harden(state, outbox, int(log.scalars.written), kinds.SSD_POST_WRITE, frame)


@lean_kernel
def clean(state: State, outbox: Integers, page: int) -> None:
    """The disk got what was newer on the SSD."""
    sys, log = of.tables_of(state)
    frame = frame_of(sys.ext, page)
    if frame >= 0 and log.frames[frame].state == kinds.DIRTY:
        log.frames[frame].state = kinds.CLEAN
        harden(state, outbox, int(log.scalars.cleaned), kinds.SSD_LAZY_CLEANED, frame)


@lean_kernel
def modify(state: State, outbox: Integers, page: int) -> None:
    """A page of memory is about to be changed by the next record: a frame that has it is freed."""
    sys, log = of.tables_of(state)
    moves.modify(sys, page)
    row = log.pages[page]
    if frame_of(sys.ext, page) < 0 and row.entry:
        frame = int(row.entry) - 1
        log.frames[frame].freed = log.scalars.appended + 1
        row.lsn, _ = free(state, outbox, int(log.scalars.modified), kinds.SSD_PRE_WRITE_INVALIDATE, frame)


@lean_kernel
def changed(log: of.LogTables, page: int, lsn: int) -> None:
    """The last record changed a page, and has an image of the page if none has since the page's last write to disk began."""
    row = log.pages[page]
    if row.imaged == 0:
        log.scalars.bytes += log.scalars.images
        row.imaged = 1
    row.last = lsn
    if row.dirty == 0:
        row.dirty = lsn
    enqueue(log, page)


@lean_kernel
def change(state: State, outbox: Integers, client: int, page: int) -> int:
    """An update of the client's row; the client waits until a changed entry of the frame table is hardened."""
    sys, log = of.tables_of(state)
    mine, scalars = log.transactions[client], log.scalars
    if mine.transaction == 0:
        scalars.began += 1
        mine.transaction = scalars.began
        mine.first = mine.last = append(sys, log, kinds.BEGIN, int(scalars.began), 0, 0, 0, 0, 0)
    modify(state, outbox, page)
    mine.last = append(sys, log, kinds.UPDATE, int(mine.transaction), int(mine.last), page, int(log.pages[page].last), 0, 0)
    changed(log, page, int(mine.last))
    log.needs[sys.slots.shape[0] + client].lsn, mine.page = 0, page
    if is_durable(state, client):
        return at.GO_ON
    line_up(state, client)
    return at.WAIT


@lean_kernel
def end(state: State, outbox: Integers, client: int) -> int:
    """Commit, or undo all updates."""
    sys, log = of.tables_of(state)
    mine = log.transactions[client]
    if mine.transaction == 0:
        return at.GO_ON
    if mixed(int(mine.transaction)) % 100 < log.scalars.aborts:
        mine.undo = mine.last
        return at.UNDO
    lsn = append(sys, log, kinds.COMMIT, int(mine.transaction), int(mine.last), 0, 0, 0, 0)
    mine.transaction = 0
    log.needs[sys.slots.shape[0] + client].lsn, mine.page = want(state, outbox, lsn), 0
    if is_durable(state, client):
        return at.GO_ON
    line_up(state, client)
    return at.WAIT


@lean_kernel
def undo_page(state: State, client: int) -> int:
    """The page of the update that a transaction undoes next; 0 if none is left, and the transaction has ended."""
    sys, log = of.tables_of(state)
    mine = log.transactions[client]
    record = log.records[mine.undo - log.scalars.first]
    if record.kind == kinds.UPDATE:
        return int(record.page)
    append(sys, log, kinds.ABORT, int(mine.transaction), int(mine.last), 0, 0, 0, 0)
    mine.transaction = 0
    note(sys, counted.ABORTED)
    return 0


@lean_kernel
def compensate(state: State, outbox: Integers, client: int, page: int) -> None:
    sys, log = of.tables_of(state)
    mine = log.transactions[client]
    following = log.records[mine.undo - log.scalars.first].chain
    modify(state, outbox, page)
    mine.last = append(sys, log, kinds.COMPENSATION, int(mine.transaction), int(following), page, int(log.pages[page].last), 0, 0)
    mine.undo = following
    changed(log, page, int(mine.last))


@lean_kernel
def wait(state: State, outbox: Integers, lsn: int) -> int:
    """Let the checkpointer wait for a record, or for a pass of the flusher, if it must."""
    sys, log = of.tables_of(state)
    log.scalars.lsn = want(state, outbox, lsn)
    who = int(sys.numbers[at.CLIENTS] + sys.numbers[at.CLEANERS])
    if is_durable(state, who):
        return at.GO_ON
    line_up(state, who)
    return at.WAIT


@inlined_kernel
def is_to_end(log: of.LogTables) -> bool:
    return log.scalars.last == WANTED and log.scalars.left == log.transactions.shape[0]


@lean_kernel
def checkpoint(state: State, outbox: Integers, has_written: int) -> int:
    """Go on with a checkpoint (Do, 2012, figure 4.3): `GO_ON` when it is over, `WRITE_PAGES` while its pages are written."""
    sys, log = of.tables_of(state)
    scalars, numbers = log.scalars, sys.numbers
    if scalars.stage == _BEGIN:
        if is_to_end(log):
            scalars.last = LAST_CHECKPOINT
        scalars.stage, scalars.next_begin = _PAGES, append(sys, log, kinds.BEGIN_CHECKPOINT, 0, 0, 0, 0, 0, 0)
        numbers[at.CHECKPOINT_ROW] = 0
        if wait(state, outbox, int(scalars.next_begin)):
            return at.WAIT
    if scalars.stage == _PAGES:
        if not has_written and (scalars.last == LAST_CHECKPOINT or not scalars.indirect):
            if numbers[at.CHECKPOINT_ROW] == 0:
                numbers[at.CHECKPOINT_ROW] = FIRST_PAGE
                sys.ext.numbers[ssd.CHECKPOINT] = not numbers[at.FUZZY]
            return at.WRITE_PAGES
        scalars.stage = _PASS
        if scalars.flushes:
            scalars.awaited = scalars.passes + (2 if scalars.flushed or scalars.last == LAST_CHECKPOINT else 1)
        if wait(state, outbox, 0):
            return at.WAIT
    if scalars.stage == _PASS:
        if scalars.logs_table:
            append_all(state)
        scalars.next_transaction = append_active(state)
        oldest = scalars.appended + 1
        for page in range(FIRST_PAGE, log.pages.shape[0]):
            if log.pages[page].dirty:
                oldest = min(oldest, log.pages[page].dirty)
        scalars.next_dirty, scalars.stage = oldest, _END
        if wait(state, outbox, append(sys, log, kinds.END_CHECKPOINT, 0, 0, 0, 0, 0, 0)):
            return at.WAIT
    if scalars.stage == _END:
        scalars.stage = _BOOT
        if numbers[at.LOG_NUMBER] >= 0:
            slot = take_slot(sys, at.BOOT_PAGE, 0, 0, at.NOTHING)
            send(state, outbox, slot, int(numbers[at.LOG_NUMBER]), WRITE, 0, SECTOR)
            return at.WAIT
    scalars.stage = _BEGIN
    scalars.boot_begin, scalars.boot_dirty, scalars.boot_transaction = scalars.next_begin, scalars.next_dirty, scalars.next_transaction
    scalars.kept = max(scalars.kept, min(scalars.boot_begin, scalars.boot_dirty, scalars.boot_transaction))
    if scalars.last == LAST_CHECKPOINT:
        scalars.boot_last, scalars.last = 1, DOWN
        numbers[at.CHECKPOINT_EVERY] = NEVER - numbers[at.NOW]
    elif is_to_end(log):
        numbers[at.CHECKPOINT_EVERY] = 0
    return at.GO_ON


@lean_kernel
def leave(state: State) -> None:
    """A client runs no more transactions; the last one's leaving begins a shutdown's checkpoint, if none is being taken."""
    sys, log = of.tables_of(state)
    log.scalars.left += 1
    if is_to_end(log) and log.scalars.stage == _BEGIN:
        sys.numbers[at.CHECKPOINTS_AT] = sys.numbers[at.NOW]
        sys.causes[sys.numbers[at.CLIENTS] + sys.numbers[at.CLEANERS]] = sys.numbers[at.CAUSE]


@lean_kernel
def write_in_background(state: State, outbox: Integers, is_over: int) -> None:
    """Write the page of memory that has been dirty longest, or say when to look again."""
    sys, log = of.tables_of(state)
    numbers, me = sys.numbers, sys.numbers[at.CLIENTS] + sys.numbers[at.CLEANERS] + 2
    page = 0 if is_over else oldest_page(state)
    if page:
        numbers[at.WRITER_AT] = NEVER
        sys.memory.pages[page, FLAGS] &= ~DIRTY
        if when_evicted(sys.ext, sys.design, page, moves.flags_of(sys, page, 1) | CHECKPOINTED) & TO_SSD:
            moves.copy_to_ssd(state, outbox, page, 0)
        moves.write_to_disk(state, outbox, page, 1, at.BACKGROUND)
    else:
        numbers[at.WRITER_AT], sys.causes[me] = numbers[at.NOW] + log.scalars.indirect, numbers[at.CAUSE]


@lean_kernel
def pass_time(state: State, outbox: Integers, is_over: int) -> None:
    """Let the flusher or the background writer go on; `is_over`: the latter's write is."""
    sys = of.tables_of(state)[0]
    numbers = sys.numbers
    if not is_over and numbers[at.FLUSHER_AT] <= numbers[at.NOW]:
        numbers[at.FLUSHER_AT] = NEVER
        numbers[at.CAUSE] = sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS] + 1]
        flush(state, outbox)
        return
    if not is_over:
        numbers[at.CAUSE] = sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS] + 2]
    write_in_background(state, outbox, is_over)


@inlined_kernel
def pause_for_room(state: State, outbox: Integers) -> None:
    """Have room made for the records of any one event."""
    log = of.tables_of(state)[1]
    least = of.SLACK + log.frames.shape[0]
    if log.records.shape[0] - (log.scalars.appended + 1 - log.scalars.first) < least or log.payload.shape[0] - log.scalars.payload < least:
        pause(outbox)


@kernel_of(ACT, seconds=5)
def log_part(state: State, outbox: Integers, what: int, first: int, second: int) -> int:
    """The log's part in what happens (`flashsim.execution.pooled.tables.WRITE_FRAME` and so on)."""
    pause_for_room(state, outbox)
    if what == at.CHANGE:
        return change(state, outbox, first, second)
    if what == at.END:
        return end(state, outbox, first)
    if what == at.UNDO_PAGE:
        return undo_page(state, first)
    if what == at.CHECKPOINT:
        return checkpoint(state, outbox, first)
    if what == at.WRITE_FRAME:
        write_frame(state, outbox, first, second)
    elif what == at.PUT:
        put(state, first)
    elif what == at.WRITE_DISK:
        write_disk(state, outbox, first)
    elif what == at.COMPLETION:
        complete(state, outbox, first)
    elif what == at.WRITES_OVER:
        writes_over(state, outbox, first, second)
    elif what == at.CLEANED:
        clean(state, outbox, first)
    elif what == at.SERVED:
        enqueue(of.tables_of(state)[1], first)
    elif what == at.LEFT:
        leave(state)
    elif what == at.COMPENSATE:
        compensate(state, outbox, first, second)
    else:
        pass_time(state, outbox, first)
    return at.GO_ON
