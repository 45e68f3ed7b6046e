"""``flashsim device``: the presets, what each of their values is and where it comes from, and measurements of devices."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands import serve
from experiments.commands.calibrate import calibrate
from experiments.commands.drawing import Timeline, TimelineFrom, TimelineTo, draw, timeline_window
from experiments.commands.shared import CommandWithExamples, Force, Group, JsonFile
from experiments.commands.values import completes
from experiments.presentation.progress import progress_bar
from experiments.presentation.tables import Table
from experiments.presentation.terminal import say
from experiments.replaying import preconditioning
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import describe
from flashsim.core.preset_files import as_toml
from flashsim.core.provenance import provenance
from flashsim.core.request import SECTOR
from flashsim.core.units import format_duration, format_size, parse_duration, parse_size
from flashsim.device import cited, engines, presets
from flashsim.hdd.diskspecs import drive as diskspecs

app = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=False)


@app.callback()
def device() -> None:
    """Device presets, every value with its source, micro-benchmarks, and drives served to other programs.

    Examples::

        flashsim device list
        flashsim device show ocz-core-60gb
        flashsim device bench ocz-core-60gb --quick --only order
        flashsim device calibrate seagate-st3300655lc --time 30s --out found-again.toml
    """


@app.command("list", cls=CommandWithExamples)
def list_presets(json: JsonFile = None, force: Force = False) -> None:
    """List the device presets.

    Examples::

        flashsim device list
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        found = [presets.load(name) for name in presets.names()]
        rows = [(preset.name, preset.kind, format_size(preset.capacity), preset.title) for preset in found]
        say(Table(["preset", "kind", "capacity", "title"], rows))
        if target:
            keys = ("name", "kind", "capacity", "title")
            values = [(preset.name, preset.kind, preset.capacity, preset.title) for preset in found]
            write_json(target, {"presets": [dict(zip(keys, row, strict=True)) for row in values]})


