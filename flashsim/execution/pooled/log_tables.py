"""The tables of the compiled form of a log and a restart design.

Contents of pages are left out: a version of a page is the number of the record that changed it last (LSN), 0 for none.
"""

from typing import NamedTuple

import numpy as np

from flashsim.core.groups import group_type
from flashsim.core.records import MATRIX, VECTOR, RecordArray, empty_record, empty_table, record_dtype, record_of_type, table_type
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.system import PoolSystem
from flashsim.storage.log.durable import Ring
from flashsim.storage.log.recovery import CLEANED, MODIFIED, REPLACED, WRITTEN

#: The log's scalars.  `replaced` to `cleaned` say how each change of an entry is hardened, -1: not at all.  Of the log, the first record
#: in the table, the last one, the first that is not durable, up to which one is wanted, behind which the outstanding write ends (0: none
#: is outstanding), the place behind its writes, the device's bytes and those of its ring, the most that was in use at a time, and bytes of
#: all records.  Of the boot page what is durable and what its write brings, and the oldest record kept.  Of the checkpoint its stage and
#: what it waits for; clients that have left, and how far a shutdown is; of the flusher its chunk, passes, and the pass that is awaited; of
#: the background writer pages in its heap.
SCALARS = record_dtype(
    int64="replaced written modified cleaned flushes at_once logs_table aborts indirect batch chunk pause frames table_place in_a_sector "
    "flush_writes images first appended end wanted behind place room ring needed bytes began kept "
    "boot_begin boot_dirty boot_transaction boot_last next_begin next_dirty next_transaction stage lsn awaited left last "
    "flushed passes hardened payload waiting on_disk queued"
)
#: A record, whose number is that of the table's first and its place there; `bytes` of the log come before it.  `lsn` is that of a
#: BUF_WRITE or of an entry; `state` that of an entry; `place` where it lies (`flashsim.storage.log.durable.Ring`), once it is written.
RECORD = record_dtype(int64="transaction chain page previous lsn frame bytes place", int8="kind state")
#: A page: the last record that changed it; the first that the disk lacks (0: none), and that by which the background writer's heap has it;
#: the version on disk; the frame, 1 more than its number, and the version that are on their way to the SSD; the frame, 1 more than its
#: number, whose entry has it; the record that hardens that it left a frame, and how many such frames wait for writes of their sectors; and
#: whether a record since its last write to disk began has an image of it.
PAGE = record_dtype(int64="last dirty queued disk to_version to_frame entry lsn leaves", int8="imaged")
#: A frame: its entry, the record that freed it, the write of its sector that hardens it; the page that left it (0: none, or that is
#: hardened), and the write that hardens that; the entry that an outstanding write of its sector brings, and what the table's file has; the
#: page in it, and of which version; whether the table's file may say that it has a page that another frame has.
FRAME = record_dtype(
    int64="page lsn freed write left left_write sent_page sent_lsn file_page file_lsn file_hardened holds version",
    int8="state sent_state file_state is_double",
)
#: A sector of the table: flushes that began, the last one that is wanted, flushes that ended, and writes left of the one under way.
SECTOR_ROW = record_dtype(int64="begun wanted ended left")
#: A request, or whoever else waits: the record and the sector's write that it needs, and of a frame's write the frame and the version.
NEED = record_dtype(int64="lsn sector write frame version")
#: A client's transaction, 0 for none, its first and last record, and the record that is to be undone next.
TRANSACTION = record_dtype(int64="transaction first last undo page")
#: A version of a page that has reached the disk.
ON_DISK = record_dtype(int64="page version")
#: A row that belongs to a record: an active transaction's number, first and last record, or a frame's number, its entry's state and page,
#: and the version.
PAYLOAD = record_dtype(int64="lsn number first second third")
_TABLES = (RECORD, PAGE, FRAME, SECTOR_ROW, NEED, TRANSACTION, FRAME, ON_DISK, PAYLOAD)

#: Records and payload rows that are free at the least when an event begins, besides those of a checkpoint.
SLACK = 4096


