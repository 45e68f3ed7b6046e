"""``flashsim fetch`` and ``fs.fetch``: which pages to fetch in which order so that all pairs of a graph meet in a few frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow.parquet as pq

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.plan import FetchPlan
from algorithms.page_access.planners.base import PLANNERS
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError, option
from flashsim.experiments.formulas.fetching import Fetching, column_of_results, graph_of_join, graph_of_text, schedule
from flashsim.experiments.presentation.tables import Table, same
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.fetches import why_fetch
from flashsim.operations import fields
from flashsim.operations.face._arguments import arrow_table, key, sources
from flashsim.operations.face._why_outcome import WhyOutcome, parts_of
from flashsim.operations.fields import Count, Field, Flag, Name, Names, text
from flashsim.operations.operation import operation, refuse_words_of_pandas
from flashsim.operations.outcome import Outcome, OutputFile, frame
from flashsim.storage.texts import frame_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

A_GRAPH = (
    "a graph is needed: the path of an edge list, an instance such as 'general', CSR arrays (offsets, neighbours), a SciPy matrix, "
    "a frame whose first two columns are the ends of edges, or a graph of NetworkX"
)
_GRAPHS = (
    "Or a DataFrame, an Arrow table or columns by name, whose first two columns are the ends of each edge; a graph of NetworkX, a SciPy "
    "matrix, CSR arrays (offsets, neighbours), or a `algorithms.page_access.graph.PageGraph`."
)
_SECOND = "Second relation of a join with GRAPH: their pages form the graph, and pages with equal keys meet. Needs --on."
_IN_PYTHON = "Or a DataFrame, or an Arrow table, as the first one."
_PLANNERS = "Planner: {planners}; or a Python file. May be repeated; all by default."


class FetchOutcome(Outcome):
    """Plans of one graph, and why each costs what it does on a device, if there is one."""

    FILES = (OutputFile("--out", "PLAN.parquet", "Write the plans, a row a fetch.", lambda outcome, path, _: outcome.write_plans(path)),)

    def __init__(self, result: Fetching, device: str | None = None, page_size: int = 0, why: bool = False) -> None:
        super().__init__(result)
        self._device, self._page_size, self._shows_why = device, page_size, why

    @cached_property
    def _whys(self) -> dict[str, RunWhy]:
        plans = {one.planner: one.plan for one in self.result.results if one.plan} if self._device else {}
        return {name: why_fetch(plan, self.result.bound, str(self._device), self._page_size) for name, plan in plans.items()}

    def why(self, planner: str = "") -> WhyOutcome:
        """Say why the plan of a planner, by default the first, takes its time; RefusedError: the plans were made without a device."""
        planner = planner or self.result.results[0].planner
        self.plan(planner)
        if not self._device:
            raise RefusedError("why: fetches take time on a device; plan them with one (device=...)")
        return WhyOutcome(self._whys[planner], self.provenance)

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready."""
        document: dict[str, Any] = self.result.as_dict()
        return document | ({"why": {name: why.as_dict() for name, why in self._whys.items()}} if self._shows_why else {})

    @property
    def graph(self) -> PageGraph:
        """The page graph."""
        graph: PageGraph = self.result.graph
        return graph

    @property
    def fewest_frames(self) -> int | None:
        """The least number of frames with which no page is fetched twice (OPAS1); None unless it was asked for (`exact`)."""
        fewest: int | None = self.result.fewest_frames
        return fewest

    def plan(self, planner: str) -> FetchPlan:
        """The plan of a planner; its ``to_frame()`` has a row a fetch, and its ``check()`` verifies it."""
        plans = {one.planner: one.plan for one in self.result.results if one.plan}
        if planner not in plans:
            raise UnknownNameError("plan", planner, plans)
        return plans[planner]

    def summary(self) -> pd.DataFrame:
        """A row a planner: fetches, the same over the pages that are needed at all, the bound, and processor seconds."""
        return frame(self.result.rows(), ["planner", "fetches", "over_needed", "bound", "seconds"])

    def write_plans(self, path: str | PathLike[str]) -> None:
        """Write a row a planner and fetch into a Parquet file: the page, what it replaces, and how many pairs meet before the next one."""
        pq.write_table(self.result.plans(), path)

    def printout(self) -> Iterator[Part]:
        """The plans, and the meaning of their columns."""
        columns = same("planner", "fetches") | {"over needed": "over_needed", "bound": "bound", "planning time (s)": "seconds"}
        rows = self.result.rows()
        fewest = min(row["fetches"] for row in rows)
        best = [row["planner"] for row in rows if row["fetches"] == fewest]
        yield self.title
        yield Explanation(f"Fewest fetches: {fewest:,}, by {', '.join(best)}.")
        yield from ("", Table.of(rows, columns, digits=3), "")
        yield Explanation(
            "Over needed: fetches over pages that have to be fetched at all. No plan takes fewer than the bound; "
            "the best one may take more."
        )
        for name, why in self._whys.items() if self._shows_why else ():
            yield from ("", f"{name} on {why.device}", *parts_of(why))
        yield from ("", next_steps("--device DEVICE --why explains the time of a plan", "flashsim check FILE.py tests a planner of yours"))

    def _draw(self) -> Figure:
        import numpy as np

        from flashsim.experiments.presentation.plots import LINES, legend, panels

        with panels(3.2) as (figure, axes):
            for number, one in enumerate(self.result.results):
                colour, marker = LINES[number % len(LINES)]
                shares = np.cumsum(one.plan.edges_met) / max(1, self.graph.edges) if one.plan else [1.0]
                first = one.fetches - len(shares) + 1
                axes.plot(range(first, one.fetches + 1), shares, color=colour, marker=marker, markevery=[-1], ms=5, label=one.planner)
            axes.axvline(self.result.bound, color="#555555", linestyle=":", label="bound")
            axes.set(xlabel="fetches", ylabel="share of page pairs joined", ylim=(0, 1.05))
            axes.set_xlim(0, None)
            legend(figure, axes)
        return figure


