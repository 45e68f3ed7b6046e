"""One strand of an algorithm on a real file or block device: real pages, written and read back with O_DIRECT, timed by the wall clock.

As in do2009, section 4.1, I/O time is what remains of the wall-clock time when the CPU time of the strand's thread is taken away.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from time import perf_counter_ns

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Label, Sink
from flashsim.core.request import FLUSH, READ, WRITE, Completions, Requests, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.file_access import Group, place, together
from flashsim.execution.requests import Cpu, Mode, Read, Write
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File, ranges
from flashsim.storage.record import Bytes
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Volume


@dataclass(frozen=True)
class _Clocks:
    wall: int
    user: int
    kernel: int

    @classmethod
    def now(cls) -> _Clocks:
        times = resource.getrusage(resource.RUSAGE_THREAD)
        return cls(perf_counter_ns(), round(times.ru_utime * SECONDS), round(times.ru_stime * SECONDS))


class _Log:
    """Hands the requests of all strands to a sink, one by one; its lock guards the volume too."""

    def __init__(self, sink: Sink | None, outstanding: OutstandingLevel) -> None:
        self.lock = Lock()
        self._outstanding = outstanding
        self._sink = sink
        self._next = 0

    def record(self, requests: Requests, completions: Completions | None, label: Label, last: tuple[int, int]) -> tuple[int, int]:
        """Take requests that waited for the one that completed and is numbered as `last`; returns which of them completed last."""
        if not len(requests):
            return last
        with self.lock:
            if completions is not None:
                self._outstanding.add(completions["submitted"], completions["completed"])
            if self._sink is None:
                return last
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
        self._log = _Log(sink, self.runs[0].outstanding)
        self._clocks: _Clocks | None = None
        self._waited = 0  # since then

    def strand(self, name: str) -> RealStrand:
        """The backend of another strand, which begins now."""
        other = RealStrand(self.volume, self.device)
        other.runs[0].strand = name
        other.runs[0].phase.name = self.runs[0].phase.name
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
        return self._read([request], at_once=request.mode is Mode.BATCH)[0]

    def write(self, request: Write) -> None:
        """Place pages that are new, and write the bytes of all."""
        self._write([request], at_once=request.mode is Mode.BATCH)

    def psync(self, requests: Sequence[Read] | Sequence[Write]) -> tuple[Tuples | None, ...] | None:
        """Do all that `read` or `write` do, but hand all requests to the device at once."""
        reads = [request for request in requests if isinstance(request, Read)]
        if reads:
            return tuple(self._read(reads, at_once=True))
        self._write([request for request in requests if isinstance(request, Write)], at_once=True)
        return None

    def flush(self, file: File) -> None:
        self.device.flush()
        self.last = self._log.record(make_requests(FLUSH, 0, 0), None, file.name, self.last)

    def drop(self, file: File) -> None:
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

    def _read(self, requests: Sequence[Read], *, at_once: bool) -> list[Tuples | None]:
        groups = []
        for request in requests:
            file, parts = request.file, request.parts
            with self._log.lock:
                extents = self.volume.locate(file, request.starts, request.counts)
            if parts is not None:
                for offset, length in parts:
                    if (offset | length) % self.device.alignment:
                        bound = f"{self.device.path} takes multiples of {self.device.alignment} B"
                        raise InvalidParameterError("read", f"bytes {offset} to {offset + length} of {file.name}'s pages", bound)
                extents = extents.parts(file.page_size, parts)
            groups.append(Group(READ, extents, file.name, at_once))
        group = _one(groups)
        data, completions = self.device.read(group.extents.offsets, group.extents.lengths, batch=at_once)
        self.last = self._log.record(group.requests(), completions, group.label, self.last)
        ends = np.cumsum([each.extents.lengths.sum() for each in groups])
        return [self._tuples(request, part) for request, part in zip(requests, np.split(data, ends[:-1]), strict=True)]

    def _tuples(self, request: Read, data: Bytes) -> Tuples | None:
        file = request.file
        pages = _pages(data, file.page_size, request.parts)
        try:
            if request.columns != () or request.attributes:
                file.layout.verify(pages, ranges(request.starts, request.counts))
            if request.attributes:
                file.layout.decode_values(pages, request.attributes)
            return None if request.columns == () else file.layout.decode(pages, request.columns)
        except DamagedFileError as problem:
            raise DamagedFileError(f"device: {self.device.path} holds other pages than {file.name} has: {problem}") from None

    def _write(self, requests: Sequence[Write], *, at_once: bool) -> None:
        groups, data = [], []
        for request in requests:
            file = request.file
            self.device.check_page_size(file.page_size)
            with self._log.lock:
                placed = place(request, self.volume)
                groups.append(Group(WRITE, self.volume.locate(file, placed.starts, placed.counts), file.name, at_once))
            data.append(file.layout.encode(placed.tuples, ranges(placed.starts, placed.counts)).ravel())
        group = _one(groups)
        completions = self.device.write(
            group.extents.offsets, np.concatenate(data) if len(data) > 1 else data[0], group.extents.lengths, batch=at_once
        )
        self.last = self._log.record(group.requests(), completions, group.label, self.last)


def _one(groups: Sequence[Group]) -> Group:
    return groups[0] if len(groups) == 1 else (together(groups) or groups)[0]


def _pages(data: Bytes, page_size: int, parts: Sequence[tuple[int, int]] | None) -> Bytes:
    if parts is None:
        return data.reshape(-1, page_size)
    rows = data.reshape(-1, sum(length for _, length in parts))
    pages, at = np.zeros((len(rows), page_size), np.uint8), 0
    for offset, length in parts:
        pages[:, offset : offset + length] = rows[:, at : at + length]
        at += length
    return pages