class LogTables(NamedTuple):
    """The state of a log and of what is hardened."""

    scalars: RecordArray
    records: RecordArray
    pages: RecordArray
    frames: RecordArray
    sectors: RecordArray
    #: By slot of a request, then by number of who goes on.
    needs: RecordArray
    transactions: RecordArray
    #: Entries that the flusher's outstanding write brings; `freed` is a frame's number.
    chunk: RecordArray
    #: ON_DISK since the last BUF_WRITE records.
    on_disk: RecordArray
    payload: RecordArray
    #: Versions of the pages of a write to disk, shape (slots, group).
    versions: Integers
    #: Who waits, in order: numbers of who goes on, and of slots -1 and less.
    waiting: Integers
    #: A heap of records that the disk lacks, and their pages; shape (n, 2).
    oldest: Integers


LOG_TABLES_TYPE = group_type((record_of_type(SCALARS), *map(table_type, _TABLES), MATRIX, VECTOR, MATRIX), LogTables)


def outstanding_sectors(system: PoolSystem, logging: Logging) -> int:
    """Requests for the log and the frame table that may be outstanding beside those of the system."""
    return -(-system.ssd // logging.restart.in_a_sector) + 2


def without_log() -> LogTables:
    """The tables of a system that has no log of records."""
    matrix = np.zeros((0, 2), np.int64)
    return LogTables._make([empty_record(SCALARS), *(empty_table(0, each) for each in _TABLES), matrix, np.zeros(0, np.int64), matrix])


def log_tables(system: PoolSystem, logging: Logging, room: int) -> LogTables:
    """A log without a record, on a device of so many bytes."""
    scalars, hardens, frames = empty_record(SCALARS), logging.restart.hardens, system.ssd
    for name, change in (("replaced", REPLACED), ("written", WRITTEN), ("modified", MODIFIED), ("cleaned", CLEANED)):
        scalars[name] = hardens.get(change, -1)
    for name in ("aborts", "indirect", "batch", "flush_writes", "chunk", "pause"):
        scalars[name] = getattr(logging, name)
    scalars.flushes, scalars.at_once = logging.restart.flushes and frames > 0, logging.restart.logs_at_once
    scalars.logs_table, scalars.in_a_sector = logging.restart.logs_table, logging.restart.in_a_sector
    scalars.images, scalars.frames, scalars.table_place = system.page_size if logging.images else 0, frames, frames * system.page_size
    scalars.room, scalars.ring = room, Ring.of(room).size
    scalars.first = scalars.end = scalars.kept = 1
    scalars.boot_begin = scalars.boot_dirty = scalars.boot_transaction = 1
    slots, records = system.most_requests + outstanding_sectors(system, logging), 2 * (SLACK + frames)
    who = slots + system.clients + system.most_cleanings + 1
    return LogTables(
        scalars, empty_table(records, RECORD), empty_table(system.rows, PAGE), empty_table(frames, FRAME),
        empty_table(outstanding_sectors(system, logging), SECTOR_ROW), empty_table(who, NEED), empty_table(system.clients, TRANSACTION),
        empty_table(logging.chunk, FRAME), empty_table(logging.batch, ON_DISK), empty_table(records, PAYLOAD),
        np.zeros((slots, system.group), np.int64), np.zeros(who, np.int64),
        np.zeros((4 * system.rows if logging.indirect else 0, 2), np.int64),
    )  # fmt: skip


def with_room(tables: LogTables) -> LogTables:
    """The tables with room for the records of any one event, if need be without those that have been truncated."""
    scalars, least = tables.scalars, SLACK + len(tables.frames)
    taken = scalars.appended + 1 - scalars.first
    if min(len(tables.records) - taken, len(tables.payload) - scalars.payload) >= least:
        return tables
    there = tables.records[scalars.kept - scalars.first : taken]
    records = empty_table(2 * (len(there) + least), RECORD)
    records[: len(there)] = there
    rows = tables.payload[: scalars.payload]
    rows = rows[rows.lsn >= scalars.kept]
    payload = empty_table(2 * (len(rows) + least), PAYLOAD)
    payload[: len(rows)] = rows
    scalars.first, scalars.payload = scalars.kept, len(rows)
    return tables._replace(records=records, payload=payload)


assert FIRST_PAGE > 0, "page 0 means none"
