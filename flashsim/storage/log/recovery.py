"""Recovery of a database from what survived: the frame table, then analysis, redo and undo (Do, 2012, 4.2.1.3).

It is a generator of its reads and writes.  Each write is durable before recovery goes on, so that a crash may come after each; what it has
made of memory is lost then, and it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from flashsim.core.errors import FlashsimError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR
from flashsim.storage.log import records as log
from flashsim.storage.log import restart_contract as contract
from flashsim.storage.log.durable import BOOT, FRAMES, LOG, PAGES, TABLE, Durable, DurableRead, DurableWrite
from flashsim.storage.log.records import CLEAN, DIRTY, FREE, FREE_ENTRY, Entry, Record, Version

#: Pages that redo reads together, and memory writes to make room, at most.
AHEAD = 256
#: Reads and writes, one after the other.
Steps = Generator[DurableRead | DurableWrite, None, None]


class RedoFailureError(FlashsimError):
    """A record cannot be redone: the page is not as it was before, or a record that is needed has been truncated."""


#: Changes of a frame's entry that a restart design may harden: the page of a clean frame is about to be overwritten; a page has been
#: written, to disk as well if it had to be; a page in memory became newer than its copy; the disk got what was newer on the SSD.
REPLACED, WRITTEN, MODIFIED, CLEANED = range(4)
#: How: in the frame table's file, whoever caused it waits; by a record of the log; by one that is on the log's device at once.
IN_TABLE, IN_LOG, IN_LOG_AT_ONCE = range(3)


@dataclass(frozen=True)
class RestartDesign:
    """A restart design: what it hardens, and its part in recovery; see `algorithms.restart.base`."""

    #: As it was asked for.
    name: str
    #: How each change of an entry is hardened; others are not.
    hardens: Mapping[int, int]
    #: Whether the whole frame table is written again and again, chunk by chunk.
    flushes: bool
    #: Fills in the entries before analysis.
    load: Callable[[Recovery], Steps]
    #: Lets a record of the log change entries in analysis.
    meet: Callable[[Recovery, int, Record], None]
    #: What goes wrong without each of its guards, by name.
    guards: Mapping[str, str]
    #: Bytes of an entry of the frame table.
    entry: int = 51

    @property
    def logs_at_once(self) -> bool:
        """True if frames wait for records of the log before they are overwritten."""
        return IN_LOG_AT_ONCE in self.hardens.values()

    @property
    def logs_table(self) -> bool:
        """True if checkpoints write the frame table into the log."""
        return self.logs_at_once and not self.flushes

    @property
    def in_a_sector(self) -> int:
        return SECTOR // self.entry


@dataclass
class Phases:
    """Work of each phase of recovery, for its time: entries loaded, frames verified, records scanned, pages read for redo and undo."""

    entries_loaded: int = 0
    frames_verified: int = 0
    records_scanned: int = 0
    records_redone: int = 0
    redo_reads: int = 0
    undo_reads: int = 0
    records_undone: int = 0
    pages_written: int = 0


class Recovery:
    """A recovery from what survived, by a restart design, of an SSD with a number of frames; its writes change what survived.

    More pages than `memory` holds are written to disk.  `without` are guards that are switched off, and `image` the bytes of a page that
    the first compensation of a page carries, so that the page can be mended; 0 for none.
    """

    def __init__(
        self, durable: Durable, restart: RestartDesign, frames: int, memory: int, without: Collection[str] = (), image: int = 0
    ) -> None:
        self.durable, self.restart, self.frames, self.room, self.without = durable, restart, frames, memory, without
        self.entries: dict[int, Entry] = {}
        self.frame_of: dict[int, int] = {}
        #: Frames that are held against their entries when they are first read.
        self.unverified: set[int] = set()
        #: Frames that count as free since another one has their page; the table's file says otherwise.
        self.doubles: set[int] = set()
        #: Pages that may be newer than on disk: the first record that the disk may lack, and the last one.
        self.dirty: dict[int, tuple[int, int]] = {}
        #: Transactions that neither committed nor ended: their last record.
        self.losers: dict[int, int] = {}
        self.pages: dict[int, Version] = {}
        #: Pages of memory that recovery changed.
        self.changed: set[int] = set()
        self._tail: list[Record] = []
        #: Pages with an image among the compensations since they were last written, and torn pages that no image has mended yet.
        self._image, self._imaged, self._torn = image, set[int](), set[int]()
        self.phases, self.phase = Phases(), "load"
        self.end = durable.end

    @property
    def first_scanned(self) -> int:
        return max(1, min(self.durable.boot.oldest_dirty, self.durable.boot.begin))

    def has(self, guard: str) -> bool:
        return guard not in self.without

    def run(self) -> Steps:
        yield DurableRead(BOOT, (0,))
        yield from contract.load_steps(self.restart.name, lambda: self.restart.load(self))
        contract.check_entries(self.restart.name, "load", self.frames, self.entries, self.frame_of)
        if self.durable.boot.is_shut_down and self.has("shutdown-ends"):
            yield DurableWrite(BOOT, ((0, self.durable.boot._replace(is_shut_down=False)),))
        self.index()
        while self.doubles and self.restart.hardens.get(MODIFIED) == IN_TABLE:
            yield DurableWrite(TABLE, ((self.doubles.pop(), FREE_ENTRY),))
        if not self.has("cleaner-last"):
            yield from self.clean()
        self.phase = "analysis"
        yield from self.analyse()
        contract.check_entries(self.restart.name, "meet", self.frames, self.entries, self.frame_of)
        self.phase = "redo"
        yield from self.redo()
        self.phase = "undo"
        yield from self._undo()

    def warm_frames(self, pages: int) -> Iterator[tuple[int, Entry, bool]]:
        """Frames that are in use, their entries, and whether each is newer than the disk; the database has `pages` pages."""
        for frame, entry in self.entries.items():
            if not FIRST_PAGE <= entry.page < FIRST_PAGE + pages:
                reason = f"leaves page {entry.page} in frame {frame}, and there are {pages} pages"
                raise contract.failure(self.restart.name, "load or meet", reason)
            yield frame, entry, entry.state == DIRTY and entry.page in self.dirty

    def writes(self, copies: bool = False) -> Iterator[tuple[Durable, DurableWrite]]:
        """All of it at once: each write when it is durable, and with `copies` what survived before."""
        for step in self.run():
            if isinstance(step, DurableWrite):
                before = self.durable.copy() if copies else self.durable
                self.durable.apply(step)
                yield before, step

    def read_table(self, is_right: Callable[[Entry], bool] = lambda entry: True) -> Steps:
        """Read the frame table's file, and believe those of its entries that are right."""
        yield DurableRead(TABLE, range(self.frames))
        for frame in range(self.frames):
            if (entry := self.durable.entry(frame)).state != FREE and is_right(entry):
                self.entries[frame] = entry
        self.phases.entries_loaded = self.frames

    def drop(self, frame: int) -> None:
        entry = self.entries.pop(frame, FREE_ENTRY)
        if self.frame_of.get(entry.page) == frame:
            del self.frame_of[entry.page]

    def take(self, frame: int, entry: Entry) -> None:
        """Believe an entry; the frame that had its page before counts as free."""
        self.drop(frame)
        self.drop(self.frame_of.get(entry.page, frame))
        if entry.state != FREE:
            self.entries[frame] = entry
            self.frame_of[entry.page] = frame

    def index(self) -> None:
        """Build the table of pages; of two frames with the same page the older copy goes."""
        for frame, entry in sorted(self.entries.items()):
            other = self.frame_of.get(entry.page)
            if other is not None and other != frame and self.has("duplicates"):
                older = min((other, frame), key=lambda each: self.entries[each].lsn)
                self.drop(older)
                self.doubles.add(older)
            if frame in self.entries:
                self.frame_of[entry.page] = frame

    def clean(self) -> Steps:
        """Write what is newer on the SSD than on disk to disk."""
        for frame, entry in sorted(self.entries.items()):
            if entry.state == DIRTY:
                yield DurableWrite(PAGES, ((entry.page, self.durable.in_frame(frame)),))
                self.entries[frame] = entry._replace(state=CLEAN)

    def _read_log(self, first: int) -> Steps:
        if first < self.durable.first:
            raise RedoFailureError(f"log: record {first} is needed, and the first one left is {self.durable.first}")
        if lost := self.durable.first_overwritten(first, self.end):
            raise RedoFailureError(f"log: record {lost} is needed, and has been overwritten on its device")
        yield DurableRead(LOG, range(first, self.end))

    def analyse(self) -> Steps:
        """Find what the disk may lack, and which transactions did not end."""
        yield from self._read_log(self.first_scanned)
        for lsn, record in self.durable.records_from(self.first_scanned, self.end):
            self.phases.records_scanned += 1
            match record.kind:
                case log.BEGIN:
                    self.losers[record.transaction] = lsn
                case log.COMMIT | log.ABORT:
                    self.losers.pop(record.transaction, None)
                case log.TRANSACTIONS:
                    self.losers |= {number: max(last, self.losers.get(number, 0)) for number, _, last in record.active}
                case log.BUF_WRITE:
                    if self.dirty.get(record.page, (0, lsn))[1] <= record.lsn:
                        del self.dirty[record.page]
                case log.UPDATE | log.COMPENSATION:
                    self.losers[record.transaction] = lsn
                    self.dirty[record.page] = self.dirty.get(record.page, (lsn, lsn))[0], lsn
            try:
                self.restart.meet(self, lsn, record)
            except (Exception, SystemExit) as problem:
                raise contract.failure(self.restart.name, "meet", problem) from problem

    def _read(self, pages: Sequence[int]) -> Steps:
        wanted = [page for page in pages if page not in self.pages]
        if not wanted:
            return
        if len(self.pages) + len(wanted) > self.room:
            yield from self._evict(max(len(wanted), min(AHEAD, self.room // 8)))
        for page in wanted:
            if (frame := self.frame_of.get(page)) in self.unverified:
                self.unverified.discard(frame)
                self.verify(frame)
        frames = {page: self.frame_of[page] for page in wanted if page in self.frame_of}
        if self.phase == "undo":
            self.phases.undo_reads += len(wanted)
        else:
            self.phases.redo_reads += len(wanted)
        yield DurableRead(FRAMES, tuple(sorted(frames.values())))
        yield DurableRead(PAGES, tuple(sorted(set(wanted) - set(frames))))
        for page in wanted:
            self.pages[page] = self.durable.in_frame(frames[page]) if page in frames else self.durable.on_disk(page)

    def _evict(self, count: int) -> Steps:
        leaving = {page: self.pages.pop(page) for page in list(islice(self.pages, count))}
        changed = sorted(self.changed & leaving.keys())
        if changed:
            self.changed.difference_update(changed)
            self._imaged.difference_update(changed)
            self.phases.pages_written += len(changed)
            yield from self._force()
            yield DurableWrite(PAGES, tuple((page, leaving[page]) for page in changed))

    def verify(self, frame: int) -> bool:
        """Hold an entry against what the frame holds, and drop it if that is something else; True if it stands."""
        entry, version = self.entries[frame], self.durable.in_frame(frame)
        self.phases.frames_verified += 1
        wrong = (
            (version.page != entry.page and self.has("page-id"))
            or (version.lsn != entry.lsn and self.has("page-lsn"))
            or (version.is_torn and self.has("checksum"))
        )
        if wrong:
            self.drop(frame)
        return not wrong

    def _change(self, lsn: int, record: Record, value: int) -> Steps:
        """Let a page in memory be changed by a record; its copy on the SSD is not the newest any more."""
        self.pages[record.page] = self.pages[record.page].with_row(lsn, record.row, value)
        self.dirty[record.page] = self.dirty.get(record.page, (lsn, lsn))[0], lsn
        self.changed.add(record.page)
        if (frame := self.frame_of.get(record.page)) is not None:
            self.drop(frame)
            if self.restart.hardens.get(MODIFIED) == IN_TABLE:
                yield DurableWrite(TABLE, ((frame, FREE_ENTRY),))

    def redo(self) -> Steps:
        oldest = min((first for first, _ in self.dirty.values()), default=self.end)
        yield from self._read_log(oldest)
        window, missing = list[tuple[int, Record]](), dict[int, None]()
        for lsn, record in self.durable.records_from(oldest, self.end):
            if record.kind not in (log.UPDATE, log.COMPENSATION) or lsn < self.dirty.get(record.page, (self.end, 0))[0]:
                continue
            window.append((lsn, record))
            if record.page in self.pages:
                self.pages[record.page] = self.pages.pop(record.page)  # it is needed: others leave memory first
            else:
                missing[record.page] = None
            if len(missing) >= max(1, min(AHEAD, self.room // 4)):
                yield from self._redo(window, list(missing))
                window, missing = [], {}
        yield from self._redo(window, list(missing))
        if self._torn:
            raise RedoFailureError(f"page {min(self._torn)} is torn, and no record that is left has an image of it")

    def _redo(self, window: Sequence[tuple[int, Record]], missing: Sequence[int]) -> Steps:
        """Do some records again, whose pages are read together; a torn page needs none before the one with its image."""
        yield from self._read(missing)
        for lsn, record in window:
            if record.page not in self.pages:
                yield from self._read([record.page])
            version = self.pages[record.page]
            if version.page != record.page:
                raise RedoFailureError(f"record {lsn}: page {version.page} stands in the place of page {record.page}")
            if version.is_torn and not record.image:
                self._torn.add(record.page)
                continue
            if version.is_torn:
                self._torn.discard(record.page)
                version = self.pages[record.page] = Version(record.page, record.previous, record.rows)
            if version.lsn < lsn:
                if version.lsn != record.previous:
                    raise RedoFailureError(f"record {lsn}: page {record.page} is at {version.lsn}, not at {record.previous}")
                self.phases.records_redone += 1
                yield from self._change(lsn, record, record.after)

    def _append(self, record: Record) -> int:
        self._tail.append(record)
        return self.end + len(self._tail) - 1

    def _force(self) -> Steps:
        if self._tail:
            yield DurableWrite(LOG, tuple(enumerate(self._tail, self.end)))
            self.end += len(self._tail)
            self._tail = []

    def _undo(self) -> Steps:
        """Undo the losers, the newest record first, by compensations that say what is left to undo."""
        next_of = dict(self.losers)
        last = dict(self.losers)
        while next_of:
            transaction = max(next_of, key=lambda each: next_of[each])
            lsn = next_of[transaction]
            record = self.durable.log.get(lsn)
            if record is None or self.durable.first_overwritten(lsn, lsn + 1):
                raise RedoFailureError(
                    f"log: record {lsn} is needed to undo transaction {transaction}, and has been truncated or overwritten"
                )
            following = record.chain
            if record.kind == log.UPDATE:
                yield from self._read([record.page])
                page = self.pages[record.page]
                image = 0 if record.page in self._imaged else self._image
                compensation = Record(
                    log.COMPENSATION, transaction, record.chain, record.page, page.lsn, record.row, record.after, record.before,
                    image=image, rows=page.rows if image else (),
                )  # fmt: skip
                self._imaged.add(record.page)
                last[transaction] = self._append(compensation)
                self.phases.records_undone += 1
                yield from self._change(last[transaction], compensation, record.before)
            if following:
                next_of[transaction] = following
            else:
                del next_of[transaction]
                self._append(Record(log.ABORT, transaction, last[transaction]))
        yield from self._force()

    def newest(self, page: int) -> Version:
        """Copy that a reader of a page gets: memory's, the SSD's, or the disk's."""
        if page in self.pages:
            return self.pages[page]
        frame = self.frame_of.get(page)
        return self.durable.on_disk(page) if frame is None else self.durable.in_frame(frame)

    def newest_value(self) -> int:
        versions = [*self.durable.disk.values(), *self.durable.ssd.values(), *self.pages.values()]
        values = [row for version in versions for row in version.rows]
        return max([*values, *(record.after for record in self.durable.log.values())], default=0)
