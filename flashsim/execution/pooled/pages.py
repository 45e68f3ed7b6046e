"""Pages on their way between memory, the SSD and the disk."""

from flashsim.core.hints import rarely
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray
from flashsim.core.replacement import DIRTY, FLAGS, PINNED
from flashsim.core.request import Integers
from flashsim.core.units import NEVER
from flashsim.execution.pooled import log_events
from flashsim.execution.pooled.requests import counts_of, get_ready, line_up, take_slot, tell_log, wake_line, write_frame, write_pages
from flashsim.execution.pooled.tables import DISK_PAGES, SSD_FRAME, WRITTEN_OUT, Tables
from flashsim.storage.extension import manager
from flashsim.storage.extension.design import CHECKPOINTED, DIRTY_PAGE, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import CHECKPOINT, FIRST_WAITING, FLIGHT, LAST_WAITING, MARKS, NEWER, NEWER_FRAMES, STATUS
from flashsim.storage.pool.reference import TOOK_FREE, WRITE_BACK, refer

#: Marks of a page (`flashsim.storage.extension.state.MARKS`): it was read by a scan; a write of it to disk is outstanding.
WAS_SCANNED, ON_ITS_WAY_TO_DISK = 1, 4


@inlined_kernel
def is_on_its_way_out(system: Tables, page: int) -> bool:
    return system.ext.pages[page, FLIGHT] > 0


@inlined_kernel
def is_throttled(system: Tables) -> bool:
    return 0 < system.scalars.throttle <= system.scalars.ssd_pending


@lean_kernel
def wake(system: Tables, page: int) -> None:
    """Let all clients that wait for a page go on."""
    row = system.ext.pages[page]
    wake_line(system, row[FIRST_WAITING])
    row[FIRST_WAITING] = row[LAST_WAITING] = 0


@lean_kernel
def excess(system: Tables) -> int:
    """Pages that are newer on the SSD beyond those at which the cleaner stops."""
    scalars = system.scalars
    newer = system.ext.numbers[NEWER_FRAMES] - scalars.cleaning
    limit = 0 if system.ext.numbers[CHECKPOINT] else scalars.dirty_limit_frames
    if newer > limit:
        scalars.goal = max(0, limit - scalars.slack)
    elif newer <= scalars.goal:
        scalars.goal = NEVER
    return int(newer - scalars.goal)


@lean_kernel
def release(system: Tables, page: int) -> None:
    """Let go of a page's frame, and wake a cleaner if the page can be cleaned now."""
    manager.let_go(system.ext, system.design, page)
    if system.scalars.sleeping:
        newer = system.ext.pages[page, STATUS] & NEWER
        if (newer and excess(system) > 0) or manager.due(system.ext, system.design) >= 0:
            rouse(system)


@inlined_kernel
def rouse(system: Tables) -> None:
    """Let the cleaner that has slept longest go on."""
    scalars = system.scalars
    get_ready(system, scalars.clients + system.sleeping[scalars.sleeps_longest])
    scalars.sleeps_longest = (scalars.sleeps_longest + 1) % system.sleeping.shape[0]
    scalars.sleeping -= 1


@inlined_kernel
def check_flushed(system: Tables) -> None:
    """Let the checkpointer go on if it waits for the last page that is newer on the SSD."""
    if system.scalars.flushing and system.ext.numbers[NEWER_FRAMES] == 0:
        system.scalars.flushing = 0
        get_ready(system, system.scalars.checkpointer)


@lean_kernel
def copy_to_ssd(system: Tables, outbox: Integers, page: int, newer: int) -> bool:
    """Write a page to the SSD, unless it holds just that, or has too much to do, or no frame."""
    if not newer and manager.frame_of(system.ext, page) >= 0:
        return True
    if is_throttled(system):
        return False
    frame = manager.admit(system.ext, system.design, page, newer)
    if frame < 0:
        return False
    counts_of(system).ssd_writes += 1
    system.ext.pages[page, FLIGHT] += 1
    system.scalars.going_out += 1
    if rarely(system.scalars.has_log):
        tell_log(system, outbox, log_events.WRITE_FRAME, page, frame)
    else:
        write_frame(system, outbox, take_slot(system, WRITTEN_OUT, page, 1, SSD_FRAME), frame)
    return True


