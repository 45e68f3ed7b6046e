"""Clients, which go through the references of their transactions."""

from flashsim.core import replacement
from flashsim.core.hints import prefetch, rarely
from flashsim.core.host import heap_push
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import FIRST_PAGE, FLAGS, PINNED, RESIDENT
from flashsim.core.request import READ, SECTOR, Integers
from flashsim.core.transactions import COUNT, CREATES, FIRST, SCANS, WRITES
from flashsim.core.transactions import MARKS as REFERENCE_MARKS
from flashsim.execution.pooled import log_events, pages
from flashsim.execution.pooled.requests import chunk_of, commit, counts_of, line_up, read_pages, send, take_slot, tell_log
from flashsim.execution.pooled.tables import NO_TIME_PASSES, NOTHING, Tables
from flashsim.storage.extension import manager
from flashsim.storage.extension.design import ALONGSIDE, FOR_UPDATE, SEQUENTIAL
from flashsim.storage.extension.state import FIRST_WAITING, FRAME, LAST_WAITING, MARKS, NEWER, STATUS, USED
from flashsim.storage.pool.reference import refer

#: Steps of a client: what it does when it goes on.
BEGIN, REFER, FROM_SSD, FROM_DISK, SCANNED, WORKED, COMMITTED, GONE, ABORTING = range(9)


@inlined_kernel
def is_away(system: Tables, page: int, from_ssd: int) -> bool:
    """True if a page is neither in memory nor, if that matters, on the SSD."""
    if system.memory.pages[page, FLAGS] & RESIDENT or pages.is_on_its_way_out(system, page):
        return False
    return from_ssd == 0 or manager.frame_of(system.ext, page) < 0


@lean_kernel
def miss(system: Tables, outbox: Integers, client: int, page: int) -> int:
    """Ask for a page that memory does not hold; returns how the client goes on when it has come."""
    ext, scalars, counts = system.ext, system.scalars, counts_of(system)
    manager.note_miss(ext, page)
    frame, newer = manager.frame_of(ext, page), ext.pages[page, STATUS] & NEWER
    if frame >= 0 and (newer != 0 or not pages.is_throttled(system)):
        manager.hold(ext, page)  # first: what leaves memory for this page must not take its frame
        counts.ssd_reads += 1
        if newer:
            counts.ssd_reads_newer += 1
        pages.hold_in_memory(system, outbox, client, page, 1)
        read_pages(system, outbox, int(scalars.ssd_device), frame, 1, client, page)
        return FROM_SSD
    if frame >= 0:
        counts.bypassed += 1
    first, last = pages_around(system, page)
    missing = 0
    for each in range(first, last + 1):  # all of them first: what leaves memory for a page may take another one's frame
        if each == page or is_away(system, each, 1):
            pages.held_page(system, client, missing).page = each
            missing += 1
    for number in range(missing):
        pages.hold_in_memory(system, outbox, client, pages.held_page(system, client, number).page, 0)
    counts.disk_reads += 1
    counts.disk_pages_read += last - first + 1
    read_pages(system, outbox, int(scalars.disk_device), first - FIRST_PAGE, last - first + 1, client, page)
    return FROM_DISK


@inlined_kernel
def pages_around(system: Tables, page: int) -> tuple[int, int]:
    """The first and the last page that a read brings: several while there is room, but for those at either end that are not wanted."""
    scalars, memory = system.scalars, system.memory.numbers
    expansion = scalars.expansion
    if memory[replacement.USED] + expansion > memory[replacement.SIZE] and system.ext.numbers[USED] >= scalars.expands_below:
        return page, page
    begin, end = chunk_of(system, page)
    first = (page - FIRST_PAGE) // expansion * expansion + FIRST_PAGE
    first, last = max(first, begin), min(first + expansion, end) - 1
    while first < page and not is_away(system, first, scalars.trimming):
        first += 1
    while last > page and not is_away(system, last, scalars.trimming):
        last -= 1
    return first, last


@inlined_kernel
def is_at_hand(system: Tables, page: int) -> bool:
    """True if a page at either end of a scan's extent need not be read from disk."""
    if not is_away(system, page, 0):
        return True
    if system.scalars.trimming == 0:
        return False
    return manager.frame_of(system.ext, page) >= 0 and ((system.ext.pages[page, STATUS] & NEWER) != 0 or not pages.is_throttled(system))


