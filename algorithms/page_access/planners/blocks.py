"""A block nested loop: as many pages as fit, in the order of their numbers, and past them, in that order, each page that must meet one."""

import numpy as np

from algorithms.page_access.belady import belady
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import FetchPlan


def plan(graph: PageGraph, frames: int) -> FetchPlan:
    """Edges by blocks of their first page, then by their second page."""
    outer = np.unique(graph.first)
    block = np.searchsorted(outer, graph.first) // (frames - 1)
    return belady(graph, np.lexsort((graph.first, graph.second, block)), frames)
