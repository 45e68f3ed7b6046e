"""Page-access scheduling beside its bounds: a graph as text names it, plans by several planners, and what each takes."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from algorithms.page_access.graph import PageGraph
from algorithms.page_access.instances import FAMILIES, instance_of
from algorithms.page_access.optimum import fewest_fetches, fewest_frames
from algorithms.page_access.plan import LEAST_FRAMES, NONE, FetchPlan, check_frames
from algorithms.page_access.planners.base import PLANNERS
from flashsim.core.errors import FlashsimError, SchemaError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.experiments.runs.joining import lay_out, open_pair
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.source import Source, open_source
from flashsim.storage.texts import frame_of
from models.page_fetching import least_fetches

#: Columns, and attributes of edges, that say what an edge is worth unless another is named.
RESULTS = ("results", "weight")
#: The row of the optimum, beside those of planners.
OPTIMUM = "optimum"


def graph_of_text(text: str, results: str | None = None, **parameters: Any) -> PageGraph:
    """A graph from a source that holds an edge list, such as ``edges.parquet``, or of a family of instances.

    Parameters
    ----------
    results
        See `column_of_results`.
    **parameters
        Parameters of the instance (`algorithms.page_access.instances.instance_of`).
    """
    if text.partition(":")[0] in FAMILIES:
        return instance_of(text, **parameters)
    if parameters:
        raise UnknownNameError("parameter of a graph that is read", next(iter(parameters)), [])
    try:
        source = open_source(text)
    except UnknownNameError:
        forms = [*FAMILIES, "FILE.parquet", "FILE.csv", "FILE.sqlite:TABLE"]
        raise UnknownNameError("graph", text, forms) from None
    return _of_source(source, results)


def graph_of_join(r: Source, s: Source, on: str, page_size: int) -> PageGraph:
    """Pages of two relations as an edge for each two that have rows with equal keys; results are pairs of rows.

    Pages of R are numbered from 0, those of S after them, as rows lie in heap files of pages of this size.
    """
    files = [lay_out(relation, page_size) for relation in open_pair(r, s, on)]
    sides = []
    for file in files:
        keys = file.relation.keys(slice(None))
        pages = np.repeat(np.arange(file.pages), np.diff(file.first_rows))
        rows = pd.DataFrame({"key": keys, "page": pages})[keys != NULL_KEY]
        sides.append(rows.groupby(["key", "page"]).size().rename("rows").reset_index())
    pairs = sides[0].merge(sides[1], on="key", suffixes=("_r", "_s"))
    results = (pairs["rows_r"] * pairs["rows_s"]).groupby([pairs["page_r"], pairs["page_s"]]).sum()
    first, second = (results.index.get_level_values(level).to_numpy() for level in (0, 1))
    return PageGraph.of(first, second + files[0].pages, files[0].pages + files[1].pages, results.to_numpy())


def _of_source(source: Source, results: str | None) -> PageGraph:
    if len(source.names) < 2:
        raise SchemaError(f"edge list {source.name}: it needs two columns, the ends of each edge")
    if all(name.strip().lstrip("-").isdecimal() for name in source.names[:2]):  # an edge would be lost without a word
        raise SchemaError(f"edge list {source.name}: its columns are named {', '.join(source.names[:2])}: a first line must name them")
    worth = column_of_results(source.names, results)
    columns = [*source.names[:2], *([worth] if worth else [])]
    return PageGraph.from_frame(frame_of(pa.table([source.key(name) for name in columns], columns)), worth)


def column_of_results(names: Iterable[str], results: str | None) -> str:
    """The column of edges' worth: `results`, by default the first of `RESULTS` that `names` has; empty for none."""
    have = set(names)
    return results if results is not None else next((name for name in RESULTS if name in have), "")


@dataclass(frozen=True)
class PlannerResult:
    """A planner's plan and its processor seconds; the search for the optimum has no plan."""

    planner: str
    fetches: int
    seconds: float
    plan: FetchPlan | None = None


