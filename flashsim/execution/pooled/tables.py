"""The state of the compiled form of a system of pools: records and tables with named fields, which all its kernels take as ``system``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.groups import group_type
from flashsim.core.policies import Policies, addresses_of, function_at
from flashsim.core.records import MATRIX, VECTOR, RecordArray, empty_record, empty_table, record_dtype, record_of_type, table_type
from flashsim.core.replacement import POOL, Numbers, PoolState, rows_of
from flashsim.core.request import Integers
from flashsim.core.state_table import state_of
from flashsim.core.units import NEVER
from flashsim.execution.pooled.log_tables import LOG_TABLES_TYPE, LogTables
from flashsim.execution.pooled.options import PoolOptions
from flashsim.execution.pooled.system import COUNTED, CPU, DISK, LOG, SSD, PoolSystem
from flashsim.storage.extension.state import EXTENSION, PAGE_COLUMNS, Extension

#: Options of which the kernels read only what `PoolSystem` makes of them.
_CONVERTED = ("cleaners", "dirty_limit", "filling", "going_out", "partitions", "random_only")
#: Scalars that have the names and the values of a `PoolSystem`'s: all other options that are numbers, and what it makes of the rest.
_GIVEN = (
    *(each.name for each in fields(PoolOptions) if each.type in (int, bool) and each.name not in _CONVERTED),
    *("page_size", "chunk", "interval", "dirty_limit_frames", "slack", "most_cleanings", "most_going_out", "expands_below"),
)
#: A system's scalars.  Lines of clients and of slots have their first and last as one more than its number, 0 for none.
SCALARS = record_dtype(
    int64=" ".join(_GIVEN) + " "
    # Devices' numbers in the loop, -1 for none, bytes of the log's, and requests that the SSD has outstanding.
    "disk_device ssd_device log_device cpu_device log_room ssd_pending "
    # The time, the request that whatever happens now has waited for, and numbers of those who go on beside clients and cleaners.
    "now cause checkpointer flusher writer "
    # Who is ready in the ring, entries of the heap of those that think, the first of the free slots, and pages that a client may hold.
    "ready_first ready_last thinking free_slot most_held "
    # Transactions of the table: the next one, how many there are, at how many left more are wanted, and whether there are no more at all.
    "transaction transactions_held low ended "
    # Cleaners that sleep, and the first of them in the ring; pages that are being cleaned, the partition whose turn it is, and down to how
    # many pages newer than on disk the cleaners work.
    "sleeping sleeps_longest cleaning turn goal "
    # The line of clients whose commits are to be written and its bytes, the line whose commits are being written, whether they are, and
    # where the log's writes have come to on its device.
    "commit_first commit_last commit_bytes writing_first is_log_writing log_end "
    # When the next checkpoint begins, the page up to which one has come, its outstanding writes, and whether it waits for cleaners.
    "checkpoint_at checkpoint_row checkpoint_pending flushing "
    # Writes of pages that are outstanding, the line of clients that wait until they are fewer, and that of slots of deferred writes.
    "going_out crowd_first crowd_last deferred_first deferred_last "
    # The present interval and its end.
    "interval_now interval_ends "
    # Requests issued, the first one in the table of requests, and at how many of them they are handed out.
    "issued kept_first hand_out_at "
    # Whether there is a log of records, and when its flusher and its background writer go on.
    "has_log flusher_at writer_at "
    # Why the system stopped: a policy's breach of its contract, or one of the reasons below.
    "stop_reason"
)
#: Transactions end in no time; more records were made in one event than there is room for.
NO_TIME_PASSES, TOO_MANY_RECORDS = 1, 2

#: A client: its step (`flashsim.execution.pooled.clients`), its present reference and the one behind its last, where its scan is and ends
#: (`place` of a reference to a single page: 1 once it is counted), how many references wrote, requests that it waits for, pages that it
#: holds, who waits behind it in a line, of what kind its transaction is, and the page that it needs to undo an update.
CLIENT = record_dtype(int64="step reference end_reference place behind written pending holding next_waiting kind undoing")
#: A page that a client holds while it is read, and whether it comes from the SSD.
HELD_PAGE = record_dtype(int64="page from_ssd")
#: A cleaner: its step, the first page of its run and the run's length, and requests that it waits for.
CLEANER = record_dtype(int64="step first count pending")
#: A request, or a write that is deferred: who asked, a page, how many, what is held for it, the request that whoever waits for it goes on
#: after (its own number, or of a processor's work the last one before), and the next of free slots or, 1 more, of deferred writes.
SLOT = record_dtype(int64="who page count held cause following")
#: Holds of a request until it completes: none, the SSD's frame, or the pages against other writes to disk.
NOTHING, SSD_FRAME, DISK_PAGES = range(3)
#: Origins of a request: a client or a cleaner (the clients first) by its number, and these; the last four with a log of records.
WRITTEN_OUT, FLUSHED, THE_LOG, BACKGROUND, TABLE_SECTOR, TABLE_CHUNK, BOOT_PAGE = range(-1, -8, -1)
#: A request as it is recorded: when it was issued, at which device, operation, place and length in bytes, the request after whose
#: completion it was and when it completed, -1 for none, and the client, cleaner or other origin that issued it.
ISSUED = record_dtype(int64="time device_number operation offset length cause completed who")
#: Counters of an interval.
COUNTS = record_dtype(int64=" ".join(COUNTED))


class Tables(NamedTuple):
    """The state of a system."""

    memory: PoolState
    ext: Extension
    #: SCALARS.
    scalars: RecordArray
    #: Addresses of the memory pool's policy, and of the design.
    policy: Policies
    design: Policies
    #: CLIENT.
    clients: RecordArray
    #: HELD_PAGE, so many rows per client.
    held_pages: RecordArray
    #: CLEANER, and a ring of those that sleep.
    cleaners: RecordArray
    sleeping: Integers
    #: A ring of who goes on: clients, cleaners behind them, and the checkpointer.
    ready: Integers
    #: A heap of clients that think, shape (clients, 2).
    thinkers: Integers
    #: Request after whose completion each goes on, or went on last, by number as in that ring; behind the checkpointer come the log's
    #: flusher and its background writer.
    causes: Integers
    #: SLOT.
    slots: RecordArray
    #: References of transactions that run and that are to come, and where each of the latter begins and the last one ends.
    references: Integers
    bounds: Integers
    #: Kind of each transaction that runs or is to come.
    kinds: Integers
    #: COUNTS of each interval.
    series: RecordArray
    #: Transactions that ended in each interval, by their kind, shape (intervals, kinds).
    by_kind: Integers
    #: End of the last transaction of each kind so far.
    ended: Integers
    #: ISSUED from one on.
    requests: RecordArray
    #: Address of the log's part, if there is a log of records, and its tables.
    log_part: Policies
    log: LogTables


TABLES_TYPE = group_type(
    (
        POOL, EXTENSION, record_of_type(SCALARS), VECTOR, VECTOR, table_type(CLIENT), table_type(HELD_PAGE), table_type(CLEANER),
        VECTOR, VECTOR, MATRIX, VECTOR, table_type(SLOT), MATRIX, VECTOR, VECTOR, table_type(COUNTS), MATRIX, VECTOR, table_type(ISSUED),
        VECTOR, LOG_TABLES_TYPE,
    ),
    Tables,
)  # fmt: skip
STATE_TYPE = types.Tuple((TABLES_TYPE,))
tables_of = state_of(STATE_TYPE)

#: The log's part in what happens, ``log_part(system, outbox, event, first, second)`` (`flashsim.execution.pooled.log_events`).
LOG_PART = types.int64(TABLES_TYPE, MATRIX, types.int64, types.int64, types.int64)
log_part_at = function_at(types.FunctionType(LOG_PART))


def initial_tables(
    system: PoolSystem, devices: Mapping[int, int], log_room: int, intervals: int, request_rows: int, kinds: int, log: LogTables
) -> Tables:
    """A system at time 0, whose devices have numbers in the loop, by what they are for, and whose log's device has so many bytes.

    It counts intervals and kinds of transactions, and records so many requests.
    """
    cleaners = system.most_cleanings if system.ssd else 0
    scalars = empty_record(SCALARS)
    for name in _GIVEN:
        scalars[name] = getattr(system, name)
    scalars.disk_device, scalars.ssd_device, scalars.log_device, scalars.cpu_device = (
        devices.get(each, -1) for each in (DISK, SSD, LOG, CPU)
    )
    scalars.most_held = max(system.expansion, system.read_ahead)
    scalars.log_room, scalars.cause, scalars.low = log_room, -1, 1024 + 16 * system.clients
    scalars.goal = scalars.hand_out_at = scalars.flusher_at = scalars.writer_at = NEVER
    scalars.interval_ends, scalars.checkpoint_at = system.interval, system.checkpoint or NEVER
    scalars.checkpointer = system.clients + system.most_cleanings  # behind all cleaners that there could be
    scalars.flusher, scalars.writer = scalars.checkpointer + 1, scalars.checkpointer + 2
    ready = np.zeros(2 * (system.clients + cleaners + 1), np.int64)
    ready[: system.clients + cleaners] = np.arange(system.clients + cleaners)
    scalars.ready_last = system.clients + cleaners
    thinkers = np.zeros((system.clients, 2), np.int64)
    if system.think:
        thinkers[:, 0], thinkers[:, 1] = system.think, np.arange(system.clients)
        scalars.thinking = system.clients
        ready[:cleaners] = system.clients + np.arange(cleaners)
        scalars.ready_last = cleaners
    slots = empty_table(len(log.versions) or system.most_requests, SLOT)
    slots.following = np.arange(1, len(slots) + 1)
    own, others = _pages_of(system.rows, system.policy.row)
    return Tables(
        system.policy.state(system.memory, system.pages, table=own), system.extension(others), scalars,
        system.policy.kernels, system.design.kernels, empty_table(system.clients, CLIENT),
        empty_table(system.clients * scalars.most_held, HELD_PAGE), empty_table(system.most_cleanings, CLEANER),
        np.zeros(system.most_cleanings, np.int64), ready, thinkers, np.full(scalars.writer + 1, -1), slots,
        np.zeros((0, 3), np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), empty_table(intervals, COUNTS),
        np.zeros((intervals, kinds), np.int64), np.zeros(kinds, np.int64), empty_table(request_rows, ISSUED), addresses_of(), log,
    )  # fmt: skip


def _pages_of(rows: int, own: int) -> tuple[Numbers, Numbers]:
    """Tables of pages for the memory pool and for the SSD, whose rows are one: what is known of a page is in one line of a cache.

    The SSD's begins where its columns do in the first row.
    """
    columns = 1 << (own + PAGE_COLUMNS - 1).bit_length()
    room = rows_of(rows + 1, columns).reshape(-1)
    shifted = room[columns - PAGE_COLUMNS :][: rows * columns]
    return room[: rows * columns].reshape(rows, columns), shifted.reshape(rows, columns)
