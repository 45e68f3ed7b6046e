"""The join graph that is known so far, in limited memory: pages, the pairs of them that join, and the entries of each pair.

Segments of it are fetched: a page that has the fewest partners missing, with all its partners.

Source: Li et al., "DigestJoin" (MDM 2009), section III D; Chan and Ooi, "Efficient scheduling of page access in index-based join
processing", IEEE TKDE 9(6), 1997.
"""

from typing import NamedTuple

import numpy as np

from algorithms.fetching.base import TIES, FetchParameters
from algorithms.late_fetch.join_index import Entries
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.page_access.graph import Pages
from algorithms.page_access.plan import NONE
from algorithms.page_access.queues import NUMBER, PAGE, Heap, empty_heap, put, take, top_but
from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm

#: Columns of a page: its first end of an edge, how many edges it has, how many of them lead to pages in memory, whether it is there
#: itself, and the entries of all its edges.
_FIRST, _DEGREE, _NEAR, _HERE, _WORTH = range(5)
#: Columns of an end of an edge (those of edge e are 2 e and 2 e + 1): the page at the other end, and this page's next and previous ends.
#: `_AFTER` of the first end of an edge that is not in use is the next such edge.
_OTHER, _AFTER, _BEFORE = range(3)
#: Columns of an entry: its rows, and the next one of its edge, or the next one that is not in use.
_R_ROW, _S_ROW, _FOLLOWING = range(3)
#: Counts: entries, pages that the graph takes and the cache has, pages in memory, the largest degree; entries and edges in use so far, and
#: the first that are not in use any more; fetches of all and of this schedule, entries joined in it; and what does not change: bytes of an
#: entry, by what factor entries count among segments with as few pages missing, and the fewest frames.
_HELD, _GRAPH, _FRAMES, _USED, _MOST, _ENTRIES, _EDGES, _FREE_ENTRY, _FREE_EDGE, _AGE, _FETCHES, _JOINED, _BYTES, _TIES, _LEAST = range(15)
#: Reasons why planning pauses: nothing is left to do, or the cache has another number of frames now.
_ENDED, _RESIZED = range(2)


class _Graph(NamedTuple):
    """The graph: pages, ends of edges, each edge's first entry, entries, and the counts."""

    pages: Pages
    #: Number of pages of each degree.
    by_degree: Pages
    ends: Pages
    edges: Pages
    entries: Integers
    #: Pages that have edges, and those in memory, by how few partners they miss.
    choices: Heap
    victims: Heap
    counts: Integers


class _GraphArrays(NamedTuple):
    """Arrays from which a schedule is made."""

    fetched: Integers
    victims: Integers
    r_rows: Integers
    s_rows: Integers
    after: Integers