@lean_kernel
def write_to_disk(system: Tables, outbox: Integers, page: int, count: int, who: int) -> None:
    """Write pages of memory, in a row, to disk."""
    for each in range(page, page + count):
        system.ext.pages[each, FLIGHT] += 1
    system.scalars.going_out += 1
    put_on_disk(system, outbox, page, count, who)


@lean_kernel
def put_on_disk(system: Tables, outbox: Integers, page: int, count: int, who: int) -> None:
    """Write pages in a row to disk as soon as no earlier write of one of them is outstanding: a disk may serve the later one first."""
    scalars, slots = system.scalars, system.slots
    slot = take_slot(system, who, page, count, DISK_PAGES)
    if rarely(scalars.has_log):
        tell_log(system, outbox, log_events.TAKE_VERSIONS, slot, 0)
    if not must_wait(system, page, count, 0):
        begin_write(system, outbox, slot)
        return
    slots[slot].following = 0
    if scalars.deferred_last:
        slots[scalars.deferred_last - 1].following = slot + 1
    else:
        scalars.deferred_first = slot + 1
    scalars.deferred_last = slot + 1


@lean_kernel
def must_wait(system: Tables, page: int, count: int, end: int) -> bool:
    """True if a page of a write is in an outstanding one, or in a deferred one ahead of the deferred write `end` (0: in any of them)."""
    for each in range(page, page + count):
        if system.ext.pages[each, MARKS] & ON_ITS_WAY_TO_DISK:
            return True
    following = system.scalars.deferred_first
    while following != end:
        deferred = system.slots[following - 1]
        if deferred.page < page + count and page < deferred.page + deferred.count:
            return True
        following = deferred.following
    return False


@lean_kernel
def begin_write(system: Tables, outbox: Integers, slot: int) -> None:
    """Ask the disk for the writing of pages of which no write is outstanding."""
    page, count = system.slots[slot].page, system.slots[slot].count
    counts_of(system).disk_writes += 1
    counts_of(system).disk_pages_written += count
    if system.slots[slot].who >= 0:
        counts_of(system).pages_cleaned += count
    for each in range(page, page + count):
        system.ext.pages[each, MARKS] |= ON_ITS_WAY_TO_DISK
    if rarely(system.scalars.has_log):
        tell_log(system, outbox, log_events.WRITE_DISK, slot, 0)
    else:
        write_pages(system, outbox, slot)


@lean_kernel
def end_write(system: Tables, outbox: Integers, page: int, count: int) -> None:
    """Pages have been written to disk: begin the deferred writes that need wait no longer, in their order."""
    scalars, slots = system.scalars, system.slots
    for each in range(page, page + count):
        system.ext.pages[each, MARKS] &= ~ON_ITS_WAY_TO_DISK
    before, deferred = 0, scalars.deferred_first
    while deferred:
        slot = deferred - 1
        following = slots[slot].following
        if must_wait(system, slots[slot].page, slots[slot].count, deferred):
            before = deferred
        else:
            if before:
                slots[before - 1].following = following
            else:
                scalars.deferred_first = following
            if scalars.deferred_last == deferred:
                scalars.deferred_last = before
            begin_write(system, outbox, slot)
        deferred = following


@lean_kernel
def end_write_out(system: Tables, page: int, count: int, hold: int) -> None:
    """Pages have been written out; all of the crowd are woken while there is room, since who is woken may write nothing."""
    for each in range(page, page + count):
        system.ext.pages[each, FLIGHT] -= 1
        if hold == SSD_FRAME:
            release(system, each)
        if system.ext.pages[each, FLIGHT] == 0:
            wake(system, each)
    scalars = system.scalars
    scalars.going_out -= 1
    if scalars.going_out < scalars.most_going_out:
        wake_line(system, scalars.crowd_first)
        scalars.crowd_first = scalars.crowd_last = 0


