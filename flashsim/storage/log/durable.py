"""State of a database that survives a crash: copies of pages on disk and SSD, the frame table's file, the log, and the boot page.

Writes reach it when devices complete them, in any order; one that was outstanding at a crash has been done, or not, or in part.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from flashsim.core.request import SECTOR
from flashsim.storage.log.records import FREE_ENTRY, Boot, Entry, Record, Version

#: What a write changes: pages on disk, frames of the SSD, entries of the frame table, the end of the log, the boot page.
PAGES, FRAMES, TABLE, LOG, BOOT = range(5)
TARGETS = ("disk", "ssd", "frame table", "log", "boot page")


class DurableWrite(NamedTuple):
    """A write of a device: what it changes, and to what, by page, frame or number of the record."""

    target: int
    items: tuple[tuple[int, Any], ...]
    #: Of records: the place of the first one in a log that is never overwritten (`Ring`), -1 if nobody asks where they lie.
    place: int = -1

    def __str__(self) -> str:
        return f"{TARGETS[self.target]} {', '.join(str(key) for key, _ in self.items)}"


class DurableRead(NamedTuple):
    """A read of a device, all of which is wanted before anything else: of what, and which pages, frames, entries or records, in order."""

    target: int
    keys: range | tuple[int, ...]


class Ring(NamedTuple):
    """Bytes of a device behind its first sector, round which the writes of a log go: each takes whole sectors, in a row.

    A place is counted from the log's first byte on as if nothing were ever overwritten, and lies at the rest of its division by `size`.
    """

    size: int

    @classmethod
    def of(cls, room: int) -> Ring:
        return cls(max(1, room // SECTOR - 1) * SECTOR)

    def place(self, behind: int, length: int) -> int:
        """Place of the next write, behind all others: sectors at the ring's end are left out if they are too few for it."""
        return behind + (-behind % self.size if behind % self.size + length > self.size else 0)


def whole_sectors(length: int) -> int:
    """Bytes of the sectors that take `length` bytes."""
    return -(-length // SECTOR) * SECTOR


@dataclass
class Durable:
    """State that survives a crash."""

    #: Rows of a page, all 0 where it was never written.
    rows: int
    disk: dict[int, Version] = field(default_factory=dict)
    ssd: dict[int, Version] = field(default_factory=dict)
    table: dict[int, Entry] = field(default_factory=dict)
    log: dict[int, Record] = field(default_factory=dict)
    boot: Boot = field(default_factory=Boot)
    #: The number of the first record that the log still has.
    first: int = 1
    #: Whether a crash tears pages that are being written to disk; otherwise the disk writes them whole.
    tears: bool = False
    #: The ring of the log's device, the places of records there, and of each of its sectors the place that was written last.
    ring: Ring | None = None
    places: dict[int, int] = field(default_factory=dict)
    sectors: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Self:
        left = copy.copy(self)
        left.disk, left.ssd, left.table, left.log = self.disk.copy(), self.ssd.copy(), self.table.copy(), self.log.copy()
        left.places, left.sectors = self.places.copy(), self.sectors.copy()
        return left

    @property
    def end(self) -> int:
        """The number of the record that comes next: behind the last of those that are there without a gap."""
        return next(lsn for lsn in itertools.count(self.first) if lsn not in self.log)

    def on_disk(self, page: int) -> Version:
        return self.disk.get(page) or Version(page, 0, (0,) * self.rows)

    def in_frame(self, frame: int) -> Version:
        """The page in a frame; a torn one where nothing was ever written."""
        return self.ssd.get(frame) or Version(0, 0, (0,) * self.rows, is_torn=True)

    def entry(self, frame: int) -> Entry:
        return self.table.get(frame, FREE_ENTRY)

    def records_from(self, first: int, end: int) -> Iterator[tuple[int, Record]]:
        return ((lsn, self.log[lsn]) for lsn in range(first, end))

    def bytes_from(self, first: int, end: int) -> int:
        return sum(self.log[lsn].length for lsn in range(first, end))

    def apply(self, write: DurableWrite) -> None:
        if write.target == BOOT:
            self.boot = write.items[0][1]
        else:
            targets: Mapping[int, dict[int, Any]] = {PAGES: self.disk, FRAMES: self.ssd, TABLE: self.table, LOG: self.log}
            targets[write.target].update(write.items)
        if self.ring and write.place >= 0:
            behind = write.place
            for lsn, record in write.items:
                self.places[lsn], behind = behind, behind + record.length
            for place in range(write.place // SECTOR * SECTOR, behind, SECTOR):
                self.sectors[place % self.ring.size] = place

    def first_overwritten(self, first: int, end: int) -> int:
        """The first of some records of which the log's device has not all sectors any more; 0 for none."""
        if self.ring is None or max(self.sectors.values(), default=0) < self.ring.size:  # it has not gone round yet
            return 0
        for lsn in range(first, end):
            if (begin := self.places.get(lsn)) is not None:
                sectors = range(begin // SECTOR * SECTOR, begin + self.log[lsn].length, SECTOR)
                if any(self.sectors[place % self.ring.size] != place for place in sectors):
                    return lsn
        return 0

    @property
    def behind(self) -> int:
        """The place behind the last sector of the log."""
        return whole_sectors(max((place + self.log[lsn].length for lsn, place in self.places.items()), default=0))

    def room(self, lengths: Iterable[int]) -> int:
        """Bytes that the log's device needs for the records that are kept and further writes of these lengths (bytes)."""
        assert self.ring, "nobody asks where records lie"
        behind = self.behind
        oldest = self.places.get(self.first, behind)
        for length in map(whole_sectors, lengths):
            behind = self.ring.place(behind, length) + length
        return SECTOR + behind - oldest // SECTOR * SECTOR

    def truncate(self, first: int) -> None:
        for lsn in range(self.first, first):
            self.log.pop(lsn, None)
            self.places.pop(lsn, None)
        self.first = max(self.first, first)

    def crash(self, outstanding: list[DurableWrite], draw: np.random.Generator | None = None) -> Durable:
        """State that is left where some writes were outstanding: without `draw` none was done.

        Of several pages or records each may have been written, of records only the first ones.  A frame may be torn in the midst, behind
        its old header or its new one, and so may a page on a disk that tears.  A sector of the frame table and the boot page are written
        whole or not.
        """
        left = self.copy()
        if draw is None:
            return left
        for target, items, place in outstanding:
            if target == LOG:
                done = items[: int(draw.integers(len(items) + 1))]
            elif target in (TABLE, BOOT):
                done = items if draw.integers(2) else ()
            else:
                done = tuple(item for item in items if draw.integers(2))
                if (target == FRAMES or self.tears) and draw.integers(3) == 0:
                    before = self.in_frame if target == FRAMES else self.on_disk
                    done = tuple((key, (version if draw.integers(2) else before(key))._replace(is_torn=True)) for key, version in items)
            if done:
                left.apply(DurableWrite(target, done, place))
        return left
