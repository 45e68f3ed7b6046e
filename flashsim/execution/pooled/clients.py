"""Clients, which go through the references of their transactions."""

from flashsim.core import transactions as work
from flashsim.core.hints import prefetch, rarely
from flashsim.core.host import heap_push
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import FIRST_PAGE, FLAGS, PINNED, RESIDENT, SIZE, USED
from flashsim.core.request import READ, SECTOR, Integers
from flashsim.core.state_table import State
from flashsim.execution.pooled import pages
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.requests import ask, ask_pages, chunk_of, commit, is_throttled, line_up, note, tell_log
from flashsim.storage.extension import state as ssd
from flashsim.storage.extension.design import ALONGSIDE, FOR_UPDATE, SEQUENTIAL
from flashsim.storage.extension.manager import frame_of, hold, note_miss
from flashsim.storage.pool.reference import refer


@inlined_kernel
def is_away(sys: at.Tables, page: int, from_ssd: int) -> bool:
    """True if a page is neither in memory nor, if that matters, on the SSD."""
    return not pages.is_resident(sys, page) and not pages.is_on_its_way_out(sys, page) and (from_ssd == 0 or frame_of(sys.ext, page) < 0)


@lean_kernel
def miss(state: State, outbox: Integers, client: int, page: int) -> int:
    """Ask for a page that memory does not hold; returns how the client goes on when it has come."""
    sys = at.tables_of(state)[0]
    ext, numbers = sys.ext, sys.numbers
    note_miss(ext, page)
    frame, newer = frame_of(ext, page), ext.pages[page, ssd.STATUS] & ssd.NEWER
    from_ssd = frame >= 0 and (newer != 0 or not is_throttled(sys))
    first = last = page
    if from_ssd:
        hold(ext, page)  # first: what leaves memory for this page must not take its frame
        note(sys, counted.SSD_READS)
        if newer:
            note(sys, counted.SSD_READS_NEWER)
    else:
        if frame >= 0:
            note(sys, counted.BYPASSED)
        expansion = numbers[at.EXPANSION]
        if sys.memory.numbers[USED] + expansion <= sys.memory.numbers[SIZE] or ext.numbers[ssd.USED] < numbers[at.EXPANDS_BELOW]:
            begin, end = chunk_of(sys, page)
            first = (page - FIRST_PAGE) // expansion * expansion + FIRST_PAGE
            first, last = max(first, begin), min(first + expansion, end) - 1
            while first < page and not is_away(sys, first, numbers[at.TRIMMING]):
                first += 1
            while last > page and not is_away(sys, last, numbers[at.TRIMMING]):
                last -= 1
    missing = 0
    for each in range(first, last + 1):  # all of them first: what leaves memory for a page may take another one's frame
        if each == page or is_away(sys, each, 1):
            sys.client_pages[client, missing] = each
            missing += 1
    for number in range(missing):
        pages.hold_in_memory(state, outbox, client, sys.client_pages[client, number], 1 if from_ssd else 0)
    if from_ssd:
        ask_pages(state, outbox, at.SSD_NUMBER, READ, frame, 1, client, page, 1, 0)
        return at.FROM_SSD
    note(sys, counted.DISK_READS)
    note(sys, counted.DISK_PAGES_READ, last - first + 1)
    ask_pages(state, outbox, at.DISK_NUMBER, READ, first - FIRST_PAGE, last - first + 1, client, page, 1, 0)
    return at.FROM_DISK


@inlined_kernel
def is_at_hand(sys: at.Tables, page: int) -> bool:
    """True if a page at either end of a scan's extent need not be read from disk."""
    if not is_away(sys, page, 0):
        return True
    if sys.numbers[at.TRIMMING] == 0:
        return False
    return frame_of(sys.ext, page) >= 0 and ((sys.ext.pages[page, ssd.STATUS] & ssd.NEWER) != 0 or not is_throttled(sys))


