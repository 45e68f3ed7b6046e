"""A system of pools compiled: what `flashsim.execution.pooled.specification` tells as processes, as a host side of the compiled loop.

Who goes on without delay stands in a ring, first come, first served; completions are dealt with as they are told, before anybody in it.
"""

from flashsim.core.hints import rarely
from flashsim.core.host import heap_pop
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS
from flashsim.core.request import READ, Integers
from flashsim.core.state_table import State
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT, pause
from flashsim.execution.pooled import pages as moves
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.clients import go_on
from flashsim.execution.pooled.requests import ask_pages, chunk_of, get_ready, give_slot, logged, note, note_interval, tell_log
from flashsim.storage.extension import manager
from flashsim.storage.extension import state as ssd
from flashsim.storage.extension.design import CHECKPOINTED, TO_SSD


@lean_kernel
def clean(state: State, outbox: Integers, number: int) -> None:
    """Let a cleaner do what it does until it must wait."""
    sys = at.tables_of(state)[0]
    ext, mine = sys.ext, sys.cleaners[number]
    who = int(sys.numbers[at.CLIENTS]) + number
    if mine[at.STATE] == at.HAS_READ:
        mine[at.STATE] = at.HAS_WRITTEN
        behind = int(mine[at.RUN_FIRST] + mine[at.RUN_COUNT])
        first, count = manager.still_newer(ext, int(mine[at.RUN_FIRST]), behind)
        while count:  # what has been modified meanwhile must not reach the disk after its newer version
            mine[at.RUN_PENDING] += 1
            moves.put_on_disk(state, outbox, first, count, who)
            first, count = manager.still_newer(ext, first + count, behind)
        if mine[at.RUN_PENDING]:
            return
    if mine[at.STATE] == at.HAS_WRITTEN:
        sys.numbers[at.CLEANING] -= mine[at.RUN_COUNT]
        for page in range(mine[at.RUN_FIRST], mine[at.RUN_FIRST] + mine[at.RUN_COUNT]):
            manager.cleaned(ext, page)
            if rarely(sys.numbers[at.LOGGED]):
                tell_log(state, outbox, at.CLEANED, page, 0)
            moves.release(state, page)
        moves.check_flushed(sys)
    mine[at.STATE] = at.LOOK
    first, count = run_to_clean(state)
    if count == 0:
        sys.sleeping[(sys.numbers[at.SLEEPS_LONGEST] + sys.numbers[at.SLEEPING]) % sys.sleeping.shape[0]] = number
        sys.numbers[at.SLEEPING] += 1
        return
    mine[at.RUN_FIRST], mine[at.RUN_COUNT], mine[at.RUN_PENDING], mine[at.STATE] = first, count, count, at.HAS_READ
    sys.numbers[at.CLEANING] += count
    for page in range(first, first + count):
        manager.hold(ext, page)
    note(sys, counted.CLEANINGS)
    note(sys, counted.CLEANER_READS, count)
    for page in range(first, first + count):
        ask_pages(state, outbox, at.SSD_NUMBER, READ, int(ext.pages[page, ssd.FRAME]) - 1, 1, who, page, 1, 0)


@lean_kernel
def run_to_clean(state: State) -> tuple[int, int]:
    """The page that is cleaned first, and its neighbours, if there are too many or its frame has its turn; how many they are."""
    sys = at.tables_of(state)[0]
    ext, numbers = sys.ext, sys.numbers
    page, too_many = manager.due(ext, sys.design), moves.excess(sys)
    for _ in range(ext.partitions.shape[0] if page < 0 < too_many else 0):
        page = manager.oldest_newer(ext, sys.design, int(numbers[at.TURN]))
        numbers[at.TURN] = (numbers[at.TURN] + 1) % ext.partitions.shape[0]
        if page >= 0:
            break
    if page < 0:
        return 0, 0
    begin, end = chunk_of(sys, page)
    first, count = manager.run_of(ext, page, begin, end, int(numbers[at.GROUP]))
    return int(first), int(count)


@lean_kernel
def checkpoint(state: State, outbox: Integers) -> None:
    """Let the checkpointer do what it does until it must wait."""
    sys = at.tables_of(state)[0]
    numbers = sys.numbers
    if rarely(numbers[at.LOGGED]):
        then = tell_log(state, outbox, at.CHECKPOINT, 0, 0)
        if then == at.WRITE_PAGES and write_dirty(state, outbox):
            then = tell_log(state, outbox, at.CHECKPOINT, 1, 0)
        if then != at.GO_ON:
            return
    elif not write_dirty(state, outbox):
        return
    note(sys, counted.CHECKPOINTS)
    sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS]] = numbers[at.CAUSE]
    numbers[at.CHECKPOINTS_AT] = numbers[at.NOW] + numbers[at.CHECKPOINT_EVERY]


