"""Strands of control on a real device are threads: each does its own I/O and is timed by its own clocks."""

import time
from threading import Condition, Event, Thread

from flashsim.core.request import Integers
from flashsim.core.units import SECONDS
from flashsim.execution.coordination import Coordination
from flashsim.execution.driver import ResultRows, answer, enter_phase, stop
from flashsim.execution.real_strand import RealStrand
from flashsim.execution.requests import Acquire, Algorithm, Answer, Latch, Release, Request, Sleep, Spawn, Strand, Wait
from flashsim.execution.run import Run
from flashsim.execution.strand_state import check_duration, check_strand


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
