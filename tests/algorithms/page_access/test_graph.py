"""Page graphs: built of arrays, frames and NetworkX, and what is no such graph."""

from __future__ import annotations

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given

from algorithms.page_access.belady import belady
from algorithms.page_access.graph import EDGE, NEIGHBOUR, PageGraph
from algorithms.page_access.plan import FetchPlan
from flashsim.core.errors import FlashsimError, InvalidParameterError, SchemaError
from flashsim.testing.strategies import edges

EDGES = edges()


@given(EDGES)
def test_a_graph_is_that_of_networkx(ends: list[tuple[int, int]]) -> None:
    """Degrees, neighbours and numbers, whichever way it came; results of pairs that stand several times are added up."""
    graph = PageGraph.of([u for u, _ in ends], [v for _, v in ends], 10)
    reference = networkx.Graph()
    reference.add_nodes_from(range(10))
    reference.add_edges_from(ends)
    assert graph.edges == reference.number_of_edges() and int(graph.results.sum()) == len(ends)
    for page in range(10):
        beside = graph.adjacency[graph.offsets[page] : graph.offsets[page + 1]]
        assert set(beside[:, NEIGHBOUR].tolist()) == set(reference[page])
        assert all(page in (graph.first[edge], graph.second[edge]) for edge in beside[:, EDGE])
    back = PageGraph.from_networkx(graph.to_networkx(), "results")
    assert back.edges == graph.edges and back.results.sum() == graph.results.sum()
    assert networkx.utils.graphs_equal(back.to_networkx(), graph.to_networkx())


@given(EDGES)
def test_rows_of_a_matrix_are_the_same_graph(ends: list[tuple[int, int]]) -> None:
    """Whether an edge stands in one row or in both."""
    expected = PageGraph.of([u for u, _ in ends], [v for _, v in ends], 10)
    upper = scipy.sparse.coo_array((expected.results, (expected.first, expected.second)), (10, 10))
    for matrix in (upper.tocsr(), upper.T.tocsr(), (upper + upper.T).tocsr()):
        graph = PageGraph.from_csr(matrix.indptr, matrix.indices, matrix.data.astype(float))
        assert all(
            np.array_equal(getattr(graph, name), getattr(expected, name)) for name in ("first", "second", "offsets", "adjacency", "results")
        )


def test_rows_that_are_none_are_refused() -> None:
    for offsets, neighbours, results, message in (
        ([0, 2], [1], None, "offsets: .0, 2., but they must ascend from 0 to the 1 neighbours"),
        ([], [], None, "offsets"),
        ([0, 1], [0], None, "self-loop"),
        ([0, 1], [1], None, "pages: 1, but it must be above 1"),
        ([0, 1, 1], [1], [-1], "results: -1"),
        ([0, 1, 1], [1], [1, 2], "results: 2, but there must be one for each of the 1 neighbours"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            PageGraph.from_csr(offsets, neighbours, results)


def test_a_frame_of_named_pages() -> None:
    graph = PageGraph.from_frame(pd.DataFrame({"x": ["1", "1", "1", "2", "2"], "y": list("abcac"), "n": [3, 1, 1, 1, 5]}), "n")
    assert graph.names == ["1", "2", "a", "b", "c"] and graph.results.tolist() == [3, 1, 1, 1, 5]
    frame = belady(graph, np.arange(5), 2).to_frame()
    assert frame.page.tolist() == ["1", "a", "b", "c", "2", "a", "c"]
    assert frame.replaces.fillna("").tolist() == ["", "", "a", "b", "1", "c", "a"] and frame.edges_met.sum() == 5


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([1], [1], {}, r"edges: \(1, 1\), but a page cannot be paired with itself \(a self-loop\)"),
        ([0], [-1], {}, "edges: -1, but pages, and what their edges are worth, must be at least 0"),
        ([0], [1], {"results": [-2]}, "results: -2, but pages, and what their edges are worth, must be at least 0"),
        ([0], [1], {"pages": 1}, "pages: 1, but it must be above 1"),
        ([0, 1], [1], {}, "edges: 2 and 1 ends"),
        ([0.5], [1], {}, "edges: 0.5, but they must be a list of whole numbers"),
        (["0"], [1], {}, "edges: <U1 of shape"),
        ([0], [1], {"results": [float("nan")]}, "results: nan, but they must be a list of whole numbers"),
        ([[0]], [[1]], {}, "edges: int64 of shape"),
        ([1 << 62], [1], {}, r"numbers must be below 2\^62"),
        ([1 << 40], [1], {}, "it must be above 1099511627776"),
    ],
)
def test_what_is_no_page_graph_is_refused(first: list[int], second: list[int], options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        PageGraph.of(first, second, **options)  # type: ignore[arg-type]


def test_what_is_no_edge_list_is_refused() -> None:
    for frame, message in (
        (pd.DataFrame({"x": [1]}), "needs two columns"),
        (pd.DataFrame({"x": [1.0, None], "y": [2, 3]}), "an end is missing"),
        (pd.DataFrame({"x": ["a"], "y": ["b"]}), "no column 'n'"),
    ):
        with pytest.raises(SchemaError, match=message):
            PageGraph.from_frame(frame, "n" if "no column" in message else "")


def test_a_plan_that_does_not_keep_its_word_is_refused() -> None:
    """Of a path of three pages: each kind of fault."""
    graph = PageGraph.of([0, 1], [1, 2])

    def check(pages: list[int], victims: list[int], edges: list[int], after: list[int], frames: int = 2) -> None:
        FetchPlan(graph, frames, *(np.array(each, np.int32) for each in (pages, victims, edges, after))).check()

    check([0, 1, 2], [-1, -1, 0], [0, 1], [2, 3])
    for fault, message in (
        (([0, 1, 2], [-1, -1, 1], [0, 1], [2, 3]), "not both in memory after fetch 3"),
        (([0, 1, 2], [-1, -1, -1], [0, 1], [2, 3]), "3 pages are in memory"),
        (([0, 1, 2], [-1, -1, 0], [0, 0], [2, 3]), "not those of the graph"),
        (([0, 1, 2], [-1, -1, 0], [0, 1], [2, 4]), "1 edges are left"),
        (([0, 0, 2], [-1, -1, 0], [0, 1], [2, 3]), "brings page 0"),
        (([0, 1, 2], [-1, 2, 0], [0, 1], [2, 3]), "for page 2"),
    ):
        with pytest.raises(FlashsimError, match=message):
            check(*fault)
