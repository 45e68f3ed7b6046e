"""``flashsim fetch``: page-access scheduling of a graph, by every planner, beside the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from algorithms.page_access.plan import check_frames
from algorithms.page_access.planners.base import PLANNERS
from experiments.commands.outputs import Outputs, write_json
from experiments.commands.progress import progress_bar
from experiments.commands.shared import Force, JsonFile
from experiments.commands.terminal import explain, say
from experiments.commands.values import completes
from experiments.formulas.fetching import Fetching, graph_of_text, schedule
from experiments.presentation.tables import Table
from flashsim.core.provenance import provenance
from flashsim.storage.source import source_file


def fetch(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="An edge list, as FILE.parquet, FILE.csv or FILE.sqlite:TABLE; or an instance of {graphs}.",
            autocompletion=completes("graphs"),
        ),
    ],
    frames: Annotated[int, typer.Option("--frames", metavar="N", help="Pages that memory holds, at least 2.")],
    planner: Annotated[
        list[str] | None,
        typer.Option(
            "--planner",
            metavar="NAME",
            help="One of {planners}; or a Python file. Several may be given; all by default.",
            autocompletion=completes("planners"),
        ),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            "--results", metavar="COLUMN", help="What an edge is worth; by default the column results or weight, if there is one."
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Search for the fewest fetches and the fewest frames too; for up to about a dozen pages.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="PLAN.parquet", help="Write the plans, a row a fetch.")] = None,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    r"""Plan in which order pages are fetched, so that all pairs of a graph meet.

    The first two columns of an edge list are the pages of each pair, of any type. An instance may have parameters behind its name, as in
    the examples. Of each planner the fetches are told, the same over the pages that have to be fetched at all, and processor seconds.

    Examples::

        flashsim fetch edges.csv --frames 3 --exact --out plan.parquet
        flashsim fetch join:pages=256,selectivity=0.1 --frames 20 --planner overlap --planner segments
        flashsim fetch geometric --frames 40 --json fetches.json
    """
    check_frames(frames)
    names = planner or PLANNERS.names()
    with Outputs(force) as outputs:
        if file := source_file(graph):
            outputs.spare("GRAPH", file)
        wanted = {"--out": out, "--json": json}
        targets = {option: outputs.file(option, path) for option, path in wanted.items() if path is not None}
        with progress_bar("planning") as progress:
            fetching = schedule(graph_of_text(graph, results), frames, names, exact=exact, progress=progress)
        _show(fetching)
        if out:
            pq.write_table(fetching.plans(), targets["--out"])
        if json:
            asked = {"graph": graph, "frames": frames, "planners": names, "results": results, "exact": exact}
            write_json(targets["--json"], fetching.as_dict() | {"provenance": provenance(asked)})


def _show(fetching: Fetching) -> None:
    say(f"{fetching.title()}\n")
    rows = [[row["planner"], row["fetches"], row["over_needed"], row["bound"], row["seconds"]] for row in fetching.rows()]
    say(Table(["planner", "fetches", "over needed", "bound", "planning s"], rows, digits=3), "")
    explain(
        "Over needed: fetches over pages that have to be fetched at all. No plan takes fewer than the bound; the best one may take more."
    )
