"""A driver that keeps pages in memory and checks that an algorithm asks only for what it may."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Cpu, Drop, Emit, Mode, Phase, Psync, Read, Work, Write
from flashsim.storage.attributes import Attribute
from flashsim.storage.heap_file import File, HeapFile, heap_file, ranges
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.layout import PAGE_FORMAT
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Tuples


class SyntheticRecords:
    """Rows of a key and padding, with record sizes of choice."""

    def __init__(self, codes: Integers, sizes: int | npt.NDArray[Any]) -> None:
        self.codes, self.sizes = codes, sizes

    @property
    def names(self) -> list[str]:
        return ["key", "padding"]

    @property
    def rows(self) -> int:
        return len(self.codes)

    def key(self, column: str) -> pa.Array:
        return pa.array(self.codes, mask=self.codes == NULL_KEY)

    def record_sizes(self) -> int | npt.NDArray[Any]:
        return self.sizes

    def encode(self, rows: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
        raise NotImplementedError

    def attributes(self) -> tuple[Attribute, ...]:
        longest = max(0, int(np.max(self.sizes, initial=0)) - 8)
        return Attribute("key", pa.int64(), 8, nullable=True), Attribute("padding", pa.large_binary(), longest)

    def take(self, rows: Integers) -> pa.Table:
        raise NotImplementedError


def relation_file(
    name: str, codes: Any, *, record: int | npt.NDArray[Any] = 100, page_size: int = 512, page_format: str = PAGE_FORMAT
) -> HeapFile:
    """A heap file of synthetic rows with the given key codes."""
    codes = np.asarray(codes, np.int64)
    return heap_file(Relation(name, "key", codes, SyntheticRecords(codes, record)), page_size, page_format=page_format)


@dataclass
class AlgorithmRun:
    """Requests of an algorithm: extents in order, rows, and work by kind."""

    pairs: Integers
    extents: list[tuple[str, str, int, int]] = field(default_factory=list)
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    work: Counter[Work] = field(default_factory=Counter)
    lengths: dict[str, int] = field(default_factory=dict)
    tuples: dict[str, int] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    psyncs: list[int] = field(default_factory=list)  # extents of each
    in_phase: list[str] = field(default_factory=list)
    bytes_by_file: Counter[tuple[str, str]] = field(default_factory=Counter)

    def pages(self, kind: str) -> int:
        return sum(count for operation, _, _, count in self.extents if operation == kind)

    def pages_by_file(self, kind: str) -> Counter[str]:
        moved: Counter[str] = Counter()
        for operation, name, _, count in self.extents:
            if operation == kind:
                moved[name] += count
        return moved

    def count(self, kind: str | None = None, phase: str | None = None, prefix: str = "") -> int:
        """Extents of a kind, in a phase, of files whose names begin with a prefix."""
        return sum(
            (kind is None or extent[0] == kind) and (phase is None or where == phase) and extent[1].startswith(prefix)
            for extent, where in zip(self.extents, self.in_phase, strict=True)
        )

    def sorted_pairs(self) -> Integers:
        return self.pairs[np.lexsort((self.pairs[:, 1], self.pairs[:, 0]))]


def run(algorithm: Algorithm, memory: int) -> AlgorithmRun:
    """Run an algorithm, refusing any breach of the protocol."""
    strict = _StrictRun(memory)
    answer: Tuples | tuple[Tuples, ...] | None = None
    with suppress(StopIteration):
        while True:
            answer = strict.answer(algorithm.send(answer))
    assert not strict.stored, f"left behind: {[file.name for file in strict.stored]}"
    if strict.emitted:
        strict.outcome.pairs = np.concatenate(strict.emitted)
    return strict.outcome


class _StrictRun:
    """Files as an algorithm has written them, and its outcome so far."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.stored: dict[File, list[Tuples]] = {}  # one entry a page
        self.dropped: set[File] = set()
        self.names: dict[str, File] = {}
        self.emitted: list[Integers] = []
        self.outcome = AlgorithmRun(np.zeros((0, 2), np.int64))
        self.page_size = 0  # of the relations, in which memory is counted

    def answer(self, request: Any) -> Tuples | tuple[Tuples, ...] | None:
        if isinstance(request, Write) and request.append:
            request.file.tuples += len(request.tuples)
            request = replace(request, starts=request.starts + request.file.pages)
        parts = request.requests if isinstance(request, Psync) else [request]
        self.page_size = max([self.page_size, *(part.file.page_size for part in parts if isinstance(part, Read | Write))])
        if isinstance(request, Psync):
            _check_psync(request, self.memory * self.page_size)
            self.outcome.psyncs.append(sum(len(part.counts) for part in request.requests))
        for part in parts if isinstance(parts[0], Read | Write) else ():
            self._note(part, isinstance(request, Psync))
        if isinstance(request, Read):
            return _read(request, self.stored)
        if isinstance(request, Write):
            _append(request, self.stored)
        elif isinstance(request, Psync):
            found = tuple(_read(part, self.stored) for part in parts if isinstance(part, Read)) or None
            for part in parts if found is None else ():
                assert isinstance(part, Write)
                _append(part, self.stored)
            return found
        elif isinstance(request, Drop):
            self._drop(request.file)
        elif isinstance(request, Emit):
            assert len(request.r_rows) == len(request.s_rows) > 0
            self.outcome.batches.append(len(request.r_rows))
            self.emitted.append(np.column_stack([request.r_rows, request.s_rows]))
        elif isinstance(request, Cpu):
            assert all(count >= 0 for count in request.work.values())
            work: Any = request.work
            self.outcome.work.update({kind: int(count) for kind, count in work.items()})
        elif isinstance(request, Phase):
            self.outcome.phases.append(request.name)
        return None

    def _note(self, part: Read | Write, in_a_set: bool) -> None:
        """Check a read or a write, and count it."""
        outcome, page_size = self.outcome, self.page_size
        kind = "read" if isinstance(part, Read) else "write"
        assert part.mode is Mode.SERIAL or in_a_set
        assert outcome.phases, "input and output belong to a phase"
        assert part.file not in self.dropped
        assert self.names.setdefault(part.file.name, part.file) is part.file, "two files of one name"
        assert len(part.starts) == len(part.counts) > 0
        assert (part.counts >= 1).all()
        share = 1.0
        if isinstance(part, Read) and part.parts is not None:
            share = sum(length for _, length in part.parts) / part.file.page_size
        assert part.counts.sum() * share * part.file.page_size <= (self.memory + 1) * page_size, "more pages than memory holds"
        outcome.bytes_by_file[kind, part.file.name] += round(int(part.counts.sum()) * share * part.file.page_size)
        outcome.requests.append((kind, part.file.name, int(part.counts.sum())))
        starts, counts = part.starts, part.counts
        if isinstance(part, Read) and part.parts is not None:  # a part of a page is a request of its own
            starts = np.repeat(ranges(starts, counts), len(part.parts))
            counts = np.ones(len(starts), np.int64)
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
            outcome.extents.append((kind, part.file.name, start, count))
            outcome.in_phase.append(outcome.phases[-1])

    def _drop(self, file: File) -> None:
        _check_packing(file, self.stored[file])
        assert file.temporary and file not in self.dropped
        self.dropped.add(file)
        self.outcome.lengths[file.name] = file.pages
        self.outcome.tuples[file.name] = sum(len(page) for page in self.stored.pop(file))
        assert self.outcome.tuples[file.name] == file.tuples
        file.pages = 0


