"""DigestJoin: digests of both relations are joined by any other join, and the rows that meet are fetched afterwards.

Source: Li, On, Xu, Choi and Hu, "DigestJoin: Exploiting Fast Random Reads for Flash-based Joins" (MDM 2009), section II.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from algorithms.fetching.base import FETCHING, FetchOptions, FetchParameters, check_options
from algorithms.files import Output, drop, folders
from algorithms.joins.base import JOINS, JoinOptions, JoinParameters, plan, settle
from algorithms.late_fetch.columns import digest_layout, digest_pages, project, stored_digests
from algorithms.late_fetch.join_index import Entries, EntryStream, JoinIndex, join_index_rows
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.core.errors import InvalidParameterError
from flashsim.core.options import Option
from flashsim.execution.requests import Algorithm, Cpu, Emit, Phase, Read, Request, Work, rewrite
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples
from models.allocation.buffers import Allocation, DigestAllocation

_FIRST = "Join that digest applies to the digests; sort-merge by default."
_STORED = "Store the digests on the device before digest begins."


@dataclass(frozen=True, kw_only=True)
class DigestOptions(FetchOptions, JoinOptions):
    """Options of DigestJoin."""

    first: Annotated[str, Option(_FIRST, "JOIN", completes=("joins",))] = "sort-merge"
    #: Whether the relations' digests are on the device before it begins (`algorithms.late_fetch.columns.with_digests`).
    digests_stored: Annotated[bool, Option(_STORED, kind="flag", apart=True)] = False


#: In `models.join_costs`.
FORMULA = "digest"
#: The join fetches rows of base relations, so it cannot be the first phase of another digest join.
FETCHES = True
OPTIONS = DigestOptions
INNER = "first"

#: Phases in which rows are fetched, and in which join-index entries are written and read.
_FETCH, _INDEX = Phase("fetch"), Phase("index")


class _DigestSettings(NamedTuple):
    """Parameters of the phases: the first join, whether its entries go to the strategy as they come, unwritten, and the strategy."""

    options: DigestOptions
    first: JoinParameters
    streams: bool
    fetching: FetchParameters


def _settings(parameters: JoinParameters, digests: int = 0) -> _DigestSettings:
    """Division of memory: a page is the join index's, unless the first join's last phase leaves room for a cache.

    Digests of so many pages that both fit in memory are joined there before anything is fetched.
    """
    options, memory = parameters.options_of(DigestOptions), parameters.memory
    first = JOINS.load(options.first)
    if first.FETCHES:
        raise InvalidParameterError("first", options.first, "it fetches rows of base relations, and a first join has only digests")
    check_options(options)
    if memory <= LEAST_FRAMES:
        bound = f"a digest join needs {LEAST_FRAMES} frames and a page for its join index"
        raise InvalidParameterError("memory", f"{memory} pages", bound)
    streams = 0 < first.STREAMS_IN <= memory - LEAST_FRAMES and digests >= memory
    own = replace(parameters, options=None)
    joining = replace(own, last_phase=first.STREAMS_IN) if streams else replace(own, memory=memory - 1)
    frames = memory - (first.STREAMS_IN if streams else 1)
    return _DigestSettings(options, joining, streams, FetchParameters(frames, options, parameters.latency_ratio, parameters.page_io))


def check(parameters: JoinParameters) -> None:
    """Refuse a first join or strategy that there is not, and what neither takes; see `join`."""
    _settings(parameters)


def allocate(r_pages: int, s_pages: int, parameters: JoinParameters) -> DigestAllocation:
    """Buffers of the projection, of which the input is the longer one: digests are a small part of their relations."""
    output = max(1, parameters.memory // 8)
    return DigestAllocation(parameters.memory - output, output)


def join(r: File, s: File, parameters: JoinParameters, allocation: Allocation | None = None) -> Algorithm:
    """Join R with S: project both to digests, join these, and fetch the rows that meet by a page-fetch strategy.

    What the first join emits is written as a join index and read back page by page, or, where that join's last phase can do with a few
    pages and memory does not hold both files of digests, goes to the strategy as it comes.  Memory is a phase's own: `parameters.memory`
    pages each.
    """
    shares = settle(r, s, parameters, allocation, DigestAllocation, allocate)
    if not isinstance(r, HeapFile) or not isinstance(s, HeapFile):
        raise InvalidParameterError("relation", r.name, "rows are fetched from base relations")
    options = parameters.options_of(DigestOptions)
    foreseen = [
        stored_digests(file) if options.digests_stored else File(file.name, digest_layout(file), pages=digest_pages(file))
        for file in (r, s)
    ]
    settings = _settings(parameters, sum(file.pages for file in foreseen))
    try:
        plan(options.first, foreseen[0], foreseen[1], settings.first)
    except InvalidParameterError as problem:
        least = f"its {settings.first.memory} pages of memory do not do for the digests ({problem})"
        raise InvalidParameterError("first", options.first, least) from None
    return _join(r, s, parameters, shares, settings)


def _join(r: HeapFile, s: HeapFile, parameters: JoinParameters, buffers: DigestAllocation, settings: _DigestSettings) -> Algorithm:
    if not r.pages or not s.pages:
        yield _FETCH
        return
    options, page_io, digests = settings.options, parameters.page_io, list[File]()
    if options.digests_stored:
        digests += stored_digests(r), stored_digests(s)
    else:
        yield Phase("project")
        for file, folder in zip((r, s), folders("digest", r, s), strict=True):
            digests.append(File(f"{folder}/digests", digest_layout(file), expected_pages=digest_pages(file)))
            yield from project(file, digests[-1], buffers.input, buffers.output, page_io=page_io)
    joining = _Joining(options.first, digests, settings)
    index: JoinIndex = joining
    index_file = File("digest/join-index", Layout(join_index_rows(r.tuples, s.tuples), r.page_size, r.layout.page_format))
    if not settings.streams:
        yield from _store(joining, index_file, page_io=page_io)
        index = _StoredIndex(index_file)
        yield _FETCH
    cache = PageCache(r, s, settings.fetching.memory, in_series=parameters.in_series)
    yield from FETCHING.load(options.fetch).fetch(index, cache, settings.fetching)
    yield from drop(index_file)


class _Joining:
    """The first join as a stream of join-index entries: what it emits is kept back, and its phases are told under its name."""

    def __init__(self, name: str, digests: list[File], settings: _DigestSettings) -> None:
        self._title = f"digest {Path(name).stem if name.endswith('.py') else name}"
        self._algorithm = plan(name, digests[0], digests[1], settings.first)
        self._digests = digests
        self._phase: Phase | None = None
        self._consumer = _FETCH if settings.streams else _INDEX

    def next(self) -> EntryStream:
        """The next entries, or None at the end, when digests that were projected are dropped."""
        if self._phase is not None:
            yield self._phase
        pairs: Emit | None = yield from rewrite(self._algorithm, self._with_title, until=Emit)
        if pairs is not None:
            yield self._consumer
            return Entries(pairs.r_rows, pairs.s_rows)
        for file in self._digests:
            yield from drop(file)
        self._digests = []
        yield self._consumer
        return None

    def _with_title(self, request: Request) -> Request:
        if isinstance(request, Phase):
            request = self._phase = Phase(f"{self._title}: {request.name}")
        return request


def _store(joining: _Joining, file: File, *, page_io: bool) -> Algorithm:
    output = Output([file], 1, page_io=page_io)
    while (entries := (yield from joining.next())) is not None:
        yield from output.append(Tuples({"r": entries.r_rows, "s": entries.s_rows}))
    yield from output.finish()


class _StoredIndex:
    """A join index that was written, as a stream: it is read page by page."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._page = 0

    def next(self) -> EntryStream:
        """The entries of the next page, or None at the end."""
        if self._page == self._file.pages:
            return None
        yield _INDEX
        tuples = yield Read(self._file, np.array([self._page]), np.ones(1, np.int64))
        assert isinstance(tuples, Tuples)
        self._page += 1
        yield Cpu({Work.READ_TUPLE: len(tuples)})
        yield _FETCH
        return Entries(tuples.columns["r"], tuples.columns["s"])
