"""``flashsim device``: the presets, and what each of their values is and where it comes from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from experiments.commands.shared import Command, Force, Group, JsonFile
from experiments.outputs import Outputs, write_json
from experiments.tables import Table
from flashsim.core.parameters import describe
from flashsim.core.units import format_size
from flashsim.device import cited, presets

app = typer.Typer(cls=Group, rich_markup_mode=None)


@app.callback()
def device() -> None:
    """Device presets: every value with its source.

    Examples::

        flashsim device list
        flashsim device show ocz-core-60gb
    """


@app.command("list", cls=Command)
def list_presets(json: JsonFile = None, force: Force = False) -> None:
    """List the device presets.

    Examples::

        flashsim device list
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        found = [presets.load(name) for name in presets.names()]
        rows = [(preset.name, preset.kind, format_size(preset.parameters.capacity), preset.title) for preset in found]
        typer.echo(Table(["preset", "kind", "capacity", "title"], rows).as_text())
        if target:
            keys = ("name", "kind", "capacity", "title")
            values = [(preset.name, preset.kind, preset.parameters.capacity, preset.title) for preset in found]
            write_json(target, {"presets": [dict(zip(keys, row, strict=True)) for row in values]})


@app.command("show", cls=Command)
def show_preset(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a TOML file.")],
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Show a preset's values and the figures it is meant to show, what they mean and where they come from.

    Examples::

        flashsim device show ocz-core-60gb
        flashsim device show toshiba-5400-320gb
    """
    with Outputs(force) as outputs:
        target = outputs.file("--json", json) if json else None
        chosen = presets.load(preset)
        rows = [(name, value, meaning, chosen.sources.get(name, "default")) for name, value, meaning in describe(chosen.parameters)]
        typer.echo(f"{chosen.name} ({chosen.kind}): {chosen.title}\n")
        for name, value, meaning, source in rows:
            typer.echo(f"{name} = {value}\n    {meaning}\n    source: {source}")
        for name, figure in _cited(chosen).items():
            typer.echo(f"cited {name}: {figure['shown']}\n    {figure['meaning']}\n    source: {figure['source']}")
        if target:
            write_json(target, _as_dict(chosen, rows))


def _as_dict(chosen: presets.Preset, rows: list[tuple[str, str, str, str]]) -> dict[str, Any]:
    values = {
        name: {"value": getattr(chosen.parameters, name), "shown": shown, "meaning": meaning, "source": source}
        for name, shown, meaning, source in rows
    }
    return {"name": chosen.name, "kind": chosen.kind, "title": chosen.title, "parameters": values, "cited": _cited(chosen)}


def _cited(chosen: presets.Preset) -> dict[str, dict[str, Any]]:
    return {
        name: {"value": value, "shown": cited.show(name, value), "meaning": cited.meaning(name), "source": chosen.cited_sources[name]}
        for name, value in chosen.cited.given().items()
    }
