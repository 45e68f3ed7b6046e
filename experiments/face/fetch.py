"""``fs.fetch``: which pages to fetch in which order so that all pairs of a graph meet in a few frames, by several planners."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import LEAST_FRAMES, FetchPlan
from algorithms.page_access.planners.base import PLANNERS
from experiments.face._outcome import Outcome
from experiments.face._tables import arrow_table
from experiments.face._units import count, several, text
from experiments.face._working import working
from experiments.formulas.fetching import Fetching, column_of_results, graph_of_text, schedule
from experiments.presentation.plots import LINES, WIDTH, legend, style
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.provenance import provenance

A_GRAPH = (
    "a graph is needed: the path of an edge list, an instance such as 'general', CSR arrays (offsets, neighbours), a SciPy matrix, "
    "a frame whose first two columns are the ends of edges, or a graph of NetworkX"
)


class FetchOutcome(Outcome):
    """Plans of one graph.

    Parameters
    ----------
    fetching
        As they were made.
    """

    def __init__(self, title: str, provenance: dict[str, Any], fetching: Fetching) -> None:
        super().__init__(title, provenance)
        self.fetching = fetching

    @property
    def graph(self) -> PageGraph:
        """The page graph."""
        return self.fetching.graph

    @property
    def fewest_frames(self) -> int | None:
        """The least number of frames with which no page is fetched twice (OPAS1); None unless it was asked for (`exact`)."""
        return self.fetching.fewest_frames

    def plan(self, planner: str) -> FetchPlan:
        """What a planner made; its ``to_frame()`` has a row a fetch, and its ``check()`` goes through it.

        Raises
        ------
        UnknownNameError
            That planner was not asked.
        """
        plans = {one.planner: one.plan for one in self.fetching.planned if one.plan}
        if planner not in plans:
            raise UnknownNameError("plan", planner, plans)
        return plans[planner]

    def summary(self) -> pd.DataFrame:
        """A row a planner: fetches, the same over the pages that are needed at all, the bound, and processor seconds."""
        return pd.DataFrame(self.fetching.rows(), columns=["planner", "fetches", "over_needed", "bound", "seconds"])

    def _draw(self) -> Figure:
        with style():
            figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
            axes = figure.subplots()
            for number, one in enumerate(self.fetching.planned):
                colour, marker = LINES[number % len(LINES)]
                met = np.cumsum(one.plan.edges_met) / max(1, self.graph.edges) if one.plan else [1.0]
                first = one.fetches - len(met) + 1
                axes.plot(range(first, one.fetches + 1), met, color=colour, marker=marker, markevery=[-1], markersize=5, label=one.planner)
            axes.axvline(self.fetching.bound, color="#555555", linestyle=":", label="bound")
            axes.set(xlabel="fetches", ylabel="share of pairs that have met", ylim=(0, 1.05))
            axes.set_xlim(0, None)
            legend(figure, axes)
        return figure


def fetch(
    graph: Any,
    *,
    frames: int,
    planner: Any = None,
    results: str | None = None,
    exact: bool = False,
    **parameters: Any,
) -> FetchOutcome:
    """Plan in which order pages are fetched, so that all pairs of a graph meet in memory in as few fetches as possible.

    Parameters
    ----------
    graph
        A table whose first two columns are the ends of each edge: a DataFrame, an Arrow table, columns by name, or the path of a Parquet,
        CSV or SQLite file. Or a graph of NetworkX, a SciPy matrix, CSR arrays (offsets, neighbours), or a
        `algorithms.page_access.graph.PageGraph`. Or the name of a family of instances: ``"general"``, ``"geometric"``, ``"bipartite"``,
        ``"complete"`` or ``"join"`` (`algorithms.page_access.instances`).
    frames
        Pages that memory holds, at least 2.
    planner
        One or several, by name, or by the path of a Python file; all members by default.
    results
        The column, or attribute of edges, that says what each is worth; by default ``results`` or ``weight``, where there is one.
    exact
        Whether the fewest fetches and the fewest frames are searched for as well: for graphs of up to about a dozen pages.
    **parameters
        Of an instance, such as ``selectivity=0.1``.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 frames, an edge from a page to itself, or one that is worth less than nothing.
    SchemaError
        A table that is no list of edges.
    UnknownNameError
        There is no such planner, instance, parameter or column.

    Examples
    --------
    >>> import flashsim as fs, networkx
    >>> told = fs.fetch(networkx.complete_bipartite_graph(3, 3), frames=3, planner="overlap", exact=True)
    >>> told.summary()[["planner", "fetches", "bound"]].values.tolist()
    [['overlap', 8, 6], ['optimum', 8, 6]]
    >>> told.fewest_frames, told.plan("overlap").to_frame().page.nunique()
    (4, 6)
    """
    names = PLANNERS.names() if planner is None else [text(each, "planner") for each in several(planner, "planner")]
    frames = count(frames, "frames", LEAST_FRAMES)
    made = _graph(graph, None if results is None else str(results), parameters)
    with working("planning") as progress:
        fetching = schedule(made, frames, names, exact=exact, progress=progress)
    asked = {"graph": graph if isinstance(graph, str) else repr(made), "frames": frames, "planners": names, "exact": exact} | parameters
    return FetchOutcome(fetching.title(), provenance(asked), fetching)


def _graph(value: Any, results: str | None, parameters: dict[str, Any]) -> PageGraph:
    """A graph of whatever describes one."""
    if isinstance(value, str | PathLike):
        return graph_of_text(text(value, "graph"), results, **parameters)
    if parameters:
        raise UnknownNameError("parameter of a graph that is given", next(iter(parameters)), [])
    if isinstance(value, PageGraph):
        return value
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        return PageGraph.from_csr(rows.indptr, rows.indices, rows.data)
    if isinstance(value, tuple | list) and len(value) in (2, 3):
        return PageGraph.from_csr(*value)
    if hasattr(value, "edges") and hasattr(value, "adj"):
        attributes = {name for *_, each in value.edges(data=True) for name in each}
        return PageGraph.from_networkx(value, column_of_results(attributes, results))
    frame = value if isinstance(value, pd.DataFrame) else None
    if frame is None and (isinstance(value, Mapping) or hasattr(value, "__arrow_c_stream__")):
        frame = arrow_table(value, "graph", A_GRAPH).to_pandas()
    if frame is None:
        raise InvalidParameterError("graph", f"an object of type {type(value).__name__}", A_GRAPH)
    return PageGraph.from_frame(frame, column_of_results(frame.columns, results))