def _column(value: Any, parameter: str) -> str:
    return "" if isinstance(value, str) and not value else text(value, parameter)


@operation
def fetch(
    graph: Annotated[
        Any,
        Field(
            "An edge list (FILE.parquet, FILE.csv or FILE.sqlite:TABLE), or a generated graph: {graphs}.",
            "GRAPH",
            completes=("graphs",),
            python=_GRAPHS,
            argument=True,
            reads=True,
        ),
    ],
    s: Annotated[Any, Field(_SECOND, "SOURCE", python=_IN_PYTHON, reads=True)] = None,
    *,
    on: Annotated[str | None, Field("Join key of the two relations, as of flashsim join.", "COLUMN[=COLUMN]", key, needs="s")] = None,
    frames: Annotated[int, Count("Pages that fit in memory, at least 2.")],
    planner: Annotated[Any, Names(_PLANNERS, "NAME", completes=("planners",))] = None,
    results: Annotated[
        str | None, Field("Column with the weight of each edge; by default results or weight, if present.", "COLUMN", _column)
    ] = None,
    exact: Annotated[bool, Flag("Also search for the minimum of fetches and of frames; feasible up to about a dozen pages.")] = False,
    device: Annotated[str | None, Name("Device that holds the pages; needed by --why.", "PRESET", completes=("presets",))] = None,
    why: Annotated[bool, Flag("Explain the time: by parts, by mechanisms of the device, and against the bound.", needs="device")] = False,
    page_size: fields.PageSize = "8KiB",
    **parameters: Any,
) -> FetchOutcome:
    """Plan the order of page fetches of a join.

    Pages are nodes of a graph; the two pages of each edge must be in memory together, with as few fetches as possible.

    The first two columns of an edge list are the pages of each pair, of any type. An instance may have parameters behind its name, as in
    the examples. Of each planner the fetches are told, the same over the pages that have to be fetched at all, and processor seconds.

    Examples::

        flashsim fetch edges.csv --frames 3 --exact --out plan.parquet
        flashsim fetch join:pages=256,selectivity=0.1 --frames 20 --planner overlap --planner segments
        flashsim fetch geometric --frames 40 --json fetches.json

    Examples
    --------
    >>> import flashsim as fs, networkx
    >>> result = fs.fetch(networkx.complete_bipartite_graph(3, 3), frames=3, planner="overlap", exact=True)
    >>> result.summary()[["planner", "fetches", "bound"]].values.tolist()
    [['overlap', 8, 6], ['optimum', 8, 6]]
    >>> r, s = {"key": [1, 2, 3]}, {"key": [3, 1, 3]}
    >>> fs.fetch(r, s, on="key", frames=3, planner="overlap").summary()["fetches"].tolist()
    [2]
    >>> result.fewest_frames, result.plan("overlap").to_frame().page.nunique()
    (4, 6)
    """
    page_graph = _graph(graph, results, parameters) if s is None else _join_graph(graph, s, on, page_size, parameters)
    with activity("planning") as progress:
        result = schedule(page_graph, frames, planner or PLANNERS.names(), exact=exact, progress=progress)
    return FetchOutcome(result, device, page_size, why)


def _join_graph(r: Any, s: Any, on: str | None, page_size: int, parameters: Mapping[str, Any]) -> PageGraph:
    refuse_words_of_pandas(parameters)
    if parameters:
        raise UnknownNameError("argument", next(iter(parameters)), signature(fetch).parameters.keys() - {"parameters"})
    if on is None:
        raise RefusedError("s: two relations need " + option("on") + ", their join key")
    opened = sources({"graph": r, "s": s})
    return graph_of_join(opened["graph"], opened["s"], on, page_size)


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
    if not isinstance(value, Mapping) and not hasattr(value, "__arrow_c_stream__"):
        raise InvalidParameterError("graph", f"an object of type {type(value).__name__}", A_GRAPH)
    edges = value if hasattr(value, "iloc") else frame_of(arrow_table(value, "graph", A_GRAPH))
    return PageGraph.from_frame(edges, column_of_results(edges.columns, results))