@lean_kernel
def scan(system: Tables, outbox: Integers, client: int, first: int, last: int) -> None:
    """Read an extent ahead: one request to the disk, without pages at either end that are at hand elsewhere."""
    ext, scalars, counts = system.ext, system.scalars, counts_of(system)
    begin, end, missing = first, last, 0
    while begin <= end and is_at_hand(system, begin):
        begin += 1
    while end > begin and is_at_hand(system, end):
        end -= 1
    for page in range(first, last + 1):
        if system.memory.pages[page, FLAGS] & RESIDENT:
            counts.hits += 1
            refer(system.memory, system.policy, page, 0)
            continue
        if pages.is_on_its_way_out(system, page):
            counts.hits += 1
            continue
        manager.note_miss(ext, page)
        frame, newer = manager.frame_of(ext, page), ext.pages[page, STATUS] & NEWER
        from_ssd = frame >= 0 and ((newer != 0) or not begin <= page <= end)
        if from_ssd:  # all of them first: what leaves memory for a page must not take another one's frame
            manager.hold(ext, page)
            counts.ssd_reads += 1
            if newer:
                counts.ssd_reads_newer += 1
        elif frame >= 0:
            counts.bypassed += 1
        held = pages.held_page(system, client, missing)
        held.page, held.from_ssd = page, 1 if from_ssd else 0
        missing += 1
    for number in range(missing):
        held = pages.held_page(system, client, number)
        page, is_on_ssd = held.page, held.from_ssd
        pages.hold_in_memory(system, outbox, client, page, is_on_ssd)
        if is_on_ssd:
            system.clients[client].pending += 1
            read_pages(system, outbox, int(scalars.ssd_device), int(ext.pages[page, FRAME]) - 1, 1, client, page)
        else:
            ext.pages[page, MARKS] |= pages.WAS_SCANNED
    if begin <= end:
        counts.disk_reads += 1
        counts.disk_pages_read += end - begin + 1
        system.clients[client].pending += 1
        read_pages(system, outbox, int(scalars.disk_device), begin - FIRST_PAGE, end - begin + 1, client, begin)


@lean_kernel
def take_held(system: Tables, outbox: Integers, client: int, page: int, flags: int, others: int) -> None:
    """The pages that a client waited for have come; `flags` are those of one of them, `others` those of all others."""
    for number in range(system.clients[client].holding):
        held = pages.held_page(system, client, number)
        of_this = flags if held.page == page else others
        if held.from_ssd:
            pages.finish_ssd_read(system, outbox, held.page, of_this)
        else:
            pages.finish_disk_read(system, outbox, held.page, of_this)
    system.clients[client].holding = 0


@inlined_kernel
def begin_next(system: Tables, client: int) -> bool:
    """Take the next transaction; False if there is none.

    The rows of pages of one that is to come are hinted at: they are in no cache, and it takes longer to have one after the other brought.
    """
    scalars, mine = system.scalars, system.clients[client]
    number = scalars.transaction
    if number == scalars.transactions_held:
        if not scalars.ended:
            scalars.stop_reason = NO_TIME_PASSES
        return False
    mine.reference, mine.end_reference = system.bounds[number], system.bounds[number + 1]
    mine.written, mine.place, mine.kind = 0, 0, system.kinds[number]
    scalars.transaction = number + 1
    if number + 1 < scalars.transactions_held:
        for row in range(system.bounds[number + 1], system.bounds[number + 2]):
            prefetch(system.memory.pages, system.references[row, FIRST] + FIRST_PAGE)
    return True


@lean_kernel
def refer_to(system: Tables, outbox: Integers, client: int, page: int, marks: int) -> int:
    """Let a client refer to a page, or scan from it on; how the client goes on if it must wait, or -1 when it is done with it."""
    mine = system.clients[client]
    if marks & SCANS:
        if mine.place == 0:
            count = system.references[mine.reference, COUNT]
            counts_of(system).references += count
            mine.place, mine.behind = page, page + count
        while mine.place < mine.behind:
            if pages.must_join_crowd(system, client):
                return REFER
            first = mine.place
            end = min(mine.behind, first + system.scalars.read_ahead, chunk_of(system, first)[1])
            mine.place = end
            scan(system, outbox, client, first, end - 1)
            if mine.pending:
                return SCANNED
            take_held(system, outbox, client, 0, 0, SEQUENTIAL)
        mine.place = 0
        return -1
    if mine.place == 0:
        counts_of(system).references += 1
        mine.place = 1
    flags = system.memory.pages[page, FLAGS]
    if flags & PINNED or (not flags & RESIDENT and pages.is_on_its_way_out(system, page)):
        row = system.ext.pages[page]
        row[FIRST_WAITING] = line_up(system, row[FIRST_WAITING], row[LAST_WAITING], client)
        row[LAST_WAITING] = client + 1
        return REFER
    if flags & RESIDENT:
        counts_of(system).hits += 1
        refer(system.memory, system.policy, page, 0)
    elif pages.must_join_crowd(system, client):
        return REFER
    elif marks & CREATES:
        counts_of(system).created += 1
        pages.enter(system, outbox, page)
    else:
        return miss(system, outbox, client, page)
    return -1


