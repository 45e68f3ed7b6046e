"""Pages on their way between memory, the SSD and the disk."""

from flashsim.core.hints import rarely
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS, PINNED, RESIDENT
from flashsim.core.request import WRITE, Integers
from flashsim.core.state_table import State
from flashsim.core.units import NEVER
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.requests import ask_pages, get_ready, is_throttled, line_up, note, send, take_slot, tell_log, wake_line
from flashsim.storage.extension import state as ssd
from flashsim.storage.extension.design import DIRTY_PAGE, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.manager import admit, due, frame_of, let_go, when_evicted, when_fetched, when_modified, when_served
from flashsim.storage.pool.reference import TOOK_FREE, WRITE_BACK, refer

#: Is added to a page that a client holds and that comes from the SSD.
FROM_THE_SSD = 1 << 32
#: Marks of a page (`flashsim.storage.extension.state.MARKS`): it was read by a scan; a write of it to disk is outstanding.
WAS_SCANNED, ON_ITS_WAY_TO_DISK = 1, 4


@inlined_kernel
def is_resident(sys: at.Tables, page: int) -> bool:
    return (sys.memory.pages[page, FLAGS] & RESIDENT) != 0


@inlined_kernel
def is_on_its_way_out(sys: at.Tables, page: int) -> bool:
    return sys.ext.pages[page, ssd.FLIGHT] > 0


@lean_kernel
def wake(state: State, page: int) -> None:
    sys = at.tables_of(state)[0]
    wake_line(sys, sys.ext.pages[page], ssd.FIRST_WAITING, ssd.LAST_WAITING)


@lean_kernel
def excess(sys: at.Tables) -> int:
    """Pages that are newer on the SSD beyond those at which the cleaner stops."""
    numbers = sys.numbers
    newer = sys.ext.numbers[ssd.NEWER_FRAMES] - numbers[at.CLEANING]
    limit = 0 if sys.ext.numbers[ssd.CHECKPOINT] else numbers[at.LIMIT]
    if newer > limit:
        numbers[at.GOAL] = max(0, limit - numbers[at.SLACK])
    elif newer <= numbers[at.GOAL]:
        numbers[at.GOAL] = NEVER
    return int(newer - numbers[at.GOAL])


@lean_kernel
def release(state: State, page: int) -> None:
    """Let go of a page's frame, and wake a cleaner if the page can be cleaned now."""
    sys = at.tables_of(state)[0]
    let_go(sys.ext, sys.design, page)
    if sys.numbers[at.SLEEPING]:
        newer = sys.ext.pages[page, ssd.STATUS] & ssd.NEWER
        if (newer and excess(sys) > 0) or due(sys.ext, sys.design) >= 0:
            rouse(sys)


@inlined_kernel
def rouse(sys: at.Tables) -> None:
    numbers = sys.numbers
    get_ready(sys, numbers[at.CLIENTS] + sys.sleeping[numbers[at.SLEEPS_LONGEST]])
    numbers[at.SLEEPS_LONGEST] = (numbers[at.SLEEPS_LONGEST] + 1) % sys.sleeping.shape[0]
    numbers[at.SLEEPING] -= 1


@inlined_kernel
def check_flushed(sys: at.Tables) -> None:
    """Let the checkpointer go on if it waits for the last page that is newer on the SSD."""
    if sys.numbers[at.FLUSHING] and sys.ext.numbers[ssd.NEWER_FRAMES] == 0:
        sys.numbers[at.FLUSHING] = 0
        get_ready(sys, sys.numbers[at.CLIENTS] + sys.numbers[at.CLEANERS])


@lean_kernel
def copy_to_ssd(state: State, outbox: Integers, page: int, newer: int) -> bool:
    """Write a page to the SSD, unless it holds just that, or has too much to do, or no frame."""
    sys = at.tables_of(state)[0]
    if not newer and frame_of(sys.ext, page) >= 0:
        return True
    if is_throttled(sys):
        return False
    frame = admit(sys.ext, sys.design, page, newer)
    if frame < 0:
        return False
    note(sys, counted.SSD_WRITES)
    sys.ext.pages[page, ssd.FLIGHT] += 1
    sys.numbers[at.GOING_OUT] += 1
    if rarely(sys.numbers[at.LOGGED]):
        tell_log(state, outbox, at.WRITE_FRAME, page, frame)
    else:
        ask_pages(state, outbox, at.SSD_NUMBER, WRITE, frame, 1, at.WRITTEN_OUT, page, 1, at.SSD_FRAME)
    return True


