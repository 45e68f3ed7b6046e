"""One strand of an algorithm on a real file or block device: real pages, written and read back with O_DIRECT, timed by the wall clock.

As in do2009, section 4.1, I/O time is what remains of the wall-clock time when the CPU time of the strand's thread is taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from resource import RUSAGE_THREAD, getrusage
from threading import Lock
from time import perf_counter_ns

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.protocols import Sink
from flashsim.core.request import FLUSH, READ, WRITE, Completions, Requests, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.requests import Cpu, Mode, Read, Write
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File
from flashsim.storage.record import Bytes
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Extents, Volume


@dataclass(frozen=True)
class _Clocks:
    wall: int
    user: int
    kernel: int

    @classmethod
    def now(cls) -> _Clocks:
        times = getrusage(RUSAGE_THREAD)
        return cls(perf_counter_ns(), round(times.ru_utime * SECONDS), round(times.ru_stime * SECONDS))


class _Log:
    """Hands the requests of all strands to a sink, one by one; its lock guards the volume too."""

    def __init__(self, sink: Sink | None) -> None:
        self.lock = Lock()
        self._sink = sink
        self._next = 0

    def record(self, requests: Requests, completions: Completions | None, label: str, last: tuple[int, int]) -> tuple[int, int]:
        """Take requests that waited for the one that completed and is numbered as `last`; returns which of them completed last."""
        if self._sink is None or not len(requests):
            return last
        with self.lock:
            first, self._next = self._next, self._next + len(requests)
            if completions is None:
                self._sink.record(requests, None, label, last[1])
                return last[0], self._next - 1
            if last[1] >= 0:
                requests["think"] = np.where(requests["dependency"] < 0, completions["submitted"] - last[0], 0)
            self._sink.record(requests, completions, label, last[1])
            row = int(completions["completed"].argmax())
            return int(completions["completed"][row]), first + row


class RealStrand:
    """The driver's backend of one strand on a real device; pages are bytes in each file's page format.

    Parameters
    ----------
    volume
        Where pages are; base relations must have been added and written.
    device
        What they are on.
    sink
        Is handed every request with the times measured, ns since the device was opened.
    """

    def __init__(self, volume: Volume, device: RealDevice, sink: Sink | None = None) -> None:
        self.volume = volume
        self.device = device
        self.runs = [Run(str(device.path))]
        self.last = (0, -1)  # when the last request completed that the next one waits for, and its number in the record
        self._log = _Log(sink)
        self._clocks: _Clocks | None = None
        self._waited = 0  # since then

    def strand(self, name: str) -> RealStrand:
        """The backend of another strand, which begins now."""
        other = RealStrand(self.volume, self.device)
        other.runs[0].strand = name
        other.last, other._log = self.last, self._log
        return other

    def follows(self, last: tuple[int, int]) -> None:
        """The next request comes after the last one of another strand too."""
        self.last = max(self.last, last)

    def waited(self, duration: int) -> None:
        """The strand waited for another, or slept, so long."""
        self._waited += duration

    def read(self, request: Read) -> Tuples | None:
        """Read extents and take the tuples, if any are wanted, from their bytes."""
        file, parts = request.file, request.parts
        with self._log.lock:
            extents = self.volume.locate(file, request.starts, request.counts)
        if parts is not None:
            for offset, length in parts:
                if (offset | length) % self.device.alignment:
                    bound = f"{self.device.path} takes multiples of {self.device.alignment} B"
                    raise InvalidParameterError("read", f"bytes {offset} to {offset + length} of {file.name}'s pages", bound)
            extents = extents.parts(file.page_size, parts)
        data, completions = self.device.read(extents.offsets, extents.lengths, batch=request.mode is Mode.BATCH)
        self._record(READ, extents, request.mode, completions, file.name)
        pages = _pages(data, file.page_size, parts)
        try:
            if request.attributes:
                file.layout.decode_values(pages, request.attributes)
            return None if request.columns == () else file.layout.decode(pages, request.columns)
        except DamagedFileError as problem:
            raise DamagedFileError(f"device: {self.device.path} holds other pages than {file.name} has: {problem}") from None

    def write(self, request: Write) -> None:
        """Place pages that are new, and write the bytes of all."""
        file = request.file
        self.device.check_page_size(file.page_size)
        with self._log.lock:
            self.volume.extend(file, request.new_pages)
            extents = self.volume.locate(file, request.starts, request.counts)
        data = file.layout.encode(request.tuples).ravel()
        completions = self.device.write(extents.offsets, data, extents.lengths, batch=request.mode is Mode.BATCH)
        self._record(WRITE, extents, request.mode, completions, file.name)

    def flush(self, file: File) -> None:
        """Make what was written durable."""
        self.device.flush()
        self.last = self._log.record(make_requests(FLUSH, 0, 0), None, file.name, self.last)

    def drop(self, file: File) -> None:
        """Free a temporary file's room."""
        with self._log.lock:
            self.volume.drop(file)

    def cpu(self, request: Cpu) -> None:
        """Nothing: real work takes real time."""

    def phase_ends(self) -> None:
        """Divide the wall-clock time of the phase into user, kernel and I/O time; called by the strand's own thread."""
        now, then = _Clocks.now(), self._clocks
        if then is not None:
            phase = self.runs[0].phase
            user, kernel = now.user - then.user, now.kernel - then.kernel
            phase.user_time += user
            phase.kernel_time += kernel
            phase.wait_time += self._waited
            phase.io_time += max(0, now.wall - then.wall - user - kernel - self._waited)
        self._clocks, self._waited = now, 0

    def _record(self, operation: int, extents: Extents, mode: Mode, completions: Completions, label: str) -> None:
        requests = make_requests(operation, extents.offsets, extents.lengths, serial=mode is Mode.SERIAL)
        self.last = self._log.record(requests, completions, label, self.last)


def _pages(data: Bytes, page_size: int, parts: Sequence[tuple[int, int]] | None) -> Bytes:
    """What was read as pages, shape (pages, page_size), with zeros where parts are missing."""
    if parts is None:
        return data.reshape(-1, page_size)
    rows = data.reshape(-1, sum(length for _, length in parts))
    pages, at = np.zeros((len(rows), page_size), np.uint8), 0
    for offset, length in parts:
        pages[:, offset : offset + length] = rows[:, at : at + length]
        at += length
    return pages