@dataclass(frozen=True)
class Fetching:
    """A graph, a number of frames, and the plans of several planners for them."""

    graph: PageGraph
    frames: int
    results: Sequence[PlannerResult]
    #: The least frames with which no page is fetched twice; None if not searched for.
    fewest_frames: int | None = None

    @cached_property
    def bound(self) -> int:
        return least_fetches(self.graph.needed_pages, self.graph.edges, self.frames, int(self.graph.degrees.max(initial=0)))

    def title(self) -> str:
        graph = self.graph
        description = f"{graph.pages:,} pages, {graph.edges:,} pairs to meet, {self.frames:,} frames: at least {self.bound:,} fetches"
        if self.fewest_frames is None:
            return description
        return f"{description}; {self.fewest_frames} frames are the fewest with which no page is fetched twice"

    def rows(self) -> list[dict[str, Any]]:
        """A row a planner, JSON-ready."""
        needed = max(1, self.graph.needed_pages)
        return [
            {"planner": one.planner, "fetches": one.fetches, "over_needed": one.fetches / needed}
            | {"bound": self.bound, "seconds": one.seconds}
            for one in self.results
        ]

    def as_dict(self) -> dict[str, Any]:
        graph = self.graph
        document = {"pages": graph.pages, "needed_pages": graph.needed_pages, "edges": graph.edges, "frames": self.frames}
        return document | {"bound": self.bound, "fewest_frames": self.fewest_frames, "planners": self.rows()}

    def plans(self) -> pa.Table:
        """A row a planner and fetch: the page, what it replaces, and how many pairs meet before the next one."""
        try:
            names = pa.array(self.graph.names or np.arange(self.graph.pages))
        except pa.ArrowException:  # of several types
            names = pa.array(map(str, self.graph.names))
        plans = [(one.planner, one.plan) for one in self.results if one.plan]
        tables = [
            pa.table(
                {
                    "planner": pa.repeat(planner, plan.fetches),
                    "page": names.take(pa.array(plan.pages)),
                    "replaces": names.take(pa.array(plan.victims, mask=plan.victims == NONE)),
                    "edges_met": plan.edges_met,
                }
            )
            for planner, plan in plans
        ]
        return pa.concat_tables(tables)


def schedule(graph: PageGraph, frames: int, planners: Sequence[str], *, exact: bool = False, progress: Progress | None = None) -> Fetching:
    """Plan a graph by several planners, members or Python files; the plan of a file of one's own is checked.

    `exact` searches for the optimum too, which takes minutes beyond some fifteen pages.
    """
    check_frames(frames)
    plan_of = {name: PLANNERS.load(name).plan for name in planners}
    best = _optimum(graph, frames) if exact else []
    results = []
    for number, (name, plan) in enumerate(plan_of.items()):
        if progress:
            progress(number, len(plan_of), name)
        plan(PageGraph.of([0], [1]), LEAST_FRAMES)  # so that what has to be compiled is
        began = time.process_time()
        result = plan(graph, frames)
        seconds = time.process_time() - began
        if name.endswith(".py"):
            _check(name, result, graph, frames)
        results.append(PlannerResult(name, result.fetches, seconds, result))
    return Fetching(graph, frames, [*results, *best], fewest_frames(graph) if exact else None)


def _optimum(graph: PageGraph, frames: int) -> list[PlannerResult]:
    began = time.process_time()
    fewest = fewest_fetches(graph, frames)
    assert fewest is not None  # no limit was set
    return [PlannerResult(OPTIMUM, fewest, time.process_time() - began)]


def _check(name: str, plan: object, graph: PageGraph, frames: int) -> None:
    if not isinstance(plan, FetchPlan) or plan.graph is not graph or plan.frames > frames:
        kind = f"a {type(plan).__name__}" if not isinstance(plan, FetchPlan) else f"{plan!r} of another problem"
        raise FlashsimError(f"{PLANNERS.kind}: '{name}' gave {kind}, but a FetchPlan of the given graph and {frames} frames is needed")
    try:
        plan.check()
    except FlashsimError as problem:
        raise FlashsimError(f"{PLANNERS.kind}: '{name}': {problem}") from None
