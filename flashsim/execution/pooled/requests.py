"""Requests to devices, what is counted, and who goes on without delay."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.core.state_table import State
from flashsim.execution.compiled_loop import issue
from flashsim.execution.pooled import columns as at
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled.tables import Tables, tables_of
from flashsim.storage.extension import state as ssd


@inlined_kernel
def note(sys: Tables, what: int, by: int = 1) -> None:
    sys.series[sys.numbers[at.INTERVAL_NOW], what] += by


@inlined_kernel
def note_interval(sys: Tables, now: int) -> None:
    """Begin the interval in which it is now; the last one goes on for ever."""
    while now >= sys.numbers[at.INTERVAL_ENDS] and sys.numbers[at.INTERVAL_NOW] < sys.series.shape[0] - 1:
        row = sys.series[sys.numbers[at.INTERVAL_NOW]]
        row[counted.SSD_USED], row[counted.SSD_NEWER] = sys.ext.numbers[ssd.USED], sys.ext.numbers[ssd.NEWER_FRAMES]
        row[counted.SSD_INVALID] = sys.ext.numbers[ssd.INVALID]
        sys.numbers[at.INTERVAL_NOW] += 1
        sys.numbers[at.INTERVAL_ENDS] += sys.numbers[at.INTERVAL]


@inlined_kernel
def get_ready(sys: Tables, who: int) -> None:
    sys.causes[who] = sys.numbers[at.CAUSE]
    sys.ready[sys.numbers[at.READY_LAST] % sys.ready.shape[0]] = who
    sys.numbers[at.READY_LAST] += 1


@lean_kernel
def ask(
    state: State,
    outbox: Integers,
    now: int,
    device: int,
    operation: int,
    offset: int,
    length: int,
    who: int,
    page: int,
    count: int,
    held: int,
) -> None:
    sys = tables_of(state)[0]
    slot = sys.numbers[at.FREE_SLOT]
    sys.numbers[at.FREE_SLOT] = sys.slots[slot, at.WHO]
    sys.slots[slot, at.WHO], sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT], sys.slots[slot, at.HELD] = who, page, count, held
    number, cause = sys.numbers[at.ASKED], sys.numbers[at.CAUSE]
    sys.slots[slot, at.NUMBER] = cause if device == sys.numbers[at.CPU_NUMBER] else number
    place = number - sys.numbers[at.ASKED_FIRST]
    if place < sys.asked.shape[0]:
        row = sys.asked[place]
        row[at.AT_TIME], row[at.OF_DEVICE], row[at.OPERATION], row[at.OFFSET], row[at.LENGTH] = now, device, operation, offset, length
        row[at.AFTER], row[at.COMPLETED] = cause, now if device == sys.numbers[at.CPU_NUMBER] else -1
    sys.numbers[at.ASKED] = number + 1
    issue(outbox, device, operation, offset, length, slot)


@inlined_kernel
def ask_pages(
    state: State,
    outbox: Integers,
    now: int,
    purpose: int,
    operation: int,
    first: int,
    pages: int,
    who: int,
    page: int,
    count: int,
    held: int,
) -> None:
    """Ask a disk or the SSD for pages, from a place on."""
    sys = tables_of(state)[0]
    size = sys.numbers[at.PAGE_SIZE]
    if purpose == at.SSD_NUMBER:
        sys.numbers[at.SSD_PENDING] += 1
    ask(state, outbox, now, int(sys.numbers[purpose]), operation, first * size, pages * size, who, page, count, held)


@inlined_kernel
def chunk_of(sys: Tables, page: int) -> tuple[int, int]:
    """The pages that one request may hold with a page: the first, and the one behind the last."""
    chunk = sys.numbers[at.CHUNK]
    begin = (page - FIRST_PAGE) // chunk * chunk + FIRST_PAGE
    return begin, min(begin + chunk, sys.ext.pages.shape[0])


@inlined_kernel
def is_throttled(sys: Tables) -> bool:
    return 0 < sys.numbers[at.THROTTLE] <= sys.numbers[at.SSD_PENDING]
