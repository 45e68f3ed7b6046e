"""``flashsim device list``, ``show`` and ``import-diskspecs``, and ``fs.devices``: the presets, and all values of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import describe
from flashsim.core.preset_files import as_toml
from flashsim.core.request import SECTOR
from flashsim.core.units import GB, MB, TB, WATTS, format_size
from flashsim.device import engines, figures, presets
from flashsim.experiments.calibration.data_sheet import DataSheet, document_of, new_drive
from flashsim.experiments.presentation import tables
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.runs.outputs import final_name
from flashsim.hdd.diskspecs import drive as diskspecs
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Field, Name, Number, Size, Target
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

#: A number above 0.
_positive = fields.positive("a number above 0 is needed")


def _share(value: Any, parameter: str) -> float:
    """A share of a drive's capacity, which nobody doubles."""
    if (share := _positive(value, parameter)) >= 1:
        raise InvalidParameterError(parameter, value, "a share below 1 is needed: 0.2 is 20 %")
    return share


@operation
def devices(
    preset: Annotated[str | None, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",))] = None,
) -> pd.DataFrame:
    """The device presets, a row each; or of one preset a row a value, with its meaning and its source.

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.devices().set_index("preset").loc["ocz-core-60gb", "kind"]
    'ssd'
    >>> fs.devices("ocz-core-60gb").columns.tolist()
    ['parameter', 'value', 'meaning', 'source']
    """
    if preset is None:
        every = [presets.load(name) for name in presets.names(zoned=True)]
        rows = [(each.name, each.kind, each.capacity / GB, each.title) for each in every]
        return pd.DataFrame(rows, columns=["preset", "kind", "capacity_gb", "title"])
    values = [
        (name if kind == "parameters" else f"{kind} {name}", each["shown"], each["meaning"], each.get("source", "derived"))
        for kind, facts in facts_of(presets.load(preset)).items()
        for name, each in facts.items()
    ]
    return pd.DataFrame(values, columns=["parameter", "value", "meaning", "source"])


def facts_of(preset: presets.Preset) -> dict[str, dict[str, dict[str, Any]]]:
    """Facts of a preset, by kind and name: a value, its text, its meaning and its source.

    ``parameters``; ``array``, how many drives there are, where it is more than one, and how bytes are spread over them; ``derived``, what
    follows from the values of a flash drive; ``cited``, the figures that it is meant to show; ``energy``; and ``inside``, of a drive that
    runs programs.
    """
    engines.check_policies(preset)
    facts = {"parameters": _facts(preset.parameters, preset.sources), "array": _facts(preset.array, preset.array_sources), "derived": {}}
    facts["cited"] = {
        name: {"value": value, "shown": figures.show(name, value), "meaning": figures.meaning(name), "source": preset.cited_sources[name]}
        for name, value in preset.cited.as_dict().items()
    }
    facts["energy"] = _facts(preset.energy, preset.energy_sources)
    if preset.inside is not None:
        facts["inside"] = _facts(preset.inside, preset.inside_sources)
    if preset.flash is not None:
        value = preset.flash.effective_overprovisioning
        meaning = "flash pages outside spare blocks and gc_reserve, over those that the address space covers, less 1"
        facts["derived"]["effective_overprovisioning"] = {"value": value, "shown": f"{value:.2%}", "meaning": meaning}
    return facts


def _facts(parameters: Any, sources: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": getattr(parameters, name), "shown": shown, "meaning": meaning, "source": sources.get(name, "default")}
        for name, shown, meaning in (describe(parameters) if parameters else ())
    }


@operation
def device_list() -> Listing:
    """List the device presets.

    Examples::

        flashsim device list
    """
    every = [presets.load(name) for name in presets.names(zoned=True)]
    rows = [{"name": each.name, "kind": each.kind, "capacity": each.capacity, "title": each.title} for each in every]
    cells = [(each.name, each.kind, format_size(each.capacity), each.title) for each in every]
    return Listing([Table(["preset", "kind", "capacity", "title"], cells)], rows, {"presets": rows})


@operation
def device_show(
    preset: Annotated[str, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",), argument=True)],
) -> Listing:
    """Show a preset's values and the figures it is meant to show, what they mean and where they come from.

    Examples::

        flashsim device show ocz-core-60gb
        flashsim device show toshiba-5400-320gb
    """
    loaded = presets.load(preset)
    facts_by_kind = facts_of(loaded)
    parts = [f"{loaded.name} ({loaded.kind}): {loaded.title}\n"]
    for kind, facts in facts_by_kind.items():
        for name, each in facts.items():
            line = f"{name} = {each['shown']}" if kind == "parameters" else f"{kind} {name}: {each['shown']}"
            parts += [line, f"    {each['meaning']}", *([f"    source: {each['source']}"] if "source" in each else [])]
    if loaded.kind == "ssd" and not facts_by_kind["energy"] and loaded.inside is None:
        parts.append("no energy figures")
    rows = [{"kind": kind, "name": name, **each} for kind, facts in facts_by_kind.items() for name, each in facts.items()]
    return Listing(parts, rows, {"name": loaded.name, "kind": loaded.kind, "title": loaded.title} | facts_by_kind)


def _preset_name(out: Any) -> str:
    target = final_name(out)
    if not target.endswith(".toml"):
        raise InvalidParameterError("out", target, "a preset's name must end in .toml")
    return target


@operation
def device_import_diskspecs(
    file: Annotated[
        str,
        Name(
            "A parameter file of DiskSim; what it names and sources is read too.",
            "FILE.parv",
            argument=True,
            reads=lambda values: diskspecs.read(Path(values["file"]), values["disk"]).files,
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
    target = _preset_name(out)
    drive = diskspecs.read(Path(file), disk)
    document = drive.document(Path(target).stem)
    preset = presets.from_document(document, Path(file))
    out.write_text(as_toml(document, drive.notes), encoding="utf-8")
    blocks = preset.capacity // SECTOR
    lead = f"{drive.name}: {blocks:,} blocks, {len(drive.values['zones'])} zones; {len(drive.values)} values in {target}"
    result = document | {"notes": list(drive.notes), "files": [str(path) for path in drive.files]}
    return Listing([lead, *(f"note: {note}" for note in drive.notes)], [{"note": note} for note in drive.notes], result)


@operation
def device_new(
    *,
    preset: Annotated[str, Name("A flash drive, for what nothing is said of.", "PRESET", completes=("presets",))],
    out: Annotated[Any, Target("The preset to write.", "PRESET.toml")],
    title: Annotated[str | None, Name("A line that says what it is.", "TEXT")] = None,
    capacity: Annotated[Any, Size("Bytes that the host can address.")] = None,
    overprovisioning: Annotated[float | None, Number("Flash besides that, as a share of it.", "SHARE", parse=_share)] = None,
    read_mbps: Annotated[float | None, Number("Reads in order, MB/s.", "N", parse=_positive)] = None,
    write_mbps: Annotated[float | None, Number("Writes in order, MB/s, as they last.", "N", parse=_positive)] = None,
    read_iops: Annotated[int | None, Count("Reads of 4 KiB a second, as many outstanding as the drive takes.")] = None,
    write_iops: Annotated[int | None, Count("Writes of 4 KiB a second, many outstanding, with free blocks.")] = None,
    read_latency: Annotated[Any, Duration("A read of 4 KiB alone.")] = None,
    write_latency: Annotated[Any, Duration("A write of 4 KiB alone.")] = None,
    written: Annotated[float | None, Number("Terabytes that may be written in its life.", "TB", option="--tbw", parse=_positive)] = None,
    idle_power: Annotated[float | None, Number("Watts when idle.", "W", parse=_positive)] = None,
    active_power: Annotated[float | None, Number("Watts under load.", "W", parse=_positive)] = None,
    force: fields.Force = False,
) -> Listing:
    """Write the preset of a flash drive that shows the figures of a data sheet.

    The drive is simulated and changed until it shows them within 1 %. What the data sheet does not tell is as of the drive that it comes
    from; its source says that this is an estimate, and in which range the presets' drives are.

    Examples::

        flashsim device new --preset intel-x25e-64gb --out mine.toml --capacity 80GB --read-mbps 240 --read-iops 30000 --read-latency 80us
    """
    target = _preset_name(out)
    rates = {"sequential_read": read_mbps, "sequential_write": write_mbps}
    shown = {name: round(value * MB) for name, value in rates.items() if value is not None}
    rest = {"random_read_iops": read_iops, "random_write_iops": write_iops, "random_read": read_latency, "random_write": write_latency}
    shown |= {name: value for name, value in rest.items() if value is not None}
    powers = [None if power is None else round(power * WATTS) for power in (idle_power, active_power)]
    sheet = DataSheet(shown, capacity, None if written is None else round(written * TB), overprovisioning, *powers)
    name = Path(target).stem
    with activity("fitting") as progress:
        made = new_drive(preset, name, title or f"{name}, from a data sheet", sheet, progress)
    out.write_text(made.text(), encoding="utf-8")
    rows = made.rows()
    columns = {"figure": "name", "data sheet": "cited", "shown": "measured", "differs by": ("difference", tables.difference)}
    for row in rows:
        row |= {each: figures.show(row["name"], row[each]) for each in ("cited", "measured")}
    table = [Table.of(rows, columns)] if rows else []
    return Listing([f"{target}: like {made.base}, {format_size(made.preset.capacity)}\n", *table], rows, document_of(made.preset))