@lean_kernel
def write_to_disk(state: State, outbox: Integers, page: int, count: int, who: int) -> None:
    """Write pages of memory, in a row, to disk."""
    sys = at.tables_of(state)[0]
    for each in range(page, page + count):
        sys.ext.pages[each, ssd.FLIGHT] += 1
    sys.numbers[at.GOING_OUT] += 1
    put_on_disk(state, outbox, page, count, who)


@lean_kernel
def put_on_disk(state: State, outbox: Integers, page: int, count: int, who: int) -> None:
    """Write pages in a row to disk as soon as no earlier write of one of them is outstanding: a disk may serve the later one first."""
    sys = at.tables_of(state)[0]
    numbers, slots = sys.numbers, sys.slots
    slot = take_slot(sys, who, page, count, at.DISK_PAGES)
    if rarely(numbers[at.LOGGED]):
        tell_log(state, outbox, at.PUT, slot, 0)
    if not must_wait(sys, page, count, 0):
        begin_write(state, outbox, slot)
        return
    slots[slot, at.NUMBER] = 0
    if numbers[at.DEFERRED_LAST]:
        slots[numbers[at.DEFERRED_LAST] - 1, at.NUMBER] = slot + 1
    else:
        numbers[at.DEFERRED_FIRST] = slot + 1
    numbers[at.DEFERRED_LAST] = slot + 1


@lean_kernel
def must_wait(sys: at.Tables, page: int, count: int, end: int) -> bool:
    """True if a page of a write is in an outstanding one, or in a deferred one ahead of the deferred write `end` (0: in any of them)."""
    for each in range(page, page + count):
        if sys.ext.pages[each, ssd.MARKS] & ON_ITS_WAY_TO_DISK:
            return True
    following = sys.numbers[at.DEFERRED_FIRST]
    while following != end:
        row = sys.slots[following - 1]
        if row[at.PAGE] < page + count and page < row[at.PAGE] + row[at.COUNT]:
            return True
        following = row[at.NUMBER]
    return False


@lean_kernel
def begin_write(state: State, outbox: Integers, slot: int) -> None:
    """Ask the disk for the writing of pages of which no write is outstanding."""
    sys = at.tables_of(state)[0]
    page, count = sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT]
    note(sys, counted.DISK_WRITES)
    note(sys, counted.DISK_PAGES_WRITTEN, count)
    if sys.slots[slot, at.WHO] >= 0:
        note(sys, counted.PAGES_CLEANED, count)
    for each in range(page, page + count):
        sys.ext.pages[each, ssd.MARKS] |= ON_ITS_WAY_TO_DISK
    if rarely(sys.numbers[at.LOGGED]):
        tell_log(state, outbox, at.WRITE_DISK, slot, 0)
    else:
        size = sys.numbers[at.PAGE_SIZE]
        send(state, outbox, slot, int(sys.numbers[at.DISK_NUMBER]), WRITE, int((page - FIRST_PAGE) * size), int(count * size))


@lean_kernel
def end_write(state: State, outbox: Integers, page: int, count: int) -> None:
    """Pages have been written to disk: begin the deferred writes that need wait no longer, in their order."""
    sys = at.tables_of(state)[0]
    numbers, slots = sys.numbers, sys.slots
    for each in range(page, page + count):
        sys.ext.pages[each, ssd.MARKS] &= ~ON_ITS_WAY_TO_DISK
    before, deferred = 0, numbers[at.DEFERRED_FIRST]
    while deferred:
        slot = deferred - 1
        following = slots[slot, at.NUMBER]
        if must_wait(sys, slots[slot, at.PAGE], slots[slot, at.COUNT], deferred):
            before = deferred
        else:
            if before:
                slots[before - 1, at.NUMBER] = following
            else:
                numbers[at.DEFERRED_FIRST] = following
            if numbers[at.DEFERRED_LAST] == deferred:
                numbers[at.DEFERRED_LAST] = before
            begin_write(state, outbox, slot)
        deferred = following


