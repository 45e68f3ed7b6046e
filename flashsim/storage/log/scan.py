"""Analysis and redo compiled, over records in arrays, for logs of tens of millions of records.

`flashsim.storage.log.recovery` has the same in plain Python, with contents of pages; here a page is the number of its last record, and the
log comes in batches, so that memory grows with the pages and transactions that analysis keeps and not with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.draws import mixed
from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers
from flashsim.storage.log import records as log
from flashsim.storage.log.recovery import RedoFailureError

#: A record, whose number is that of its batch and its place there.
RECORD = np.dtype(
    [("kind", np.uint8), ("transaction", np.int64), ("chain", np.int64), ("page", np.int64), ("previous", np.int64), ("lsn", np.int64)],
    align=True,
)
Records = npt.NDArray[np.void]
_FREE = -1


class KeyTable(NamedTuple):
    """Two numbers a key, found by hashing; keys are at least 0, and at most half of the rows are taken."""

    #: Shape (power of two, 3): the key, -1 for none, and its numbers.
    rows: Integers
    #: Rows taken, shape (1,).
    size: Integers


def table(room: int = 1024) -> KeyTable:
    """An empty table for at least so many keys."""
    rows = np.full((1 << max(1, 2 * room - 1).bit_length(), 3), _FREE, np.int64)
    return KeyTable(rows, np.zeros(1, np.int64))


def entries(of: KeyTable) -> Integers:
    """Keys and their numbers, by key, shape (n, 3)."""
    taken = of.rows[of.rows[:, 0] >= 0]
    return taken[np.argsort(taken[:, 0])]


@inlined_kernel
def _slot(rows: Integers, key: int) -> int:
    """Row of a key, or the free row where it would stand."""
    row = mixed(int(key)) & (rows.shape[0] - 1)
    while rows[row, 0] >= 0 and rows[row, 0] != key:
        row = (row + 1) & (rows.shape[0] - 1)
    return row


@lean_kernel
def _remove(of: KeyTable, row: int) -> None:
    """Free a row, and move up those behind that would not be found any more."""
    rows, last = of.rows, of.rows.shape[0] - 1
    of.size[0] -= 1
    hole, row = row, (row + 1) & last
    while rows[row, 0] >= 0:
        home = mixed(int(rows[row, 0])) & last
        if ((row - home) & last) >= ((row - hole) & last):
            rows[hole, 0], rows[hole, 1], rows[hole, 2] = rows[row, 0], rows[row, 1], rows[row, 2]
            hole = row
        row = (row + 1) & last
    rows[hole, 0] = -1


@inlined_kernel
def _is_full(of: KeyTable) -> bool:
    return 2 * (of.size[0] + 1) > of.rows.shape[0]


@lean_kernel
def _analyse(records: Records, first: int, begin: int, pages: KeyTable, transactions: KeyTable) -> int:
    """Let records from row `begin` on change both tables; the row behind the last one, where a table is full before the end."""
    for place in range(begin, records.shape[0]):
        if _is_full(pages) or _is_full(transactions):
            return place
        record, lsn = records[place], first + place
        kind = record.kind
        if kind == log.BEGIN or kind == log.UPDATE or kind == log.COMPENSATION:
            row = _slot(transactions.rows, record.transaction)
            if transactions.rows[row, 0] < 0:
                transactions.rows[row, 0], transactions.rows[row, 1] = record.transaction, 0
                transactions.size[0] += 1
            transactions.rows[row, 1] = max(transactions.rows[row, 1], lsn)
        elif kind == log.COMMIT or kind == log.ABORT:
            row = _slot(transactions.rows, record.transaction)
            if transactions.rows[row, 0] >= 0:
                _remove(transactions, row)
        elif kind == log.BUF_WRITE:
            row = _slot(pages.rows, record.page)
            if pages.rows[row, 0] >= 0 and pages.rows[row, 2] <= record.lsn:
                _remove(pages, row)
        if kind == log.UPDATE or kind == log.COMPENSATION:
            row = _slot(pages.rows, record.page)
            if pages.rows[row, 0] < 0:
                pages.rows[row, 0], pages.rows[row, 1] = record.page, lsn
                pages.size[0] += 1
            pages.rows[row, 2] = lsn
    return int(records.shape[0])


@lean_kernel
def _redo(records: Records, first: int, pages: KeyTable, versions: Integers, counts: Integers) -> int:
    """Apply records to the versions of pages, which stand by row of the table; the place of one that cannot be, or -1."""
    for place in range(records.shape[0]):
        record, lsn = records[place], first + place
        if record.kind != log.UPDATE and record.kind != log.COMPENSATION:
            continue
        row = _slot(pages.rows, record.page)
        if pages.rows[row, 0] < 0 or lsn < pages.rows[row, 1] or versions[row] >= lsn:
            continue
        if versions[row] != record.previous:
            return place
        versions[row] = lsn
        counts[0] += 1
    return -1


@lean_kernel
def _move(rows: Integers, to: Integers) -> None:
    for row in range(rows.shape[0]):
        if rows[row, 0] >= 0:
            slot = _slot(to, rows[row, 0])
            to[slot, 0], to[slot, 1], to[slot, 2] = rows[row, 0], rows[row, 1], rows[row, 2]


def _grown(of: KeyTable) -> KeyTable:
    """The table with four times the room, if it is full."""
    if 2 * (int(of.size[0]) + 1) <= len(of.rows):
        return of
    larger = table(2 * len(of.rows))
    _move(of.rows, larger.rows)
    larger.size[0] = of.size[0]
    return larger


class LogScan:
    """Analysis, and then redo, of a log in batches.

    `batches` makes the batches, from the first record that recovery needs on, each time the same: the number of the first record, and
    records.  `active` has the transactions that ran at the checkpoint, and their last records, shape (n, 2).
    """

    def __init__(self, batches: Callable[[], Iterable[tuple[int, Records]]], active: Integers | None = None) -> None:
        self._batches = batches
        #: Pages that the disk may lack: their first and last record; transactions that did not end: their last record.
        active = np.zeros((0, 2), np.int64) if active is None else active
        self.pages, self.transactions = table(), table(max(1024, len(active)))
        _move(np.pad(active, ((0, 0), (0, 1))), self.transactions.rows)
        self.transactions.size[0] = len(active)
        self.scanned = self.redone = 0

    def analyse(self) -> None:
        """Fill both tables.

        Raises
        ------
        InvalidParameterError
            A batch is no records.
        """
        for first, batch in self._batches():
            if batch.dtype != RECORD:
                raise InvalidParameterError("batches", str(batch.dtype), "records of a log are needed")
            place = 0
            while place < len(batch):
                place = _analyse(batch.view(np.recarray), first, place, self.pages, self.transactions)
                self.pages, self.transactions = _grown(self.pages), _grown(self.transactions)
            self.scanned += len(batch)

    def redo(self, read: Callable[[Integers], Integers]) -> Integers:
        """Apply records to the pages that analysis kept; their numbers and those of their last records, by page, shape (n, 2).

        `read` gives the last record of the copy that is read of each page, shape (n,), from page numbers in the order in which redo needs
        them.

        Raises
        ------
        RedoFailureError
            A copy lacks a record that is not in the log any more.
        """
        taken = np.flatnonzero(self.pages.rows[:, 0] >= 0)
        order = taken[np.argsort(self.pages.rows[taken, 1])]
        versions, counts = np.zeros(len(self.pages.rows), np.int64), np.zeros(1, np.int64)
        versions[order] = read(self.pages.rows[order, 0])
        for first, batch in self._batches():
            place = _redo(batch.view(np.recarray), first, self.pages, versions, counts)
            if place >= 0:
                raise RedoFailureError(f"record {first + place}: page {batch['page'][place]} is not at {batch['previous'][place]}")
        self.redone = int(counts[0])
        return np.stack([self.pages.rows[taken, 0], versions[taken]], 1)[np.argsort(self.pages.rows[taken, 0])]
