"""A system of pools compiled: what `flashsim.execution.pooled.specification` tells as processes, as a host side of the compiled loop.

Who goes on without delay stands in a ring, first come, first served; completions are dealt with as they are told, before anybody in it.
"""

from flashsim.core.hints import rarely
from flashsim.core.host import heap_pop
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS
from flashsim.core.request import Integers
from flashsim.core.state_table import State
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT, pause
from flashsim.execution.pooled import log_events, pages
from flashsim.execution.pooled.clients import SCANNED, go_on
from flashsim.execution.pooled.requests import begin_interval, chunk_of, counts_of, end_commits, get_ready, read_pages, tell_log
from flashsim.execution.pooled.tables import BACKGROUND, BOOT_PAGE, DISK_PAGES, FLUSHED, TABLE_SECTOR, THE_LOG, Tables, tables_of
from flashsim.storage.extension import manager
from flashsim.storage.extension.state import CHECKPOINT, FRAME, NEWER_FRAMES

#: Steps of a cleaner: what it does when it goes on.
LOOK, HAS_READ, HAS_WRITTEN = range(3)


@lean_kernel
def clean(system: Tables, outbox: Integers, number: int) -> None:
    """Let a cleaner do what it does until it must wait."""
    ext, scalars, cleaner = system.ext, system.scalars, system.cleaners[number]
    who = int(scalars.clients) + number
    if cleaner.step == HAS_READ:
        cleaner.step = HAS_WRITTEN
        behind = int(cleaner.first + cleaner.count)
        first, count = manager.still_newer(ext, int(cleaner.first), behind)
        while count:  # what has been modified meanwhile must not reach the disk after its newer version
            cleaner.pending += 1
            pages.put_on_disk(system, outbox, first, count, who)
            first, count = manager.still_newer(ext, first + count, behind)
        if cleaner.pending:
            return
    if cleaner.step == HAS_WRITTEN:
        scalars.cleaning -= cleaner.count
        for page in range(cleaner.first, cleaner.first + cleaner.count):
            manager.note_cleaning(ext, page)
            if rarely(scalars.has_log):
                tell_log(system, outbox, log_events.CLEANED, page, 0)
            pages.release(system, page)
        pages.check_flushed(system)
    cleaner.step = LOOK
    first, count = run_to_clean(system)
    if count == 0:
        system.sleeping[(scalars.sleeps_longest + scalars.sleeping) % system.sleeping.shape[0]] = number
        scalars.sleeping += 1
        return
    cleaner.first, cleaner.count, cleaner.pending, cleaner.step = first, count, count, HAS_READ
    scalars.cleaning += count
    for page in range(first, first + count):
        manager.hold(ext, page)
    counts = counts_of(system)
    counts.cleanings += 1
    counts.cleaner_reads += count
    for page in range(first, first + count):
        read_pages(system, outbox, int(scalars.ssd_device), int(ext.pages[page, FRAME]) - 1, 1, who, page)


@lean_kernel
def run_to_clean(system: Tables) -> tuple[int, int]:
    """The page that is cleaned first, and its neighbours, if there are too many or its frame has its turn; how many they are."""
    ext, scalars = system.ext, system.scalars
    page, too_many = manager.due(ext, system.design), pages.excess(system)
    for _ in range(ext.partitions.shape[0] if page < 0 < too_many else 0):
        page = manager.oldest_newer(ext, system.design, int(scalars.turn))
        scalars.turn = (scalars.turn + 1) % ext.partitions.shape[0]
        if page >= 0:
            break
    if page < 0:
        return 0, 0
    begin, end = chunk_of(system, page)
    first, count = manager.run_of(ext, page, begin, end, int(scalars.group))
    return int(first), int(count)


@lean_kernel
def checkpoint(system: Tables, outbox: Integers) -> None:
    """Let the checkpointer do what it does until it must wait."""
    scalars = system.scalars
    if rarely(scalars.has_log):
        then = tell_log(system, outbox, log_events.CHECKPOINT, 0, 0)
        if then == log_events.WRITE_PAGES and write_dirty(system, outbox):
            then = tell_log(system, outbox, log_events.CHECKPOINT, 1, 0)
        if then != log_events.GO_ON:
            return
    elif not write_dirty(system, outbox):
        return
    counts_of(system).checkpoints += 1
    system.causes[scalars.checkpointer] = scalars.cause
    scalars.checkpoint_at = scalars.now + scalars.checkpoint


