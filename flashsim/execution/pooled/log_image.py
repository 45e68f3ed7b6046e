"""State of a compiled system with a log that would survive a crash, and how one goes on after a restart; contents of pages are left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flashsim.core.records import empty_table
from flashsim.core.replacement import DIRTY, FIRST_PAGE, FLAGS
from flashsim.execution.pooled.log_kernels import LAST_CHECKPOINT, enqueue, set_entry, take_place
from flashsim.execution.pooled.log_tables import RECORD, LogTables, with_room
from flashsim.execution.pooled.tables import BOOT_PAGE, DISK_PAGES, SSD_FRAME, TABLE_CHUNK, TABLE_SECTOR, THE_LOG, Tables
from flashsim.storage.extension import manager
from flashsim.storage.log import records
from flashsim.storage.log.durable import BOOT, FRAMES, LOG, PAGES, TABLE, Durable, DurableWrite, whole_sectors
from flashsim.storage.log.records import Boot, Entry, Record, Version
from flashsim.storage.log.recovery import Recovery
from flashsim.storage.pool.reference import refer


class _EntryRows(dict[int, Any]):
    """Surviving entries by number, made from arrays when it is read; what is set since is kept."""

    def __init__(self, made: Callable[[int], Any], since: dict[int, Any] | None = None) -> None:
        super().__init__(since or {})
        self._made = made

    def __missing__(self, key: int) -> Any:
        return self._made(key)

    def get(self, key: int, default: Any = None) -> Any:
        row = self[key]
        return default if row is None else row

    def copy(self) -> _EntryRows:
        return _EntryRows(self._made, self)


class DurableImage(Durable):
    """Surviving state, over copies of the arrays of the log's tables."""

    def __init__(self, log: LogTables) -> None:
        scalars = log.scalars
        boot = Boot(int(scalars.boot_begin), int(scalars.boot_dirty), int(scalars.boot_transaction), bool(scalars.boot_last))
        super().__init__(0, boot=boot, first=int(scalars.kept))
        self.durable_end, self._chunk = int(scalars.end), int(scalars.chunk)
        self.records = log.records[scalars.kept - scalars.first : scalars.appended + 1 - scalars.first].copy()
        self._bytes, self._has_images = int(scalars.bytes), bool(scalars.images)
        self.payload = log.payload[: scalars.payload].copy()
        self._pages, self._frames = log.pages.disk.copy(), log.frames.copy()
        self.disk, self.ssd, self.table, self.log = map(_EntryRows, (self._version, self._content, self._entry, self.record))

    def _version(self, page: int) -> Version:
        return Version(page, int(self._pages[page]), ())

    def _content(self, frame: int) -> Version:
        holds, version = int(self._frames.holds[frame]), int(self._frames.version[frame])
        return Version(holds, version, (), is_torn=not holds)

    def _entry(self, frame: int) -> Entry:
        row = self._frames[frame]
        return Entry(int(row.file_state), int(row.file_page), int(row.file_lsn), int(row.file_hardened))

    def record(self, lsn: int) -> Record | None:
        """A record, durable or in memory; None if it is truncated."""
        place = lsn - self.first
        return self._record(lsn, self.records[place].item()) if 0 <= place < len(self.records) else None

    def _record(self, lsn: int, row: tuple[int, ...]) -> Record:
        transaction, chain, page, previous, of, frame, _, _, kind, _ = row
        if kind not in _WITH_ROWS:
            image = self._bytes_before(lsn + 1) - self._bytes_before(lsn) - records.RECORD_BYTES if self._has_images else 0
            return Record(kind, transaction, chain, page, previous, 0, 0, 0, of, frame, image=image)
        rows = self.payload[slice(*np.searchsorted(self.payload.lsn, [lsn, lsn + 1]))].tolist()
        if kind == records.TRANSACTIONS:
            return Record(kind, active=tuple((number, first, last) for _, number, first, last, _ in sorted(rows)))
        by_frame = {each: Entry(*entry) for _, each, *entry in rows}
        count = min(self._chunk, len(self._frames) - frame) if kind == records.SSD_CHECKPOINT else 1
        return Record(kind, frame=frame, entries=tuple(by_frame.get(each, records.FREE_ENTRY) for each in range(frame, frame + count)))

    def records_from(self, first: int, end: int) -> Iterator[tuple[int, Record]]:
        for begin in range(first, min(end, self.durable_end), _BATCH):
            rows = self.records[begin - self.first : min(begin + _BATCH, end, self.durable_end) - self.first].tolist()
            yield from ((lsn, self._record(lsn, row)) for lsn, row in enumerate(rows, begin))
        yield from ((lsn, self.log[lsn]) for lsn in range(max(first, self.durable_end), end))

    def bytes_from(self, first: int, end: int) -> int:
        if end > self.durable_end:
            return super().bytes_from(first, end)
        return self._bytes_before(end) - self._bytes_before(first) if first < end else 0

    def _bytes_before(self, lsn: int) -> int:
        place = lsn - self.first
        return int(self.records.bytes[place]) if place < len(self.records) else self._bytes

    @property
    def end(self) -> int:
        return next(lsn for lsn in itertools.count(self.durable_end) if lsn not in self.log)


#: Records with rows of payload, and how many records are made at a time.
_WITH_ROWS, _BATCH = frozenset((records.SSD_CHECKPOINT, records.SSD_POST_WRITE, records.TRANSACTIONS)), 1 << 16


