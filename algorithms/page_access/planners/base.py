"""Contract of planners of page accesses: an order in which a page graph's pairs meet in few frames; the fewest fetches are best (OPAS2).

The optimum is NP-complete (Merrett, Kambayashi and Yasuura, VLDB 1981), so members are heuristics; `algorithms.page_access.optimum` finds
it for small graphs.
"""

from typing import Protocol

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import FetchPlan, check_frames
from flashsim.core.members import Family


class Planner(Protocol):
    """A member of the family."""

    def plan(self, graph: PageGraph, frames: int) -> FetchPlan:
        """A plan for a graph, in which at most `frames` pages, at least 2, are in memory at a time."""


#: All planners; ``PLANNERS.load("overlap").plan`` is one.
PLANNERS = Family("algorithms.page_access.planners", "page-access planner", Planner)


def plan(graph: PageGraph, frames: int, planner: str = "overlap") -> FetchPlan:
    """Plan how the pairs of a page graph meet.

    `frames` is pages that memory holds, at least 2; `planner` a member's name, or the path of a Python file that is one.

    Raises InvalidParameterError: fewer than 2 frames; UnknownNameError or MissingFileError: there is no such planner.

    >>> from algorithms.page_access.graph import PageGraph
    >>> plan(PageGraph.of([0, 0, 0, 1, 1], [2, 3, 4, 2, 4]), frames=3)
    FetchPlan(5 fetches of 5 pages with 3 frames)
    """
    check_frames(frames)
    return PLANNERS.load(planner).plan(graph, frames)
