"""Every planner of page accesses: its plans keep their word, and stay above what no plan can do without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import bipartite, complete, general, geometric, join_graph
from algorithms.page_access.planners.base import PLANNERS, plan
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from models.page_fetching import least_fetches

MINE = """
import numpy as np
from algorithms.page_access.belady import belady

def plan(graph, frames):
    return belady(graph, np.arange(graph.edges)[::-1], frames)
"""


@pytest.fixture(scope="module", params=[*PLANNERS.names(), "mine.py"])
def planner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every member, and one of a user's own."""
    if request.param != "mine.py":
        return str(request.param)
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return str(path)


def bound(graph: PageGraph, frames: int) -> int:
    return least_fetches(graph.needed_pages, graph.edges, frames, int(graph.degrees.max(initial=0)))


@given(
    ends=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda ends: ends[0] != ends[1]), max_size=60), data=st.data()
)
def test_a_plan_keeps_its_word(planner: str, ends: list[tuple[int, int]], data: st.DataObject) -> None:
    """On any graph, with any number of frames: all pairs meet once, in frames that hold them, and no bound is undercut."""
    graph = PageGraph.of([u for u, _ in ends], [v for _, v in ends])
    frames = data.draw(st.integers(2, 15))
    made = plan(graph, frames, planner)
    made.check()
    assert bound(graph, frames) <= made.fetches <= 2 * graph.edges
    assert plan(graph, frames, planner).pages.tolist() == made.pages.tolist()


@pytest.mark.parametrize("frames", [2, 3, 17, 100, 600])
def test_published_families(planner: str, frames: int) -> None:
    for graph in (general(), geometric(), bipartite(), complete(30, 40), join_graph(100), join_graph(100, same_order=True)):
        made = plan(graph, frames, planner)
        made.check()
        assert made.fetches >= bound(graph, frames)
        if frames >= graph.needed_pages:
            assert made.fetches == graph.needed_pages


def test_a_graph_without_edges_needs_nothing(planner: str) -> None:
    made = plan(PageGraph.of(np.empty(0, int), np.empty(0, int), 5), 2, planner)
    assert made.fetches == 0 and made.to_frame().empty


def test_unfit_frames_and_names_are_refused(planner: str) -> None:
    with pytest.raises(InvalidParameterError, match="frames: 1, but two pages must be in memory together"):
        plan(complete(2, 2), 1, planner)
    with pytest.raises(UnknownNameError, match="did you mean overlap"):
        plan(complete(2, 2), 2, "overlaps")
