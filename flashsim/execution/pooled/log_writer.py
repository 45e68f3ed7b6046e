"""Writes that change what survives a crash, from their beginning to their end, what waits for them, and the log's writer."""

from collections import deque
from collections.abc import Callable

import numpy as np
import simpy

from flashsim.core.request import SECTOR
from flashsim.execution.pooled.logging_design import LOG_BLOCK, check_room
from flashsim.storage.log.durable import FRAMES, LOG, PAGES, Durable, DurableWrite, Ring, whole_sectors
from flashsim.storage.log.records import LOST, Record

#: Sends a write to the log's device: the write, its place and length in bytes, and what follows when it has completed.
Send = Callable[[DurableWrite, int, int, Callable[[], None]], object]
#: Pages that devices' volatile write buffers hold, where writes are not forced through them.
_BUFFERED = 6


class DurableWrites:
    """Writes that are outstanding, and those that a power cut takes from volatile write buffers.

    `durable` is what devices say that they have.  Forced writes go through the buffers; otherwise pages stay there until others have driven
    them out.
    """

    def __init__(self, durable: Durable, is_forced: bool) -> None:
        self.durable, self.is_forced = durable, is_forced
        #: Writes that devices have not completed, by number.
        self.outstanding: dict[int, DurableWrite] = {}
        #: Writes so far.
        self.count = 0
        self._buffered: deque[DurableWrite] = deque()
        self._media = durable if is_forced else durable.copy()

    def begin(self, write: DurableWrite, then: Callable[[], object], event: simpy.Event) -> None:
        """Begin a write that is durable when an event happens, before anybody else hears of that."""
        number, self.count = self.count, self.count + 1
        self.outstanding[number] = write

        def on_completion(_: simpy.Event) -> None:
            self.durable.apply(self.outstanding.pop(number))
            if not self.is_forced:
                self._buffer(write)
            then()

        assert event.callbacks is not None
        event.callbacks.insert(0, on_completion)

    def _buffer(self, write: DurableWrite) -> None:
        """Keep pages in the buffer until others have driven them out; the log and the tables are written through."""
        if write.target in (PAGES, FRAMES):
            self._buffered.append(write)
            write = self._buffered.popleft() if len(self._buffered) > _BUFFERED else DurableWrite(LOG, ())
        self._media.apply(write)

    def crash(self, draw: np.random.Generator | None) -> Durable:
        """State that survives a crash now; without `draw` none of the outstanding writes does."""
        return self._media.crash([*self._buffered, *self.outstanding.values()], draw)

    def truncate(self, first: int) -> None:
        """Give up the records of the log before one."""
        self.durable.truncate(first)
        self._media.truncate(first)


class LogWriter:
    """The log in memory and its writer: records are written block after block, together with those that came meanwhile.

    Whatever waits for records or for entries of the frame table waits here, first come, first served.  Without `send` there is no device,
    and records are durable as soon as that is wanted; the log goes round the device's `room` in bytes, behind the first sector, which holds
    the boot page.  `durable` survives a crash, and has the oldest record that recovery may need.
    """

    def __init__(self, send: Send | None, room: int, durable: Durable) -> None:
        self._send, self._room, self._ring, self._durable = send, room, Ring.of(room), durable
        self._waiting: list[tuple[Callable[[], bool], Callable[[], object]]] = []
        self.records: list[Record] = []
        #: Bytes of the log before each record, and behind the last one.
        self._places = [0]
        #: The first record that is not durable.
        self.end = 1
        self._behind, self._is_writing, self._wanted = 0, False, 0
        #: Places of records that were sent to the device.
        self._sent: dict[int, int] = {}
        #: The most bytes of the device's sectors that were in use at a time, from that of the first record which recovery may need to the
        #: end of what is written.
        self.needed = 0

    def resume(self, durable: Durable) -> None:
        """Go on behind durable records; those of recovery itself count as one write."""
        self._durable = durable
        for lsn in range(1, durable.end):
            self.append(durable.log.get(lsn, LOST))
        self._behind = durable.behind
        self.end = next((lsn for lsn in range(durable.first, durable.end) if lsn not in durable.places), durable.end)
        self._sent = durable.places.copy()
        if self._send and self.end < durable.end:
            durable.apply(self._place(self._new_records(durable.end)))
        self.end = durable.end

    def check(self, is_over: bool) -> None:
        """See `check_room`; before a run is over nothing is refused."""
        if is_over and self._send:
            check_room(self._room, self.needed)

    def after(self, is_durable: Callable[[], bool], begin: Callable[[], object]) -> None:
        """Begin something once what it needs is durable."""
        if is_durable():
            begin()
        else:
            self._waiting.append((is_durable, begin))

    def wake(self) -> None:
        """Begin what need not wait any longer, after something became durable."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self.after(*each)

    def append(self, record: Record) -> int:
        """Add a record to the end of the log in memory; returns its number."""
        self.records.append(record)
        self._places.append(self._places[-1] + record.length)
        return len(self.records)

    def want(self, lsn: int) -> int:
        """Have a record made durable, if it is not; returns its number."""
        if lsn >= self.end:
            self._wanted = max(self._wanted, lsn)
            if self._send is None:
                self._durable.apply(self._new_records(len(self.records) + 1))
                self.end = len(self.records) + 1
            elif not self._is_writing:
                self._write(self._send)
        return lsn

    def _new_records(self, behind: int) -> DurableWrite:
        return DurableWrite(LOG, tuple(enumerate(self.records[self.end - 1 : behind - 1], self.end)))

    def _write(self, send: Send) -> None:
        behind, begin = self.end + 1, self._places[self.end - 1]
        while behind <= len(self.records) and self._places[behind] - begin <= LOG_BLOCK:
            behind += 1
        write, self._is_writing = self._new_records(behind), True
        write = self._place(write)
        length = min(self._behind - write.place, self._ring.size)

        def on_write_end() -> None:
            self.end, self._is_writing = behind, False
            self.wake()
            if self._wanted >= self.end and not self._is_writing:
                self._write(send)

        send(write, SECTOR + write.place % self._ring.size, length, on_write_end)

    def _place(self, write: DurableWrite) -> DurableWrite:
        """Let a write of records take the next sectors of the device."""
        length = sum(record.length for _, record in write.items)
        place = self._ring.place(self._behind, whole_sectors(length))
        self._behind = place + whole_sectors(length)
        for lsn, record in write.items:
            self._sent[lsn], place = place, place + record.length
        place = self._sent[write.items[0][0]]
        oldest = self._sent.get(self._durable.first, place)
        self.needed = max(self.needed, SECTOR + self._behind - oldest // SECTOR * SECTOR)
        return write._replace(place=place)