@lean_kernel
def written(state: State, page: int, count: int, hold: int) -> None:
    """Pages have been written out; all of the crowd are woken while there is room, since who is woken may write nothing."""
    sys = at.tables_of(state)[0]
    for each in range(page, page + count):
        sys.ext.pages[each, ssd.FLIGHT] -= 1
        if hold == at.SSD_FRAME:
            release(state, each)
        if sys.ext.pages[each, ssd.FLIGHT] == 0:
            wake(state, each)
    numbers = sys.numbers
    numbers[at.GOING_OUT] -= 1
    if numbers[at.GOING_OUT] < numbers[at.MOST_GOING_OUT]:
        wake_line(sys, numbers, at.CROWD_FIRST, at.CROWD_LAST)


@inlined_kernel
def is_crowded(sys: at.Tables, client: int) -> bool:
    """Let a client that misses wait if too many pages are on their way out; returns True if the client waits."""
    if sys.numbers[at.GOING_OUT] < sys.numbers[at.MOST_GOING_OUT]:
        return False
    line_up(sys, sys.numbers, at.CROWD_FIRST, at.CROWD_LAST, client)
    return True


@inlined_kernel
def flags_of(sys: at.Tables, page: int, dirty: int) -> int:
    return (DIRTY_PAGE if dirty else 0) | (SEQUENTIAL if sys.ext.pages[page, ssd.MARKS] & WAS_SCANNED else 0)


@lean_kernel
def enter(state: State, outbox: Integers, page: int) -> None:
    """Let a page take a frame of memory, and another leave it perhaps."""
    sys = at.tables_of(state)[0]
    sys.ext.pages[page, ssd.MARKS] &= ~WAS_SCANNED
    outcome = refer(sys.memory, sys.policy, page, 0)
    if outcome < 0:
        sys.numbers[at.BROKEN] = outcome
        return
    if outcome <= TOOK_FREE:
        return
    dirty = 1 if outcome >= WRITE_BACK else 0
    leaving = outcome % WRITE_BACK
    note(sys, counted.EVICTED)
    note(sys, counted.EVICTED_DIRTY, dirty)
    actions = when_evicted(sys.ext, sys.design, leaving, flags_of(sys, leaving, dirty))
    if actions & TO_SSD and not copy_to_ssd(state, outbox, leaving, 1 if dirty and not actions & TO_DISK else 0):
        actions |= TO_DISK
    if dirty and actions & TO_DISK:
        write_to_disk(state, outbox, leaving, 1, at.WRITTEN_OUT)


@inlined_kernel
def modify(sys: at.Tables, page: int) -> None:
    """A page of memory is written; it is newer than its copies now."""
    flags = sys.memory.pages[page, FLAGS]
    if not flags & DIRTY:
        sys.memory.pages[page, FLAGS] = flags | DIRTY
        when_modified(sys.ext, sys.design, page)
        check_flushed(sys)


@inlined_kernel
def hold_in_memory(state: State, outbox: Integers, client: int, page: int, from_ssd: int) -> None:
    """A page that is about to be read takes a frame, in which it is held until it has come, and by nobody afterwards."""
    sys = at.tables_of(state)[0]
    enter(state, outbox, page)
    sys.memory.pages[page, FLAGS] |= PINNED
    sys.client_pages[client, sys.clients[client, at.HOLDING]] = page + FROM_THE_SSD * from_ssd
    sys.clients[client, at.HOLDING] += 1


@inlined_kernel
def arrive(state: State, page: int) -> None:
    sys = at.tables_of(state)[0]
    sys.memory.pages[page, FLAGS] &= ~PINNED
    wake(state, page)


@lean_kernel
def served(state: State, outbox: Integers, page: int, flags: int) -> None:
    sys = at.tables_of(state)[0]
    release(state, page)
    if when_served(sys.ext, sys.design, page, flags):
        sys.memory.pages[page, FLAGS] |= DIRTY
        if rarely(sys.numbers[at.LOGGED]):
            tell_log(state, outbox, at.SERVED, page, 0)
    check_flushed(sys)
    arrive(state, page)


@lean_kernel
def fetched(state: State, outbox: Integers, page: int, flags: int) -> None:
    sys = at.tables_of(state)[0]
    if when_fetched(sys.ext, sys.design, page, flags) & TO_SSD:
        copy_to_ssd(state, outbox, page, 0)
    arrive(state, page)
