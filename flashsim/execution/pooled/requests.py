"""Requests to devices, the log, what is counted, and who goes on without delay."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR, WRITE, Integers
from flashsim.core.state_table import State
from flashsim.execution.compiled_loop import issue
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.storage.extension import state as ssd


@inlined_kernel
def note(sys: at.Tables, what: int, by: int = 1) -> None:
    sys.series[sys.numbers[at.INTERVAL_NOW], what] += by


@inlined_kernel
def note_interval(sys: at.Tables, now: int) -> None:
    """Begin the interval in which it is now; the last one goes on for ever."""
    while now >= sys.numbers[at.INTERVAL_ENDS] and sys.numbers[at.INTERVAL_NOW] < sys.series.shape[0] - 1:
        row = sys.series[sys.numbers[at.INTERVAL_NOW]]
        row[counted.SSD_USED], row[counted.SSD_NEWER] = sys.ext.numbers[ssd.USED], sys.ext.numbers[ssd.NEWER_FRAMES]
        row[counted.SSD_INVALID] = sys.ext.numbers[ssd.INVALID]
        sys.numbers[at.INTERVAL_NOW] += 1
        sys.numbers[at.INTERVAL_ENDS] += sys.numbers[at.INTERVAL]


@inlined_kernel
def get_ready(sys: at.Tables, who: int) -> None:
    sys.causes[who] = sys.numbers[at.CAUSE]
    sys.ready[sys.numbers[at.READY_LAST] % sys.ready.shape[0]] = who
    sys.numbers[at.READY_LAST] += 1


@inlined_kernel
def line_up(sys: at.Tables, row: Integers, first: int, last: int, client: int) -> None:
    """Let a client be the last in a line, of which these columns of a row say who is the first and the last, 1 more than their numbers."""
    sys.clients[client, at.NEXT_WAITING] = 0
    if row[last]:
        sys.clients[row[last] - 1, at.NEXT_WAITING] = client + 1
    else:
        row[first] = client + 1
    row[last] = client + 1


@inlined_kernel
def wake_line(sys: at.Tables, row: Integers, first: int, last: int) -> None:
    """Let all in a line go on."""
    client = int(row[first]) - 1
    while client >= 0:
        get_ready(sys, client)
        client = int(sys.clients[client, at.NEXT_WAITING]) - 1
    row[first] = row[last] = 0


@inlined_kernel
def take_slot(sys: at.Tables, who: int, page: int, count: int, hold: int) -> int:
    """Enter a request, or a write that is deferred; returns its row."""
    slot = sys.numbers[at.FREE_SLOT]
    sys.numbers[at.FREE_SLOT] = sys.slots[slot, at.WHO]
    sys.slots[slot, at.WHO], sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT], sys.slots[slot, at.HELD] = who, page, count, hold
    return int(slot)


@inlined_kernel
def give_slot(sys: at.Tables, slot: int) -> None:
    sys.slots[slot, at.WHO] = sys.numbers[at.FREE_SLOT]
    sys.numbers[at.FREE_SLOT] = slot


@inlined_kernel
def send(state: State, outbox: Integers, slot: int, device: int, operation: int, offset: int, length: int) -> None:
    """Send a request that has been entered."""
    sys = at.tables_of(state)[0]
    number, cause, now = sys.numbers[at.ASKED], sys.numbers[at.CAUSE], sys.numbers[at.NOW]
    sys.slots[slot, at.NUMBER] = cause if device == sys.numbers[at.CPU_NUMBER] else number
    place = number - sys.numbers[at.ASKED_FIRST]
    if place < sys.requests.shape[0]:
        row = sys.requests[place]
        row[at.AT_TIME], row[at.OF_DEVICE], row[at.OPERATION], row[at.OFFSET], row[at.LENGTH] = now, device, operation, offset, length
        row[at.AFTER], row[at.COMPLETED] = cause, now if device == sys.numbers[at.CPU_NUMBER] else -1
    sys.numbers[at.ASKED] = number + 1
    issue(outbox, device, operation, offset, length, slot)


@lean_kernel
def tell_log(state: State, outbox: Integers, what: int, first: int, second: int) -> int:
    """Let the log of records and the restart design take note; a function of its own, since most systems have none."""
    return at.log_of(at.tables_of(state)[0].log[0])(state, outbox, what, first, second)


@lean_kernel
def ask(
    state: State, outbox: Integers, device: int, operation: int, offset: int, length: int, who: int, page: int, count: int, hold: int
) -> None:
    send(state, outbox, take_slot(at.tables_of(state)[0], who, page, count, hold), device, operation, offset, length)


@inlined_kernel
def ask_pages(
    state: State, outbox: Integers, purpose: int, operation: int, first: int, pages: int, who: int, page: int, count: int, hold: int
) -> None:
    """Ask a disk or the SSD for pages, from a place on."""
    sys = at.tables_of(state)[0]
    size = sys.numbers[at.PAGE_SIZE]
    if purpose == at.SSD_NUMBER:
        sys.numbers[at.SSD_PENDING] += 1
    ask(state, outbox, int(sys.numbers[purpose]), operation, first * size, pages * size, who, page, count, hold)


@inlined_kernel
def chunk_of(sys: at.Tables, page: int) -> tuple[int, int]:
    """The pages that one request may hold with a page: the first, and the one behind the last."""
    chunk = sys.numbers[at.CHUNK]
    begin = (page - FIRST_PAGE) // chunk * chunk + FIRST_PAGE
    return begin, min(begin + chunk, sys.ext.pages.shape[0])


@inlined_kernel
def is_throttled(sys: at.Tables) -> bool:
    return 0 < sys.numbers[at.THROTTLE] <= sys.numbers[at.SSD_PENDING]


@lean_kernel
def write_log(state: State, outbox: Integers) -> None:
    """Write what has been committed, all together."""
    sys = at.tables_of(state)[0]
    numbers = sys.numbers
    length = -(-numbers[at.COMMIT_BYTES] // SECTOR) * SECTOR
    numbers[at.GROUP_FIRST], numbers[at.LOGGING] = numbers[at.COMMIT_FIRST], 1
    numbers[at.COMMIT_FIRST] = numbers[at.COMMIT_LAST] = numbers[at.COMMIT_BYTES] = 0
    if numbers[at.LOG_END] + length > numbers[at.LOG_ROOM]:
        numbers[at.LOG_END] = 0
    note(sys, counted.LOG_WRITES)
    ask(state, outbox, int(numbers[at.LOG_NUMBER]), WRITE, int(numbers[at.LOG_END]), length, at.THE_LOG, 0, 0, 0)
    numbers[at.LOG_END] += length


@lean_kernel
def commit(state: State, outbox: Integers, client: int, length: int) -> None:
    """A client commits: so many bytes of log are to be written."""
    sys = at.tables_of(state)[0]
    line_up(sys, sys.numbers, at.COMMIT_FIRST, at.COMMIT_LAST, client)
    sys.numbers[at.COMMIT_BYTES] += length
    if not sys.numbers[at.LOGGING]:
        write_log(state, outbox)


@lean_kernel
def logged(state: State, outbox: Integers) -> None:
    """The log has been written, and those whose commits it held go on."""
    sys = at.tables_of(state)[0]
    wake_line(sys, sys.numbers, at.GROUP_FIRST, at.GROUP_FIRST)
    sys.numbers[at.LOGGING] = 0
    if sys.numbers[at.COMMIT_FIRST]:
        write_log(state, outbox)
