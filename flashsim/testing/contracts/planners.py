"""The contract of planners of page accesses: a plan keeps its word, and stays above what no plan can do without."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import bipartite, complete, general, geometric, join_graph
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.planners.base import PLANNERS, plan
from flashsim.testing.contract import Contract, examples
from flashsim.testing.strategies import edges
from models.page_fetching import least_fetches


def checked(graph: PageGraph, frames: int, planner: str) -> FetchPlan:
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
        made = checked(graph, frames, self.name)
        assert made.fetches <= 2 * graph.edges, "two fetches a pair are enough"
        assert plan(graph, frames, self.name).pages.tolist() == made.pages.tolist(), "the second plan differs"

    def test_published_graphs(self) -> None:
        """General, geometric, bipartite and complete graphs, and those of joins; with frames for all pages each is fetched once."""
        for graph in (general(), geometric(), bipartite(), complete(30, 40), join_graph(100), join_graph(100, same_order=True)):
            for frames in (2, 3, 17, 100, 5000):
                made = checked(graph, frames, self.name)
                assert frames < graph.needed_pages or made.fetches == graph.needed_pages, "a page is fetched twice with frames for all"

    def test_a_graph_without_edges_needs_nothing(self) -> None:
        made = plan(PageGraph.of(np.empty(0, int), np.empty(0, int), 5), 2, self.name)
        assert made.fetches == 0 and made.to_frame().empty
