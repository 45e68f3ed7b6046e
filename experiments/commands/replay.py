"""``flashsim trace replay``: a trace on a simulated device, or on a real file or block device."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.drawing import Timeline, TimelineFrom, TimelineTo, draw, timeline_window
from experiments.commands.excerpts import Columns, Devices, FormatName, Speed, Start, TraceFile, Window
from experiments.commands.shared import Force, JsonFile
from experiments.commands.values import completes
from experiments.commands.warned import warnings_as_lines
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import say
from experiments.replaying import preconditioning, several
from experiments.replaying import simulated as replaying
from experiments.replaying.comparison import Comparison, recorded
from experiments.replaying.device_report import DeviceReport
from experiments.replaying.observation import Observation
from experiments.replaying.real import Lateness, RealSettings, Replayed, replay_on
from experiments.replaying.survey import Survey, survey
from experiments.replaying.survey import load as load_what_is_read
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.core.units import format_duration, format_size
from flashsim.device import presets
from flashsim.device.access import is_path
from flashsim.device.device import Device
from traces.excerpt import Excerpt, excerpt
from traces.parquet_writer import ParquetWriter
from traces.replay.base import Observer, load_engine


def replay(
    file: TraceFile,
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DEVICE",
            help="A preset, its TOML file, or a real file or block device; for each device of a trace such a path, as disk=./disk.bin.",
            autocompletion=completes("presets"),
        ),
    ],
    pace: Annotated[
        str | None, typer.Option(metavar="asap|timed|think", help="When requests arrive; by default as the trace knows.")
    ] = None,
    depth: Annotated[int, typer.Option(metavar="N", help="With asap: how many requests are outstanding.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="TRACE.parquet", help="Write the replayed requests with their times.")] = None,
    json: JsonFile = None,
    out_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the first N requests.")] = None,
    format_name: FormatName = None,
    columns: Columns = None,
    device_number: Devices = None,
    start: Start = None,
    window: Window = None,
    speed: Speed = 1,
    timeline: Timeline = None,
    timeline_from: TimelineFrom = None,
    timeline_to: TimelineTo = None,
    scale_offsets: Annotated[bool, typer.Option("--wrap", "--scale-offsets", help="Wrap requests beyond the device's end around.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Begin with an empty device; otherwise what is read was written before.")] = False,
    precondition: preconditioning.Asked = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What replays on a real device, of {engines} (builtin).",
            autocompletion=completes("engines"),
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET",
            help="Also simulate what is replayed on a real device.",
            autocompletion=completes("presets"),
        ),
    ] = None,
    writes_as_reads: Annotated[bool, typer.Option("--writes-as-reads", help="Read on a real device what the trace writes.")] = False,
    widen: Annotated[bool, typer.Option("--widen", help="Widen requests to whole blocks of a real device.")] = False,
    buffered: Annotated[bool, typer.Option("--buffered", help="Go through the page cache, where there is no direct I/O.")] = False,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Write to DEVICE, if it is a real file or disk.")] = False,
    yes_destroy: Annotated[
        list[str] | None, typer.Option("--yes-destroy", metavar="/dev/NAME", help="A block device that --allow-write destroys, by name.")
    ] = None,
    force: Force = False,
) -> None:
    """Replay a trace on a simulated or real device and report what it showed.

    With --precondition a simulated drive begins in that state, and nothing else is written before. A real file or block device is only
    read, past the page cache; if the trace writes, take --writes-as-reads or --allow-write. The latencies that the trace has recorded, and
    those of --against, stand beside the real ones.

    Examples::

        flashsim trace replay bnl.parquet --on intel-x25e-64gb
        flashsim trace replay bnl.parquet --on toshiba-5400-320gb --pace asap --depth 4 --json bnl.json
        flashsim trace replay bnl.parquet --on mtron-msd-sata3025-16gb --precondition random:0.8
        flashsim trace replay bnl.parquet --on ocz-core-60gb --out-dir shown --timeline bnl.json.gz --timeline-to 10ms
        flashsim trace replay bnl.parquet --on ./disk.bin --allow-write --against ocz-core-60gb
        flashsim trace replay bnl.parquet --on intel-x25e-64gb --device-number 0 --window 500ms --speed 2
        flashsim trace replay pool.parquet --on disk=./disk.bin --on ssd=./ssd.bin --on log=./log.bin --allow-write
    """
    real_only: dict[str, Any] = {
        "--engine": engine,
        "--against": against,
        "--writes-as-reads": writes_as_reads,
        "--widen": widen,
        "--buffered": buffered,
    }
    real_only |= {"--allow-write": allow_write, "--yes-destroy": yes_destroy}
    simulated_only = {"--timeline": timeline, "--empty": empty, "--precondition": precondition}
    paths = several.assigned(on)
    first = on[0]
    real = paths is not None or is_path(first)
    _refuse_options(simulated_only if real else real_only, f"{first} is {'no' if real else 'a'} preset")
    if paths:
        _refuse_options({"--against": against}, "one simulated drive does not stand for several devices")
    if empty and precondition:
        raise RefusedError("--empty: --precondition says in which state the drive begins; take one of them")
    drawn_window = timeline_window(timeline, timeline_from, timeline_to)
    for preset in (None if real else first, against):
        if preset:
            presets.load(preset)
    source = excerpt(file, format_name, columns, device_number, start, window, speed)
    with Outputs(force) as outputs, progress_bar("replaying") as progress, warnings_as_lines():
        outputs.spare("FILE", file)
        if real:
            for path in paths.values() if paths else [Path(first)]:
                outputs.spare("--on", path)
        targets = _Targets(
            outputs.file("--json", json) if json else None,
            outputs.file("--out", out) if out else None,
            outputs.folder("--out-dir", out_dir) if out_dir else None,
        )
        what = survey(source, limit)
        if real:
            knows = what.pace() if what.pace() in load_engine(engine or "builtin").PACES else "asap"
            settings = RealSettings(
                pace or knows, depth, engine or "builtin", scale_offsets, widen, writes_as_reads, allow_write, force, yes_destroy, buffered
            )
            if paths is None:
                _real(source, Path(first), settings, what, limit, against, targets, progress)
            else:
                _several(source, paths, settings, what, limit, targets, progress)
        else:
            asked = _Asked(replaying.ReplaySettings(pace or what.pace(), depth, scale_offsets), limit, empty, precondition)
            drawn = _Drawn(timeline, outputs.file("--timeline", timeline), drawn_window) if timeline else None
            _simulated(source, first, asked, what, targets, drawn, progress)


def _refuse_options(given: dict[str, Any], why: str) -> None:
    for option, value in given.items():
        if value:
            raise RefusedError(f"{option}: {why}")


@dataclass(frozen=True)
class _Targets:
    """Where results go."""

    json: Path | None
    trace: Path | None
    folder: Path | None


@dataclass(frozen=True)
class _Asked:
    """How a replay on a simulated device was asked for."""

    settings: replaying.ReplaySettings
    limit: int | None = None
    empty: bool = False
    precondition: str | None = None


@dataclass(frozen=True)
class _Drawn:
    """The timeline that was asked for."""

    named: Path
    target: Path
    window: tuple[int, int]


def _simulated(
    source: Excerpt, on: str, asked: _Asked, what: Survey, targets: _Targets, timeline: _Drawn | None, progress: Progress | None
) -> None:
    preset, settings = presets.load(on), asked.settings
    if asked.precondition:
        preconditioning.wanted(asked.precondition, preset)  # refuse before anything is compiled
    device = Device(preset)
    begins = preconditioning.bring_into(device, asked.precondition, progress=progress) if asked.precondition else None
    if not asked.empty and not asked.precondition:
        _load(device, settings, what, progress)
    told: dict[str, Any] = {
        **_asked_part(source),
        "device": device.name,
        "limit": asked.limit,
        "empty": asked.empty,
        "precondition": asked.precondition,
    }
    told |= vars(settings)
    with ExitStack() as open_files:
        drawing = draw(timeline.target, timeline.named, timeline.window, told, device) if timeline else nullcontext()
        observation = Observation(device, open_files.enter_context(drawing), record=bool(targets.json or targets.folder))
        report = DeviceReport(device.preset, observation)
        observers: list[Observer] = [report.add, observation.add]
        if targets.trace:
            observers.append(_written(open_files.enter_context(ParquetWriter(targets.trace, provenance(told)))))
        moved = replaying.replay(source, device, settings, what, replaying.observers(*observers), asked.limit, progress, observation)
        statistics = device.statistics()
        if targets.json:
            write_json(targets.json, report.as_dict(statistics) | {"moved": moved, "state": begins, "provenance": provenance(told)})
        if targets.folder:
            from experiments.replaying.report import write_report  # its libraries take a while to load

            lead = f"Simulated; {_paced(settings.pace, settings.depth)}." + (f" State before: {begins}." if begins else "")
            title = f"{source.name} on {device.name}"
            write_report(targets.folder, title, lead, report, provenance(told), statistics, device.block_map())
    say(f"{source.name} on {device.name}, {_paced(settings.pace, settings.depth)}: {format_duration(report.duration)}")
    if begins:
        say(f"state before: {begins}")
    _say_changed(what, moved, device.capacity)
    for table in report.tables(statistics):
        say("", table)


def _load(device: Device, settings: replaying.ReplaySettings, what: Survey, progress: Progress | None) -> None:
    if what.reach <= device.capacity or settings.scale_offsets:
        load_what_is_read(device, what, progress)


def _real(
    source: Excerpt,
    on: Path,
    settings: RealSettings,
    what: Survey,
    limit: int | None,
    against: str | None,
    targets: _Targets,
    progress: Progress | None,
) -> None:
    told = {**_asked_part(source), "device": str(on), "limit": limit, "against": against, **vars(settings)}
    report, lateness = DeviceReport(), Lateness()
    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        kept = targets.trace or (Path(folder) / "replayed.parquet" if against else None)
        with ParquetWriter(kept, provenance(told)) if kept else nullcontext() as writer:
            observers: list[Observer] = [report.add, lateness.add, *([_written(writer)] if writer else [])]
            done = replay_on(source, on, settings, what, replaying.observers(*observers), limit, progress)
        others = {"recorded": recorded(source, limit)}
        if against and kept:
            others[against] = _beside(kept, against, settings, progress)
    comparison = Comparison(str(on), report, {name: run for name, run in others.items() if run})
    if targets.json:
        beside = {"engine": done.how, "moved": done.moved, "widened": done.widened, "holes": done.holes, "lateness": lateness.as_dict()}
        write_json(targets.json, report.as_dict({}) | beside | {"runs": comparison.as_dict(), "provenance": provenance(told)})
    if targets.folder:
        from experiments.replaying.report import write_report  # its libraries take a while to load

        lead = f"Replayed on the real device by {done.how}; {_paced(settings.pace, settings.depth)}."
        write_report(targets.folder, f"{source.name} on {on}", lead, report, provenance(told), comparison=comparison)
    say(f"{source.name} on {on} by {done.how}, {_paced(settings.pace, settings.depth)}: {format_duration(report.duration)}")
    _say_done(settings, what, done, lateness, str(on))
    _say_changed(what, done.moved, None)
    for table in [*report.tables({})[:2], comparison.table()]:
        say("", table)


def _several(
    source: Excerpt,
    paths: Mapping[str, Path],
    settings: RealSettings,
    what: Survey,
    limit: int | None,
    targets: _Targets,
    progress: Progress | None,
) -> None:
    """Each device of the trace on a file of its own."""
    told = {**_asked_part(source), "devices": {name: str(path) for name, path in paths.items()}, "limit": limit, **vars(settings)}
    each, lateness = several.EachDevice(several.names_of(what)), Lateness()
    with ParquetWriter(targets.trace, provenance(told)) if targets.trace else nullcontext() as writer:
        observers: list[Observer] = [each.add, lateness.add, *([_written(writer)] if writer else [])]
        to = several.targets_of(paths, what)
        done = replay_on(source, to, settings, what, replaying.observers(*observers), limit, progress)
    compared = each.beside(source, limit)
    if targets.json:
        beside = {"engine": done.how, "moved": done.moved, "widened": done.widened, "holes": done.holes, "lateness": lateness.as_dict()}
        write_json(targets.json, {"devices": several.as_dict(each, compared), **beside, "provenance": provenance(told)})
    if targets.folder:
        from experiments.replaying.report import write_report  # its libraries take a while to load

        for name, report in each.reports.items():
            lead = f"Replayed with its other devices by {done.how}; {_paced(settings.pace, settings.depth)}."
            (targets.folder / name).mkdir()
            write_report(targets.folder / name, f"{source.name}, {name}", lead, report, provenance(told), comparison=compared[name])
    say(f"{source.name} on {len(each.reports)} devices by {done.how}, {_paced(settings.pace, settings.depth)}")
    _say_done(settings, what, done, lateness, "the files")
    say("", several.table(compared))


def _say_done(settings: RealSettings, what: Survey, done: Replayed, lateness: Lateness, where: str) -> None:
    if settings.pace != "asap" and settings.engine == "builtin":
        say(str(lateness))
    if done.holes:
        say(f"{format_size(done.holes)} of {where} were never written: reading them moves no data")
    if done.widened:
        say(f"{done.widened:,} of {what.requests:,} requests were widened to whole blocks")


def _beside(path: Path, preset: str, settings: RealSettings, progress: Progress | None) -> DeviceReport:
    """The very requests that were replayed, on a simulated device."""
    device, what = Device.open(preset), survey(path)
    same = replaying.ReplaySettings(settings.pace, settings.depth, settings.scale_offsets)
    _load(device, same, what, progress)
    report = DeviceReport(device.preset)
    replaying.replay(path, device, same, what, report.add, None, progress)
    return report


def _asked_part(source: Excerpt) -> dict[str, Any]:
    """What a replay was made of, for its provenance."""
    return {**asdict(source), "path": None, "trace": source.name}


def _written(writer: ParquetWriter) -> Observer:
    return lambda batch, completions: writer.write(batch)


def _paced(pace: str, depth: int) -> str:
    words = {"timed": "at the trace's times", "think": "with the trace's dependencies and think times"}
    return words.get(pace, f"as fast as it goes with {depth} outstanding")


def _say_changed(what: Survey, moved: int, capacity: int | None) -> None:
    if what.devices > 1:
        say(f"the trace is of {what.devices} devices; all were replayed on this one (--device-number chooses)")
    if moved:
        end = f" {format_size(capacity)}" if capacity else " end"
        say(f"{moved:,} of {what.requests:,} requests lay beyond the device's{end} and were wrapped around")
