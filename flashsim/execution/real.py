"""Strands of an algorithm on a real file or block device: each is a thread, whose pages are written and read back with O_DIRECT.

Times are the wall clock's.  As in do2009, section 4.1, I/O time is what remains of the wall-clock time when the CPU time of the strand's
thread, and its waits for other strands, are taken away.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from functools import partial
from threading import Condition, Event, Lock, Thread
from time import perf_counter_ns

import numpy as np

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.protocols import Label, Sink
from flashsim.core.request import FLUSH, READ, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.backend import Backend, ResultRows, answer, drive, enter_phase
from flashsim.execution.file_access import Group, place, together
from flashsim.execution.requests import Algorithm, Answer, Control, Cpu, Mode, Read, Release, Request, Sleep, Spawn, Strand, Wait, Write
from flashsim.execution.run import Run
from flashsim.execution.strand_state import Awaited, Coordination, check_duration, check_strand
from flashsim.storage.heap_file import File, ranges
from flashsim.storage.record import Bytes
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Volume

#: Seconds of a wait for other threads, which is then begun again: Python loses a signal that arrives just before a wait without an end.
_SIGNALS = 1.0


def _clocks() -> tuple[int, int, int]:
    """Wall-clock time, and user and kernel time of the calling thread, ns."""
    times = resource.getrusage(resource.RUSAGE_THREAD)
    return perf_counter_ns(), round(times.ru_utime * SECONDS), round(times.ru_stime * SECONDS)


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
                submitted: Integers = completions["submitted"]
                requests["think"] = np.where(requests["dependency"] < 0, submitted - last[0], 0)
            self._sink.record(requests, completions, label, last[1])
            row = int(completions["completed"].argmax())
            return int(completions["completed"][row]), first + row


class RealStrand:
    """The backend of one strand on a real device; pages are bytes in each file's page format.

    `volume`: where pages are; base relations must have been added and written. `sink`: is handed every request with the times measured, ns
    since the device was opened. `parent`: the strand that begins this one, and whose log it shares.
    """

    def __init__(
        self, volume: Volume, device: RealDevice, sink: Sink | None = None, *, name: str = "main", parent: RealStrand | None = None
    ) -> None:
        self.volume = volume
        self.device = device
        self.runs = [Run(str(device.path), strand=name)]
        self.last = (0, -1)  # when the last request completed that the next one waits for, and its number in the record
        if parent is None:
            self.log = _Log(sink, self.runs[0].outstanding)
        else:
            self.last, self.log, self.runs[0].phase.name = parent.last, parent.log, parent.runs[0].phase.name
        self._clocks: tuple[int, int, int] | None = None  # as the phase began
        self._wait_time = 0  # since then

    def follows(self, last: tuple[int, int]) -> None:
        """The next request comes after the last one of another strand too."""
        self.last = max(self.last, last)

    def add_wait(self, duration: int) -> None:
        """The strand waited for another, or slept, so long."""
        self._wait_time += duration

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
        self.last = self.log.record(make_requests(FLUSH, 0, 0), None, file.name, self.last)

    def drop(self, file: File) -> None:
        with self.log.lock:
            self.volume.drop(file)

    def cpu(self, request: Cpu) -> None:
        """Nothing: real work takes real time."""

    def phase_ends(self) -> None:
        """Divide the wall-clock time of the phase into user, kernel and I/O time; called by the strand's own thread."""
        now = _clocks()
        if self._clocks is not None:
            phase = self.runs[0].phase
            wall, user, kernel = (end - begin for begin, end in zip(self._clocks, now, strict=True))
            phase.user_time += user
            phase.kernel_time += kernel
            phase.wait_time += self._wait_time
            phase.io_time += max(0, wall - user - kernel - self._wait_time)
        self._clocks, self._wait_time = now, 0

    def _read(self, requests: Sequence[Read], *, at_once: bool) -> list[Tuples | None]:
        groups = []
        for request in requests:
            file, parts = request.file, request.parts
            with self.log.lock:
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
        self.last = self.log.record(group.requests(), completions, group.label, self.last)
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
            with self.log.lock:
                placed = place(request, self.volume)
                groups.append(Group(WRITE, self.volume.locate(file, placed.starts, placed.counts), file.name, at_once))
            data.append(file.layout.encode(placed.tuples, ranges(placed.starts, placed.counts)).ravel())
        group, pages = _one(groups), np.concatenate(data) if len(data) > 1 else data[0]
        completions = self.device.write(group.extents.offsets, pages, group.extents.lengths, batch=at_once)
        self.last = self.log.record(group.requests(), completions, group.label, self.last)


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


