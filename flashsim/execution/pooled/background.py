"""The log, the cleaners and the checkpointer."""

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import DIRTY, FLAGS
from flashsim.core.request import READ, SECTOR, WRITE, Integers
from flashsim.core.state_table import State
from flashsim.execution.pooled import columns as at
from flashsim.execution.pooled import system as counted
from flashsim.execution.pooled.pages import check_flushed, copy_to_ssd, excess, flags_of, put_on_disk, release, rouse, write_to_disk
from flashsim.execution.pooled.requests import ask, ask_pages, chunk_of, get_ready, note
from flashsim.execution.pooled.tables import tables_of
from flashsim.storage.extension import state as ssd
from flashsim.storage.extension.design import CHECKPOINTED, TO_SSD
from flashsim.storage.extension.manager import cleaned, due, hold, oldest_newer, run_of, still_newer, when_evicted


@lean_kernel
def write_log(state: State, outbox: Integers, now: int) -> None:
    sys = tables_of(state)[0]
    numbers = sys.numbers
    length = -(-numbers[at.COMMIT_BYTES] // SECTOR) * SECTOR
    numbers[at.GROUP_FIRST], numbers[at.COMMIT_FIRST], numbers[at.COMMIT_LAST], numbers[at.COMMIT_BYTES], numbers[at.LOGGING] = (
        numbers[at.COMMIT_FIRST],
        0,
        0,
        0,
        1,
    )
    if numbers[at.LOG_END] + length > numbers[at.LOG_ROOM]:
        numbers[at.LOG_END] = 0
    note(sys, counted.LOG_WRITES)
    ask(state, outbox, now, int(numbers[at.LOG_NUMBER]), WRITE, int(numbers[at.LOG_END]), length, at.THE_LOG, 0, 0, 0)
    numbers[at.LOG_END] += length


@lean_kernel
def commit(state: State, outbox: Integers, now: int, client: int, length: int) -> None:
    """A client commits: so many bytes of log are to be written."""
    sys = tables_of(state)[0]
    numbers = sys.numbers
    sys.clients[client, at.NEXT_WAITING] = 0
    if numbers[at.COMMIT_LAST]:
        sys.clients[numbers[at.COMMIT_LAST] - 1, at.NEXT_WAITING] = client + 1
    else:
        numbers[at.COMMIT_FIRST] = client + 1
    numbers[at.COMMIT_LAST] = client + 1
    numbers[at.COMMIT_BYTES] += length
    if not numbers[at.LOGGING]:
        write_log(state, outbox, now)


@lean_kernel
def logged(state: State, outbox: Integers, now: int) -> None:
    """The log has been written, and those whose commits it held go on."""
    sys = tables_of(state)[0]
    client = sys.numbers[at.GROUP_FIRST] - 1
    while client >= 0:
        get_ready(sys, client)
        client = sys.clients[client, at.NEXT_WAITING] - 1
    sys.numbers[at.LOGGING] = 0
    if sys.numbers[at.COMMIT_FIRST]:
        write_log(state, outbox, now)


@lean_kernel
def clean(state: State, outbox: Integers, now: int, number: int) -> None:
    """Let a cleaner do what it does until it must wait."""
    sys = tables_of(state)[0]
    ext, mine = sys.ext, sys.cleaners[number]
    who = int(sys.numbers[at.CLIENTS]) + number
    if mine[at.STATE] == at.HAS_READ:
        mine[at.STATE] = at.HAS_WRITTEN
        behind = int(mine[at.RUN_FIRST] + mine[at.RUN_COUNT])
        first, count = still_newer(ext, int(mine[at.RUN_FIRST]), behind)
        while count:  # what has been modified meanwhile must not reach the disk after its newer version
            mine[at.RUN_PENDING] += 1
            put_on_disk(state, outbox, now, first, count, who)
            first, count = still_newer(ext, first + count, behind)
        if mine[at.RUN_PENDING]:
            return
    if mine[at.STATE] == at.HAS_WRITTEN:
        sys.numbers[at.CLEANING] -= mine[at.RUN_COUNT]
        for page in range(mine[at.RUN_FIRST], mine[at.RUN_FIRST] + mine[at.RUN_COUNT]):
            cleaned(ext, page)
            release(state, page)
        check_flushed(sys)
    mine[at.STATE] = at.LOOK
    first, count = run_to_clean(state)
    if count == 0:
        sys.sleeping[(sys.numbers[at.SLEEPS_LONGEST] + sys.numbers[at.SLEEPING]) % sys.sleeping.shape[0]] = number
        sys.numbers[at.SLEEPING] += 1
        return
    mine[at.RUN_FIRST], mine[at.RUN_COUNT], mine[at.RUN_PENDING], mine[at.STATE] = first, count, count, at.HAS_READ
    sys.numbers[at.CLEANING] += count
    for page in range(first, first + count):
        hold(ext, page)
    note(sys, counted.CLEANINGS)
    note(sys, counted.CLEANER_READS, count)
    for page in range(first, first + count):
        ask_pages(state, outbox, now, at.SSD_NUMBER, READ, int(ext.pages[page, ssd.FRAME]) - 1, 1, who, page, 1, 0)


@lean_kernel
def run_to_clean(state: State) -> tuple[int, int]:
    """The page that is cleaned first, and its neighbours, if there are too many or its frame has its turn; how many they are."""
    sys = tables_of(state)[0]
    ext, numbers = sys.ext, sys.numbers
    page, too_many = due(ext, sys.design), excess(sys)
    for _ in range(ext.partitions.shape[0] if page < 0 < too_many else 0):
        page = oldest_newer(ext, sys.design, int(numbers[at.TURN]))
        numbers[at.TURN] = (numbers[at.TURN] + 1) % ext.partitions.shape[0]
        if page >= 0:
            break
    if page < 0:
        return 0, 0
    begin, end = chunk_of(sys, page)
    first, count = run_of(ext, page, begin, end, int(numbers[at.GROUP]))
    return int(first), int(count)


@lean_kernel
def checkpoint(state: State, outbox: Integers, now: int) -> None:
    """Let the checkpointer do what it does until it must wait."""
    sys = tables_of(state)[0]
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
                    if when_evicted(sys.ext, sys.design, row, flags_of(sys, row, 1) | CHECKPOINTED) & TO_SSD:
                        copy_to_ssd(state, outbox, now, row, 0)
                    row += 1
                numbers[at.CHECKPOINT_PENDING] += 1
                write_to_disk(state, outbox, now, first, row - first, at.FLUSHED)
            else:
                row += 1
        numbers[at.CHECKPOINT_ROW] = row
        if numbers[at.CHECKPOINT_PENDING]:
            return
    if sys.ext.numbers[ssd.CHECKPOINT] and sys.ext.numbers[ssd.NEWER_FRAMES]:
        numbers[at.FLUSHING] = 1
        while numbers[at.SLEEPING]:
            rouse(sys)
        return
    sys.ext.numbers[ssd.CHECKPOINT] = 0
    note(sys, counted.CHECKPOINTS)
    sys.causes[numbers[at.CLIENTS] + numbers[at.CLEANERS]] = numbers[at.CAUSE]
    numbers[at.CHECKPOINTS_AT] = now + numbers[at.CHECKPOINT_EVERY]
