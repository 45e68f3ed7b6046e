"""Planned fetching against all other strategies: the time of requests, whatever is fetched, spilled or sorted, on families of graphs.

Prices are those of the drive of Li et al. (MDM 2009) as a trial model fitted them: ms a page of 4 KiB that is read after the one before it,
read elsewhere, and written.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import flashsim
from algorithms.fetching.base import FETCHING, FetchParameters
from algorithms.late_fetch.join_index import Entries, GivenIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import bipartite, general, geometric
from flashsim.core.request import READ, Completions, Requests
from flashsim.core.rng import generator
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Phase
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.relation import Relation
from flashsim.testing.strict_driver import SyntheticRecords

SEQUENTIAL, RANDOM, WRITTEN = 0.051, 0.091, 0.061
PAGE_SIZE, TUPLES = 4096, 25
SELECTIVITIES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
#: Strategies that fetch pages many times and take minutes for it where many rows join; at the paper's size they are left out there.
SLOW = ("naive", "graph-based", "original")
#: Strategies that others than flashsim published.
OTHERS = [name for name in FETCHING.names() if name != "planned"]


class Meter:
    """Adds up the time of requests."""

    def __init__(self) -> None:
        self.milliseconds, self._end = 0.0, -1

    def record(self, requests: Requests, completions: Completions | None, label: str, after: int | None = None) -> None:
        begins, ends = requests["offset"], requests["offset"] + requests["length"]
        pages = requests["length"] / PAGE_SIZE
        read = requests["operation"] == READ
        elsewhere = read & (begins != np.concatenate([[self._end], ends[:-1]]))
        self.milliseconds += float((np.where(read, SEQUENTIAL, WRITTEN) * pages).sum() + (RANDOM - SEQUENTIAL) * elsewhere.sum())
        self._end = int(ends[-1]) if read[-1] else -1

    def close(self) -> None:
        pass


def relation(name: str, pages: int) -> HeapFile:
    codes = np.arange(pages * TUPLES)
    return heap_file(Relation(name, "key", codes, SyntheticRecords(codes, 150)), PAGE_SIZE, pages)


def milliseconds(strategy: str, pages: tuple[int, int], entries: Entries, memory: int) -> float:
    """What a strategy's requests take."""
    files, meter = (relation("r", pages[0]), relation("s", pages[1])), Meter()
    cache = PageCache(*files, memory)
    parameters = FetchParameters(memory, latency_ratio=RANDOM / SEQUENTIAL - 1)

    def algorithm() -> Algorithm:
        yield Phase("fetch")
        yield from FETCHING.load(strategy).fetch(GivenIndex(entries.r_rows, entries.s_rows, 1000), cache, parameters)

    trace_only(algorithm(), files, meter)
    return meter.milliseconds


def of_relations(family: str, pages: int, selectivity: float) -> Entries:
    """A relation joined with itself in the same or an independent order, of whose rows some are drawn: evenly, or by Zipf's law."""
    random = generator(1, family)
    rows = np.arange(pages * TUPLES)
    partner = rows if family == "same order" else random.permutation(rows)
    drawn = np.flatnonzero(random.random(len(rows)) < selectivity)
    if family == "Zipf":
        weights = 1 / np.arange(1, pages + 1)
        of_pages = random.permutation(pages)[random.choice(pages, int(selectivity * len(rows)), p=weights / weights.sum())]
        drawn = np.unique(of_pages * TUPLES + random.integers(0, TUPLES, len(of_pages)))
    drawn = random.permutation(drawn)
    return Entries(drawn, partner[drawn])


def of_graph(graph: PageGraph, results: int) -> Entries:
    """So many results a pair of pages, of any of their rows."""
    random = generator(1, "rows")
    edges = random.permutation(np.repeat(np.arange(graph.edges), results))
    r_pages, s_pages = graph.first[edges].astype(np.int64), graph.second[edges].astype(np.int64)
    return Entries(*(pages * TUPLES + random.integers(0, TUPLES, len(edges)) for pages in (r_pages, s_pages)))


def ratios(title: str, pages: tuple[int, int], entries: Entries, memory: int, *without: str) -> float:
    """Ours over the best of the others; a row of the table."""
    ours = milliseconds("planned", pages, entries, memory)
    others = {name: milliseconds(name, pages, entries, memory) for name in OTHERS if name not in without}
    best = min(others, key=lambda name: others[name])
    print(f"| {title} | {memory} | {ours:,.0f} | {others[best]:,.0f} ({best}) | {ours / others[best]:.2f} |")
    return ours / others[best]


def check(found: list[float]) -> None:
    assert max(found) <= 1.02, "it must never be above the best of the others by more than 2 %"
    assert min(found) <= 0.92, "it must be 8 % below it somewhere"


@pytest.mark.parametrize("family", ["same order", "independent", "Zipf"])
def test_small_relations(family: str) -> None:
    """Of 256 pages, with a sixteenth and a quarter of them as memory."""
    entries = {selectivity: of_relations(family, 256, selectivity) for selectivity in (0.02, 0.1, 0.5)}
    check([ratios(f"{family} {each}", (256, 256), entries[each], memory) for memory in (16, 64) for each in entries])


@pytest.mark.deep
@pytest.mark.parametrize("family", ["same order", "independent", "Zipf"])
def test_relations_of_the_paper_s_size(family: str) -> None:
    found = []
    for selectivity in SELECTIVITIES:
        entries, without = of_relations(family, 8192, selectivity), SLOW if selectivity > 0.1 else ()
        found += [ratios(f"{family} {selectivity}", (8192, 8192), entries, memory, *without) for memory in (512, 2048)]
    check(found)


GRAPHS = {"general": general, "geometric": geometric, "bipartite": bipartite}


@pytest.mark.parametrize("family", GRAPHS)
def test_graphs_of_lim_et_al(family: str) -> None:
    graph = GRAPHS[family]()
    entries = of_graph(graph, 1)
    check([ratios(family, (graph.pages, graph.pages), entries, memory) for memory in (16, 200)])


@pytest.mark.deep
@pytest.mark.parametrize("family", GRAPHS)
def test_graphs_with_five_results_a_pair(family: str) -> None:
    graph = GRAPHS[family]()
    entries = of_graph(graph, 5)
    check([ratios(f"{family}, five a pair", (graph.pages, graph.pages), entries, memory) for memory in (64, 200)])


def seconds(strategy: str, rows: int, keys: int, memory: str) -> float:
    """What all requests of a DigestJoin of two tables take on the paper's drive, with rows of 50 bytes on pages of 512."""
    random = np.random.default_rng(1)
    r, s = (pd.DataFrame({"key": random.integers(0, keys, rows), name: "x" * 40}) for name in ("v", "w"))
    first, device = "external-sort-merge", "mtron-msd-sata3025-16gb"
    join = flashsim.join(r, s, "key", algorithm="digest", fetch=strategy, first=first, device=device, memory=memory, page_size="512B")
    return float(join.summary()["io_s"].iloc[0])


@pytest.mark.parametrize(("rows", "keys", "memory"), [(300, 300, "3KiB"), (1000, 1000, "4KiB"), (1000, 200, "6KiB"), (1000, 1000, "32KiB")])
def test_tables_of_a_hundred_pages(rows: int, keys: int, memory: str) -> None:
    """In 6 to 64 pages of memory, where a write to another file than the one before costs many times a page."""
    best = min(seconds(name, rows, keys, memory) for name in OTHERS if name != "page-based")
    assert seconds("planned", rows, keys, memory) <= 1.02 * best