@lean_kernel
def scan(state: State, outbox: Integers, client: int, first: int, last: int) -> None:
    """Read an extent ahead: one request to the disk, without pages at either end that are at hand elsewhere."""
    sys = at.tables_of(state)[0]
    ext, begin, end, missing = sys.ext, first, last, 0
    while begin <= end and is_at_hand(sys, begin):
        begin += 1
    while end > begin and is_at_hand(sys, end):
        end -= 1
    for page in range(first, last + 1):
        if pages.is_resident(sys, page):
            note(sys, counted.HITS)
            refer(sys.memory, sys.policy, page, 0)
            continue
        if pages.is_on_its_way_out(sys, page):
            note(sys, counted.HITS)
            continue
        note_miss(ext, page)
        frame, newer = frame_of(ext, page), ext.pages[page, ssd.STATUS] & ssd.NEWER
        from_ssd = frame >= 0 and ((newer != 0) or not begin <= page <= end)
        if from_ssd:  # all of them first: what leaves memory for a page must not take another one's frame
            hold(ext, page)
            note(sys, counted.SSD_READS)
            if newer:
                note(sys, counted.SSD_READS_NEWER)
        elif frame >= 0:
            note(sys, counted.BYPASSED)
        sys.client_pages[client, missing] = page + (pages.FROM_THE_SSD if from_ssd else 0)
        missing += 1
    for number in range(missing):
        page, from_ssd = sys.client_pages[client, number] % pages.FROM_THE_SSD, sys.client_pages[client, number] >= pages.FROM_THE_SSD
        pages.hold_in_memory(state, outbox, client, page, 1 if from_ssd else 0)
        if from_ssd:
            sys.clients[client, at.PENDING] += 1
            ask_pages(state, outbox, at.SSD_NUMBER, READ, int(ext.pages[page, ssd.FRAME]) - 1, 1, client, page, 1, 0)
        else:
            ext.pages[page, ssd.MARKS] |= pages.WAS_SCANNED
    if begin <= end:
        note(sys, counted.DISK_READS)
        note(sys, counted.DISK_PAGES_READ, end - begin + 1)
        sys.clients[client, at.PENDING] += 1
        ask_pages(state, outbox, at.DISK_NUMBER, READ, begin - FIRST_PAGE, end - begin + 1, client, begin, 1, 0)


@lean_kernel
def take_held(state: State, outbox: Integers, client: int, page: int, flags: int, others: int) -> None:
    """The pages that a client waited for have come; `flags` are those of one of them, `others` those of all others."""
    sys = at.tables_of(state)[0]
    for number in range(sys.clients[client, at.HOLDING]):
        entry = sys.client_pages[client, number]
        each = entry % pages.FROM_THE_SSD
        of_this = flags if each == page else others
        if entry >= pages.FROM_THE_SSD:
            pages.served(state, outbox, each, of_this)
        else:
            pages.fetched(state, outbox, each, of_this)
    sys.clients[client, at.HOLDING] = 0


@inlined_kernel
def begin_next(sys: at.Tables, client: int) -> bool:
    """Take the next transaction; False if there is none.

    The rows of pages of one that is to come are hinted at: they are in no cache, and it takes longer to have one after the other brought.
    """
    numbers, mine = sys.numbers, sys.clients[client]
    number = numbers[at.TRANSACTION]
    if number == numbers[at.TRANSACTIONS_HELD]:
        if not numbers[at.ENDED]:
            numbers[at.BROKEN] = at.NO_TIME_PASSES
        return False
    mine[at.REFERENCE], mine[at.LAST_REFERENCE] = sys.bounds[number], sys.bounds[number + 1]
    mine[at.WRITTEN], mine[at.AT], mine[at.KIND] = 0, 0, sys.kinds[number]
    numbers[at.TRANSACTION] = number + 1
    if number + 1 < numbers[at.TRANSACTIONS_HELD]:
        for row in range(sys.bounds[number + 1], sys.bounds[number + 2]):
            prefetch(sys.memory.pages, sys.references[row, work.FIRST] + FIRST_PAGE)
    return True


@lean_kernel
def refer_to(state: State, outbox: Integers, client: int, page: int, marks: int) -> int:
    """Let a client refer to a page, or scan from it on; how the client goes on if it must wait, or -1 when it is done with it."""
    sys = at.tables_of(state)[0]
    mine = sys.clients[client]
    if marks & work.SCANS:
        if mine[at.AT] == 0:
            count = sys.references[mine[at.REFERENCE], work.COUNT]
            note(sys, counted.REFERENCES, count)
            mine[at.AT], mine[at.BEHIND] = page, page + count
        while mine[at.AT] < mine[at.BEHIND]:
            if pages.is_crowded(sys, client):
                return at.REFER
            first = mine[at.AT]
            end = min(mine[at.BEHIND], first + sys.numbers[at.READ_AHEAD], chunk_of(sys, first)[1])
            mine[at.AT] = end
            scan(state, outbox, client, first, end - 1)
            if mine[at.PENDING]:
                return at.SCANNED
            take_held(state, outbox, client, 0, 0, SEQUENTIAL)
        mine[at.AT] = 0
        return -1
    if mine[at.AT] == 0:
        note(sys, counted.REFERENCES)
        mine[at.AT] = 1
    flags = sys.memory.pages[page, FLAGS]
    if flags & PINNED or (not flags & RESIDENT and pages.is_on_its_way_out(sys, page)):
        line_up(sys, sys.ext.pages[page], ssd.FIRST_WAITING, ssd.LAST_WAITING, client)
        return at.REFER
    if flags & RESIDENT:
        note(sys, counted.HITS)
        refer(sys.memory, sys.policy, page, 0)
    elif pages.is_crowded(sys, client):
        return at.REFER
    elif marks & work.CREATES:
        note(sys, counted.CREATED)
        pages.enter(state, outbox, page)
    else:
        return miss(state, outbox, client, page)
    return -1


