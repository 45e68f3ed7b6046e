"""The contracts of page-fetch strategies and planners of page accesses: all pairs meet once, in frames that hold their pages."""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.fetching.base import FETCHING, FetchOptions, FetchParameters
from algorithms.late_fetch.join_index import EntryStream, GivenIndex
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import bipartite, complete, general, geometric, join_graph
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.planners.base import PLANNERS, plan
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Answer, Emit, Phase, Request, Write, rewrite
from flashsim.storage.heap_file import HeapFile
from flashsim.testing.contract import Contract, examples
from flashsim.testing.strategies import edges
from flashsim.testing.strict_driver import relation_file
from models.page_fetching import least_fetches

__all__ = ["FetchContract", "PlannerContract"]


def checked_plan(graph: PageGraph, frames: int, planner: str) -> FetchPlan:
    """A plan in which all pairs meet once, in frames that hold them, by no fewer fetches than are proved to be needed."""
    made = plan(graph, frames, planner)
    assert made.frames == frames, f"the plan is for {made.frames} frames, not {frames}"
    made.check()
    least = least_fetches(graph.needed_pages, graph.edges, frames, int(graph.degrees.max(initial=0)))
    assert least <= made.fetches, f"{made.fetches} fetches, but {least} are needed"
    return made


class PlannerContract(Contract):
    """Properties of a planner of page accesses (`algorithms.page_access.planners.base`)."""

    FAMILY = PLANNERS

    @examples(60)
    @given(ends=edges(13, 60), frames=st.integers(2, 15))
    def test_a_plan_keeps_its_word(self, ends: list[tuple[int, int]], frames: int) -> None:
        """On any graph, with any number of frames: all pairs meet once, and the same way every time."""
        graph = PageGraph.of([u for u, _ in ends], [v for _, v in ends])
        made = checked_plan(graph, frames, self.name)
        assert made.fetches <= 2 * graph.edges, "two fetches a pair are enough"
        assert plan(graph, frames, self.name).pages.tolist() == made.pages.tolist(), "the second plan differs"

    def test_published_graphs(self) -> None:
        """General, geometric, bipartite and complete graphs, and those of joins; with frames for all pages each is fetched once."""
        for graph in (general(), geometric(), bipartite(), complete(30, 40), join_graph(100), join_graph(100, same_order=True)):
            for frames in (2, 3, 17, 100, 5000):
                made = checked_plan(graph, frames, self.name)
                assert frames < graph.needed_pages or made.fetches == graph.needed_pages, "a page is fetched twice with frames for all"

    def test_a_graph_without_edges_needs_nothing(self) -> None:
        made = plan(PageGraph.of(np.empty(0, int), np.empty(0, int), 5), 2, self.name)
        assert made.fetches == 0 and made.to_frame().empty


#: Rows on a page of the relations here, and bytes of two row ids.
ROWS, ROW_IDS = 4, 8


class CountingCache(PageCache):
    """A page cache that is checked by what has been asked of it: its pages are counted once more, in a set."""

    def __init__(self, r: HeapFile, s: HeapFile, memory: int) -> None:
        super().__init__(r, s, memory)
        self.memory, self.here, self.unused = memory, set[int](), set[int]()

    def resize(self, frames: int, leaving: Integers | None = None) -> None:
        assert 2 <= frames <= self.memory
        super().resize(frames, leaving)
        for page in () if leaving is None else leaving.tolist():
            self._leave(page)
        assert len(self.here) <= frames

    def _leave(self, page: int) -> None:
        assert page not in self.unused, f"page {page} was fetched in vain"
        self.here.discard(page)

    def follow(self, schedule: Schedule) -> Algorithm:
        pages = np.column_stack(self.pages_of(schedule.r_rows, schedule.s_rows))
        pages = (pages.reshape(-1, 1) if schedule.after.ndim == 2 else pages).tolist()
        due = np.searchsorted(schedule.after.reshape(-1), np.arange(len(schedule.pages) + 2)).tolist()
        for number in range(len(schedule.pages) + 1):
            if number:
                page, victim = int(schedule.pages[number - 1]), int(schedule.victims[number - 1])
                assert page not in self.here
                assert victim == -1 or victim in self.here
                self._leave(victim)
                self.here.add(page)
                self.unused.add(page)
                assert len(self.here) <= self.frames
            for entry in range(due[number], due[number + 1]):
                assert self.here.issuperset(pages[entry])
                self.unused.difference_update(pages[entry])
        assert due[-1] == len(pages)
        yield from super().follow(schedule)

    def collect(self, rows: Integers, *, of_s: bool) -> Generator[Request, Answer, Integers]:
        none, before = rows[:0], self.fetches
        numbers = self.pages_of(none, rows)[1] if of_s else self.pages_of(rows, none)[0]
        pages = np.unique(numbers).tolist()
        assert np.all(np.diff(numbers) >= 0)
        found = yield from super().collect(rows, of_s=of_s)
        np.testing.assert_array_equal(found, rows)
        assert self.fetches - before == len(pages) - (pages[:1] == list(self.here))
        self.here = {pages[-1]} if pages else self.here
        assert set(np.flatnonzero(self.resident()).tolist()) == self.here
        return found


class WatchedIndex(GivenIndex):
    """A join index that is asked for more only while what is remembered of it fits beside the cache's pages."""

    def __init__(self, rows: Integers, batch: int, cache: CountingCache) -> None:
        super().__init__(rows[:, 0], rows[:, 1], batch)
        self.cache, self.remembered = cache, 0

    def next(self) -> EntryStream:
        assert self.remembered * ROW_IDS <= (self.cache.memory - self.cache.used_frames) * self.cache.r.page_size
        entries = yield from super().next()
        self.remembered += 0 if entries is None else len(entries)
        return entries


