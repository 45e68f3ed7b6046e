"""``flashsim validate joins``: formula, simulated device and real device side by side, for several joins."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from algorithms.joins.base import page_format as page_format_of
from experiments.commands.shared import (
    CacheShare,
    ColumnNames,
    FetchPolicy,
    FetchStrategyName,
    FirstJoin,
    Force,
    JsonFile,
    KernelJoin,
    PageFormatName,
    PartitionMethodName,
    Strands,
    SubBuffer,
    YesDestroy,
    column_names,
    sub_buffer_size,
)
from experiments.commands.values import completes
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import explain, say
from experiments.replaying.real import RealSettings
from experiments.runs.joining import lay_out, memory_pages, open_pair
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.provenance import provenance
from flashsim.core.units import MIB, parse_duration, parse_size
from flashsim.device import presets
from flashsim.execution.real import needed_size

#: Stands for a preset that is fitted to the device first.
CALIBRATED = "calibrated"
#: A calibration uses so much at least, in units of its largest request.
_LEAST, _UNIT = 256 * MIB, 4 * MIB


class Engine(Enum):
    """What replays on the real device."""

    BUILTIN = "builtin"
    FIO = "fio"
    BOTH = "both"


def joins(
    on: Annotated[str, typer.Option("--on", metavar="PATH", help="A real file, made if there is none, or a block device.")],
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="PRESET|calibrated",
            help="What is simulated; calibrated: a preset fitted to PATH first.",
            autocompletion=completes("presets"),
        ),
    ],
    join: Annotated[
        list[str] | None,
        typer.Option(
            "--join",
            metavar="NAME",
            help="One of {joins}; or a Python file. Several may be given; the four of Haas et al. by default.",
            autocompletion=completes("joins"),
        ),
    ] = None,
    first: FirstJoin = None,
    fetch: FetchStrategyName = None,
    k: CacheShare = None,
    policy: FetchPolicy = None,
    kernel: KernelJoin = None,
    columns: ColumnNames = None,
    partition: PartitionMethodName = None,
    sub_buffer: SubBuffer = None,
    strands: Strands = None,
    scale: Annotated[float, typer.Option("--scale", metavar="F", help="Of do2009's customer and orders.")] = 0.1,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="The buffer pool, such as 512KiB.")] = "512KiB",
    page_size: Annotated[str, typer.Option("--page-size", metavar="SIZE", help="512B to 64KiB.")] = "8KiB",
    page_format: PageFormatName = None,
    engine: Annotated[
        Engine | None, typer.Option("--engine", metavar="builtin|fio|both", help="What replays; both, if fio is installed.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Runs on the real device; of each request the shortest time counts.")
    ] = 5,
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="How long to calibrate, about.")] = "30s",
    out_dir: Annotated[
        Path | None, typer.Option("--out-dir", metavar="DIR", help="Write report.html, tables (CSV) and the picture (SVG).")
    ] = None,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Write to PATH: what it holds is lost.")] = False,
    yes_destroy: YesDestroy = None,
    json: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the calibration.")] = 0,
    force: Force = False,
) -> None:
    r"""Run joins on a real device, replay their traces, and hold simulation and formula against them.

    All times are of I/O alone, phase by phase. The joins write, so --allow-write is needed, and for a file that exists --force. A file
    that is made is removed again.

    Examples::

        flashsim validate joins --on ./joins.bin --device intel-x25e-64gb --scale 0.02 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --out-dir joins
        flashsim validate joins --on ./joins.bin --device intel-x25e-64gb --scale 0.01 --memory 256KiB --engine builtin --allow-write \
            --repeats 1 --join digest --first hybrid-hash --fetch naive
    """
    from experiments.validation import joins as validation  # its libraries take a while to load
    from experiments.validation import joins_report as report

    if not 0 < scale <= 1000:
        raise InvalidParameterError("--scale", scale, "it must be in (0, 1000]")
    joined = join or validation.JOINS
    on_pages = parse_size(page_size, "--page-size"), page_format or page_format_of(*joined)
    pages = memory_pages(parse_size(memory, "--memory"), *on_pages)
    duration = parse_duration(time, "--time")
    if device != CALIBRATED:
        presets.load(device)
    told = {"first": first, "fetch": fetch, "k": k, "policy": policy, "kernel": kernel, "columns": column_names(columns)}
    told |= {"partition": partition, "sub_buffer": sub_buffer_size(sub_buffer), "strands": strands}
    engines = _engines(engine, overlap=partition not in (None, "traditional"))
    setting = validation.JoinsSetting(joined, pages, repeats, told)
    with Outputs(force) as outputs, progress_bar("joins") as progress:
        outputs.spare("--on", Path(on))
        target = outputs.file("--json", json) if json else None
        folder = outputs.folder("--out-dir", out_dir) if out_dir else None
        relations = open_pair(f"do2009:customer@{scale:g}", f"do2009:orders@{scale:g}", "c_custkey=o_custkey")
        files = (lay_out(relations[0], *on_pages), lay_out(relations[1], *on_pages))
        access = RealSettings("asap", allow_write=allow_write, replace=force, destroy=yes_destroy)
        validation.check(Path(on), files, access, engines)
        preset = _calibrated(on, needed_size(files), duration, access, seed, progress) if device == CALIBRATED else presets.load(device)
        done = validation.validate(Path(on), preset, files, setting, engines, access, progress)
        asked = {"on": on, "device": device, "scale": scale, "memory": pages, "page_format": on_pages[1], "joins": setting.algorithms}
        origin = provenance(asked | told | {"engines": engines, "repeats": repeats}, seed)
        explain(report.conditions(done))
        say("", report.table(done), "")
        say(report.noise_table(done), "")
        for name, text in report.MEANING:
            explain(f"{name}: {text}")
        explain(report.WHY)
        if folder:
            report.write_report(folder, done, origin)
        if target:
            write_json(target, done.as_dict() | {"provenance": origin})


def _engines(asked: Engine | None, *, overlap: bool) -> list[str]:
    if asked is None:
        return ["builtin", "fio"] if shutil.which("fio") and not overlap else ["builtin"]
    return ["builtin", "fio"] if asked is Engine.BOTH else [asked.value]


def _calibrated(on: str, size: int, duration: int, access: RealSettings, seed: int, progress: Progress | None) -> presets.Preset:
    """A preset fitted to the device, of the size that the joins need."""
    from experiments.calibration.session import calibrate
    from experiments.calibration.targets import open_target

    used = max(_LEAST, -(-size // _UNIT) * _UNIT)
    with open_target(on, used, allow_write=access.allow_write, replace=access.replace, destroy=access.destroy, progress=progress) as target:
        return calibrate(target, CALIBRATED, time=duration, write=True, seed=seed, progress=progress).preset