@inlined_kernel
def must_join_crowd(system: Tables, client: int) -> bool:
    """Let a client that misses wait if too many pages are on their way out; returns True if the client waits."""
    scalars = system.scalars
    if scalars.going_out < scalars.most_going_out:
        return False
    scalars.crowd_first = line_up(system, scalars.crowd_first, scalars.crowd_last, client)
    scalars.crowd_last = client + 1
    return True


@inlined_kernel
def flags_of(system: Tables, page: int, dirty: int) -> int:
    return (DIRTY_PAGE if dirty else 0) | (SEQUENTIAL if system.ext.pages[page, MARKS] & WAS_SCANNED else 0)


@lean_kernel
def enter(system: Tables, outbox: Integers, page: int) -> None:
    """Let a page take a frame of memory, and another leave it perhaps."""
    system.ext.pages[page, MARKS] &= ~WAS_SCANNED
    outcome = refer(system.memory, system.policy, page, 0)
    if outcome < 0:
        system.scalars.stop_reason = outcome
        return
    if outcome <= TOOK_FREE:
        return
    dirty = 1 if outcome >= WRITE_BACK else 0
    leaving = outcome % WRITE_BACK
    counts_of(system).evicted += 1
    counts_of(system).evicted_dirty += dirty
    actions = manager.ask_on_evict(system.ext, system.design, leaving, flags_of(system, leaving, dirty))
    if actions & TO_SSD and not copy_to_ssd(system, outbox, leaving, 1 if dirty and not actions & TO_DISK else 0):
        actions |= TO_DISK
    if dirty and actions & TO_DISK:
        write_to_disk(system, outbox, leaving, 1, WRITTEN_OUT)


@lean_kernel
def flush_page(system: Tables, outbox: Integers, page: int) -> None:
    """Take a page of memory, which is about to be written to disk, as clean, and copy it to the SSD if the design wants that."""
    system.memory.pages[page, FLAGS] &= ~DIRTY
    if manager.ask_on_evict(system.ext, system.design, page, flags_of(system, page, 1) | CHECKPOINTED) & TO_SSD:
        copy_to_ssd(system, outbox, page, 0)


@inlined_kernel
def modify(system: Tables, page: int) -> None:
    """A page of memory is written; it is newer than its copies now."""
    flags = system.memory.pages[page, FLAGS]
    if not flags & DIRTY:
        system.memory.pages[page, FLAGS] = flags | DIRTY
        manager.apply_on_modify(system.ext, system.design, page)
        check_flushed(system)


@inlined_kernel
def held_page(system: Tables, client: int, number: int) -> RecordArray:
    """One of the pages that a client holds."""
    return system.held_pages[client * system.scalars.most_held + number]


@inlined_kernel
def hold_in_memory(system: Tables, outbox: Integers, client: int, page: int, from_ssd: int) -> None:
    """A page that is about to be read takes a frame, in which it is held until it has come, and by nobody afterwards."""
    enter(system, outbox, page)
    system.memory.pages[page, FLAGS] |= PINNED
    held = held_page(system, client, system.clients[client].holding)
    held.page, held.from_ssd = page, from_ssd
    system.clients[client].holding += 1


@lean_kernel
def finish_ssd_read(system: Tables, outbox: Integers, page: int, flags: int) -> None:
    """A page has come from the SSD."""
    release(system, page)
    if manager.apply_on_serve(system.ext, system.design, page, flags):
        system.memory.pages[page, FLAGS] |= DIRTY
        if rarely(system.scalars.has_log):
            tell_log(system, outbox, log_events.SERVED, page, 0)
    check_flushed(system)
    system.memory.pages[page, FLAGS] &= ~PINNED
    wake(system, page)


@lean_kernel
def finish_disk_read(system: Tables, outbox: Integers, page: int, flags: int) -> None:
    """A page has come from the disk."""
    if manager.apply_on_fetch(system.ext, system.design, page, flags) & TO_SSD:
        copy_to_ssd(system, outbox, page, 0)
    system.memory.pages[page, FLAGS] &= ~PINNED
    wake(system, page)
