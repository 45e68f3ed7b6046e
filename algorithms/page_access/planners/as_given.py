"""No plan: the pairs meet in the order of their page numbers, as a join index that is sorted by its first column has them."""

import numpy as np

from algorithms.page_access.belady import belady
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import FetchPlan


def plan(graph: PageGraph, frames: int) -> FetchPlan:
    """Edges by their first page."""
    return belady(graph, np.arange(graph.edges), frames)