class JoinGraph:
    """A join graph beside the page cache, which is empty and gets the memory that the graph leaves.

    The graph takes `pages` at first.  It grows as long as k (d + 1) frames are left, where d is its largest degree; never, with infinity.
    """

    def __init__(self, cache: PageCache, parameters: FetchParameters, pages: int, k: float) -> None:
        self._cache, self._k = cache, k
        self._page_size = cache.r.page_size
        options = parameters.options
        if options.entry_bytes > self._page_size:
            raise InvalidParameterError("entry bytes", options.entry_bytes, f"an entry must fit on a page of {self._page_size} B")
        table = np.zeros((cache.pages, 5), np.int32)
        table[:, _FIRST] = NONE
        counts, frames = np.zeros(15, np.int64), parameters.memory - pages
        counts[[_GRAPH, _FRAMES, _FREE_ENTRY, _FREE_EDGE]] = pages, frames, NONE, NONE
        counts[[_BYTES, _TIES, _LEAST]] = options.entry_bytes, TIES[options.ties], options.least_frames
        self._graph = _Graph(
            table,
            np.zeros(cache.pages + 1, np.int32),
            np.empty((0, 3), np.int32),
            np.empty(0, np.int32),
            np.empty((0, 3), np.int64),
            empty_heap(cache.pages),
            empty_heap(cache.pages),
            counts,
        )
        cache.resize(frames)

    @property
    def room(self) -> int:
        """Entries that it has room for, without another page."""
        counts = self._graph.counts
        return int(counts[_GRAPH]) * self._page_size // int(counts[_BYTES]) - int(counts[_HELD])

    def insert(self, entries: Entries) -> Algorithm:
        """Take entries in, but for those whose pages are in memory; if there is no room, a page of the cache or a segment makes some."""
        first, second = self._cache.pages_of(entries.r_rows, entries.s_rows)
        position = np.zeros(1, np.int64)
        while position[0] < len(entries):
            plan = self._plan(len(entries) - int(position[0]))
            _insert(self._graph, first, second, entries.r_rows, entries.s_rows, position, self._page_size, self._k, plan)
            yield from self._follow(plan)

    def drain(self) -> Algorithm:
        """Join all that is left; the graph's pages go to the cache, as they become free."""
        status = _RESIZED
        while status == _RESIZED:
            plan = self._plan(0)
            status = _drain(self._graph, self._page_size, plan)
            yield from self._follow(plan)

    def _plan(self, more: int) -> _GraphArrays:
        graph, most = self._graph, int(self._graph.counts[_HELD]) + more
        if most > len(graph.entries):
            grown = 2 * most - len(graph.entries)
            self._graph = graph._replace(
                ends=np.concatenate([graph.ends, np.empty((2 * grown, 3), np.int32)]),
                edges=np.concatenate([graph.edges, np.empty(grown, np.int32)]),
                entries=np.concatenate([graph.entries, np.empty((grown, 3), np.int64)]),
            )
        graph.counts[[_FETCHES, _JOINED]] = 0
        (fetched, victims), (r_rows, s_rows) = np.empty((2, 2 * most), np.int64), np.empty((2, most), np.int64)
        return _GraphArrays(fetched, victims, r_rows, s_rows, np.empty((most, 2), np.int64))

    def _follow(self, plan: _GraphArrays) -> Algorithm:
        """Let the cache do what was planned, and what the last step left to do: to lose or gain frames."""
        counts = self._graph.counts
        fetches, matches = int(counts[_FETCHES]), int(counts[_JOINED])
        parts = (plan.fetched[:fetches], plan.victims[:fetches], plan.r_rows[:matches], plan.s_rows[:matches], plan.after[:matches])
        yield from self._cache.follow(Schedule(*parts))
        if self._cache.frames != counts[_FRAMES]:
            leaving = None
            if self._cache.used_frames > counts[_FRAMES]:
                leaving = self._graph.victims.items[:1, PAGE].copy()
                _leave(self._graph, int(leaving[0]))
            self._cache.resize(int(counts[_FRAMES]), leaving)


