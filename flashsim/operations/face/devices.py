"""``flashsim device list``, ``show`` and ``import-diskspecs``, and ``fs.devices``: the presets, and all values of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.core.errors import InvalidParameterError
from flashsim.core.parameters import describe
from flashsim.core.preset_files import as_toml
from flashsim.core.request import SECTOR
from flashsim.core.units import GB, format_size
from flashsim.device import engines, figures, presets
from flashsim.hdd.diskspecs import drive as diskspecs
from flashsim.operations.fields import Field, Name, Target
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing
from flashsim.studies.presentation.tables import Table
from flashsim.studies.runs.outputs import final_name


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
        found = [presets.load(name) for name in presets.names()]
        rows = [(each.name, each.kind, each.capacity / GB, each.title) for each in found]
        return pd.DataFrame(rows, columns=["preset", "kind", "capacity_gb", "title"])
    values = [
        (name if kind == "parameters" else f"{kind} {name}", each["shown"], each["meaning"], each.get("source", "derived"))
        for kind, facts in facts_of(presets.load(preset)).items()
        for name, each in facts.items()
    ]
    return pd.DataFrame(values, columns=["parameter", "value", "meaning", "source"])


def facts_of(chosen: presets.Preset) -> dict[str, dict[str, dict[str, Any]]]:
    """What there is to say of a preset, by kind and name: a value, as it is shown, what it means and where it comes from.

    ``parameters``; ``array``, how many drives there are, where it is more than one, and how bytes are spread over them; ``derived``, what
    follows from the values of a flash drive; ``cited``, the figures that it is meant to show; and ``energy``.
    """
    engines.check_policies(chosen)
    facts = {
        "parameters": _described(chosen.parameters, chosen.sources),
        "array": _described(chosen.array, chosen.array_sources),
        "derived": {},
        "cited": {
            name: {
                "value": value,
                "shown": figures.show(name, value),
                "meaning": figures.meaning(name),
                "source": chosen.cited_sources[name],
            }
            for name, value in chosen.cited.as_dict().items()
        },
        "energy": _described(chosen.energy, chosen.energy_sources),
    }
    if chosen.flash is not None:
        value = chosen.flash.effective_overprovisioning
        meaning = "flash pages outside spare blocks and gc_reserve, over those that the address space covers, less 1"
        facts["derived"]["effective_overprovisioning"] = {"value": value, "shown": f"{value:.2%}", "meaning": meaning}
    return facts


def _described(parameters: Any, sources: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": getattr(parameters, name), "shown": shown, "meaning": meaning, "source": sources.get(name, "default")}
        for name, shown, meaning in (describe(parameters) if parameters else ())
    }


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


def _diskspecs_files(given: Mapping[str, Any]) -> Iterable[Path]:
    return diskspecs.read(Path(given["file"]), given["disk"]).files


@operation
def import_diskspecs(
    file: Annotated[
        str,
        Name("A parameter file of DiskSim; what it names and sources is read too.", "FILE.parv", argument=True, reads=_diskspecs_files),
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