class _StoppedError(Exception):
    """Another strand failed."""


class StrandThreads:
    """An algorithm's strands: the first in the thread that calls, each other one in its own.

    `first` is the backend of the first strand, on a device with base relations; `results` is handed the result rows as they are made, those
    of one request at a time.
    """

    def __init__(self, first: RealStrand, results: ResultRows | None = None) -> None:
        self._results = results
        self._first = Strand("main", 0)
        self._backends = {self._first: first}
        self._threads: list[Thread] = []
        self._turn = Condition()  # its lock guards all that follows
        self._coordination = Coordination()
        self._live = 1
        self._problem: BaseException | None = None
        self._failed = Event()  # wakes those that sleep

    def run(self, algorithm: Algorithm) -> list[Run]:
        """Run an algorithm until it and all strands that it began have ended; returns a run a strand."""
        self._run_strand(self._first, algorithm)
        while self._live:
            try:
                with self._turn:
                    self._turn.wait_for(lambda: not self._live, _SIGNALS)
            except BaseException as problem:  # an interrupt; no thread must outlive the run
                self._fail(problem)
        for thread in self._threads:
            thread.join()
        if self._problem is not None:
            raise self._problem
        return [backend.runs[0] for backend in self._backends.values()]

    def _run_strand(self, strand: Strand, algorithm: Algorithm) -> None:
        """Run one strand; if it fails, all others stop at their next request."""
        results = None if self._results is None else self._one_at_a_time
        try:
            drive(algorithm, self._backends[strand], results, partial(self._answer, strand))
            with self._turn:
                self._coordination.end(strand)
        except BaseException as problem:
            self._fail(problem)
        finally:
            with self._turn:
                self._live -= 1
                self._check_deadlock()
                self._turn.notify_all()

    def _fail(self, problem: BaseException) -> None:
        with self._turn:
            if self._problem is None and not isinstance(problem, _StoppedError):
                self._problem = problem
                self._failed.set()
                self._turn.notify_all()

    def _answer(self, strand: Strand, request: Request, backend: Backend, results: ResultRows | None) -> Answer:
        if self._problem is not None:
            raise _StoppedError
        if not isinstance(request, Control):
            return answer(request, backend, results)
        enter_phase(request, backend)
        if isinstance(request, Spawn):
            return self._begin(request, self._backends[strand])
        if isinstance(request, Release):
            with self._turn:
                after = self._coordination.release(strand, request.latch)
                if after is not None:
                    self._backends[after].follows(self._backends[strand].last)
                self._turn.notify_all()
            return None
        begin = perf_counter_ns()
        if isinstance(request, Sleep):
            check_duration("sleep", request.duration)
            if self._failed.wait(request.duration / SECONDS):
                raise _StoppedError
        else:
            self._wait(strand, request.strands if isinstance(request, Wait) else [request.latch])
        self._backends[strand].add_wait(perf_counter_ns() - begin)
        return None

    def _begin(self, request: Spawn, parent: RealStrand) -> Strand:
        with self._turn:
            number = len(self._backends)
            strand = Strand(request.name or f"strand {number}", number)
            self._backends[strand] = RealStrand(parent.volume, parent.device, name=strand.name, parent=parent)
            thread = Thread(target=self._run_strand, args=(strand, request.algorithm), name=strand.name)
            thread.start()  # which the machine may refuse
            self._threads.append(thread)
            self._live += 1
        return strand

    def _wait(self, strand: Strand, awaited: Sequence[Awaited]) -> None:
        waits = self._coordination
        for one in awaited:
            if isinstance(one, Strand):
                check_strand(one, self._backends)
        with self._turn:
            for one in awaited:
                if not (waits.wait(strand, one) if isinstance(one, Strand) else waits.acquire(strand, one)):
                    self._check_deadlock()
                while strand in waits.waits:
                    if self._problem is not None:
                        raise _StoppedError
                    self._turn.wait(_SIGNALS)
                if isinstance(one, Strand):
                    self._backends[strand].follows(self._backends[one].last)

    def _check_deadlock(self) -> None:
        if self._problem is None and self._live and len(self._coordination.waits) == self._live:
            self._problem = self._coordination.deadlock()
            self._turn.notify_all()

    def _one_at_a_time(self, *rows: Integers) -> None:
        assert self._results is not None
        with self._turn:
            self._results(*rows)
