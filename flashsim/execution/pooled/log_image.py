"""What of a compiled system with a log would survive a crash now, without contents of pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import Integers
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.log_tables import LogTables
from flashsim.execution.pooled.logging_design import IN_A_SECTOR
from flashsim.execution.pooled.run import PoolRun
from flashsim.storage.log.durable import BOOT, FRAMES, LOG, PAGES, TABLE
from flashsim.storage.log.records import Boot

#: A write: what it changes (`flashsim.storage.log.durable`), and a row for each page, frame, entry or record: its number, and versions.
OutstandingWrite = tuple[int, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class LogImage:
    """What would survive.

    Parameters
    ----------
    disk
        The version of each page on disk, shape (pages,).
    frames
        The page and its version in each frame of the SSD, shape (frames, 2).
    table
        What the frame table's file has: state, page, version, and the end of the log before it was written, shape (frames, 4).
    first, end
        The first record that is kept, and the first that is not durable.
    outstanding
        Writes that devices have not completed.
    """

    disk: Integers
    frames: Integers
    table: Integers
    boot: Boot
    first: int
    end: int
    outstanding: tuple[OutstandingWrite, ...]


def image_of(run: PoolRun) -> LogImage:
    """The image of a run with a log, now."""
    log, scalars = run.log, run.log.scalars if run.log else None
    assert log is not None and scalars is not None, "there is a log"
    boot = Boot(int(scalars.boot_begin), int(scalars.boot_dirty), int(scalars.boot_transaction))
    frames, table = log.frames, _entries(log.frames, "file_")
    table = np.column_stack([table, log.frames.file_hardened])
    outstanding = tuple(sorted(_outstanding(run, log)))
    return LogImage(
        np.array(log.pages.disk[FIRST_PAGE:]), np.column_stack([frames.holds, frames.version]), table, boot, int(scalars.kept),
        int(scalars.end), outstanding,
    )  # fmt: skip


def _entries(rows: np.ndarray, before: str) -> Integers:
    return np.column_stack([rows[f"{before}state"], rows[f"{before}page"], rows[f"{before}lsn"]]).astype(np.int64)


def _outstanding(run: PoolRun, log: LogTables) -> list[OutstandingWrite]:
    slots, scalars, writes = run.tables.slots, log.scalars, list[OutstandingWrite]()
    idle = {-who - 1 for who in log.waiting[: scalars.waiting].tolist() if who < 0}
    free = int(run.tables.numbers[at.FREE_SLOT])
    while free < len(slots):
        idle.add(free)
        free = int(slots[free, at.WHO])
    deferred = int(run.tables.numbers[at.DEFERRED_FIRST])
    while deferred:
        idle.add(deferred - 1)
        deferred = int(slots[deferred - 1, at.NUMBER])
    for slot in sorted(set(range(len(slots))) - idle):
        who, page, count, held, _ = slots[slot].tolist()
        if held == at.SSD_FRAME:
            writes.append((FRAMES, ((int(log.needs[slot].frame), page, int(log.needs[slot].version)),)))
        elif held == at.DISK_PAGES:
            writes.append((PAGES, tuple((page + each, int(log.versions[slot, each])) for each in range(count))))
        elif who == at.THE_LOG:
            writes.append((LOG, tuple((lsn,) for lsn in range(int(scalars.end), int(scalars.behind)))))
        elif who == at.BOOT_PAGE:
            writes.append((BOOT, ((0, int(scalars.next_begin), int(scalars.next_dirty), int(scalars.next_transaction)),)))
        elif who == at.TABLE_SECTOR:
            rows = slice(page * IN_A_SECTOR, (page + 1) * IN_A_SECTOR)
            entries = _entries(log.frames[rows], "sent_").tolist()
            writes.append((TABLE, tuple((frame, *entry, 0) for frame, entry in enumerate(entries, rows.start))))
        elif who == at.TABLE_CHUNK:
            chunk = log.chunk[: len(log.frames) - scalars.flushed * scalars.chunk]
            taken = zip(chunk.freed.tolist(), _entries(chunk, "").tolist(), strict=True)
            writes.append((TABLE, tuple((frame - 1, *entry, int(scalars.hardened)) for frame, entry in taken if frame)))
    return writes


def records_of(run: PoolRun) -> list[tuple[int, ...]]:
    """Records that are kept, those in memory included: kind, transaction, chain, page, previous, version, frame, and payload."""
    log = run.log
    assert log is not None, "there is a log"
    scalars = log.scalars
    payload: dict[int, list[int]] = {}
    for lsn, *row in sorted(log.payload[: scalars.payload].tolist()):
        payload.setdefault(lsn, []).extend(row)
    rows = log.records[scalars.kept - scalars.first : scalars.appended + 1 - scalars.first]
    columns = [rows[name].tolist() for name in ("kind", "transaction", "chain", "page", "previous", "lsn", "frame")]
    return [(*row, *payload.get(lsn, ())) for lsn, row in enumerate(zip(*columns, strict=True), int(scalars.kept))]
