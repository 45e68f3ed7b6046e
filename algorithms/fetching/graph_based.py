"""Graph-based fetching: as much of the join graph as memory holds decides, and what it takes of memory follows what its pages need.

Source: Li et al., "DigestJoin" (MDM 2009), algorithm 3.
"""

from algorithms.fetching._join_graph import JoinGraph
from algorithms.fetching.base import FetchParameters, fetch_in_order
from algorithms.late_fetch.join_index import JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES
from flashsim.execution.requests import Algorithm

OPTIONS = ("k",)


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    """Insert entries into a graph of a page at first; where two frames leave it none, fetch in the order of the join index."""
    if parameters.memory == LEAST_FRAMES:
        yield from fetch_in_order(index, cache)
        return
    k = parameters.options.k
    graph = JoinGraph(cache, parameters, 1, 1.0 if k is None else k)
    while (entries := (yield from index.next())) is not None:
        yield from graph.insert(entries)
    yield from graph.drain()