def _entries(rows: np.ndarray[Any, Any], before: str, hardened: int) -> list[Entry]:
    columns = (rows[f"{before}{name}"].tolist() for name in ("state", "page", "lsn"))
    return [Entry(state, page, lsn, hardened) for state, page, lsn in zip(*columns, strict=True)]


def image_of(tables: Tables) -> tuple[DurableImage, list[DurableWrite]]:
    """The durable state at this moment, and the writes that devices have not completed."""
    log, slots = tables.log, tables.slots
    durable, scalars, writes = DurableImage(log), log.scalars, list[DurableWrite]()
    idle = {-who - 1 for who in log.waiting[: scalars.waiting].tolist() if who < 0}
    free = int(tables.scalars.free_slot)
    while free < len(slots):
        idle.add(free)
        free = int(slots[free].following)
    deferred = int(tables.scalars.deferred_first)
    while deferred:
        idle.add(deferred - 1)
        deferred = int(slots[deferred - 1].following)
    for slot in sorted(set(range(len(slots))) - idle):
        who, page, count, held, _, _ = slots[slot].tolist()
        items: list[tuple[int, Any]] = []
        if held == SSD_FRAME:
            target, items = FRAMES, [(int(log.needs[slot].frame), Version(page, int(log.needs[slot].version), ()))]
        elif held == DISK_PAGES:
            target = PAGES
            items = [(page + each, Version(page + each, int(log.versions[slot, each]), ())) for each in range(count)]
        elif who == THE_LOG:
            target, items = LOG, [(lsn, durable.record(lsn)) for lsn in range(int(scalars.end), int(scalars.behind))]
        elif who == BOOT_PAGE:
            oldest = int(scalars.next_begin), int(scalars.next_dirty), int(scalars.next_transaction)
            target, items = BOOT, [(0, Boot(*oldest, scalars.last == LAST_CHECKPOINT))]
        elif who == TABLE_SECTOR:
            first = page * int(scalars.in_a_sector)
            target, items = TABLE, list(enumerate(_entries(log.frames[first : first + int(scalars.in_a_sector)], "sent_", 0), first))
        elif who == TABLE_CHUNK:
            chunk = log.chunk[: len(log.frames) - scalars.flushed * scalars.chunk]
            taken = zip(chunk.freed.tolist(), _entries(chunk, "", int(scalars.hardened)), strict=True)
            target, items = TABLE, [(frame - 1, entry) for frame, entry in taken if frame]
        else:
            continue
        writes.append(DurableWrite(target, tuple(items)))
    return durable, writes


def resume(tables: Tables, recovered: Recovery) -> Tables:
    """Let a system that has not begun go on from what recovery has made: pages in memory, frames of the SSD, and the log.

    `recovered` is a recovery of a `DurableImage`.
    """
    durable = recovered.durable
    assert isinstance(durable, DurableImage), "contents are left out"
    log, end, first = tables.log, durable.end, FIRST_PAGE
    scalars = log.scalars
    rows = range(first, len(log.pages))
    log.pages.disk[first:] = [durable.on_disk(page).lsn for page in rows]
    log.pages.last[first:] = [recovered.newest(page).lsn for page in rows]
    for frame in range(len(log.frames)):
        row, version = log.frames[frame], durable.in_frame(frame)
        row.holds, row.version = version.page, version.lsn
        row.file_state, row.file_page, row.file_lsn, row.file_hardened = durable.entry(frame)
    recorded = empty_table(end - durable.first, RECORD)
    there = durable.records[: durable.durable_end - durable.first]
    recorded[: len(there)] = there
    scalars.bytes = there.bytes[0] + durable.bytes_from(durable.first, durable.durable_end) if len(there) else 0
    for lsn in sorted(durable.log):  # what recovery has added: compensations and ends of transactions
        record, row = durable.log[lsn], recorded[lsn - durable.first]
        for name in ("kind", "transaction", "chain", "page", "previous"):
            row[name] = getattr(record, name)
        row.bytes, scalars.bytes = scalars.bytes, scalars.bytes + record.length
    log.frames.is_double[list(recovered.doubles)] = 1
    scalars.first = scalars.kept = durable.first
    scalars.appended, scalars.end = end - 1, end
    scalars.began = recorded.transaction.max(initial=0)
    payload = durable.payload[durable.payload.lsn < end]
    scalars.payload = len(payload)
    scalars.boot_begin, scalars.boot_dirty, scalars.boot_transaction, scalars.boot_last = durable.boot
    log = log._replace(records=recorded, payload=payload)
    if len(there):
        last = durable.durable_end - 1
        scalars.place = whole_sectors(int(there.place[-1]) + durable.bytes_from(last, last + 1))
    if tables.scalars.log_device >= 0 and durable.durable_end < end:
        take_place(log, durable.durable_end, end, int(scalars.bytes))
    log = with_room(log)
    for page in recovered.pages:
        refer(tables.memory, tables.policy, page, 0)
        if page in recovered.changed:
            tables.memory.pages[page, FLAGS] |= DIRTY
            log.pages[page].dirty = recovered.dirty[page][0]
            enqueue(log, page)
    for frame, entry, newer in recovered.warm_frames(len(rows)):
        manager.restore(tables.ext, tables.design, entry.page, frame, int(newer))
        set_entry(log, frame, records.DIRTY if newer else records.CLEAN, entry.page, entry.lsn)
        if newer:
            log.pages[entry.page].dirty = recovered.dirty[entry.page][0]
    manager.chain_free(tables.ext)
    return tables._replace(log=log)
