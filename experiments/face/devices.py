"""``fs.devices``: the presets, or all values of one."""

from __future__ import annotations

import pandas as pd

from experiments.face._units import text
from flashsim.core.parameters import describe
from flashsim.core.units import GB
from flashsim.device import presets


def devices(preset: str | None = None) -> pd.DataFrame:
    """The device presets, a row each; or of one preset a row a value, with its meaning and its source.

    Parameters
    ----------
    preset
        A name or the path of a TOML file.

    Raises
    ------
    UnknownNameError
        There is no such preset.

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
    chosen = presets.load(text(preset, "preset"))
    values = [(name, value, meaning, chosen.sources.get(name, "default")) for name, value, meaning in describe(chosen.parameters)]
    return pd.DataFrame(values, columns=["parameter", "value", "meaning", "source"])