@lean_kernel
def undo_next(system: Tables, outbox: Integers, client: int) -> bool:
    """Undo the last update of a transaction that is left; True if the client must wait for its page."""
    mine = system.clients[client]
    mine.undoing = tell_log(system, outbox, log_events.UNDO_PAGE, client, 0)
    if mine.undoing == 0:
        mine.step = COMMITTED
        return False
    mine.place = 1  # it counts as no reference
    then = refer_to(system, outbox, client, mine.undoing, 0)
    if then >= 0:
        mine.step = ABORTING if then == REFER else then
        return True
    tell_log(system, outbox, log_events.COMPENSATE, client, mine.undoing)
    return False


@inlined_kernel
def end_transaction(system: Tables, outbox: Integers, client: int) -> bool:
    """Commit a transaction, or begin to undo it; True if the client must wait."""
    mine, scalars = system.clients[client], system.scalars
    if rarely(scalars.has_log):
        then = tell_log(system, outbox, log_events.END, client, 0)
        if then == log_events.UNDO:
            mine.step = ABORTING
        return then == log_events.WAIT
    if scalars.log_bytes and mine.written:
        commit(system, outbox, client, mine.written * scalars.log_bytes)
        return True
    return False


@lean_kernel
def go_on(system: Tables, outbox: Integers, client: int) -> None:
    """Let a client do what it does until it must wait."""
    mine, scalars = system.clients[client], system.scalars
    while True:
        step = mine.step
        if step == BEGIN:
            if not begin_next(system, client):
                mine.step = GONE
                if rarely(scalars.has_log):
                    tell_log(system, outbox, log_events.LEFT, client, 0)
                return
            mine.step = REFER
        elif step == SCANNED:
            take_held(system, outbox, client, 0, 0, SEQUENTIAL)
            mine.step = REFER
        elif step in (FROM_SSD, FROM_DISK) and rarely(mine.undoing):
            take_held(system, outbox, client, mine.undoing, 0, ALONGSIDE)
            tell_log(system, outbox, log_events.COMPENSATE, client, mine.undoing)
            mine.step = ABORTING
        elif step == REFER and mine.reference == mine.end_reference:
            mine.step = WORKED
            if scalars.work:
                send(system, outbox, take_slot(system, client, 0, 0, NOTHING), int(scalars.cpu_device), READ, 0, SECTOR)
                return
        elif step in (FROM_SSD, FROM_DISK, REFER):
            reference = system.references[mine.reference]
            marks, page = reference[REFERENCE_MARKS], reference[FIRST] + FIRST_PAGE
            if step == REFER:
                then = refer_to(system, outbox, client, page, marks)
                if then >= 0:
                    mine.step = then
                    return
            else:
                take_held(system, outbox, client, page, FOR_UPDATE if marks & WRITES else 0, ALONGSIDE)
            if finish_reference(system, outbox, client, page, marks):
                return
        elif step == ABORTING:
            if undo_next(system, outbox, client):
                return
        elif step == WORKED:
            mine.step = COMMITTED
            if end_transaction(system, outbox, client):
                return
        else:
            counts_of(system).transactions += 1
            system.by_kind[scalars.interval_now, mine.kind] += 1
            system.ended[mine.kind] = scalars.now
            mine.step = BEGIN
            if scalars.think:
                system.causes[client] = scalars.cause
                scalars.thinking = heap_push(system.thinkers, scalars.thinking, scalars.now + scalars.think, client)
                return


@inlined_kernel
def finish_reference(system: Tables, outbox: Integers, client: int, page: int, marks: int) -> bool:
    """A client has its page; returns True if it must wait until a change of the SSD's frame table is hardened."""
    mine = system.clients[client]
    if marks & WRITES:
        mine.written += 1
    mine.reference += 1
    mine.place = 0
    mine.step = REFER
    if marks & (WRITES | CREATES):
        if rarely(system.scalars.has_log):
            return tell_log(system, outbox, log_events.CHANGE, client, page) == log_events.WAIT
        pages.modify(system, page)
    return False
