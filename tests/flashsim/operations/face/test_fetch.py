"""Page-access scheduling from the front door and from the command line: the same graph in every form, plans that keep their word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import flashsim as fs
from algorithms.page_access.graph import PageGraph
from algorithms.page_access.planners.base import PLANNERS
from flashsim.core.errors import FlashsimError
from tests.cases import with_each
from tests.commands import Run

#: Figure 3 of Li et al. (MDM 2009): pages 0 and 1 of one relation, 2 to 4 of the other.
ENDS = {"r": [0, 0, 0, 1, 1], "s": [2, 3, 4, 2, 4]}
FIGURE = networkx.Graph(list(zip(ENDS["r"], ENDS["s"], strict=True)))
MATRIX = networkx.to_scipy_sparse_array(FIGURE, nodelist=range(5))
MINE = """
import numpy as np
from algorithms.page_access.belady import belady

def plan(graph, frames):
    return belady(graph, np.arange(graph.edges)[::-1], frames)
"""


@with_each(
    "graph",
    [
        FIGURE,
        networkx.MultiDiGraph(FIGURE),
        pd.DataFrame(ENDS),
        ENDS,
        pa.table(ENDS),
        MATRIX,
        scipy.sparse.triu(MATRIX),
        (MATRIX.indptr, MATRIX.indices),
        PageGraph.of(ENDS["r"], ENDS["s"]),
        "edges.csv",
        Path("edges.parquet"),
    ],
)
def test_a_graph_in_any_form(graph: Any, here: Path) -> None:
    """Its optima are 6, 5 and 5 fetches with 2, 3 and 4 frames, and three frames suffice."""
    pd.DataFrame(ENDS).to_csv("edges.csv", index=False)
    pd.DataFrame(ENDS).to_parquet("edges.parquet")
    for frames, optimum in ((2, 6), (3, 5), (4, 5)):
        told = fs.fetch(graph, frames=frames, exact=True)
        summary = told.summary().set_index("planner")
        assert list(summary.index) == [*PLANNERS.names(), "optimum"]
        assert summary.fetches["optimum"] == summary.fetches["overlap"] == optimum
        assert told.fewest_frames == 3 and (summary.bound <= optimum).all() and (summary.seconds >= 0).all()
        for planner in PLANNERS.names():
            told.plan(planner).check()


def test_instances_by_name_and_one_planner() -> None:
    told = fs.fetch("general", frames=12, planner="segments", pages=40, density=0.1)
    assert told.graph.pages == 40 and told.summary().planner.tolist() == ["segments"] and told.fewest_frames is None
    assert told.provenance["parameters"]["pages"] == 40
    frame = told.plan("segments").to_frame()
    assert len(frame) == told.summary().fetches[0] and frame.edges_met.sum() == told.graph.edges
    assert told._repr_html_().startswith("<p>40 pages, ") and repr(told).startswith("40 pages, ")


def test_what_pairs_are_worth() -> None:
    frame = pd.DataFrame(ENDS | {"weight": [3.0, 1, 1, 1, 5], "n": 2})
    assert fs.fetch(frame, frames=3).graph.results.sum() == 11
    assert fs.fetch(frame, frames=3, results="n").graph.results.sum() == 10
    assert fs.fetch(frame, frames=3, results="").graph.results.sum() == 5


def test_a_picture_of_any_plans(tmp_path: Path) -> None:
    for graph in (FIGURE, networkx.empty_graph(4)):
        fs.fetch(graph, frames=2, exact=True).plot(tmp_path / "fetches.svg", force=True)
    assert "<svg" in (tmp_path / "fetches.svg").read_text(encoding="utf-8")


@with_each(
    "graph, more, told",
    [
        (FIGURE, {"frames": 1}, "frames: 1, but two pages must be in memory together"),
        (FIGURE, {"frames": 2.5}, "frames: 2.5, but a whole number"),
        (FIGURE, {"pages": 3}, "parameter of a graph that is given: 'pages' is unknown"),
        (FIGURE, {"planner": []}, r"planner: \[\], but at least one"),
        (FIGURE, {"planner": "segment"}, "did you mean segments"),
        (3, {}, "graph: an object of type int, but a graph is needed"),
        ([1], {}, "graph: an object of type list"),
        (networkx.Graph([("a", "a")]), {}, r"edges: \(a, a\), but a page cannot be paired with itself"),
        (networkx.Graph([(0, 1, {"weight": -1})]), {}, "results: -1, but"),
        (MATRIX * -1.0, {}, "results: -1, but"),
        (scipy.sparse.eye_array(3), {}, "self-loop"),
        (pd.DataFrame({"a": [1]}), {}, "edge list: it needs two columns"),
        (pd.DataFrame(ENDS), {"results": "n"}, "edge list: there is no column 'n'"),
        ("nothing.csv", {}, "nothing.csv: there is no such file"),
        ("generel", {}, "did you mean general"),
        ("nothing.csv", {"pages": 3}, "parameter of a graph that is read: 'pages' is unknown"),
    ],
)
def test_refused_in_one_line(graph: Any, more: dict[str, Any], told: str) -> None:
    with pytest.raises(FlashsimError, match=told) as refused:
        fs.fetch(graph, **{"frames": 3} | more)
    assert "\n" not in str(refused.value)


def test_a_report_that_there_is_not_is_refused_in_one_line_and_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FlashsimError, match=r"^FetchOutcome: it has no report$"):
        fs.fetch(FIGURE, frames=3, planner="overlap").report(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_command_says_and_writes_the_same(flashsim: Run, here: Path) -> None:
    pd.DataFrame({"r": [1, 1, 1, 2, 2], "s": list("abcac")}).to_csv("edges.csv", index=False)
    (here / "mine.py").write_text(MINE)
    done = flashsim("fetch edges.csv --frames 2 --planner overlap --planner ./mine.py --exact --out plan.parquet --json told.json")
    assert done.exit_code == 0, done.output
    told = json.loads((here / "told.json").read_text())
    ours = fs.fetch("edges.csv", frames=2, planner=["overlap", "./mine.py"], exact=True)
    assert [row["fetches"] for row in told["planners"]] == ours.summary().fetches.tolist() and told["fewest_frames"] == 3
    written = pq.read_table("plan.parquet").to_pandas()
    for planner, rows in written.groupby("planner"):
        frame = ours.plan(str(planner)).to_frame()
        assert rows.page.tolist() == frame.page.astype(str).tolist() and rows.edges_met.tolist() == frame.edges_met.tolist()
        assert np.array_equal(rows.replaces.isna(), frame.replaces.isna())


@with_each(
    "fault, told",
    [
        ("plan.after[:] = plan.after[::-1].copy()", "'./mine.py': plan: its edges are not those of the graph"),
        ("plan.victims[:] = -1", "3 pages are in memory after fetch 3, but there are 2 frames"),
        ("plan = belady(graph, np.arange(graph.edges), frames + 1)", "of another problem, but a FetchPlan of the given graph and 2 frames"),
        ("plan = plan.pages", "gave a ndarray, but a FetchPlan"),
    ],
)
def test_a_plan_of_one_s_own_is_checked(fault: str, told: str, here: Path) -> None:
    (here / "mine.py").write_text(MINE.replace("return ", "plan = ") + f"    {fault}\n    return plan\n")
    with pytest.raises(FlashsimError, match=told):
        fs.fetch(FIGURE, frames=2, planner="./mine.py")
