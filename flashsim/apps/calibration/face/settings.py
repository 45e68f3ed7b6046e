"""``flashsim settings`` and ``fs.settings``: what a database should know of a drive."""

from __future__ import annotations

from typing import Annotated, Any

from flashsim.apps.calibration.database_settings import DatabaseSetting, settings_of
from flashsim.core.activity import activity
from flashsim.core.units import KIB
from flashsim.device import presets
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.presentation.terminal import Explanation, Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Name, Number
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

_SEQUENTIAL_FROM = (
    "With these costs a plan that reads pages at random is cheaper than one that reads the whole table in order as long as it reads fewer "
    "than {share} of the table's pages."
)


@operation
def settings(
    device: Annotated[str, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",), argument=True)],
    *,
    cached: Annotated[float, Number("Share of random reads that hit the cache of the database or system.", "SHARE")] = 0.9,
    seed: fields.Seed = 0,
) -> Listing:
    """Derive PostgreSQL and InnoDB settings for a drive.

    Each is simulated, and reckoned by formula beside it. PostgreSQL's own random_page_cost of 4 stands for a disk whose random reads take
    40 times as long, with 90 % of them cached. For a drive of yours, make a preset of fio's output first: flashsim device identify.

    Examples::

        flashsim settings samsung-980-pro-1tb
        flashsim settings toshiba-5400-320gb --cached 0.5 --json settings.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.settings("toshiba-5400-320gb").summary()["setting"].tolist()[:2]
    ['seq_page_cost', 'random_page_cost']
    """
    preset = presets.load(device)
    with activity("measuring") as progress:
        derived = settings_of(preset, cached, seed, progress)
    rows: list[dict[str, Any]] = [
        {"database": each.database, "setting": each.name, "value": _text(each, each.value), "by formula": _text(each, each.formula)}
        | {"interval": f"{_text(each, each.low)} - {_text(each, each.high)}", "meaning": each.meaning}
        for each in derived
    ]
    cost = next(each.value for each in derived if each.name == "random_page_cost")
    columns = ("database", "setting", "value", "interval", "by formula")
    table = Table.of(rows, {name: name for name in columns}, title=f"settings for {preset.name}, {cached:.0%} of random reads cached")
    meanings = [Explanation(f"{each.name}: {each.meaning}.") for each in derived]
    lines: list[Part] = [table, "", Explanation(_SEQUENTIAL_FROM.format(share=f"{1 / cost:.0%}")), "", *meanings]
    lines += [
        "",
        next_steps("docs/how-to/set-a-database.md shows where the settings go", "flashsim device identify makes a preset of yours"),
    ]
    document = {"device": preset.name, "cached": cached, "seed": seed, "settings": [vars(each) for each in derived]}
    return Listing(lines, rows, document)


def _text(setting: DatabaseSetting, value: float | None) -> str:
    """A value as the database's file of settings takes it."""
    if value is None:
        return ""
    if setting.name == "io_combine_limit":
        return f"{value / KIB:.0f}kB"
    return f"{value:.1f}" if setting.name.endswith("cost") else f"{value:.0f}"
