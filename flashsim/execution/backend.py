"""The loop that all drivers share: a request of an algorithm is checked and counted, a backend does it, and the algorithm is answered."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError, RefusedError
from flashsim.core.request import SECTOR, total
from flashsim.execution.file_access import FileAccess
from flashsim.execution.requests import (
    Algorithm,
    Answer,
    Blocks,
    Cpu,
    Drop,
    Emit,
    Flush,
    Mode,
    NewPages,
    PageReads,
    Phase,
    Preview,
    Psync,
    Read,
    Request,
    Series,
    Work,
    Write,
)
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File, in_order, ranges
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples


def _check_extents(kind: str, request: Read | Write) -> None:
    if request.starts.shape != request.counts.shape:
        extents = f"{request.starts.size} first pages of {request.file.name} with {request.counts.size} counts"
        raise InvalidParameterError(kind, extents, "an extent has one of each")
    if request.starts.size == 1 and request.starts.item() >= 0 and request.counts.item() >= 1:  # as mostly
        return
    if request.starts.min(initial=0) < 0 or request.counts.min(initial=1) < 1:
        extents = f"{int(request.counts.min())} pages of {request.file.name} from {int(request.starts.min())}"
        raise InvalidParameterError(kind, extents, "extents have at least one page, and pages count from 0")


def _check_read(request: Read) -> None:
    """Refuse pages behind the file's end, parts that are no whole sectors of a page, and columns that are not on them."""
    file = request.file
    _check_extents("read", request)
    ends = request.starts + request.counts
    end = int(ends.item() if ends.size == 1 else ends.max(initial=0))
    if end > file.pages:
        raise InvalidParameterError("read", f"pages up to {end} of {file.name}", f"it has {file.pages}")
    if request.parts == ():
        raise InvalidParameterError("read", f"no part of {file.name}'s pages", "there must be at least one")
    for offset, length in request.parts or ():
        if offset % SECTOR or length % SECTOR or not 0 <= offset < offset + length <= file.page_size:
            bound = f"whole sectors of {SECTOR} B of a page of {file.page_size} B"
            raise InvalidParameterError("read", f"bytes {offset} to {offset + length} of {file.name}'s pages", f"they must be {bound}")
    names_in_memory = file.layout.row_format.columns
    columns = names_in_memory if request.columns is None else request.columns
    for column in columns:
        if column not in names_in_memory:
            raise InvalidParameterError("read", f"column {column} of {file.name}", f"it has {', '.join(names_in_memory)}")
    if request.attributes or (request.parts is not None and columns):
        covered = np.zeros(file.page_size // SECTOR, np.bool_)
        for offset, length in request.parts or ((0, file.page_size),):
            covered[offset // SECTOR : (offset + length) // SECTOR] = True
        for offset, length in file.layout.parts(columns, request.attributes):
            if not covered[offset // SECTOR : (offset + length) // SECTOR].all():
                names = f"columns {', '.join(columns + request.attributes)} of parts of {file.name}'s pages"
                raise InvalidParameterError("read", names, f"they take bytes {offset} to {offset + length}")


def _check_psync(request: Psync) -> None:
    """Refuse a set of no requests, of reads and writes, of anything else, or with two writes of one file, and any request by itself."""
    kinds = sorted({type(each).__name__.lower() for each in request.requests})
    if kinds not in (["read"], ["write"]):
        bound = "a set has reads, or writes, and at least one"
        raise InvalidParameterError("psync", f"a set of {' and '.join(kinds) or 'no request'}", bound)
    files: set[File] = set()
    by_layout: dict[Layout, list[Write]] = {}
    for each in request.requests:
        if isinstance(each, Read):
            _check_read(each)
            continue
        if each.file in files:
            raise InvalidParameterError("psync", f"two writes of {each.file.name}", "the extents of a file belong into one")
        files.add(each.file)
        _check_places(each, at_once=True)
        by_layout.setdefault(each.file.layout, []).append(each)
    for writes in by_layout.values():
        _check_tuples(writes)


def _check_new_pages(request: NewPages, *, at_once: bool) -> None:
    """Refuse the same of new pages, all together; what is wrong is looked for in the writes one by one."""
    files, tuples, names = request.files, request.tuples, set(request.files[0].layout.row_format.columns)
    lengths = {len(column) for column in tuples.columns.values()}
    ends, pages = np.cumsum(request.counts), np.cumsum(request.pages)
    sound = (
        (len(set(files)) == len(files) or not at_once) and len(files) == len(ends) == len(pages) and all(file.temporary for file in files)
    )
    sound = sound and all(file.layout == files[0].layout for file in files) and tuples.columns.keys() == names
    sound = sound and bool((request.pages > 0).all()) and len(tuples.pages) == pages[-1] + 1 and lengths == {ends[-1]}
    if sound and tuples.pages[0] == 0 and bool((tuples.pages[pages] == ends).all()):
        layout = files[0].layout
        layout.row_format.check(tuples)
        if _fits(layout, tuples):
            return
    _check_psync(Psync(request.requests))


def _check_blocks(blocks: Blocks) -> None:
    _check_read(Read(blocks.file, blocks.starts, blocks.counts))
    if blocks.pages:
        _check_new_pages(blocks.pages, at_once=False)


def _fits(layout: Layout, tuples: Tuples) -> bool:
    rising = bool((tuples.pages[1:] >= tuples.pages[:-1]).all())
    before = np.concatenate([[0], np.cumsum(layout.cell_sizes(tuples))])
    return rising and int(np.diff(before[tuples.pages]).max(initial=0)) <= layout.room


def _check_places(request: Write, *, at_once: bool) -> None:
    file = request.file
    _check_extents("write", request)
    end = 0 if request.append else file.pages
    for start, count in zip(request.starts.tolist(), request.counts.tolist(), strict=True):
        if start + count > end:
            if start != end or not file.temporary:
                bound = f"it has {file.pages}" + (", and new ones follow those" if file.temporary else "")
                behind = "behind the end " if request.append else ""
                raise InvalidParameterError("write", f"pages {start} to {start + count - 1} {behind}of {file.name}", bound)
            end += count
    if at_once and len(request.counts) > 1 and not (np.diff(np.sort(ranges(request.starts, request.counts))) > 0).all():
        raise InvalidParameterError("write", f"a page of {file.name} twice at once", "which one stays is open")


def _check_tuples(writes: Sequence[Write]) -> None:
    """Refuse tuples that do not fit on their pages; of many writes to files of one layout together, as they are mostly in order."""
    for write in writes:
        _check_columns_written(write)
    layout, parts = writes[0].file.layout, [write.tuples for write in writes]
    tuples = parts[0]
    if len(parts) > 1:
        begins = [0, *accumulate(len(part) for part in parts)]
        pages = [part.pages[:-1] + begin for part, begin in zip(parts, begins, strict=False)]
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in tuples.columns}
        tuples = Tuples(columns, np.concatenate([*pages, begins[-1:]]))
    layout.row_format.check(tuples)
    boundaries, sizes = tuples.pages, layout.cell_sizes(tuples)
    if len(boundaries) == 2 and len(writes) == 1:  # a page, as mostly, which has all of them
        rising, fullest = True, int(sizes.sum())
    else:
        rising = bool((boundaries[1:] >= boundaries[:-1]).all())
        before = np.concatenate([[0], np.cumsum(sizes)])
        fullest = int(np.diff(before[boundaries]).max(initial=0)) if rising else 0
    if rising and fullest <= layout.room:
        return
    if len(writes) > 1:
        for write in writes:
            _check_tuples([write])
    name = writes[0].file.name
    if not rising:
        raise InvalidParameterError("write", f"page boundaries up to {int(boundaries[-1])} of {name}", "they must rise")
    raise CapacityError(f"write: {fullest} B of tuples on a page of {name}, which holds {layout.room} B")


def _check_columns_written(request: Write) -> None:
    """Refuse other columns than the file has, columns that differ in length, and more or fewer pages of tuples than are written."""
    file, tuples, names = request.file, request.tuples, request.file.layout.row_format.columns
    if tuples.columns.keys() != set(names):
        raise InvalidParameterError("write", f"columns {', '.join(tuples.columns)}", f"{file.name} has {', '.join(names)}")
    lengths = {len(column) for column in tuples.columns.values()}
    if len(lengths) > 1:
        uneven = f"columns of {min(lengths)} to {max(lengths)} tuples of {file.name}"
        raise InvalidParameterError("write", uneven, "they must be equally long")
    boundaries, pages = tuples.pages, total(request.counts)
    if len(boundaries) != pages + 1:
        raise InvalidParameterError("write", f"{len(boundaries) - 1} pages of tuples", f"the extents have {pages}")
    if boundaries[0] != 0 or boundaries[-1] != len(tuples):
        ends = f"page boundaries from {int(boundaries[0])} to {int(boundaries[-1])}"
        raise InvalidParameterError("write", ends, f"they must rise from 0 to {len(tuples)}")


#: Takes result rows: row ids of R and S, and of further relations if there are any, shape (n,) each.
ResultRows = Callable[..., None]


class Backend(Protocol):
    """Does the requests of an algorithm, on one or more machines."""

    runs: list[Run]  #: Runs, a machine each; what is the same on all machines is counted in the first alone.

    def read(self, request: Read) -> Tuples | None:
        """Read extents and return their tuples, if any are wanted."""

    def write(self, request: Write) -> None:
        """Write extents; a temporary file is not yet longer."""

    def psync(self, requests: Sequence[Read] | Sequence[Write]) -> tuple[Tuples | None, ...] | None:
        """Read or write the extents of all at once; returns the answer to each of the reads."""

    def flush(self, file: File) -> None:
        """Make the writes to the file's device durable."""

    def drop(self, file: File) -> None:
        """Forget a temporary file."""

    def cpu(self, request: Cpu) -> None:
        """Let CPU time pass."""

    def phase_ends(self) -> None:
        """The present phase of every run pauses or is complete, or the first is about to begin."""


def answer(request: Request, backend: Backend, results: ResultRows | None) -> Answer:
    """Check and count a request of the one strand that a driver runs, and have it done."""
    enter_phase(request, backend)
    if isinstance(request, Read):
        _check_read(request)
        count_pages(backend, [request])
        return backend.read(request)
    if isinstance(request, Cpu):
        _count_work(backend, request.work)
        backend.cpu(request)
    elif isinstance(request, Write):
        _check_places(request, at_once=request.mode is Mode.BATCH)
        _check_tuples([request])
        count_pages(backend, [request])
        backend.write(request)
    elif isinstance(request, NewPages) and isinstance(backend, FileAccess):
        _check_new_pages(request, at_once=True)
        _count(backend, "write", len(request.extents[0]), total(request.pages))
        backend.new_pages(request, at_once=True)
    elif isinstance(request, Series) and isinstance(backend, FileAccess):
        return _answer_series(request.pages, backend)
    elif isinstance(request, Preview) and isinstance(backend, FileAccess):
        _check_read(Read(request.file, request.starts, request.counts))
        return backend.content.read(request.file, request.starts, request.counts)
    elif isinstance(request, Blocks) and isinstance(backend, FileAccess):
        if backend.takes_blocks:
            _check_blocks(request)
            count_blocks(request, backend)
            backend.blocks(request)
        else:
            _answer_one_by_one(request, backend)
    elif isinstance(request, Psync):
        _check_psync(request)
        count_pages(backend, request.requests)
        return backend.psync(request.requests)
    elif isinstance(request, Emit):
        backend.runs[0].result_rows += len(request.r_rows)
        if results is not None:
            results(request.r_rows, request.s_rows, *request.more)
    elif isinstance(request, Flush):
        backend.flush(request.file)
    elif isinstance(request, Drop):
        if not request.file.temporary:
            raise InvalidParameterError("drop", request.file.name, "only temporary files are dropped")
        backend.drop(request.file)
    elif not isinstance(request, Phase):
        name = type(request).__name__.lower()
        raise RefusedError(f"{name}: this driver runs one strand of control; flashsim.execution.concurrent runs several")
    return None


def _answer_series(pages: NewPages | PageReads, backend: Backend) -> Answer:
    """The same of a series; where pages have a price, so that time passes between its requests, they are made one by one."""
    assert isinstance(backend, FileAccess)
    if isinstance(pages, NewPages) and backend.has_priced_pages:
        for write in pages.requests:
            answer(replace(write, mode=Mode.SERIAL), backend, None)
    elif isinstance(pages, NewPages):
        _check_new_pages(pages, at_once=False)
        _count(backend, "write", len(pages.extents[0]), total(pages.pages))
        backend.new_pages(pages, at_once=False)
    elif backend.has_priced_pages or len({backend.volume.device(file) for file in pages.files}) > 1:
        parts = [part for read in pages.requests if isinstance(part := answer(read, backend, None), Tuples)]
        return in_order(parts, np.arange(len(parts))) if parts else None
    else:
        for place, file in enumerate(pages.files):
            own = pages.numbers[pages.of == place]
            _check_read(Read(file, own, np.ones_like(own), columns=pages.columns))
        _count(backend, "read", len(pages.of), len(pages.of))
        return backend.read_pages(pages)
    return None


def _answer_one_by_one(blocks: Blocks, backend: Backend) -> None:
    """Have blocks read and pages written, each by a request of its own."""
    writes = [replace(write, mode=Mode.SERIAL) for write in blocks.pages.requests] if blocks.pages else []
    bounds = np.searchsorted(blocks.of, np.arange(len(blocks.starts) + 1)).tolist()
    for block, (begin, end) in enumerate(pairwise(bounds)):
        before, after = (
            [Cpu({kind: int(counts[block]) for kind, counts in work.items()}) for work in works] for works in (blocks.before, blocks.after)
        )
        requests: list[Request] = [blocks.read(block), *before, *writes[begin:end], *after]
        for request in requests:
            answer(request, backend, None)


def count_blocks(blocks: Blocks, backend: Backend) -> None:
    """Count what blocks read and write, and their work, all together."""
    pages, written = total(blocks.counts), blocks.pages
    _count_requests(backend, "read", pages if blocks.page_io else len(blocks.starts), pages)
    for work in blocks.before:
        _count_work(backend, {kind: total(counts) for kind, counts in work.items()})
    if written:
        _count_requests(backend, "write", len(written.extents[0]), total(written.pages))
    for work in blocks.after:
        _count_work(backend, {kind: total(counts) for kind, counts in work.items()})


def drive(
    algorithm: Algorithm,
    backend: Backend,
    results: ResultRows | None = None,
    reply: Callable[[Request, Backend, ResultRows | None], Answer] = answer,
) -> list[Run]:
    """Run an algorithm, a fresh generator, to its end; returns its costs on each of the backend's machines.

    `results` is handed the result rows as they are made; `reply` has a request done and returns the answer.
    """
    answered: Answer = None
    try:
        while True:
            try:
                request = algorithm.send(answered)
            except StopIteration:
                break
            answered = reply(request, backend, results)
        backend.phase_ends()
        if isinstance(backend, FileAccess):
            backend.finish()
        return backend.runs
    finally:
        stop(algorithm)


def stop(algorithm: Algorithm) -> None:
    """Close an algorithm whose run ends; its last requests, or how it fails, must not hide why the run ends."""
    with suppress(Exception):
        algorithm.close()


def enter_phase(request: Request, backend: Backend) -> None:
    """Begin the phase that a request belongs to, or go back to it, if it is not the one that goes on."""
    if isinstance(request, Phase) or not backend.runs[0].phases:
        backend.phase_ends()
        for run in backend.runs:
            run.enter(request.name if isinstance(request, Phase) else run.phase.name)


def count_pages(backend: Backend, requests: Sequence[Read] | Sequence[Write]) -> None:
    count = pages = 0
    for request in requests:
        moved, parts = total(request.counts), request.parts if isinstance(request, Read) else None
        pages += moved
        count += len(request.counts) if parts is None else moved * len(parts)
    _count(backend, "read" if isinstance(requests[0], Read) else "write", count, pages)


def _count(backend: Backend, kind: str, count: int, pages: int) -> None:
    _count_requests(backend, kind, count, pages)
    backend.cpu(Cpu({Work.PAGE: pages}))


def _count_requests(backend: Backend, kind: str, count: int, pages: int) -> None:
    phase = backend.runs[0].phase
    if kind == "read":
        phase.reads += count
        phase.pages_read += pages
    else:
        phase.writes += count
        phase.pages_written += pages
    _count_work(backend, {Work.PAGE: pages})


def _count_work(backend: Backend, work: Mapping[str, int]) -> None:
    counted = backend.runs[0].phase.work
    for kind, count in work.items():
        counted[kind] = counted.get(kind, 0) + int(count)
