"""``flashsim device list`` and ``show``, and ``fs.devices``: the presets, and all values of one."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd

from flashsim.core.parameters import describe
from flashsim.core.units import GB, format_size
from flashsim.device import engines, figures, presets
from flashsim.experiments.presentation.tables import Table
from flashsim.operations.fields import Name
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing


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
