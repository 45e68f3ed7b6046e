"""``flashsim trace``: what a trace says of its workload, in another format, or on another device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.replay import TraceFile, replay
from experiments.commands.shared import Command, Force, Group, JsonFile
from experiments.outputs import Outputs, write_json
from experiments.progress import progress_bar
from experiments.tables import Entry, Table
from flashsim.core.units import format_duration, format_size
from traces import information
from traces.conversion import convert as convert_file

app = typer.Typer(cls=Group, rich_markup_mode=None)


@app.callback()
def trace() -> None:
    """Recorded requests.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace replay bnl.parquet --on intel-x25e-64gb
    """


@app.command("info", cls=Command)
def info(file: TraceFile, json: JsonFile = None, force: Force = False) -> None:
    """Summarise a trace: format, requests, sizes, sequentiality, footprint and latencies.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace info bnl.parquet --json bnl.json
    """
    with Outputs(force) as outputs:
        outputs.spare("FILE", file)
        target = outputs.file("--json", json) if json else None
        summary = information.describe(file)
        typer.echo(f"format: {summary['format']}\n")
        typer.echo(_operations(summary).as_text())
        typer.echo("")
        typer.echo(_facts(summary).as_text())
        typer.echo("")
        typer.echo(Table(["file", "requests"], sorted(summary["labels"].items())).as_text())
        if target:
            write_json(target, summary)


@app.command("convert", cls=Command)
def convert(
    file: TraceFile,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[str, typer.Option(metavar="FORMAT", help="The format to write, such as parquet or fio-iolog.")],
    force: Force = False,
) -> None:
    """Write a trace in another format, and say what that format does not hold.

    Examples::

        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace convert bnl.parquet bnl.csv --to spc
    """
    with Outputs(force) as outputs, progress_bar("converting") as progress:
        outputs.spare("FILE", file)
        done = convert_file(file, outputs.file("OUT", target), to, progress)
    typer.echo(f"{done.requests:,} requests in {target}")
    if done.left_out:
        typer.echo(f"what a trace does not keep of such files: {done.left_out}")
    if done.dropped:
        typer.echo(f"{to} does not hold: {', '.join(done.dropped)}")
    if done.rounded:
        typer.echo(f"{to} holds coarser times: they were rounded down")


app.command("replay", cls=Command)(replay)


def _operations(summary: dict[str, Any]) -> Table:
    rows: list[list[Entry]] = []
    for name, told in summary["operations"].items():
        latency = told.get("latency", {})
        times = [format_duration(round(latency[key])) if key in latency else None for key in ("mean", "p50", "p99")]
        largest = max((int(size) for size in told["sizes"]), default=0)
        rows.append([name, told["requests"], format_size(told["bytes"]), format_size(largest), *times])
    return Table(["operation", "requests", "bytes", "largest", "mean latency", "median", "99 %"], rows)


def _facts(summary: dict[str, Any]) -> Table:
    def share(value: float | None) -> str | None:
        return None if value is None else f"{100 * value:.1f} %"

    duration = summary["duration"]
    rows: list[list[Entry]] = [
        ["requests", summary["requests"]],
        ["devices", summary["devices"]],
        ["distinct bytes", format_size(summary["footprint"])],
        ["share of bytes read", share(summary["read_share"])],
        ["share of requests that continue the one before", share(summary["sequential_share"])],
        ["duration", None if duration is None else format_duration(duration)],
    ]
    return Table(["fact", "value"], [[name, value if isinstance(value, str) or value is None else f"{value:,}"] for name, value in rows])