@lean_kernel
def write_dirty(state: State, outbox: Integers) -> bool:
    """Write a checkpoint's pages; True once all of them are on disk."""
    sys = at.tables_of(state)[0]
    numbers, pages = sys.numbers, sys.memory.pages
    behind = sys.ext.pages.shape[0]
    while numbers[at.CHECKPOINT_ROW] < behind:
        row = numbers[at.CHECKPOINT_ROW]
        while row < behind and numbers[at.CHECKPOINT_PENDING] < numbers[at.CLEANERS]:
            if pages[row, FLAGS] & DIRTY:
                first = row
                end = min(chunk_of(sys, row)[1], first + numbers[at.GROUP])
                while row < end and pages[row, FLAGS] & DIRTY:
                    pages[row, FLAGS] &= ~DIRTY
                    if manager.when_evicted(sys.ext, sys.design, row, moves.flags_of(sys, row, 1) | CHECKPOINTED) & TO_SSD:
                        moves.copy_to_ssd(state, outbox, row, 0)
                    row += 1
                numbers[at.CHECKPOINT_PENDING] += 1
                moves.write_to_disk(state, outbox, first, row - first, at.FLUSHED)
            else:
                row += 1
        numbers[at.CHECKPOINT_ROW] = row
        if numbers[at.CHECKPOINT_PENDING]:
            return False
    if sys.ext.numbers[ssd.CHECKPOINT] and sys.ext.numbers[ssd.NEWER_FRAMES]:
        numbers[at.FLUSHING] = 1
        while numbers[at.SLEEPING]:
            moves.rouse(sys)
        return False
    sys.ext.numbers[ssd.CHECKPOINT] = 0
    return True


@lean_kernel
def complete(state: State, outbox: Integers, device: int, slot: int) -> None:
    sys = at.tables_of(state)[0]
    numbers = sys.numbers
    who, page, count, hold = sys.slots[slot, at.WHO], sys.slots[slot, at.PAGE], sys.slots[slot, at.COUNT], sys.slots[slot, at.HELD]
    numbers[at.CAUSE] = number = sys.slots[slot, at.NUMBER]
    if device != numbers[at.CPU_NUMBER] and number - numbers[at.ASKED_FIRST] < sys.requests.shape[0]:
        sys.requests[number - numbers[at.ASKED_FIRST], at.COMPLETED] = numbers[at.NOW]
    if device == numbers[at.SSD_NUMBER]:
        numbers[at.SSD_PENDING] -= 1
    if rarely(numbers[at.LOGGED]):
        tell_log(state, outbox, at.COMPLETION, slot, device)
    give_slot(sys, slot)
    if hold == at.DISK_PAGES:
        moves.end_write(state, outbox, page, count)
    clients = numbers[at.CLIENTS]
    if who >= clients:
        mine = sys.cleaners[who - clients]
        mine[at.RUN_PENDING] -= 1
        if mine[at.RUN_PENDING] == 0:
            get_ready(sys, who)
    elif who >= 0:
        if sys.clients[who, at.STATE] != at.SCANNED:
            go_on(state, outbox, who)
            return
        sys.clients[who, at.PENDING] -= 1
        if sys.clients[who, at.PENDING] == 0:
            get_ready(sys, who)
    elif who == at.BOOT_PAGE:
        checkpoint(state, outbox)
    elif who == at.THE_LOG and not rarely(numbers[at.LOGGED]):
        logged(state, outbox)
    elif who > at.TABLE_SECTOR and who != at.THE_LOG:
        moves.written(state, page, count, hold)
        if rarely(numbers[at.LOGGED]):
            tell_log(state, outbox, at.WRITES_OVER, page, count)
        if who == at.BACKGROUND:
            tell_log(state, outbox, at.TIMER, 1, 0)
        elif who == at.FLUSHED:
            numbers[at.CHECKPOINT_PENDING] -= 1
            if numbers[at.CHECKPOINT_PENDING] == 0:
                get_ready(sys, clients + numbers[at.CLEANERS])


@kernel_of(ACT, seconds=6)
def act(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    """A request completed; or somebody goes on who need not wait any longer."""
    sys = at.tables_of(state)[0]
    numbers = sys.numbers
    numbers[at.NOW] = now
    note_interval(sys, now)
    if device >= 0:
        complete(state, outbox, device, tag)
    elif numbers[at.READY_FIRST] < numbers[at.READY_LAST]:
        who = sys.ready[numbers[at.READY_FIRST] % sys.ready.shape[0]]
        numbers[at.READY_FIRST] += 1
        numbers[at.CAUSE] = sys.causes[who]
        if who < numbers[at.CLIENTS]:
            go_on(state, outbox, who)
        elif who < numbers[at.CLIENTS] + numbers[at.CLEANERS]:
            clean(state, outbox, who - numbers[at.CLIENTS])
        else:
            checkpoint(state, outbox)
    elif numbers[at.THINKING] > 0 and sys.thinkers[0, 0] <= now:
        client = sys.thinkers[0, 1]
        numbers[at.THINKING] = heap_pop(sys.thinkers, numbers[at.THINKING])
        numbers[at.CAUSE] = sys.causes[client]
        go_on(state, outbox, client)
    elif numbers[at.CHECKPOINTS_AT] <= now:
        numbers[at.CHECKPOINTS_AT] = NEVER
        numbers[at.CAUSE] = sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS]]
        if not rarely(numbers[at.LOGGED]):
            numbers[at.CHECKPOINT_ROW] = FIRST_PAGE
            sys.ext.numbers[ssd.CHECKPOINT] = not numbers[at.FUZZY]
        checkpoint(state, outbox)
    elif min(numbers[at.FLUSHER_AT], numbers[at.WRITER_AT]) <= now:
        tell_log(state, outbox, at.TIMER, 0, 0)
    is_low = numbers[at.TRANSACTIONS_HELD] - numbers[at.TRANSACTION] < numbers[at.LOW] and not numbers[at.ENDED]
    if numbers[at.BROKEN] or is_low or numbers[at.ASKED] >= numbers[at.HAND_OUT_AT]:
        pause(outbox)
    if numbers[at.READY_FIRST] < numbers[at.READY_LAST]:
        return now
    following = min(numbers[at.CHECKPOINTS_AT], numbers[at.FLUSHER_AT], numbers[at.WRITER_AT])
    return int(min(following, sys.thinkers[0, 0]) if numbers[at.THINKING] > 0 else following)
