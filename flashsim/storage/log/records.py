"""Records of a write-ahead log, as SQL Server 2012 writes them (Do, 2012, 4.2.1) and as restart designs add to them (4.3.3.2).

A record's number in the log (LSN) is its place, the first one's is 1.  A page holds a row a client; an update changes one row, so that
transactions of several clients share pages and each can be undone alone, as under locks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

BEGIN, UPDATE, COMPENSATION, COMMIT, ABORT, BUF_WRITE, BEGIN_CHECKPOINT, TRANSACTIONS, END_CHECKPOINT = range(9)
#: Kinds that restart designs add: entries of the frame table, a frame about to be overwritten, one that was written, one that was cleaned.
SSD_CHECKPOINT, SSD_PRE_WRITE_INVALIDATE, SSD_POST_WRITE, SSD_LAZY_CLEANED = range(9, 13)
KINDS = (
    "begin", "update", "compensation", "commit", "abort", "buf-write", "begin checkpoint", "transactions", "end checkpoint",
    "ssd checkpoint", "ssd pre-write invalidate", "ssd post-write", "ssd lazy cleaned",
)  # fmt: skip

#: States of a frame's entry; a frame that is being written counts as free.
FREE, CLEAN, DIRTY = range(3)
STATES = ("free", "clean", "dirty")


class Entry(NamedTuple):
    """Entry of the frame table for a frame of the SSD (FC)."""

    #: `FREE`, `CLEAN` or `DIRTY`.
    state: int = FREE
    #: The page in the frame.
    page: int = 0
    #: The number of the last record that changed the copy (pageLSN).
    lsn: int = 0
    #: The end of the log before the entry was hardened (beforeHardeningLSN).
    hardened: int = 0


FREE_ENTRY = Entry()


class Version(NamedTuple):
    """A copy of a page: which page, the number of the last record that changed it, and its rows; a torn one fails its checksum."""

    page: int
    lsn: int
    rows: tuple[int, ...]
    is_torn: bool = False

    def with_row(self, lsn: int, row: int, value: int) -> Version:
        return Version(self.page, lsn, (*self.rows[:row], value, *self.rows[row + 1 :]))


#: Bytes of a record without its entries, of an entry in it, and of a transaction in a checkpoint's list of those that run.
RECORD_BYTES, ENTRY_BYTES, ACTIVE_BYTES = 100, 51, 24


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the log; which of the fields have a meaning depends on its kind."""

    kind: int
    transaction: int = 0
    #: The previous record of the same transaction; of a compensation the next one to undo.
    chain: int = 0
    #: Of an update or a compensation: the page, the last record before that changed it (prevPageLSN), the row and its values.
    page: int = 0
    previous: int = 0
    row: int = 0
    before: int = 0
    after: int = 0
    #: Of a `BUF_WRITE`: the page on disk is at least so new.
    lsn: int = 0
    #: Of a restart design's record: the frame, or the first of several, and entries.
    frame: int = 0
    entries: tuple[Entry, ...] = ()
    #: Of `TRANSACTIONS`: the first and the last record of each transaction that runs, by its number.
    active: tuple[tuple[int, int, int], ...] = ()
    #: Of an update or a compensation that can mend a torn page: bytes of the page before, which the record carries, and its rows then.
    image: int = 0
    rows: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return RECORD_BYTES + self.image + ENTRY_BYTES * len(self.entries) + ACTIVE_BYTES * len(self.active)

    def __str__(self) -> str:
        words = [KINDS[self.kind]]
        if self.kind in (BEGIN, UPDATE, COMPENSATION, COMMIT, ABORT):
            words.append(f"of transaction {self.transaction}")
        if self.kind in (UPDATE, COMPENSATION):
            image = " (with the page before)" if self.image else ""
            words.append(f"page {self.page}, row {self.row}: {self.before} -> {self.after}{image}")
        elif self.kind == BUF_WRITE:
            words.append(f"page {self.page}, at least {self.lsn}")
        elif self.kind >= SSD_CHECKPOINT:
            entries = (f"{STATES[each.state]} {each.page}@{each.lsn}" if each.state else STATES[FREE] for each in self.entries)
            words.append(f"frame {self.frame} {', '.join(entries)}".rstrip())
        return ", ".join(words)


#: Stands for a record that has been truncated.
LOST = Record(-1)


class Boot(NamedTuple):
    """The boot page, which a restart reads first: the last checkpoint, whether a shutdown took it, and the oldest records needed."""

    begin: int = 1
    oldest_dirty: int = 1
    oldest_transaction: int = 1
    is_shut_down: bool = False

    @property
    def truncation(self) -> int:
        return min(self.begin, self.oldest_dirty, self.oldest_transaction)
