"""The log's writer: records are written all together, those that came meanwhile right after."""

from collections.abc import Callable

import simpy

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import SECTOR
from flashsim.execution.pooled.logging_design import RECORD
from flashsim.storage.log import durable as survives
from flashsim.storage.log.durable import Durable, Write
from flashsim.storage.log.records import LOST, Record

#: Sends a write to the log's device: the write, its place and length in bytes, and what follows when it has completed.
Send = Callable[[Write, int, int, Callable[[], None]], object]


class LogWriter:
    """The log in memory and its writer.

    Parameters
    ----------
    env
        The clock.
    send
        How the log's device is written; None: there is none, and records are durable as soon as that is asked for.
    room
        Bytes of the device; the log goes round them behind the first sector, which holds the boot page.
    durable
        What survives a crash, and with it the oldest record that recovery may need.

    Raises
    ------
    InvalidParameterError
        In the midst of a run: the records that recovery may need do not fit in the device.
    """

    def __init__(self, env: simpy.Environment, send: Send | None, room: int, durable: Durable) -> None:
        self.env, self._send, self._room, self._durable = env, send, room, durable
        self.records: list[Record] = []
        #: The first record that is not durable.
        self.end = 1
        self._offset, self._is_writing = SECTOR, False
        self._waits: list[tuple[int, simpy.Event]] = []

    def resume(self, durable: Durable) -> None:
        """Go on behind durable records."""
        self.records = [durable.log.get(lsn, LOST) for lsn in range(1, durable.end)]
        self._durable, self.end = durable, len(self.records) + 1

    def append(self, record: Record) -> int:
        """Add a record to the end of the log in memory; returns its number."""
        self.records.append(record)
        return len(self.records)

    def to(self, lsn: int) -> list[simpy.Event]:
        """Events after which a record is durable; none if it is."""
        if lsn < self.end:
            return []
        if self._send is None:
            write = self._new_records()
            self._durable.apply(write)
            self.end += len(write.items)
            return []
        event = self.env.event()
        self._waits.append((lsn, event))
        if not self._is_writing:
            self._write(self._send)
        return [event]

    def _new_records(self) -> Write:
        return Write(survives.LOG, tuple(enumerate(self.records[self.end - 1 :], self.end)))

    def _write(self, send: Send) -> None:
        write, self._is_writing = self._new_records(), True
        needed = SECTOR + (len(self.records) + 1 - self._durable.first) * RECORD
        if needed > self._room:
            bound = f"records that recovery may need take {needed} B; checkpoint more often"
            raise InvalidParameterError("log", f"{self._room} B", bound)
        length = -(-len(write.items) * RECORD // SECTOR) * SECTOR
        if self._offset + length > self._room:
            self._offset = SECTOR
        offset, self._offset = self._offset, self._offset + length

        def written() -> None:
            self.end += len(write.items)
            self._is_writing = False
            ready = [event for lsn, event in self._waits if lsn < self.end]
            self._waits = [(lsn, event) for lsn, event in self._waits if lsn >= self.end]
            for event in ready:
                event.succeed()
            if self._waits:
                self._write(send)

        send(write, offset, length, written)
