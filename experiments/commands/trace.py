"""``flashsim trace``: what a trace says of its workload, in another format, or on another device."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import preconditioning, trace_plan
from experiments import replay as replaying
from experiments.commands.drawing import Timeline, TimelineFrom, TimelineTo, draw, timeline_window
from experiments.commands.shared import Command, Force, Group, JsonFile
from experiments.device_plots import write_folder
from experiments.device_report import DeviceReport
from experiments.observation import Observation
from experiments.outputs import Outputs, write_json
from experiments.progress import progress_bar
from experiments.tables import Entry, Table
from flashsim.core.errors import RefusedError, UnknownNameError
from flashsim.core.provenance import provenance
from flashsim.core.units import format_duration, format_size
from flashsim.device import presets
from flashsim.device.device import Device
from traces import information
from traces.conversion import convert as convert_file
from traces.parquet_writer import ParquetWriter

app = typer.Typer(cls=Group, rich_markup_mode=None)

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", help="A trace of any format; the format is told by its content.")]


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


@app.command("replay", cls=Command)
def replay(
    file: TraceFile,
    on: Annotated[str, typer.Option(metavar="PRESET", help="The device: a preset's name, or a TOML file.")],
    pace: Annotated[
        str | None, typer.Option(metavar="asap|timed|think", help="When requests arrive; by default as the trace knows.")
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="With asap: how many requests are outstanding.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="TRACE.parquet", help="Write the replayed requests with their times.")] = None,
    json: JsonFile = None,
    out_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Write tables and plots into this folder.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N requests.")] = None,
    timeline: Timeline = None,
    timeline_from: TimelineFrom = None,
    timeline_to: TimelineTo = None,
    scale_offsets: Annotated[bool, typer.Option("--scale-offsets", help="Wrap requests beyond the device's end around.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Begin with an empty device; otherwise what is read was written before.")] = False,
    precondition: preconditioning.Asked = None,
    force: Force = False,
) -> None:
    """Replay a trace on a simulated device and report what it showed.

    With --precondition the drive begins in that state, and nothing else is written before.

    Examples::

        flashsim trace replay bnl.parquet --on intel-x25e-64gb
        flashsim trace replay bnl.parquet --on toshiba-5400-320gb --pace asap --depth 4 --json bnl.json
        flashsim trace replay bnl.parquet --on mtron-msd-sata3025-16gb --precondition random:0.8
        flashsim trace replay bnl.parquet --on ocz-core-60gb --out-dir shown --timeline bnl.json.gz --timeline-to 10ms
    """
    if not on.endswith(".toml") and on not in presets.names():
        if "/" in on or Path(on).exists():
            raise RefusedError(f"--on: {on} is no preset; traces are replayed on presets (names or TOML files) only")
        raise UnknownNameError("device preset", on, presets.names())
    if empty and precondition:
        raise RefusedError("--empty: --precondition says in which state the drive begins; take one of them")
    window = timeline_window(timeline, timeline_from, timeline_to)
    with Outputs(force) as outputs, progress_bar("replaying") as progress, ExitStack() as open_files:
        outputs.spare("FILE", file)
        device = Device.open(on)
        target = outputs.file("--json", json) if json else None
        trace_target = outputs.file("--out", out) if out else None
        folder = outputs.folder("--out-dir", out_dir) if out_dir else None
        timeline_target = outputs.file("--timeline", timeline) if timeline else None
        what = trace_plan.plan(file, limit)
        settings = replaying.Settings(pace or what.pace(), depth, scale_offsets)
        begins = preconditioning.bring_into(device, precondition, progress=progress) if precondition else None
        if not empty and not precondition and (what.reach <= device.capacity or scale_offsets):
            trace_plan.load(device, what, progress)
        asked = {"trace": file.name, "device": device.name, "limit": limit, "empty": empty, "precondition": precondition, **vars(settings)}
        drawn = open_files.enter_context(draw(timeline_target, timeline, window, asked, device)) if timeline and timeline_target else None
        observation = Observation(device, drawn, record=bool(target or folder))
        report = DeviceReport(device.preset, observation)
        observers: list[replaying.Observer] = [report.add, observation.add]
        if trace_target:
            writer = open_files.enter_context(ParquetWriter(trace_target, provenance(asked)))
            observers.append(lambda batch, completions: writer.write(batch))
        observe = replaying.observers(*observers)
        moved = replaying.replay(file, device, settings, what, observe, limit, progress, observation)
        statistics = device.statistics()
        if target:
            write_json(target, report.as_dict(statistics) | {"moved": moved, "state": begins, "provenance": provenance(asked)})
        if folder:
            write_folder(folder, report, statistics, device.block_map())
    typer.echo(f"{file.name} on {device.name}, {_paced(settings)}: {format_duration(report.duration)}")
    if begins:
        typer.echo(f"state before: {begins}")
    if what.devices > 1:
        typer.echo(f"the trace is of {what.devices} devices; all were replayed on this one")
    if moved:
        typer.echo(
            f"{moved:,} of {what.requests:,} requests lay beyond the device's {format_size(device.capacity)} and were wrapped around"
        )
    for table in report.tables(statistics):
        typer.echo("\n" + table.as_text())


def _paced(settings: replaying.Settings) -> str:
    words = {"timed": "at the trace's times", "think": "with the trace's dependencies and think times"}
    return words.get(settings.pace, f"as fast as it goes with {settings.depth} outstanding")


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
