"""The frame table of an SSD that is warm after a restart: what may be hardened of it, and how a restart design hardens it."""

from collections.abc import Callable
from typing import NamedTuple

import simpy

from flashsim.core.host_specification import delay
from flashsim.execution.pooled.log_writer import LogWriter
from flashsim.execution.pooled.logging_design import HURRY, Logging
from flashsim.storage.log import records
from flashsim.storage.log.durable import TABLE, DurableWrite
from flashsim.storage.log.records import FREE, FREE_ENTRY, Entry, Record
from flashsim.storage.log.recovery import CLEANED, IN_LOG, IN_LOG_AT_ONCE, IN_TABLE, MODIFIED, REPLACED, WRITTEN

#: Sends a write to the SSD: the write, the first sector of the table and how many, and what follows when it has completed.
SendSectors = Callable[[DurableWrite, int, int, Callable[[], object]], object]

_KINDS = dict.fromkeys((REPLACED, MODIFIED), records.SSD_PRE_WRITE_INVALIDATE)
_KINDS |= {WRITTEN: records.SSD_POST_WRITE, CLEANED: records.SSD_LAZY_CLEANED}
#: Priority of the flusher's event at one nanosecond (`flashsim.execution.pooled.specification`): behind the checkpointer.
_FLUSHER = (1 << 40) + 1


class Hardening(NamedTuple):
    """Writes that must be durable: a record of the log, 0 for none, and a write of the sector that has a frame's entry, by its number."""

    lsn: int = 0
    frame: int = 0
    write: int = 0


class _Sector:
    """Writes of a sector of the table that began, that were wanted, and that ended."""

    begun = wanted = ended = 0