def _check_psync(request: Psync, memory: int) -> None:
    """A set has reads or writes, of any file one write, and moves no more bytes than memory holds."""
    kinds = {type(part) for part in request.requests}
    assert kinds in ({Read}, {Write})
    assert kinds == {Read} or len({part.file for part in request.requests}) == len(request.requests)
    assert sum(int(part.counts.sum()) * part.file.page_size for part in request.requests) <= memory


def _read(request: Read, stored: dict[File, list[Tuples]]) -> Tuples:
    file = request.file
    ends = request.starts + request.counts
    assert request.starts.min() >= 0 and ends.max() <= file.pages, f"reads behind the end of {file.name}"
    pages = np.concatenate([np.arange(start, end) for start, end in zip(request.starts, ends, strict=True)])
    columns = file.layout.row_format.columns if request.columns is None else request.columns
    if isinstance(file, HeapFile):
        return file.read(pages).only(columns)
    found = [stored[file][page] for page in pages]
    return Tuples(
        {name: np.concatenate([page.columns[name] for page in found]) for name in columns},
        np.concatenate([[0], np.cumsum([len(page) for page in found])]),
    )


def _append(request: Write, stored: dict[File, list[Tuples]]) -> None:
    file, tuples = request.file, request.tuples
    assert file.temporary, "base relations are not written"
    expected = file.pages
    for start, count in zip(request.starts.tolist(), request.counts.tolist(), strict=True):
        assert start == expected, f"{file.name} is written out of order"
        expected += count
    assert len(tuples.pages) == request.counts.sum() + 1 and tuples.pages[0] == 0 and tuples.pages[-1] == len(tuples)
    if isinstance(file.layout.row_format, Relation):
        assert np.array_equal(tuples.keys, file.layout.row_format.keys(tuples.rows))
    assert "key" not in tuples.columns or (tuples.keys != NULL_KEY).all()
    sizes = file.layout.cell_sizes(tuples)
    for first, end in zip(tuples.pages, tuples.pages[1:], strict=False):
        assert end > first and sizes[first:end].sum() <= file.layout.room, "an empty or overfull page"
    stored.setdefault(file, []).extend(
        Tuples({name: column[first:end].copy() for name, column in tuples.columns.items()}, np.array([0, end - first]))
        for first, end in zip(tuples.pages, tuples.pages[1:], strict=False)
    )
    file.pages = expected


def _check_packing(file: File, pages: list[Tuples]) -> None:
    """Over all its extents, a temporary file is packed page by page."""
    tuples = Tuples({name: np.concatenate([page.columns[name] for page in pages]) for name in file.layout.row_format.columns})
    assert np.array_equal(np.cumsum([0] + [len(page) for page in pages]), file.layout.pack(tuples))


def oracle(r_codes: Any, s_codes: Any) -> Integers:
    """Pairs of rows with equal keys, sorted, by a dictionary."""
    by_key: dict[int, list[int]] = {}
    for row, key in enumerate(np.asarray(r_codes).tolist()):
        if key != NULL_KEY:
            by_key.setdefault(key, []).append(row)
    pairs = [(r_row, s_row) for s_row, key in enumerate(np.asarray(s_codes).tolist()) for r_row in by_key.get(key, [])]
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)
