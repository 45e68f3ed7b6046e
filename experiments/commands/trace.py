"""``flashsim trace``: what a trace says of its workload, in another format, or on another device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.excerpts import Columns, Devices, FormatName, Speed, Start, TraceFile, Window
from experiments.commands.replay import replay
from experiments.commands.shared import CommandWithExamples, Force, Group, JsonFile
from experiments.commands.values import completes
from experiments.commands.warned import warnings_as_lines
from experiments.presentation import trace_plots, trace_tables
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import say
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.provenance import provenance
from traces import information
from traces.conversion import convert as convert_file
from traces.excerpt import excerpt

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def trace() -> None:
    """Recorded requests.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace replay bnl.parquet --on intel-x25e-64gb
    """


@app.command("info", cls=CommandWithExamples)
def info(
    file: TraceFile,
    json: JsonFile = None,
    out_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")] = None,
    format_name: FormatName = None,
    columns: Columns = None,
    device_number: Devices = None,
    start: Start = None,
    window: Window = None,
    force: Force = False,
) -> None:
    """Summarise a trace: format, requests, sizes, sequentiality, footprint, working set, reuse distances, and times.

    Examples::

        flashsim trace info bnl.parquet
        flashsim trace info bnl.parquet --json bnl.json --out-dir shown
        flashsim trace info requests.csv --columns time=Stamp:ms,offset=LBA:sectors,length=Size:bytes
    """
    source = excerpt(file, format_name, columns, device_number, start, window)
    with Outputs(force) as outputs, progress_bar("reading") as progress, warnings_as_lines():
        outputs.spare("FILE", file)
        target = outputs.file("--json", json) if json else None
        folder = outputs.folder("--out-dir", out_dir) if out_dir else None
        summary = information.describe(source, progress)
        if target:
            write_json(target, summary)
        if folder:
            trace_plots.write_report(folder, file.name, summary, provenance({"trace": file.name}))
    say(f"format: {summary['format']}")
    for table in trace_tables.tables(summary):
        say("", table)


@app.command("convert", cls=CommandWithExamples)
def convert(
    file: TraceFile,
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="The format to write, of {writable}; or a Python file.",
            autocompletion=completes("writable"),
        ),
    ],
    format_name: FormatName = None,
    columns: Columns = None,
    device_number: Devices = None,
    start: Start = None,
    window: Window = None,
    speed: Speed = 1,
    force: Force = False,
) -> None:
    """Write a trace in another format, and say what that format does not hold.

    Examples::

        flashsim trace convert bnl.parquet bnl.iolog --to fio-iolog
        flashsim trace convert bnl.parquet bnl.csv --to spc
        flashsim trace convert bnl.parquet first.parquet --to parquet --window 2s --device-number 0
    """
    source = excerpt(file, format_name, columns, device_number, start, window, speed)
    with Outputs(force) as outputs, progress_bar("converting") as progress, warnings_as_lines():
        outputs.spare("FILE", file)
        done = convert_file(source, outputs.file("OUT", target), to, progress)
    say(f"{done.requests:,} requests in {target}")
    for line in done.lines(to):
        say(line)


app.command("replay", cls=CommandWithExamples)(replay)