def watch_rows(algorithm: Algorithm, index: WatchedIndex) -> Algorithm:
    """Memory holds no rows that the strategy has emitted, or written to a file."""

    def forget(request: Request) -> Request:
        if isinstance(request, Emit):
            index.remembered -= len(request.r_rows)
        elif isinstance(request, Write):
            index.remembered -= len(request.tuples)
        return request

    return rewrite(algorithm, forget)


def relations(r_pages: int, s_pages: int) -> tuple[HeapFile, HeapFile]:
    """Two relations of full pages."""
    r, s = relation_file("r", np.arange(r_pages * ROWS)), relation_file("s", np.arange(s_pages * ROWS))
    assert (r.pages, s.pages) == (r_pages, s_pages)
    return r, s


def count_fetches(
    strategy: str, files: tuple[HeapFile, HeapFile], entries: npt.ArrayLike, parameters: FetchParameters, batch: int = 7
) -> int:
    """Fetches of a strategy, whose results are those of the join index."""
    return run_fetch(strategy, files, entries, parameters, batch)[0]


def run_fetch(
    strategy: str, files: tuple[HeapFile, HeapFile], entries: npt.ArrayLike, parameters: FetchParameters, batch: int
) -> tuple[int, list[list[int]]]:
    """Fetches of a strategy, and its results, which are those of the join index, in their order.

    There are no fewer than no plan can do without: what is fetched may be written and read again, but each page is fetched once.
    """
    rows = np.asarray(entries, np.int64).reshape(-1, 2)
    cache, pairs = CountingCache(*files, parameters.memory), [np.empty((0, 2), np.int64)]
    index = WatchedIndex(rows, batch, cache)

    def algorithm() -> Algorithm:
        yield Phase("fetch")
        yield from watch_rows(FETCHING.load(strategy).fetch(index, cache, parameters), index)

    run = trace_only(algorithm(), files, results=lambda r, s: pairs.append(np.column_stack([r, s]))).total()
    graph = graph_of(files, rows)
    least = least_fetches(graph.needed_pages, graph.edges, parameters.memory, int(graph.degrees.max(initial=0)))
    assert cache.fetches >= (graph.needed_pages if run.pages_written else least)
    assert run.reads >= cache.fetches
    results = np.concatenate(pairs)
    np.testing.assert_array_equal(in_order(results), in_order(rows))
    return cache.fetches, results.tolist()


def in_order(rows: Integers) -> Integers:
    return rows[np.lexsort(rows.T)]


def graph_of(files: tuple[HeapFile, HeapFile], entries: npt.ArrayLike) -> PageGraph:
    rows = np.asarray(entries, np.int64).reshape(-1, 2)
    r_pages, s_pages = PageCache(*files, 2).pages_of(rows[:, 0], rows[:, 1])
    return PageGraph.of(r_pages, s_pages, files[0].pages + files[1].pages)


def pairs_of(pages: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """One entry for each pair of a page of R and one of S."""
    return [(ROWS * r_page, ROWS * s_page + 1) for r_page, s_page in pages]


ALL_PAIRS = [(r_row, s_row) for r_row in range(24) for s_row in range(24)]
HUB = pairs_of((0, other) for other in range(6)) * 3 + pairs_of((other, 0) for other in range(6))


class FetchContract(Contract):
    """Properties of a page-fetch strategy (`algorithms.fetching.base`)."""

    FAMILY = FETCHING

    @examples(40)
    @given(
        entries=st.lists(st.tuples(st.integers(0, 23), st.integers(0, 23)), max_size=90),
        memory=st.integers(2, 14),
        k=st.sampled_from([0.1, 0.5, 1.0, 4.0, 1e9]),
        batch=st.sampled_from([1, 7, 1000]),
    )
    @example([], 2, 1.0, 7)
    @example([(3, 5)] * 20, 2, 1.0, 7)
    @example(ALL_PAIRS, 2, 1.0, 100)
    @example(ALL_PAIRS, 8, 1.0, 100)
    @example(HUB, 3, 0.5, 1)
    def test_every_entry_is_joined_once(self, entries: list[tuple[int, int]], memory: int, k: float, batch: int) -> None:
        """On any join index, in any memory: with no more pages than frames, and the same way every time."""
        files = relations(6, 6)
        first, second = (run_fetch(self.name, files, entries, FetchParameters(memory, FetchOptions(k=k)), batch) for _ in range(2))
        same = first == second  # pytest would look for minutes for the least difference of long lists
        assert same, "the second time is not like the first"

    def test_small_relations(self) -> None:
        """Relations of no page, or of one, are joined."""
        for files in (relations(0, 0), relations(0, 3), relations(1, 1)):
            entries = [(0, 0), (3, 1)] if files[0].pages else []
            assert count_fetches(self.name, files, entries, FetchParameters(9)) >= len(entries)

    def test_graphs_of_joins(self) -> None:
        """Larger graphs, an entry a pair of pages, in no order."""
        for graph in (join_graph(90, ROWS), join_graph(90, ROWS, same_order=True), complete(20, 30)):
            r_pages = int(graph.first.max()) + 1
            files = relations(r_pages, graph.pages - r_pages)
            entries = np.array(pairs_of(zip(graph.first.tolist(), (graph.second - r_pages).tolist(), strict=True)))
            np.random.default_rng(5).shuffle(entries)
            for memory in (2, 5, 40):
                assert count_fetches(self.name, files, entries, FetchParameters(memory), 100) > 0

    def test_rows_that_are_not_there_are_refused(self) -> None:
        for entries in ([(0, 24)], [(24, 0)], [(0, -1)]):
            with pytest.raises(InvalidParameterError, match="join index: row"):
                count_fetches(self.name, relations(6, 6), entries, FetchParameters(9))
