"""``flashsim device list``, ``flashsim device show`` and ``fs.devices``: the presets, or all values of one."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd

from flashsim.core.parameters import describe
from flashsim.core.units import GB
from flashsim.device import engines, figures, presets
from flashsim.operations.face._fields import Name
from flashsim.operations.face._operation import operation


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
    told = {
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
            for name, value in chosen.cited.given().items()
        },
        "energy": _described(chosen.energy, chosen.energy_sources),
    }
    if chosen.flash is not None:
        value = chosen.flash.effective_overprovisioning
        meaning = "flash pages outside spare blocks and gc_reserve, over those that the address space covers, less 1"
        told["derived"]["effective_overprovisioning"] = {"value": value, "shown": f"{value:.2%}", "meaning": meaning}
    return told


def _described(parameters: Any, sources: Any) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": getattr(parameters, name), "shown": shown, "meaning": meaning, "source": sources.get(name, "default")}
        for name, shown, meaning in (describe(parameters) if parameters else ())
    }
