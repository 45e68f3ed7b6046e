"""The frame table of an SSD that is warm after a restart: what may be hardened of it, and how a restart design hardens it."""

from collections.abc import Callable

import simpy

from flashsim.core.host_specification import delay
from flashsim.execution.pooled.log_writer import LogWriter
from flashsim.execution.pooled.logging_design import IN_A_SECTOR, Logging
from flashsim.execution.pooled.specification import Process
from flashsim.storage.log import durable as survives
from flashsim.storage.log import records as log
from flashsim.storage.log.durable import Write
from flashsim.storage.log.records import FREE_ENTRY, Entry, Record
from flashsim.storage.log.recovery import CLEANED, IN_LOG, IN_LOG_AT_ONCE, IN_TABLE, REPLACED, WRITTEN

#: Sends a write to the SSD: the write, the first sector of the table and how many, and what follows when it has completed.
SendSectors = Callable[[Write, int, int, Callable[[], object]], object]

_KINDS = {REPLACED: log.SSD_PRE_WRITE_INVALIDATE, WRITTEN: log.SSD_POST_WRITE, CLEANED: log.SSD_LAZY_CLEANED}
#: Priority of the flusher's event at one nanosecond (`flashsim.execution.pooled.specification`): behind the checkpointer.
_FLUSHER = (1 << 40) + 1
#: How much sooner the flusher goes on while a checkpoint waits for it.
_HURRY = 8


class FrameTable:
    """Entries as they may be hardened: a frame that is being written is free.

    Parameters
    ----------
    logging
        Which restart design hardens it, and how.
    frames
        Frames of the SSD.
    log
        The log, for designs that harden by its records.
    send
        How sectors of the table's file are written.
    in_use
        Whether a frame is being read or written: the flusher leaves what the file has of it.
    """

    def __init__(self, logging: Logging, frames: int, log: LogWriter, send: SendSectors, in_use: Callable[[int], bool]) -> None:
        self.logging, self.frames, self.log, self._send, self._in_use = logging, frames, log, send, in_use
        self.env, self.restart = log.env, logging.restart
        self.entries: dict[int, Entry] = {}
        #: Records of the updates that freed frames, by frame, and writes of entries, by frame.
        self._freed: dict[int, int] = {}
        self._written: dict[int, simpy.Event] = {}
        self._waits: dict[int, list[simpy.Event]] = {}
        self._outstanding: set[int] = set()
        self._passes = self._chunk = 0
        self._pass_waits: list[tuple[int, simpy.Event]] = []

    def entry(self, frame: int) -> Entry:
        return self.entries.get(frame, FREE_ENTRY)

    def frame_of(self, page: int) -> int | None:
        """The frame whose entry has a page."""
        return next((frame for frame, entry in self.entries.items() if entry.state and entry.page == page), None)

    def free(self, frame: int, lsn: int) -> None:
        """A frame's page is modified by a record of the log."""
        self.entries[frame] = FREE_ENTRY
        self._freed[frame] = lsn

    def before_reuse(self, frame: int) -> list[simpy.Event]:
        """What has to happen before a frame is overwritten: that its page left it is hardened."""
        by_log = self.log.to(self._freed.get(frame, 0)) if IN_LOG_AT_ONCE in self.restart.hardens.values() else []
        return by_log + ([self._written[frame]] if frame in self._written else [])

    def harden(self, change: int, frame: int) -> list[simpy.Event]:
        """Harden a change of an entry as the restart design wants it; what has to happen until it is, if anybody waits for that."""
        how = self.restart.hardens.get(change)
        if how == IN_TABLE:
            self._written[frame] = self._write_entry(frame)
            return [self._written[frame]]
        if how in (IN_LOG, IN_LOG_AT_ONCE):
            entries = (self.entries[frame],) if change == WRITTEN else ()
            lsn = self.log.append(Record(_KINDS[change], frame=frame, entries=entries))
            return self.log.to(lsn) if how == IN_LOG_AT_ONCE else []
        return []

    def _write_entry(self, frame: int) -> simpy.Event:
        """Have the sector of an entry written, after a write of it that is outstanding."""
        sector, event = frame // IN_A_SECTOR, self.env.event()
        self._waits.setdefault(sector, []).append(event)
        if sector not in self._outstanding:
            self._write_sector(sector)
        return event

    def _write_sector(self, sector: int) -> None:
        events, self._waits[sector] = self._waits[sector], []
        self._outstanding.add(sector)

        def written() -> None:
            self._outstanding.discard(sector)
            for event in events:
                event.succeed()
            if self._waits[sector]:
                self._write_sector(sector)

        frames = range(sector * IN_A_SECTOR, min(self.frames, (sector + 1) * IN_A_SECTOR))
        self._write([(frame, self.entry(frame)) for frame in frames], frames, written)

    def _write(self, items: list[tuple[int, Entry]], frames: range, written: Callable[[], object]) -> None:
        first = frames.start // IN_A_SECTOR
        self._send(Write(survives.TABLE, tuple(items)), first, -(-frames.stop // IN_A_SECTOR) - first, written)

    def flusher(self) -> Process:
        """Write the table chunk by chunk, again and again (Do, 2012, figure 4.6)."""
        chunk = self.logging.chunk
        while True:
            frames = range(self._chunk * chunk, min(self.frames, (self._chunk + 1) * chunk))
            hardened, done = len(self.log.records), self.env.event()
            items = [(frame, self.entry(frame)._replace(hardened=hardened)) for frame in frames if not self._in_use(frame)]
            self._write(items, frames, done.succeed)
            yield done
            self._chunk += 1
            if self._chunk * chunk >= self.frames:
                self._chunk, self._passes = 0, self._passes + 1
                ready = [event for passes, event in self._pass_waits if passes <= self._passes]
                self._pass_waits = [(passes, event) for passes, event in self._pass_waits if passes > self._passes]
                for event in ready:
                    event.succeed()
            yield delay(self.env, max(1, self.logging.pause // (_HURRY if self._pass_waits else 1)), _FLUSHER)

    def complete_pass(self) -> simpy.Event:
        """The end of the first pass that begins from now on."""
        event = self.env.event()
        self._pass_waits.append((self._passes + (2 if self._chunk else 1), event))
        return event

    def append_all(self) -> None:
        """Append records of all entries to the log."""
        for first in range(0, self.frames, self.logging.chunk):
            frames = range(first, min(self.frames, first + self.logging.chunk))
            self.log.append(Record(log.SSD_CHECKPOINT, frame=first, entries=tuple(map(self.entry, frames))))