@lean_kernel
def leave(state: State, outbox: Integers, client: int) -> None:
    """A client runs no more transactions."""
    sys = at.tables_of(state)[0]
    sys.clients[client, at.STATE] = at.GONE
    if rarely(sys.numbers[at.LOGGED]):
        tell_log(state, outbox, at.LEFT, client, 0)


@lean_kernel
def undo_next(state: State, outbox: Integers, client: int) -> bool:
    """Undo the last update of a transaction that is left; True if the client must wait for its page."""
    sys = at.tables_of(state)[0]
    mine = sys.clients[client]
    mine[at.UNDOING] = tell_log(state, outbox, at.UNDO_PAGE, client, 0)
    if mine[at.UNDOING] == 0:
        mine[at.STATE] = at.COMMITTED
        return False
    mine[at.AT] = 1  # it counts as no reference
    then = refer_to(state, outbox, client, mine[at.UNDOING], 0)
    if then >= 0:
        mine[at.STATE] = at.ABORTING if then == at.REFER else then
        return True
    tell_log(state, outbox, at.COMPENSATE, client, mine[at.UNDOING])
    return False


@inlined_kernel
def end_transaction(state: State, outbox: Integers, client: int) -> bool:
    """Commit a transaction, or begin to undo it; True if the client must wait."""
    sys = at.tables_of(state)[0]
    mine, numbers = sys.clients[client], sys.numbers
    if rarely(numbers[at.LOGGED]):
        then = tell_log(state, outbox, at.END, client, 0)
        if then == at.UNDO:
            mine[at.STATE] = at.ABORTING
        return then == at.WAIT
    if numbers[at.LOG_BYTES] and mine[at.WRITTEN]:
        commit(state, outbox, client, mine[at.WRITTEN] * numbers[at.LOG_BYTES])
        return True
    return False


@lean_kernel
def go_on(state: State, outbox: Integers, client: int) -> None:
    """Let a client do what it does until it must wait."""
    sys = at.tables_of(state)[0]
    mine, numbers = sys.clients[client], sys.numbers
    while True:
        next_step = mine[at.STATE]
        if next_step == at.BEGIN:
            if not begin_next(sys, client):
                leave(state, outbox, client)
                return
            mine[at.STATE] = at.REFER
        elif next_step == at.SCANNED:
            take_held(state, outbox, client, 0, 0, SEQUENTIAL)
            mine[at.STATE] = at.REFER
        elif next_step in (at.FROM_SSD, at.FROM_DISK) and rarely(mine[at.UNDOING]):
            take_held(state, outbox, client, mine[at.UNDOING], 0, ALONGSIDE)
            tell_log(state, outbox, at.COMPENSATE, client, mine[at.UNDOING])
            mine[at.STATE] = at.ABORTING
        elif next_step == at.REFER and mine[at.REFERENCE] == mine[at.LAST_REFERENCE]:
            mine[at.STATE] = at.WORKED
            if numbers[at.HAS_WORK]:
                ask(state, outbox, int(numbers[at.CPU_NUMBER]), READ, 0, SECTOR, client, 0, 0, 0)
                return
        elif next_step in (at.FROM_SSD, at.FROM_DISK, at.REFER):
            row = mine[at.REFERENCE]
            marks, page = sys.references[row, work.MARKS], sys.references[row, work.FIRST] + FIRST_PAGE
            if next_step == at.REFER:
                then = refer_to(state, outbox, client, page, marks)
                if then >= 0:
                    mine[at.STATE] = then
                    return
            else:
                take_held(state, outbox, client, page, FOR_UPDATE if marks & work.WRITES else 0, ALONGSIDE)
            if finish_reference(state, outbox, client, page, marks):
                return
        elif next_step == at.ABORTING:
            if undo_next(state, outbox, client):
                return
        elif next_step == at.WORKED:
            mine[at.STATE] = at.COMMITTED
            if end_transaction(state, outbox, client):
                return
        else:
            note(sys, counted.TRANSACTIONS)
            sys.by_kind[numbers[at.INTERVAL_NOW], mine[at.KIND]] += 1
            sys.ended[mine[at.KIND]] = numbers[at.NOW]
            mine[at.STATE] = at.BEGIN
            if numbers[at.THINK]:
                sys.causes[client] = numbers[at.CAUSE]
                numbers[at.THINKING] = heap_push(sys.thinkers, numbers[at.THINKING], numbers[at.NOW] + numbers[at.THINK], client)
                return


@inlined_kernel
def finish_reference(state: State, outbox: Integers, client: int, page: int, marks: int) -> bool:
    """A client has its page; returns True if it must wait until a change of the SSD's frame table is hardened."""
    sys = at.tables_of(state)[0]
    mine = sys.clients[client]
    if marks & work.WRITES:
        mine[at.WRITTEN] += 1
    mine[at.REFERENCE] += 1
    mine[at.AT] = 0
    mine[at.STATE] = at.REFER
    if marks & (work.WRITES | work.CREATES):
        if rarely(sys.numbers[at.LOGGED]):
            return tell_log(state, outbox, at.CHANGE, client, page) == at.WAIT
        pages.modify(sys, page)
    return False
