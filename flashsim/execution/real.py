"""Run an algorithm on a real file or block device: real pages, written and read back with O_DIRECT, timed by the wall clock.

As in do2009, section 4.1, I/O time is what remains of the wall-clock time when the process's CPU time is taken away.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.protocols import Progress, Sink
from flashsim.core.request import FLUSH, READ, SECTOR, WRITE, Completions, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.driver import ResultRows, drive
from flashsim.execution.requests import Algorithm, Cpu, Mode, Read, Write
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.record import Bytes
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Extents, Volume

#: Pages encoded at once while a relation is loaded.
_LOAD_PAGES = 4096


@dataclass(frozen=True)
class _Clocks:
    wall: int
    user: int
    kernel: int

    @classmethod
    def now(cls) -> _Clocks:
        times = os.times()
        return cls(perf_counter_ns(), round(times.user * SECONDS), round(times.system * SECONDS))


class Real:
    """The driver's backend on a real device; pages are bytes in each file's page format.

    Parameters
    ----------
    volume
        Where pages are; base relations must have been added and written (`load`).
    device
        What they are on.
    sink
        Is handed every request with the times measured, ns since the device was opened.
    """

    def __init__(self, volume: Volume, device: RealDevice, sink: Sink | None = None) -> None:
        self.volume = volume
        self.device = device
        self.sink = sink
        self.runs = [Run(str(device.path))]
        self._clocks = _Clocks.now()

    def load(self, file: HeapFile, progress: Progress | None = None) -> None:
        """Place a base relation and write its leaves."""
        self.device.check_page_size(file.page_size)
        self.volume.add(file)
        for start in range(0, file.pages, _LOAD_PAGES):
            count = min(_LOAD_PAGES, file.pages - start)
            data = file.layout.encode(file.run(start, start + count)).ravel()
            extents = self.volume.locate(file, np.array([start]), np.array([count]))
            self.device.write(extents.offsets, data, extents.lengths)
            if progress is not None:
                progress(start + count, file.pages, file.name)
        self.device.flush()

    def read(self, request: Read) -> Tuples | None:
        """Read extents and take the tuples, if any are wanted, from their bytes."""
        file, parts = request.file, request.parts
        extents = self.volume.locate(file, request.starts, request.counts)
        if parts is not None:
            for offset, length in parts:
                if (offset | length) % self.device.alignment:
                    bound = f"{self.device.path} takes multiples of {self.device.alignment} B"
                    raise InvalidParameterError("read", f"bytes {offset} to {offset + length} of {file.name}'s pages", bound)
            extents = extents.parts(file.page_size, parts)
        data, completions = self.device.read(extents.offsets, extents.lengths, batch=request.mode is Mode.BATCH)
        self._record(READ, extents, request.mode, completions, file.name)
        if request.columns == ():
            return None
        try:
            return file.layout.decode(_pages(data, file.page_size, parts), request.columns)
        except DamagedFileError as problem:
            raise DamagedFileError(f"device: {self.device.path} holds other pages than {file.name} has: {problem}") from None

    def write(self, request: Write) -> None:
        """Place pages that are new, and write the bytes of all."""
        file = request.file
        self.device.check_page_size(file.page_size)
        self.volume.extend(file, request.new_pages)
        data = file.layout.encode(request.tuples).ravel()
        extents = self.volume.locate(file, request.starts, request.counts)
        completions = self.device.write(extents.offsets, data, extents.lengths, batch=request.mode is Mode.BATCH)
        self._record(WRITE, extents, request.mode, completions, file.name)

    def flush(self, file: File) -> None:
        """Make what was written durable."""
        self.device.flush()
        if self.sink is not None:
            self.sink.record(make_requests(FLUSH, 0, 0), None, file.name)

    def drop(self, file: File) -> None:
        """Free a temporary file's room."""
        self.volume.drop(file)

    def cpu(self, request: Cpu) -> None:
        """Nothing: real work takes real time."""

    def phase_ends(self) -> None:
        """Divide the wall-clock time of the phase into user, kernel and I/O time."""
        now, then = _Clocks.now(), self._clocks
        if self.runs[0].phases:
            phase = self.runs[0].phases[-1]
            phase.user_time, phase.kernel_time = now.user - then.user, now.kernel - then.kernel
            phase.io_time = max(0, now.wall - then.wall - phase.cpu_time)
        self._clocks = now

    def _record(self, operation: int, extents: Extents, mode: Mode, completions: Completions, label: str) -> None:
        if self.sink is not None:
            requests = make_requests(operation, extents.offsets, extents.lengths, serial=mode is Mode.SERIAL)
            self.sink.record(requests, completions, label)


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


def needed_size(files: Sequence[HeapFile]) -> int:
    """Bytes that two-pass joins of these relations need at most: the relations, and twice as much for temporary files.

    A deeper recursion over a skewed bucket reuses what its parent has freed.
    """
    relations = sum((file.pages + 2) * file.page_size for file in files)
    return -(-3 * relations // SECTOR) * SECTOR


def check_real_placement(placement: str) -> None:
    """Refuse a placement that a real device cannot have.

    Raises
    ------
    UnknownNameError
        There is no such placement.
    InvalidParameterError
        It takes two disks, or acts out a file system.
    """
    member = PLACEMENTS.load(placement)
    if member.DEVICE_MAP.devices > 1:
        raise InvalidParameterError("placement", placement, "a real device is one disk")
    if member.FileSystem.writes_metadata:
        raise InvalidParameterError("placement", placement, "a real file has a file system of its own")


def run_on_file(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    device: RealDevice,
    *,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> Run:
    """Load base relations onto a real device, then run an algorithm there.

    Parameters
    ----------
    algorithm
        A fresh generator over `files`.
    files
        The base relations, placed in this order.
    device
        Opened for writing; what it holds is destroyed.
    placement
        ``packed`` or ``spread``.

    Raises
    ------
    CapacityError
        The device cannot hold the relations and temporary files.
    InvalidParameterError
        The device does not take pages so small.
    """
    check_real_placement(placement)
    backend = Real(Volume([device.size], placement), device, sink)
    for file in files:
        backend.load(file, progress)
    return drive(algorithm, backend, results)[0]
