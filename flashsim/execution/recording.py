"""The requests of a serial algorithm, kept without tuples, so that other machines and placements take them without the algorithm's work.

They do not depend on either: the driver answers with tuples alone, and these are the files'.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flashsim.core.request import Integers
from flashsim.execution.backend import ResultRows, answer, count_blocks, count_pages, drive, enter_phase
from flashsim.execution.machine import Machine, load
from flashsim.execution.requests import Algorithm, Answer, Blocks, Cpu, Drop, Emit, Flush, NewPages, Phase, Preview, Read, Request, Write
from flashsim.execution.run import Run
from flashsim.execution.simulated import SimulatedBackend
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.rows import Tuples


@dataclass
class Counted(Tuples):
    """As many tuples, without any content."""

    count: int = 0

    def __len__(self) -> int:
        return self.count


class _NoContent(ColumnContent):
    def write(self, file: File, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        """Nothing is kept."""

    def write_each(self, files: Sequence[File], firsts: Integers, pages: Integers, counts: Integers, tuples: Tuples) -> None:
        """Nothing either."""


@dataclass
class RequestRecording:
    """Requests of an algorithm over base files; empty until one has run to its end."""

    #: What the algorithm is: what equals it makes the same requests of the same files.
    of: Any = None
    files: Sequence[HeapFile] = ()
    requests: list[Request] = field(default_factory=list)

    def holds(self, of: Any, files: Sequence[HeapFile]) -> bool:
        """True if it has the requests of such an algorithm over such files."""
        if not self.requests or self.of != of or len(files) != len(self.files):
            return False
        return all(_are_alike(*pair) for pair in zip(files, self.files, strict=True))

    def record(self, algorithm: Algorithm, of: Any, files: Sequence[HeapFile]) -> Algorithm:
        """The algorithm, whose requests are kept once it has ended; none of one that makes others than a serial join."""
        self.requests, requests, answered, simple = [], list[Request](), None, True
        while True:
            try:
                request = algorithm.send(answered)
            except StopIteration:
                break
            simple = simple and isinstance(request, Read | Write | Blocks | Preview | Cpu | Emit | Phase | Drop | Flush)
            if simple and not isinstance(request, Preview):
                requests.append(_without_tuples(request))
            answered = yield request
        self.of, self.files, self.requests = of, files, requests if simple else []

    def again(self, files: Sequence[HeapFile]) -> Algorithm:
        """An algorithm that makes the requests again, of such files and new temporary ones."""
        copies: dict[File, File] = dict(zip(self.files, files, strict=True))

        def copy(file: File) -> File:
            return copies.setdefault(file, File(file.name, file.layout, expected_pages=file.expected_pages))

        for request in self.requests:
            if isinstance(request, Blocks) and (pages := request.pages):
                own = [copy(file) for file in pages.files]
                pages = NewPages(own, pages.pages, pages.counts, pages.cuts, pages.tuples, page_io=pages.page_io)
                request = replace(request, pages=pages)
            if isinstance(request, Read | Write | Blocks | Drop | Flush):
                request = replace(request, file=copy(request.file))
            yield request


def simulate_again(recording: RequestRecording, files: Sequence[HeapFile], machines: Sequence[Machine], placement: str) -> list[Run]:
    """Run recorded requests on simulated machines, as `flashsim.execution.drivers.simulate` runs the algorithm."""
    return drive(recording.again(files), SimulatedBackend(load(files, machines, placement), _NoContent(), machines), None, _answer)


def _answer(request: Request, backend: Any, results: ResultRows | None) -> Answer:
    if not isinstance(request, Write | Blocks):
        return answer(request, backend, results)
    enter_phase(request, backend)
    if isinstance(request, Blocks):
        count_blocks(request, backend)
        backend.blocks(request)
    else:
        count_pages(backend, [request])
        backend.write(request)
    return None


def _are_alike(one: HeapFile, other: HeapFile) -> bool:
    layouts = [(file.name, file.page_size, file.layout.page_format, file.digests) for file in (one, other)]
    return one.relation is other.relation and layouts[0] == layouts[1] and np.array_equal(one.first_rows, other.first_rows)


def _without_tuples(request: Any) -> Any:
    match request:
        case Read():
            return replace(request, starts=request.starts.copy(), counts=request.counts.copy(), columns=(), attributes=())
        case Write():
            tuples = Counted({}, count=len(request.tuples))
            return replace(request, starts=request.starts.copy(), counts=request.counts.copy(), tuples=tuples)
        case Blocks(pages=NewPages() as pages):
            counted = Counted({}, count=len(pages.tuples))
            return replace(request, pages=NewPages(pages.files, pages.pages, pages.counts, pages.cuts, counted, page_io=pages.page_io))
        case Emit():
            nothing = np.broadcast_to(np.int64(0), len(request.r_rows))
            return Emit(nothing, nothing)
        case Cpu():
            return Cpu(dict(request.work), request.place)
    return request
