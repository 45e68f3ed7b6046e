"""The tables of the compiled form of a system of pools, and their columns; modules that use them call this one `at`."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.groups import group_type
from flashsim.core.policies import Policies, called_at, function_at
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.replacement import POOL, Numbers, PoolState, rows_of
from flashsim.core.request import Integers
from flashsim.core.state_table import state_of
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT
from flashsim.execution.pooled.system import COUNTED, PoolSystem
from flashsim.storage.extension.state import EXTENSION, PAGE_COLUMNS, Extension

#: Numbers of a system.
(
    CLIENTS, THINK, PAGE_SIZE, EXPANSION, THROTTLE, LIMIT, SLACK, GROUP, CLEANERS, CHECKPOINT_EVERY, FUZZY, LOG_BYTES, HAS_WORK, CHUNK,
    READ_AHEAD, INTERVAL, MOST_GOING_OUT, EXPANDS_BELOW, TRIMMING, LOG_ROOM,
    # Devices by their purposes.
    DISK_NUMBER, SSD_NUMBER, LOG_NUMBER, CPU_NUMBER,
    # What changes.
    SSD_PENDING, READY_FIRST, READY_LAST, FREE_SLOT, THINKING, SLEEPING, SLEEPS_LONGEST, CLEANING, TURN, GOAL, COMMIT_FIRST, COMMIT_LAST,
    COMMIT_BYTES, GROUP_FIRST, LOGGING, LOG_END, CHECKPOINTS_AT, CHECKPOINT_ROW, CHECKPOINT_PENDING, FLUSHING, TRANSACTION,
    TRANSACTIONS_HELD, ENDED, LOW, ASKED, BROKEN, GOING_OUT, CROWD_FIRST, CROWD_LAST, DEFERRED_FIRST, DEFERRED_LAST,
    INTERVAL_NOW, INTERVAL_ENDS, CAUSE, ASKED_FIRST, HAND_OUT_AT, NOW, LOGGED, FLUSHER_AT, WRITER_AT,
) = range(64)  # fmt: skip

# Columns of a client: what it does when it goes on, its present reference and the one behind its last, where its scan is and ends, how
# many references wrote, requests that it waits for, pages that it holds, who waits behind it, of what kind its
# transaction is, and the page that it needs to undo an update.
STATE, REFERENCE, LAST_REFERENCE, AT, BEHIND, WRITTEN, PENDING, HOLDING, NEXT_WAITING, KIND, UNDOING = range(11)
#: Actions of a client that goes on.
BEGIN, REFER, FROM_SSD, FROM_DISK, SCANNED, WORKED, COMMITTED, GONE, ABORTING = range(9)
# Columns of a cleaner: what it does when it goes on, the first page of its run, its length, requests that it waits for.
RUN_FIRST, RUN_COUNT, RUN_PENDING = 1, 2, 3
LOOK, HAS_READ, HAS_WRITTEN = range(3)
# Columns of a request: who asked, or what it is, a page, how many, what is held for it, and the number of the request that whoever waits
# for it goes on after: its own, or of a processor's work the last one before.  In a free row the first is the next free one; in that of a
# deferred write, the last is one more than the row of the next deferred one.
WHO, PAGE, COUNT, HELD, NUMBER = range(5)
#: Holds of a request until it completes: none, the SSD's frame, or the pages against other writes to disk.
NOTHING, SSD_FRAME, DISK_PAGES = range(3)
#: Origins of a request: a client or a cleaner (the clients first) by its number, and these; the last four with a log of records.
WRITTEN_OUT, FLUSHED, THE_LOG, BACKGROUND, TABLE_SECTOR, TABLE_CHUNK, BOOT_PAGE = range(-1, -8, -1)

# Columns of what was asked: when, at which device, operation, offset, length, the request after whose completion it was, and when it
# completed; both -1 for none.
AT_TIME, OF_DEVICE, OPERATION, OFFSET, LENGTH, AFTER, COMPLETED = range(7)

#: Reasons why a system stopped, besides a policy's breach of its contract: transactions end in no time; more records were made in one
#: event than there is room for.
NO_TIME_PASSES, TOO_MANY_RECORDS = 1, 2
#: What the log's part is called for (`flashsim.execution.pooled.logged_engine`), by `ACT`'s signature with two numbers besides.
(
    WRITE_FRAME, PUT, WRITE_DISK, COMPLETION, WRITES_OVER, CLEANED, SERVED, CHANGE, END, UNDO_PAGE, COMPENSATE, CHECKPOINT, TIMER, LEFT,
) = range(14)  # fmt: skip
#: Its answers on a client's end and a checkpoint's step.
GO_ON, WAIT, UNDO, WRITE_PAGES = range(4)


class Tables(NamedTuple):
    """The state of a system."""

    memory: PoolState
    ext: Extension
    numbers: Integers
    #: Addresses of the memory pool's policy, and of the design.
    policy: Policies
    design: Policies
    #: Shape (clients, 11).
    clients: Integers
    #: Pages that each client holds while it reads them, and 1 above bit 32 if from the SSD, shape (clients, most).
    client_pages: Integers
    #: Shape (cleaners, 4), and a ring of those that sleep.
    cleaners: Integers
    sleeping: Integers
    #: A ring of who goes on: clients, cleaners behind them, and the checkpointer.
    ready: Integers
    #: A heap of clients that think, shape (clients, 2).
    thinkers: Integers
    #: Request after whose completion each goes on, or went on last, by number as in that ring; behind the checkpointer come the log's
    #: flusher and its background writer.
    causes: Integers
    #: Shape (requests, 5).
    slots: Integers
    #: References of transactions that run and that are to come, and where each of the latter begins and the last one ends.
    references: Integers
    bounds: Integers
    #: Kind of each transaction that runs or is to come.
    kinds: Integers
    #: Counts of each interval, shape (intervals, counted).
    series: Integers
    #: Transactions that ended in each interval, by their kind, shape (intervals, kinds).
    by_kind: Integers
    #: End of the last transaction of each kind so far.
    ended: Integers
    #: Requests from one on, shape (n, 7).
    requests: Integers
    #: Address of the log's part, if there is a log of records.
    log: Policies


TABLES_TYPE = group_type(
    (
        POOL, EXTENSION, VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, VECTOR, VECTOR, MATRIX, VECTOR, MATRIX, MATRIX, VECTOR, VECTOR,
        MATRIX, MATRIX, VECTOR, MATRIX, VECTOR,
    ),
    Tables,
)  # fmt: skip
STATE_TYPE = types.Tuple((TABLES_TYPE,))
tables_of = state_of(STATE_TYPE)
#: ``log_of(sys.log[0])(state, outbox, what, a, b)`` in a kernel.
log_of = function_at(types.FunctionType(ACT))


def tables(
    system: PoolSystem, devices: Mapping[int, int], log_room: int, intervals: int, request_rows: int, kinds: int = 1, more: int = 0
) -> Tables:
    """A system at time 0.

    Parameters
    ----------
    devices
        Its devices' numbers in the loop, by what they are for.
    log_room
        Bytes of the log's device.
    intervals
        Of which is told what happened in them.
    request_rows
        How many requests are kept.
    kinds
        Of transactions.
    more
        Requests that may be outstanding besides those of the system itself.
    """
    most_cleanings = system.most_cleanings
    cleaners = most_cleanings if system.ssd else 0
    everybody = system.clients + cleaners + 1
    numbers = np.zeros(WRITER_AT + 1, np.int64)
    numbers[:LOG_ROOM] = [
        system.clients, system.think, system.page_size, system.expansion, system.throttle, system.limit, system.slack, system.group,
        most_cleanings, system.checkpoint, system.fuzzy, system.log_bytes, system.work > 0, system.chunk, system.read_ahead,
        system.interval, system.most_going_out, system.expands_below, system.trimming,
    ]  # fmt: skip
    numbers[LOG_ROOM] = log_room
    for purpose, place in enumerate((DISK_NUMBER, SSD_NUMBER, LOG_NUMBER, CPU_NUMBER)):
        numbers[place] = devices.get(purpose, -1)
    numbers[GOAL], numbers[INTERVAL_ENDS] = NEVER, system.interval
    numbers[CAUSE], numbers[HAND_OUT_AT] = -1, NEVER
    numbers[CHECKPOINTS_AT] = system.checkpoint or NEVER
    numbers[FLUSHER_AT] = numbers[WRITER_AT] = NEVER
    numbers[LOW] = 1024 + 16 * system.clients
    most = max(system.expansion, system.read_ahead)
    ready = np.zeros(2 * everybody, np.int64)
    # The checkpointer has its number behind all cleaners that there could be.
    ready[: system.clients + cleaners] = np.arange(system.clients + cleaners)
    numbers[READY_LAST] = system.clients + cleaners
    thinkers = np.zeros((system.clients, 2), np.int64)
    if system.think:
        thinkers[:, 0], thinkers[:, 1] = system.think, np.arange(system.clients)
        numbers[THINKING] = system.clients
        ready[:cleaners] = system.clients + np.arange(cleaners)
        numbers[READY_LAST] = cleaners
    slots = np.zeros((system.most_requests + more, 5), np.int64)
    slots[:, WHO] = np.arange(1, len(slots) + 1)
    own, others = _pages_of(system.rows, system.policy.row)
    return Tables(
        system.policy.state(system.memory, system.pages, table=own), system.extension(others), numbers,
        system.policy.kernels, system.design.kernels, np.zeros((system.clients, 11), np.int64), np.zeros((system.clients, most), np.int64),
        np.zeros((most_cleanings, 4), np.int64), np.zeros(most_cleanings, np.int64), ready, thinkers,
        np.full(system.clients + most_cleanings + 3, -1), slots, np.zeros((0, 3), np.int64),
        np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((intervals, len(COUNTED)), np.int64),
        np.zeros((intervals, kinds), np.int64), np.zeros(kinds, np.int64), np.zeros((request_rows, 7), np.int64),
        called_at(),
    )  # fmt: skip


def _pages_of(rows: int, own: int) -> tuple[Numbers, Numbers]:
    """Tables of pages for the memory pool and for the SSD, whose rows are one: what is known of a page is in one line of a cache.

    The SSD's begins where its columns do in the first row.
    """
    columns = 1 << (own + PAGE_COLUMNS - 1).bit_length()
    room = rows_of(rows + 1, columns).reshape(-1)
    shifted = room[columns - PAGE_COLUMNS :][: rows * columns]
    return room[: rows * columns].reshape(rows, columns), shifted.reshape(rows, columns)