@lean_kernel
def _insert(
    graph: _Graph,
    first: Integers,
    second: Integers,
    r_rows: Integers,
    s_rows: Integers,
    position: Integers,
    page_size: int,
    k: float,
    plan: _GraphArrays,
) -> None:
    """Algorithm 3, but for its end: from an entry on, until the cache must have another number of frames, or all entries are in."""
    counts = graph.counts
    while position[0] < first.shape[0]:
        entry = position[0]
        joins = graph.pages[first[entry], _HERE] + graph.pages[second[entry], _HERE] == 2
        freed = False
        if not joins and (counts[_HELD] + 1) * counts[_BYTES] > counts[_GRAPH] * page_size:
            if k * (counts[_MOST] + 1) < counts[_FRAMES] and counts[_FRAMES] > counts[_LEAST]:
                counts[_GRAPH] += 1
                counts[_FRAMES] -= 1
                return
            _join_segment(graph, plan)
            freed = True
            joins = graph.pages[first[entry], _HERE] + graph.pages[second[entry], _HERE] == 2
        position[0] += 1
        if joins:
            _note(graph, plan, r_rows[entry], s_rows[entry])
        else:
            _add(graph, first[entry], second[entry], r_rows[entry], s_rows[entry])
        # the paper prints `rss >`, with which memory that was given to the graph once never comes back
        if freed and -(-counts[_HELD] * counts[_BYTES] // page_size) < counts[_GRAPH] and counts[_GRAPH] > 1:
            counts[_GRAPH] -= 1
            counts[_FRAMES] += 1
            return


@lean_kernel
def _drain(graph: _Graph, page_size: int, plan: _GraphArrays) -> int:
    counts = graph.counts
    while counts[_HELD] > 0:
        pages = -(-counts[_HELD] * counts[_BYTES] // page_size)
        if pages < counts[_GRAPH]:
            counts[_FRAMES] += counts[_GRAPH] - pages
            counts[_GRAPH] = pages
            return _RESIZED
        _join_segment(graph, plan)
    return _ENDED


@lean_kernel
def _join_segment(graph: _Graph, plan: _GraphArrays) -> None:
    """Join the page that has the fewest partners missing with all of them; those with most partners in memory are fetched first."""
    pages, owner = graph.pages, graph.choices.items[0, PAGE]
    while graph.counts[_FRAMES] == 1 and pages[owner, _DEGREE] > 0:
        _join_singly(graph, plan, owner, graph.ends[pages[owner, _FIRST], _OTHER], pages[owner, _FIRST] >> 1)
    while pages[owner, _DEGREE] > 0:
        best, most = owner, -1 if pages[owner, _HERE] == 1 else pages[owner, _NEAR]
        end = pages[owner, _FIRST]
        while end >= 0:
            page = graph.ends[end, _OTHER]
            if pages[page, _HERE] == 0 and pages[page, _NEAR] > most:
                best, most = page, pages[page, _NEAR]
            end = graph.ends[end, _AFTER]
        _bring(graph, plan, best, owner)


@lean_kernel
def _bring(graph: _Graph, plan: _GraphArrays, page: int, owner: int) -> None:
    """Fetch a page of the segment that belongs to `owner`, which stays; it is joined with all that is in memory."""
    pages, counts, victim = graph.pages, graph.counts, NONE
    if counts[_USED] == counts[_FRAMES]:
        victim = graph.victims.items[top_but(graph.victims.items, graph.victims.size[0], owner), PAGE]
        _leave(graph, victim)
    plan.fetched[counts[_FETCHES]], plan.victims[counts[_FETCHES]] = page, victim
    counts[_FETCHES] += 1
    counts[_AGE] += 1
    counts[_USED] += 1
    pages[page, _HERE] = 1
    end = pages[page, _FIRST]
    while end >= 0:
        other, after = graph.ends[end, _OTHER], graph.ends[end, _AFTER]
        if pages[other, _HERE] == 1:
            _join_edge(graph, plan, end >> 1)
            _rank(graph, other)
        else:
            pages[other, _NEAR] += 1
            _rank(graph, other)
        end = after
    pages[page, _NEAR] = 0
    _rank(graph, page)


@lean_kernel
def _join_singly(graph: _Graph, plan: _GraphArrays, page: int, other: int, edge: int) -> None:
    """Join an edge in one frame: for each entry R's page is fetched, and then S's in its place."""
    of_r, of_s, pages, counts = min(page, other), max(page, other), graph.pages, graph.counts
    if pages[of_r, _HERE] == 0:
        _bring(graph, plan, of_r, NONE)
    first = counts[_JOINED]
    _join_edge(graph, plan, edge)
    pages[of_s, _NEAR] -= 1
    _rank(graph, of_r)
    _rank(graph, of_s)
    for entry in range(first, counts[_JOINED]):
        if pages[of_r, _HERE] == 0:
            _bring(graph, plan, of_r, NONE)
        plan.after[entry, 0] = counts[_FETCHES]
        _bring(graph, plan, of_s, NONE)
        plan.after[entry, 1] = counts[_FETCHES]


@lean_kernel
def _leave(graph: _Graph, page: int) -> None:
    pages = graph.pages
    pages[page, _HERE] = 0
    graph.counts[_USED] -= 1
    take(graph.victims, page)
    end = pages[page, _FIRST]
    while end >= 0:
        pages[graph.ends[end, _OTHER], _NEAR] -= 1
        _rank(graph, graph.ends[end, _OTHER])
        end = graph.ends[end, _AFTER]


@lean_kernel
def _rank(graph: _Graph, page: int) -> None:
    """Note what a page misses: the fewest partners, of equals the most entries, and then being in memory, make it the next segment's.

    In memory, what it misses are all edges that it has left, and the page with the fewest of them, and of equals the oldest, is replaced.
    """
    pages = graph.pages
    missing = pages[page, _DEGREE] - pages[page, _NEAR]
    if pages[page, _DEGREE] > 0:
        put(graph.choices, page, 2 * graph.counts[_TIES] * pages[page, _WORTH] + pages[page, _HERE] - (np.int64(missing) << 32))
    else:
        take(graph.choices, page)
    if pages[page, _HERE] == 1:
        place = graph.victims.places[page]
        age = graph.counts[_AGE] if place < 0 else -graph.victims.items[place, NUMBER] & 0xFFFFFFFF
        put(graph.victims, page, -((np.int64(missing) << 32) + age))


@lean_kernel
def _add(graph: _Graph, first: int, second: int, r_row: int, s_row: int) -> None:
    pages, counts = graph.pages, graph.counts
    fewer, more = (first, second) if pages[first, _DEGREE] < pages[second, _DEGREE] else (second, first)
    end = pages[fewer, _FIRST]
    while end >= 0 and graph.ends[end, _OTHER] != more:
        end = graph.ends[end, _AFTER]
    if end < 0:
        end = _new_edge(graph, fewer, more)
    entry = counts[_FREE_ENTRY]
    if entry < 0:
        entry = counts[_ENTRIES]
        counts[_ENTRIES] += 1
    else:
        counts[_FREE_ENTRY] = graph.entries[entry, _FOLLOWING]
    graph.entries[entry, _R_ROW], graph.entries[entry, _S_ROW] = r_row, s_row
    graph.entries[entry, _FOLLOWING] = graph.edges[end >> 1]
    graph.edges[end >> 1] = entry
    counts[_HELD] += 1
    pages[first, _WORTH] += 1
    pages[second, _WORTH] += 1
    _rank(graph, first)
    _rank(graph, second)


@lean_kernel
def _new_edge(graph: _Graph, page: int, other: int) -> int:
    """Make an edge; returns its end at `page`."""
    pages, counts = graph.pages, graph.counts
    edge = counts[_FREE_EDGE]
    if edge < 0:
        edge = counts[_EDGES]
        counts[_EDGES] += 1
    else:
        counts[_FREE_EDGE] = graph.ends[2 * edge, _AFTER]
    graph.edges[edge] = NONE
    for side in range(2):
        end, after = 2 * edge + side, pages[page, _FIRST]
        graph.ends[end, _OTHER], graph.ends[end, _AFTER], graph.ends[end, _BEFORE] = other, after, NONE
        if after >= 0:
            graph.ends[after, _BEFORE] = end
        pages[page, _FIRST] = end
        pages[page, _NEAR] += pages[other, _HERE]
        _count_degree(graph, page, 1)
        page, other = other, page
    return 2 * edge


@lean_kernel
def _join_edge(graph: _Graph, plan: _GraphArrays, edge: int) -> None:
    counts, entry, matches = graph.counts, graph.edges[edge], 0
    while entry >= 0:
        _note(graph, plan, graph.entries[entry, _R_ROW], graph.entries[entry, _S_ROW])
        matches += 1
        following = graph.entries[entry, _FOLLOWING]
        graph.entries[entry, _FOLLOWING], counts[_FREE_ENTRY] = counts[_FREE_ENTRY], entry
        entry = following
    counts[_HELD] -= matches
    for end in (2 * edge, 2 * edge + 1):
        page = graph.ends[end ^ 1, _OTHER]
        before, after = graph.ends[end, _BEFORE], graph.ends[end, _AFTER]
        if before >= 0:
            graph.ends[before, _AFTER] = after
        else:
            graph.pages[page, _FIRST] = after
        if after >= 0:
            graph.ends[after, _BEFORE] = before
        graph.pages[page, _WORTH] -= matches
        _count_degree(graph, page, -1)
    graph.ends[2 * edge, _AFTER], counts[_FREE_EDGE] = counts[_FREE_EDGE], edge


@lean_kernel
def _count_degree(graph: _Graph, page: int, change: int) -> None:
    degree = graph.pages[page, _DEGREE]
    graph.by_degree[degree] -= 1
    graph.by_degree[degree + change] += 1
    graph.pages[page, _DEGREE] = degree + change
    counts = graph.counts
    counts[_MOST] = max(counts[_MOST], degree + change)
    while counts[_MOST] > 0 and graph.by_degree[counts[_MOST]] == 0:
        counts[_MOST] -= 1


@lean_kernel
def _note(graph: _Graph, plan: _GraphArrays, r_row: int, s_row: int) -> None:
    match = graph.counts[_JOINED]
    plan.r_rows[match], plan.s_rows[match] = r_row, s_row
    plan.after[match, 0] = plan.after[match, 1] = graph.counts[_FETCHES]
    graph.counts[_JOINED] += 1
