"""``flashsim device calibrate``: a preset from micro-benchmarks of a real device, or of this machine's CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import Force, JsonFile, YesDestroy
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import explain, say
from experiments.runs.outputs import Outputs, write_json
from flashsim.core.errors import InvalidParameterError
from flashsim.core.provenance import provenance
from flashsim.core.units import SECONDS, format_size, parse_duration, parse_size


def calibrate(
    device: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="A real file or block device; or a preset, which shows how well the method finds it again."),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="PRESET.toml", help="The preset to write.")],
    cpu: Annotated[bool, typer.Option("--cpu", help="Measure this machine's CPU instead of a device.")] = False,
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help="How much of the device is used, such as 4GiB.")] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="How long to measure, about: 1min of a device, 10s of a CPU.")
    ] = None,
    allow_write: Annotated[bool, typer.Option("--allow-write", help="Measure writes too: what the device holds is lost.")] = False,
    yes_destroy: YesDestroy = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out-dir", metavar="DIR", help="Write report.html, tables (CSV) and the picture (SVG).")
    ] = None,
    json: JsonFile = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of places and order, or of tuples.")] = 0,
    force: Force = False,
) -> None:
    """Measure a device with micro-benchmarks, and fit a preset that shows the same figures when it is simulated.

    The device is only read (O_DIRECT), unless --allow-write is given; then a file that does not exist is made and removed again. Whether it
    turns is decided by the data: a disk gets its rotation, zones, heads, seeks, cache and link; anything else the controller's and the
    dies' times, the dies at work side by side, and the link. Some cells are held out of the fit, to judge what it predicts.

    With --cpu, flashsim's own operations on tuples are timed, and the kernel's work on a temporary file beside the preset.

    Examples::

        flashsim device calibrate ./disk.bin --allow-write --size 64MiB --time 200ms --out mine.toml
        flashsim device calibrate seagate-st3300655lc --time 30s --out found-again.toml --json calibration.json
        flashsim device calibrate --cpu --time 1s --out my-cpu.toml
    """
    duration = parse_duration(time, "--time") if time else (10 if cpu else 60) * SECONDS
    if not SECONDS // 10 <= duration <= 3600 * SECONDS:
        raise InvalidParameterError("--time", time, "it must be in [100ms, 60min]")
    if out.suffix != ".toml":
        raise InvalidParameterError("--out", str(out), "a preset's file ends in .toml")
    if cpu:
        given = {"PATH": device, "--size": size, "--out-dir": out_dir, "--allow-write": allow_write or None, "--yes-destroy": yes_destroy}
        for name, value in given.items():
            if value is not None:
                raise InvalidParameterError(
                    name, value if name != "--allow-write" else "given", "--cpu measures this machine, and no device"
                )
        _calibrate_cpu(out, duration, json, seed, force=force)
        return
    if device is None:
        raise InvalidParameterError("PATH", "none", "a device is needed, or --cpu")
    from experiments.calibration import report  # its libraries take a while to load
    from experiments.calibration.session import calibrate as run
    from experiments.calibration.targets import open_target

    used = parse_size(size, "--size") if size else None
    with Outputs(force) as outputs:
        outputs.spare("PATH", Path(device))
        target = outputs.file("--out", out)
        result = outputs.file("--json", json) if json else None
        folder = outputs.folder("--out-dir", out_dir) if out_dir else None
        with (
            progress_bar("measuring") as progress,
            open_target(device, used, allow_write=allow_write, replace=force, destroy=yes_destroy, progress=progress) as opened,
        ):
            done = run(opened, out.stem, time=duration, write=allow_write, seed=seed, progress=progress)
        target.write_text(done.text(), encoding="utf-8")
        lead = f"{done.device}, {format_size(done.size)}; {'read and written' if allow_write else 'only read'}"
        say(f"{lead}\n")
        for held_out in (False, True):
            say(report.cells_table(done, held_out), "")
        say(report.summary(done), "")
        explain(report.note(done))
        origin = provenance({"device": device, "size": done.size, "time": duration, "allow_write": allow_write}, seed)
        if folder:
            report.write_report(folder, done, lead, origin)
        if result:
            write_json(result, done.as_dict() | {"provenance": origin})


def _calibrate_cpu(out: Path, duration: int, json: Path | None, seed: int, *, force: bool) -> None:
    from experiments.calibration.cpu_prices import measure

    with Outputs(force) as outputs:
        target = outputs.file("--out", out)
        result = outputs.file("--json", json) if json else None
        with progress_bar("measuring") as progress:
            done = measure(out.stem, target.parent, duration=duration, seed=seed, progress=progress)
        target.write_text(done.text(), encoding="utf-8")
        say(done.table())
        if result:
            write_json(result, done.as_dict() | {"provenance": provenance({"cpu": True, "time": duration}, seed)})
