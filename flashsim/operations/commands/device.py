"""``flashsim device``: the presets, what each of their values is and where it comes from, and measurements of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flashsim.core.errors import InvalidParameterError
from flashsim.core.preset_files import as_toml
from flashsim.core.request import SECTOR
from flashsim.core.units import format_size
from flashsim.device import presets
from flashsim.hdd.diskspecs import drive as diskspecs
from flashsim.operations.commands.declared import command
from flashsim.operations.commands.serve import serve_device
from flashsim.operations.commands.shared import Group
from flashsim.operations.face._fields import Field, Name, Target
from flashsim.operations.face._operation import operation
from flashsim.operations.face._outcome import Listing
from flashsim.operations.face.bench import bench
from flashsim.operations.face.calibrate import calibrate
from flashsim.operations.face.devices import facts_of
from flashsim.studies.presentation.tables import Table
from flashsim.studies.runs.partial_files import final_name

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


@operation
def listed() -> Listing:
    """List the device presets.

    Examples::

        flashsim device list
    """
    found = [presets.load(name) for name in presets.names()]
    rows = [{"name": each.name, "kind": each.kind, "capacity": each.capacity, "title": each.title} for each in found]
    shown = [(each.name, each.kind, format_size(each.capacity), each.title) for each in found]
    return Listing([Table(["preset", "kind", "capacity", "title"], shown)], rows, {"presets": rows})


@operation
def show(
    preset: Annotated[str, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",), argument=True)],
) -> Listing:
    """Show a preset's values and the figures it is meant to show, what they mean and where they come from.

    Examples::

        flashsim device show ocz-core-60gb
        flashsim device show toshiba-5400-320gb
    """
    chosen = presets.load(preset)
    told = facts_of(chosen)
    parts = [f"{chosen.name} ({chosen.kind}): {chosen.title}\n"]
    for kind, facts in told.items():
        for name, each in facts.items():
            named = f"{name} = {each['shown']}" if kind == "parameters" else f"{kind} {name}: {each['shown']}"
            parts.append("\n    ".join([named, each["meaning"], *([f"source: {each['source']}"] if "source" in each else [])]))
    if chosen.kind == "ssd" and not told["energy"]:
        parts.append("no energy figures")
    rows = [{"kind": kind, "name": name, **each} for kind, facts in told.items() for name, each in facts.items()]
    return Listing(parts, rows, {"name": chosen.name, "kind": chosen.kind, "title": chosen.title} | told)


@operation
def import_diskspecs(
    file: Annotated[
        str,
        Name(
            "A parameter file of DiskSim; what it names and sources is read too.",
            "FILE.parv",
            argument=True,
            reads=lambda given: diskspecs.read(Path(given["file"]), given["disk"]).files,
        ),
    ],
    *,
    out: Annotated[Any, Target("The preset to write.", "PRESET.toml")],
    disk: Annotated[str | None, Field("Which drive, if the file has several kinds.", "NAME")] = None,
) -> Listing:
    """Write a preset of a hard disk that is described for DiskSim, every value with the file and line it comes from.

    What the model does otherwise than the files say is printed, and stands in the preset as a comment.

    Examples::

        flashsim device import-diskspecs drive.parv --out drive.toml
        flashsim device import-diskspecs drive.parv --out mine.toml --disk MY_DISK --json mine.json
    """
    named = final_name(out)
    if not named.endswith(".toml"):
        raise InvalidParameterError("--out", named, "a preset's name must end in .toml")
    drive = diskspecs.read(Path(file), disk)
    document = drive.document(Path(named).stem)
    preset = presets.from_document(document, Path(file))
    out.write_text(as_toml(document, drive.notes), encoding="utf-8")
    blocks = preset.capacity // SECTOR
    lead = f"{drive.name}: {blocks:,} blocks, {len(drive.values['zones'])} zones; {len(drive.values)} values in {named}"
    told = document | {"notes": list(drive.notes), "files": [str(path) for path in drive.files]}
    return Listing([lead, *(f"note: {note}" for note in drive.notes)], [{"note": note} for note in drive.notes], told)


for operation_, name in (
    (listed, "list"),
    (show, "show"),
    (import_diskspecs, "import-diskspecs"),
    (bench, "bench"),
    (calibrate, "calibrate"),
    (serve_device, "serve"),
):
    command(operation_, name, app)
