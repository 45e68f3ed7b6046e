"""Run an algorithm on a real file or block device; strands of control are threads."""

import time
from collections.abc import Sequence
from threading import Condition, Event, Thread
from time import perf_counter_ns

import numpy as np

from flashsim.core.compiling import cores as available_cores
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress, Sink
from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import SECONDS
from flashsim.device.file import RealDevice
from flashsim.execution.coordination import Coordination
from flashsim.execution.driver import ResultRows, answer, enter_phase, stop
from flashsim.execution.real_strand import RealStrand
from flashsim.execution.requests import HOST, Acquire, Algorithm, Answer, Latch, Release, Request, Sleep, Spawn, Strand, Wait
from flashsim.execution.run import ConcurrentRun, Run, by_name, in_one
from flashsim.execution.strand_state import check_duration, check_strand
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.volume import Volume


class _StoppedError(Exception):
    """Another strand failed."""


class StrandThreads:
    """An algorithm's strands: the first in the thread that calls, each other one in its own.

    Parameters
    ----------
    backend
        Of the first strand, on a device with base relations.
    results
        Is handed the result rows as they are made, those of one request at a time.
    """

    def __init__(self, backend: RealStrand, results: ResultRows | None = None) -> None:
        self._results = None if results is None else self._one_at_a_time
        self._take_results = results
        self._backends = {Strand("main", 0): backend}
        self._threads: list[Thread] = []
        self._turn = Condition()  # its lock guards all that follows
        self._coordination = Coordination()
        self._live = 1
        self._problem: BaseException | None = None
        self._failed = Event()  # wakes those that sleep

    def run(self, algorithm: Algorithm) -> list[Run]:
        """Run an algorithm until it and all strands that it began have ended; returns a run a strand."""
        self._strand(next(iter(self._backends)), algorithm)
        while self._live:
            try:
                with self._turn:
                    self._turn.wait_for(lambda: not self._live)
            except BaseException as problem:  # an interrupt; no thread must outlive the run
                self._fail(problem)
        for thread in self._threads:
            thread.join()
        if self._problem is not None:
            raise self._problem
        return [backend.runs[0] for backend in self._backends.values()]

    def _strand(self, strand: Strand, algorithm: Algorithm) -> None:
        """Run one strand; if it fails, all others stop at their next request."""
        backend = self._backends[strand]
        answered: Answer = None
        try:
            while True:
                try:
                    request = algorithm.send(answered)
                except StopIteration:
                    break
                if self._problem is not None:
                    raise _StoppedError
                answered = self._answer(strand, backend, request)
            backend.phase_ends()
            with self._turn:
                self._coordination.end(strand)
        except BaseException as problem:
            self._fail(problem)
        finally:
            stop(algorithm)
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

    def _answer(self, strand: Strand, backend: RealStrand, request: Request) -> Answer:
        if not isinstance(request, Spawn | Wait | Sleep | Acquire | Release):
            return answer(request, backend, self._results)
        enter_phase(request, backend)
        if isinstance(request, Spawn):
            return self._begin(request, backend)
        if isinstance(request, Release):
            with self._turn:
                after = self._coordination.release(strand, request.latch)
                if after is not None:
                    self._backends[after].follows(backend.last)
                self._turn.notify_all()
            return None
        begin = time.perf_counter_ns()
        if isinstance(request, Sleep):
            check_duration("sleep", request.duration)
            if self._failed.wait(request.duration / SECONDS):
                raise _StoppedError
        else:
            self._wait(strand, backend, request)
        backend.waited(time.perf_counter_ns() - begin)
        return None

    def _begin(self, request: Spawn, backend: RealStrand) -> Strand:
        with self._turn:
            number = len(self._backends)
            strand = Strand(request.name or f"strand {number}", number)
            self._backends[strand] = backend.strand(strand.name)
            thread = Thread(target=self._strand, args=(strand, request.algorithm), name=strand.name)
            thread.start()  # which the machine may refuse
            self._threads.append(thread)
            self._live += 1
        return strand

    def _wait(self, strand: Strand, backend: RealStrand, request: Wait | Acquire) -> None:
        awaited: list[Strand | Latch] = [request.latch] if isinstance(request, Acquire) else list(request.strands)
        if isinstance(request, Wait):
            for other in request.strands:
                check_strand(other, self._backends)
        with self._turn:
            for one in awaited:
                waits = self._coordination
                if not (waits.acquire(strand, one) if isinstance(one, Latch) else waits.wait(strand, one)):
                    self._check_deadlock()
                while strand in waits.waits:
                    if self._problem is not None:
                        raise _StoppedError
                    self._turn.wait()
                if isinstance(one, Strand):
                    backend.follows(self._backends[one].last)

    def _check_deadlock(self) -> None:
        if self._problem is None and self._live and len(self._coordination.waits) == self._live:
            self._problem = self._coordination.deadlock()
            self._turn.notify_all()

    def _one_at_a_time(self, *rows: Integers) -> None:
        assert self._take_results is not None
        with self._turn:
            self._take_results(*rows)


#: Pages encoded at once while a relation is loaded.
_LOAD_PAGES = 4096


def needed_size(files: Sequence[HeapFile]) -> int:
    """Bytes that two-pass joins of these relations need at most: the relations, and twice as much for temporary files.

    A deeper recursion over a skewed bucket reuses what its parent has freed.
    """
    relations = sum((file.pages + len(file.layout.reserved_places)) * file.page_size for file in files)
    return max(1, -(-3 * relations // SECTOR)) * SECTOR  # a file of no bytes cannot be made


def check_real_placement(placement: str) -> None:
    """Refuse a placement that a real device cannot have."""
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
    """Load base relations onto a real device, then run an algorithm there; of several strands, see `run_strands_on_file`.

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
    """
    return in_one(run_strands_on_file(algorithm, files, device, placement=placement, sink=sink, results=results, progress=progress).strands)


def run_strands_on_file(
    algorithm: Algorithm,
    files: Sequence[HeapFile],
    device: RealDevice,
    *,
    placement: str = "packed",
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> ConcurrentRun:
    """As `run_on_file`; each strand has a run, and the machine's cores are those that this process may use."""
    check_real_placement(placement)
    volume = Volume([device.size], placement)
    for file in files:
        _load(file, volume, device, progress)
    first = RealStrand(volume, device, sink)
    begin = perf_counter_ns()
    strands = by_name(StrandThreads(first, results).run(algorithm))
    elapsed = perf_counter_ns() - begin
    busy = int(first.runs[0].outstanding.times()[1:].sum())
    cores, worked = {HOST: available_cores()}, {HOST: sum(run.total().cpu_time for run in strands)}
    return ConcurrentRun(str(device.path), strands, elapsed, cores, worked, [busy])


def _load(file: HeapFile, volume: Volume, device: RealDevice, progress: Progress | None) -> None:
    device.check_page_size(file.page_size)
    volume.add(file)
    for start in range(0, file.pages, _LOAD_PAGES):
        count = min(_LOAD_PAGES, file.pages - start)
        data = file.layout.encode(file.run(start, start + count), np.arange(start, start + count)).ravel()
        extents = volume.locate(file, np.array([start]), np.array([count]))
        device.write(extents.offsets, data, extents.lengths)
        if progress is not None:
            progress(start + count, file.pages, file.name)
    device.flush()