class FrameTable:
    """Entries as they may be hardened: a frame that is being written is free.

    Some restart designs harden them by records of `log`, where whatever needs entries waits; others by sectors of the table's file, which
    `send` writes.  The flusher leaves what the file has of frames that are `in_use`: that are being read or written.
    """

    def __init__(
        self, env: simpy.Environment, logging: Logging, frames: int, log: LogWriter, send: SendSectors, in_use: Callable[[int], bool]
    ) -> None:
        self.env, self.logging, self.frames, self.log, self._send, self._in_use = env, logging, frames, log, send, in_use
        self.restart = logging.restart
        self.entries: dict[int, Entry] = {}
        self._frame_of: dict[int, int] = {}
        #: Records by which frames were freed, the last hardening of frames in the table, and of pages those of frames that they left.
        self._freed: dict[int, int] = {}
        self._written: dict[int, Hardening] = {}
        self._of_page: dict[int, list[Hardening]] = {}
        self._sectors: dict[int, _Sector] = {}
        #: Whole passes of the flusher, and up to which one somebody waits.
        self.passes = self._awaited = self._chunk = 0

    def entry(self, frame: int) -> Entry:
        return self.entries.get(frame, FREE_ENTRY)

    def set(self, frame: int, entry: Entry) -> None:
        """Change a frame's entry."""
        page = self.entry(frame).page
        if self._frame_of.get(page) == frame:
            del self._frame_of[page]
        self.entries[frame] = entry
        if entry.state != FREE:
            self._frame_of[entry.page] = frame

    def is_durable(self, hardening: Hardening) -> bool:
        is_written = not hardening.write or self._sectors[hardening.frame // self.restart.in_a_sector].ended >= hardening.write
        return hardening.lsn < self.log.end and is_written

    def is_page_hardened(self, page: int) -> bool:
        """True if it is hardened that a page left its former frames: no recovery finds an old copy of it."""
        left = [each for each in self._of_page.pop(page, ()) if not self.is_durable(each)]
        if left:
            self._of_page[page] = left
        return not left

    def free(self, frame: int, change: int) -> Hardening:
        """Free a frame, and harden that; the order of the log's records says the same of a page that is replaced."""
        page = self.entry(frame).page
        self.set(frame, FREE_ENTRY)
        hardening = self.harden(change, frame)
        self._freed[frame] = hardening.lsn or self._freed.get(frame, 0)
        if change == MODIFIED or hardening.write:
            self._of_page.setdefault(page, []).append(hardening)
        return hardening

    def invalidate(self, page: int, lsn: int) -> None:
        """Free the frame that has a page, if any has: a record modifies the page in memory."""
        if (frame := self._frame_of.get(page)) is not None:
            self._freed[frame] = lsn
            self.free(frame, MODIFIED)

    def leave(self, page: int) -> None:
        """Free the frame that a page had before it was written to another one, if any says so yet."""
        if (frame := self._frame_of.get(page)) is not None:
            self.free(frame, REPLACED)

    def is_reusable(self, frame: int) -> Callable[[], bool]:
        """Whether that its page left a frame is hardened, so that the frame may be overwritten."""
        by_log = self.log.want(self._freed.get(frame, 0)) if self.restart.logs_at_once else 0
        written = self._written.get(frame, Hardening())
        return lambda: by_log < self.log.end and self.is_durable(written)

    def harden(self, change: int, frame: int) -> Hardening:
        """Harden a change of an entry as the restart design wants it; what has to happen until it is, if anybody is to wait for that."""
        how = self.restart.hardens.get(change)
        if how == IN_TABLE:  # after a write of its sector that is outstanding
            sector = self._sectors.setdefault(frame // self.restart.in_a_sector, _Sector())
            sector.wanted = sector.begun + 1
            if sector.begun == sector.ended:
                self._write_sector(frame // self.restart.in_a_sector, sector)
            self._written[frame] = Hardening(frame=frame, write=sector.wanted)
            return self._written[frame]
        if how in (IN_LOG, IN_LOG_AT_ONCE):
            entries = (self.entries[frame],) if change == WRITTEN else ()
            lsn = self.log.append(Record(_KINDS[change], frame=frame, entries=entries))
            return Hardening(self.log.want(lsn)) if how == IN_LOG_AT_ONCE else Hardening()
        return Hardening()

    def _write_sector(self, number: int, sector: _Sector) -> None:
        sector.begun += 1
        left = self.logging.flush_writes
        frames = range(number * self.restart.in_a_sector, min(self.frames, (number + 1) * self.restart.in_a_sector))
        items = [(frame, self.entry(frame)) for frame in frames]

        def on_write_end() -> None:
            nonlocal left
            left -= 1
            if left:
                self._write(items, frames, on_write_end)
                return
            sector.ended += 1
            self.log.wake()
            if sector.wanted > sector.begun == sector.ended:
                self._write_sector(number, sector)

        self._write(items, frames, on_write_end)

    def _write(self, items: list[tuple[int, Entry]], frames: range, written: Callable[[], object]) -> None:
        first = frames.start // self.restart.in_a_sector
        self._send(DurableWrite(TABLE, tuple(items)), first, -(-frames.stop // self.restart.in_a_sector) - first, written)

    def flush_after(self, pause: int) -> None:
        """Write the table chunk by chunk, again and again (Do, 2012, figure 4.6)."""
        event = delay(self.env, pause, _FLUSHER)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._flush())

    def _flush(self) -> None:
        chunk = self.logging.chunk
        frames = range(self._chunk * chunk, min(self.frames, (self._chunk + 1) * chunk))
        hardened = self.log.end - 1  # records that a crash may take lend their numbers to others
        items = [(frame, self.entry(frame)._replace(hardened=hardened)) for frame in frames if not self._in_use(frame)]
        self._write(items, frames, self._on_flush_end)

    def _on_flush_end(self) -> None:
        self._chunk += 1
        if self._chunk * self.logging.chunk >= self.frames:
            self._chunk, self.passes = 0, self.passes + 1
            self.log.wake()
        self.flush_after(max(1, self.logging.pause // (HURRY if self._awaited > self.passes else 1)))

    def complete_pass(self, is_last: bool) -> int:
        """The pass, by number, that begins from now on, first of all; a shutdown's may count on no chunk that is being written."""
        self._awaited = self.passes + (2 if self._chunk or is_last else 1)
        return self._awaited

    def append_all(self) -> None:
        """Append records of all entries to the log."""
        for first in range(0, self.frames, self.logging.chunk):
            frames = range(first, min(self.frames, first + self.logging.chunk))
            self.log.append(Record(records.SSD_CHECKPOINT, frame=first, entries=tuple(map(self.entry, frames))))