@lean_kernel
def write_dirty(system: Tables, outbox: Integers) -> bool:
    """Write a checkpoint's pages; True once all of them are on disk."""
    scalars, rows = system.scalars, system.memory.pages
    behind = system.ext.pages.shape[0]
    while scalars.checkpoint_row < behind:
        row = scalars.checkpoint_row
        while row < behind and scalars.checkpoint_pending < scalars.most_cleanings:
            if rows[row, FLAGS] & DIRTY:
                first = row
                end = min(chunk_of(system, row)[1], first + scalars.group)
                while row < end and rows[row, FLAGS] & DIRTY:
                    pages.flush_page(system, outbox, row)
                    row += 1
                scalars.checkpoint_pending += 1
                pages.write_to_disk(system, outbox, first, row - first, FLUSHED)
            else:
                row += 1
        scalars.checkpoint_row = row
        if scalars.checkpoint_pending:
            return False
    if system.ext.numbers[CHECKPOINT] and system.ext.numbers[NEWER_FRAMES]:
        scalars.flushing = 1
        while scalars.sleeping:
            pages.rouse(system)
        return False
    system.ext.numbers[CHECKPOINT] = 0
    return True


@lean_kernel
def complete(system: Tables, outbox: Integers, device: int, slot: int) -> int:
    """A request has completed: whoever waits for it goes on after all that are ready; returns the client that goes on at once, or -1."""
    scalars, request = system.scalars, system.slots[slot]
    who, page, count, hold, number = request.who, request.page, request.count, request.held, request.cause
    scalars.cause = number
    if device != scalars.cpu_device and number - scalars.kept_first < system.requests.shape[0]:
        system.requests[number - scalars.kept_first].completed = scalars.now
    if device == scalars.ssd_device:
        scalars.ssd_pending -= 1
    if rarely(scalars.has_log):
        tell_log(system, outbox, log_events.COMPLETION, slot, device)
    request.following, scalars.free_slot = scalars.free_slot, slot
    if hold == DISK_PAGES:
        pages.end_write(system, outbox, page, count)
    if who >= scalars.clients:
        cleaner = system.cleaners[who - scalars.clients]
        cleaner.pending -= 1
        if cleaner.pending == 0:
            get_ready(system, who)
    elif who >= 0:
        client = system.clients[who]
        if client.step != SCANNED:
            return int(who)
        client.pending -= 1
        if client.pending == 0:
            get_ready(system, who)
    elif who == BOOT_PAGE:
        checkpoint(system, outbox)
    elif who == THE_LOG and not rarely(scalars.has_log):
        end_commits(system, outbox)
    elif who > TABLE_SECTOR and who != THE_LOG:
        pages.end_write_out(system, page, count, hold)
        if rarely(scalars.has_log):
            tell_log(system, outbox, log_events.END_WRITES_OUT, page, count)
        if who == BACKGROUND:
            tell_log(system, outbox, log_events.TIMER, 1, 0)
        elif who == FLUSHED:
            scalars.checkpoint_pending -= 1
            if scalars.checkpoint_pending == 0:
                get_ready(system, scalars.checkpointer)
    return -1


@kernel_of(ACT, seconds=6)
def act(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    """A request completed; or somebody goes on who need not wait any longer, or whose time has come."""
    system = tables_of(state)[0]
    scalars = system.scalars
    scalars.now = now
    begin_interval(system, now)
    client = -1
    if device >= 0:
        client = complete(system, outbox, device, tag)
    elif scalars.ready_first < scalars.ready_last:
        who = system.ready[scalars.ready_first % system.ready.shape[0]]
        scalars.ready_first += 1
        scalars.cause = system.causes[who]
        if who < scalars.clients:
            client = who
        elif who < scalars.checkpointer:
            clean(system, outbox, who - scalars.clients)
        else:
            checkpoint(system, outbox)
    elif scalars.thinking > 0 and system.thinkers[0, 0] <= now:
        client = system.thinkers[0, 1]
        scalars.thinking = heap_pop(system.thinkers, scalars.thinking)
        scalars.cause = system.causes[client]
    elif scalars.checkpoint_at <= now:
        scalars.checkpoint_at = NEVER
        scalars.cause = system.causes[scalars.checkpointer]
        if not rarely(scalars.has_log):
            scalars.checkpoint_row = FIRST_PAGE
            system.ext.numbers[CHECKPOINT] = not scalars.fuzzy
        checkpoint(system, outbox)
    elif min(scalars.flusher_at, scalars.writer_at) <= now:
        tell_log(system, outbox, log_events.TIMER, 0, 0)
    if client >= 0:
        go_on(system, outbox, client)
    is_low = scalars.transactions_held - scalars.transaction < scalars.low and not scalars.ended
    if scalars.stop_reason or is_low or scalars.issued >= scalars.hand_out_at:
        pause(outbox)
    if scalars.ready_first < scalars.ready_last:
        return now
    following = min(scalars.checkpoint_at, scalars.flusher_at, scalars.writer_at)
    return int(min(following, system.thinkers[0, 0]) if scalars.thinking > 0 else following)
