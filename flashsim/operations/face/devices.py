"""``flashsim device list`` and ``show``, and ``fs.devices``: the presets, and all values of one."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd

from flashsim.core.parameters import describe
from flashsim.core.units import GB, format_size
from flashsim.device import engines, figures, presets
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations.fields import Name
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing


@operation
def devices(
    preset: Annotated[str | None, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",))] = None,
) -> pd.DataFrame:
    """The device presets, a row each, newest first; or of one preset a row a value, with its meaning and its source.

    The year is that in which the drive came to market; the origin says whether its parameters are identified, measured or fitted, or built
    to figures of a data sheet or a paper (sourced), or of no particular drive (estimated).

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.devices().set_index("preset").loc["ocz-core-60gb", "kind"]
    'ssd'
    >>> fs.devices("ocz-core-60gb").columns.tolist()
    ['parameter', 'value', 'meaning', 'source']
    """
    if preset is None:
        rows = [(one.name, one.kind, one.product.year, one.cells, one.origin, one.capacity / GB, one.title) for one in _newest_first()]
        return pd.DataFrame(rows, columns=["preset", "kind", "year", "cells", "origin", "capacity_gb", "title"])
    values = [
        (name if kind == "parameters" else f"{kind} {name}", each["shown"], each["meaning"], each.get("source", "derived"))
        for kind, facts in facts_of(presets.load(preset)).items()
        for name, each in facts.items()
    ]
    return pd.DataFrame(values, columns=["parameter", "value", "meaning", "source"])


def _newest_first() -> list[presets.Preset]:
    return sorted(map(presets.load, presets.names(zoned=True)), key=lambda one: (-one.product.year, one.name))


def facts_of(preset: presets.Preset) -> dict[str, dict[str, dict[str, Any]]]:
    """Facts of a preset, by kind and name: a value, its text, its meaning and its source.

    ``parameters``; ``array``, how many drives there are, where it is more than one, and how bytes are spread over them; ``derived``, what
    follows from the values of a flash drive; ``cited``, the figures that it is meant to show and what it lasts; ``energy``;
    ``product``, its year and cells; and ``inside``, of a drive that runs programs.
    """
    engines.check_policies(preset)
    facts = {"parameters": _facts(preset.parameters, preset.sources), "array": _facts(preset.array, preset.array_sources), "derived": {}}
    facts["cited"] = {
        name: {"value": value, "shown": figures.show(name, value), "meaning": figures.meaning(name), "source": preset.cited_sources[name]}
        for name, value in preset.cited.as_dict().items()
    }
    facts["energy"] = _facts(preset.energy, preset.energy_sources)
    facts["product"] = _facts(preset.product if preset.product_sources else None, preset.product_sources)
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
    """List device presets, newest first.

    Columns: year, cell type, origin of the parameters (fitted, identified or sourced), and capacity.

    Examples::

        flashsim device list
    """
    every = _newest_first()
    rows = [
        {"name": one.name, "kind": one.kind, "year": one.product.year, "cells": one.cells, "origin": one.origin, "capacity": one.capacity}
        | {"title": one.title}
        for one in every
    ]
    kinds = [f"disk, {one.cells}" if one.disk else one.cells for one in every]
    cells = [
        (one.name, str(one.product.year), kind, one.origin, format_size(one.capacity), one.title)
        for one, kind in zip(every, kinds, strict=True)
    ]
    table = Table(["preset", "year", "cells", "origin", "capacity", "title"], cells)
    title = f"{len(every)} presets of drives, newest first; {sum(one.kind == 'ssd' for one in every)} of them with flash\n"
    origins = "Origin of the parameters: sourced from data sheets and papers, fitted to measurements, or estimated."
    steps = next_steps("flashsim device show PRESET shows its parameters", "flashsim advise TRACE --device PRESET,PRESET compares drives")
    return Listing([title, table, "", Explanation(origins), steps], rows, {"presets": rows})


@operation
def device_show(
    preset: Annotated[str, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",), argument=True)],
) -> Listing:
    """Show a preset's parameters with their sources.

    Examples::

        flashsim device show ocz-core-60gb
        flashsim device show toshiba-5400-320gb
    """
    loaded = presets.load(preset)
    facts_by_kind = facts_of(loaded)
    parts: list[Part] = [f"{loaded.name} ({loaded.kind}): {loaded.title}\n"]
    for kind, facts in facts_by_kind.items():
        for name, each in facts.items():
            line = f"{name} = {each['shown']}" if kind == "parameters" else f"{kind} {name}: {each['shown']}"
            parts += [line, f"    {each['meaning']}", *([f"    source: {each['source']}"] if "source" in each else [])]
    if loaded.kind == "ssd" and not facts_by_kind["energy"] and loaded.inside is None:
        parts.append("no energy figures")
    parts += ["", next_steps(f"flashsim join --device {loaded.name} runs a join on it", "flashsim device new makes a preset like it")]
    rows = [{"kind": kind, "name": name, **each} for kind, facts in facts_by_kind.items() for name, each in facts.items()]
    return Listing(parts, rows, {"name": loaded.name, "kind": loaded.kind, "title": loaded.title} | facts_by_kind)