@app.command("show", cls=CommandWithExamples)
def show_preset(
    preset: Annotated[
        str,
        typer.Argument(
            metavar="PRESET",
            help="A preset's name, or a TOML file.",
            autocompletion=completes("presets"),
        ),
    ],
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Show a preset's values and the figures it is meant to show, what they mean and where they come from.

    Examples::

        flashsim device show ocz-core-60gb
        flashsim device show toshiba-5400-320gb
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        chosen = presets.load(preset)
        engines.check_policies(chosen)
        rows = [(name, value, meaning, chosen.sources.get(name, "default")) for name, value, meaning in describe(chosen.parameters)]
        say(f"{chosen.name} ({chosen.kind}): {chosen.title}\n")
        for name, value, meaning, source in rows:
            say(f"{name} = {value}\n    {meaning}\n    source: {source}")
        for name, figure in _array(chosen).items():
            say(f"array {name}: {figure['shown']}\n    {figure['meaning']}\n    source: {figure['source']}")
        for name, figure in _derived(chosen).items():
            say(f"derived {name}: {figure['shown']}\n    {figure['meaning']}")
        for name, figure in _cited(chosen).items():
            say(f"cited {name}: {figure['shown']}\n    {figure['meaning']}\n    source: {figure['source']}")
        energies = _energies(chosen)
        for name, figure in energies.items():
            say(f"energy {name}: {figure['shown']}\n    {figure['meaning']}\n    source: {figure['source']}")
        if chosen.kind == "ssd" and not energies:
            say("no energy figures")
        if target:
            write_json(target, _as_dict(chosen, rows))


@app.command("import-diskspecs", cls=CommandWithExamples)
def import_diskspecs(
    file: Annotated[Path, typer.Argument(metavar="FILE.parv", help="A parameter file of DiskSim; what it names and sources is read too.")],
    out: Annotated[Path, typer.Option(metavar="PRESET.toml", help="The preset to write.")],
    disk: Annotated[str | None, typer.Option(metavar="NAME", help="Which drive, if the file has several kinds.")] = None,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Write a preset of a hard disk that is described for DiskSim, every value with the file and line it comes from.

    What the model does otherwise than the files say is printed, and stands in the preset as a comment.

    Examples::

        flashsim device import-diskspecs drive.parv --out drive.toml
        flashsim device import-diskspecs drive.parv --out mine.toml --disk MY_DISK --json mine.json
    """
    if out.suffix != ".toml":
        raise InvalidParameterError("--out", str(out), "a preset's name must end in .toml")
    with Outputs(force) as outputs:
        drive = diskspecs.read(file, disk)
        for path in drive.files:
            outputs.spare("FILE.parv", path)
        document = drive.document(out.stem)
        preset = presets.from_document(document, file)
        target = outputs.file("--out", out)
        json_target = outputs.file("--json", json) if json else None
        target.write_text(as_toml(document, drive.notes), encoding="utf-8")
        if json_target:
            write_json(json_target, document | {"notes": list(drive.notes), "files": [str(path) for path in drive.files]})
    blocks = preset.capacity // SECTOR
    say(f"{drive.name}: {blocks:,} blocks, {len(drive.values['zones'])} zones; {len(drive.values)} values in {out}")
    for note in drive.notes:
        say(f"note: {note}")


def _level(text: str) -> int:
    if not text.strip().isdecimal():
        raise InvalidParameterError("--levels", repr(text), "whole numbers with commas between them are needed, such as 1,8,64")
    return int(text)


app.command("serve", cls=CommandWithExamples)(serve.serve_device)


@app.command("bench", cls=CommandWithExamples)
def bench_device(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE",
            help="A preset's name, a TOML file, or the path of a real file or block device.",
            autocompletion=completes("presets"),
        ),
    ],
    chosen: Annotated[
        str,
        typer.Option(
            "--set", metavar="SET", help="uflip, or aio: bandwidth over I/O size and requests at once.", autocompletion=completes("sets")
        ),
    ] = "uflip",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only this micro-benchmark, of {benchmarks}, or with --set aio read, write; may be repeated.",
            autocompletion=completes("benchmarks"),
        ),
    ] = None,
    sizes: Annotated[str | None, typer.Option("--sizes", metavar="SIZE,...", help="I/O sizes of the set aio (4KiB,8KiB to 1MiB).")] = None,
    levels: Annotated[str | None, typer.Option("--levels", metavar="N,...", help="Its outstanding levels (1,2,4 to 64).")] = None,
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help="How much of the device is used, such as 4GiB.")] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="Requests of a run (1,024; quick: 256; aio: 128).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer values, shorter runs, 1 GiB of a simulated drive.")] = False,
    state: Annotated[float, typer.Option("--state", metavar="SHARE", help="Of a simulated drive, written at random first.")] = 0.1,
    precondition: preconditioning.Asked = None,
    ignore: Annotated[int | None, typer.Option("--ignore", metavar="N", help="Requests of a run's start-up; found by default.")] = None,
    pause: Annotated[str, typer.Option("--pause", metavar="TIME", help="Between runs; auto: found by a probe.")] = "auto",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write report.html, tables (CSV) and pictures (SVG).")] = None,
    timeline: Timeline = None,
    timeline_from: TimelineFrom = None,
    timeline_to: TimelineTo = None,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Write to DEVICE, if it is a real file or disk.")] = False,
    json: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of random places.")] = 0,
    force: Force = False,
) -> None:
    """Measure a device with the nine micro-benchmarks of uFLIP (CIDR 2009), or with AIOMicrobench (Shin et al., SAC 2016).

    A simulated drive's nominal figures are measured as well, beside those that its preset cites. A real file or block device is only read,
    unless --allow-write is given; then what it holds is lost. --precondition takes the place of the state that --state describes, and
    extends over the whole drive.

    --set aio hands over sets of requests to random places at once, waits for all of a set, and hands over the next: bandwidth and latency
    over the size of a request and their number in a set, up to what the kernel allows on a real device.

    Examples::

        flashsim device bench ocz-core-60gb --quick --only granularity --out granularity
        flashsim device bench memoright-gt-32gb --quick --only order --only mix --json bench.json
        flashsim device bench mtron-msd-sata3025-16gb --quick --only locality --precondition steady
        flashsim device bench micron-p300 --set aio --quick --only write --out aio
        flashsim device bench ./disk.bin --allow-write --size 8MiB --quick --only parallelism --pause 1ms
    """
    from experiments.bench import report  # its libraries take a while to load
    from experiments.bench.session import Options, bench
    from experiments.bench.uflip import Method

    method = Method(state, None if pause == "auto" else parse_duration(pause, "--pause"), ignore, seed)
    options = Options(
        only or (),
        parse_size(size, "--size") if size else None,
        count,
        quick,
        allow_write,
        force,
        precondition,
        chosen,
        [parse_size(each, "--sizes") for each in sizes.split(",")] if sizes else (),
        [_level(each) for each in levels.split(",")] if levels else (),
    )
    window = timeline_window(timeline, timeline_from, timeline_to)
    asked = vars(options) | {"pause": pause, "state": state}
    with Outputs(force) as outputs:
        folder = outputs.folder("--out", out) if out else None
        target = outputs.file("--json", json) if json else None
        drawn = partial(draw, outputs.file("--timeline", timeline), timeline, window, asked) if timeline else None
        with progress_bar("runs") as progress:
            done = bench(device, options, method, progress, drawn)
        lead = f"{done.device}, {format_size(done.size)}; state: {done.state}; {format_duration(done.pause)} between runs"
        say(f"{lead}\n")
        if done.figures:
            say(report.figures_table(done.figures), "")
        for tables in report.benchmark_tables(done.runs, chosen).values():
            for table in tables:
                say(table, "")
        if folder:
            report.write_report(folder, lead, done.device, done.figures, done.runs, provenance(asked, seed), chosen)
        if target:
            write_json(target, done.as_dict() | {"provenance": provenance(asked, seed)})


app.command("calibrate", cls=CommandWithExamples)(calibrate)


def _array(chosen: presets.Preset) -> dict[str, dict[str, Any]]:
    """How many drives there are, where it is more than one, and how bytes are spread over them."""
    return {
        name: {
            "value": getattr(chosen.array, name),
            "shown": shown,
            "meaning": meaning,
            "source": chosen.array_sources.get(name, "default"),
        }
        for name, shown, meaning in (describe(chosen.array) if chosen.array else ())
    }


def _derived(chosen: presets.Preset) -> dict[str, dict[str, Any]]:
    """What follows from the values of a flash drive."""
    if chosen.flash is None:
        return {}
    value = chosen.flash.effective_overprovisioning
    meaning = "flash pages outside spare blocks and gc_reserve, over those that the address space covers, less 1"
    return {"effective_overprovisioning": {"value": value, "shown": f"{value:.2%}", "meaning": meaning}}


def _as_dict(chosen: presets.Preset, rows: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    values = {
        name: {"value": getattr(chosen.parameters, name), "shown": shown, "meaning": meaning, "source": source}
        for name, shown, meaning, source in rows
    }
    return {
        "name": chosen.name,
        "kind": chosen.kind,
        "title": chosen.title,
        "parameters": values,
        "array": _array(chosen),
        "derived": _derived(chosen),
        "cited": _cited(chosen),
        "energy": _energies(chosen),
    }


def _cited(chosen: presets.Preset) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": value, "shown": cited.show(name, value), "meaning": cited.meaning(name), "source": chosen.cited_sources[name]}
        for name, value in chosen.cited.given().items()
    }


def _energies(chosen: presets.Preset) -> dict[str, dict[str, Any]]:
    if chosen.energy is None:
        return {}
    return {
        name: {"value": getattr(chosen.energy, name), "shown": shown, "meaning": meaning, "source": chosen.energy_sources[name]}
        for name, shown, meaning in describe(chosen.energy)
    }
