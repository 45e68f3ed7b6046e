"""The loop that every driver shares: take what an algorithm yields, have it done, answer it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from flashsim.core.errors import RefusedError
from flashsim.execution.checks import check_drop, check_psync, check_read, check_write
from flashsim.execution.requests import Algorithm, Answer, Cpu, Drop, Emit, Flush, Phase, Psync, Read, Request, Work, Write
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples

#: Takes result rows: row ids of R and S, and of further relations if there are any, shape (n,) each.
ResultRows = Callable[..., None]


class Backend(Protocol):
    """Does what the algorithm asks for, on one or more machines."""

    runs: list[Run]

    def read(self, request: Read) -> Tuples | None:
        """Read extents and return their tuples, if any are wanted."""

    def write(self, request: Write) -> None:
        """Write extents; a temporary file is not yet longer."""

    def psync(self, requests: Sequence[Read] | Sequence[Write]) -> tuple[Tuples | None, ...] | None:
        """Read or write the extents of all at once; of reads return what each is answered with."""

    def flush(self, file: File) -> None:
        """Make the writes to the file's device durable."""

    def drop(self, file: File) -> None:
        """Forget a temporary file."""

    def cpu(self, request: Cpu) -> None:
        """Let CPU time pass."""

    def phase_ends(self) -> None:
        """The phase of every run that goes on pauses or is complete, or the first is about to begin."""


def drive(algorithm: Algorithm, backend: Backend, results: ResultRows | None = None) -> list[Run]:
    """Run an algorithm to its end.

    Parameters
    ----------
    algorithm
        A fresh generator.
    backend
        Where reads and writes go.
    results
        Is handed the result rows as they are made.

    Returns
    -------
    list of Run
        What it cost on each of the backend's machines.
    """
    answered: Answer = None
    try:
        while True:
            try:
                request = algorithm.send(answered)
            except StopIteration:
                backend.phase_ends()
                return backend.runs
            answered = answer(request, backend, results)
    finally:
        stop(algorithm)


def stop(algorithm: Algorithm) -> None:
    """Close an algorithm whose run ends; what it asks for meanwhile, or how it fails, must not hide why the run ends."""
    with suppress(Exception):
        algorithm.close()


def answer(request: Request, backend: Backend, results: ResultRows | None) -> Answer:
    enter_phase(request, backend)
    if isinstance(request, Read):
        check_read(request)
        _count_pages(backend, [request])
        return backend.read(request)
    if isinstance(request, Cpu):
        _work(backend, request)
    elif isinstance(request, Write):
        check_write(request)
        _count_pages(backend, [request])
        backend.write(request)
    elif isinstance(request, Psync):
        check_psync(request)
        _count_pages(backend, request.requests)
        return backend.psync(request.requests)
    elif isinstance(request, Emit):
        for run in backend.runs:
            run.result_rows += len(request.r_rows)
        if results is not None:
            results(request.r_rows, request.s_rows, *request.more)
    elif isinstance(request, Flush):
        backend.flush(request.file)
    elif isinstance(request, Drop):
        check_drop(request)
        backend.drop(request.file)
    elif not isinstance(request, Phase):
        name = type(request).__name__.lower()
        raise RefusedError(f"{name}: this driver runs one strand of control; flashsim.execution.concurrent runs several")
    return None


def enter_phase(request: Request, backend: Backend) -> None:
    """Begin the phase that a request belongs to, or go back to it, if it is not the one that goes on."""
    if isinstance(request, Phase) or not backend.runs[0].phases:
        backend.phase_ends()
        for run in backend.runs:
            run.enter(request.name if isinstance(request, Phase) else run.phase.name)


def _count_pages(backend: Backend, requests: Sequence[Read] | Sequence[Write]) -> None:
    count = pages = 0
    for request in requests:
        moved, parts = int(request.counts.sum()), request.parts if isinstance(request, Read) else None
        pages += moved
        count += len(request.counts) if parts is None else moved * len(parts)
    for run in backend.runs:
        phase = run.phase
        if isinstance(requests[0], Read):
            phase.reads += count
            phase.pages_read += pages
        else:
            phase.writes += count
            phase.pages_written += pages
    _work(backend, Cpu({Work.PAGE: pages}))


def _work(backend: Backend, request: Cpu) -> None:
    for run in backend.runs:
        work = run.phase.work
        for kind, count in request.work.items():
            work[kind] = work.get(kind, 0) + int(count)
    backend.cpu(request)
