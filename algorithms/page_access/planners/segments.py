"""Segments of Chan and Ooi: the page with the fewest partners that are not in memory meets all of them (IEEE TKDE 9(6), 1997)."""

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.segments import by_segments


def plan(graph: PageGraph, frames: int) -> FetchPlan:
    """See `algorithms.page_access.segments`."""
    return by_segments(graph, frames)
