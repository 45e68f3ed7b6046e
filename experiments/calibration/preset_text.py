"""A fitted preset as a TOML file: every value with where it comes from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any


def preset_text(name: str, kind: str, title: str, parameters: Any, sources: Mapping[str, str], comments: str = "") -> str:
    """The file's text.

    Parameters
    ----------
    parameters
        A declared dataclass; every value with a source is written, the others keep their defaults.
    comments
        Lines that stand on top.

    Examples
    --------
    >>> from flashsim.device import presets
    >>> known = presets.load("toshiba-5400-320gb")
    >>> print(preset_text("mine", "hdd", "My disk", known.parameters, {"rotation": "measured"}).splitlines()[-1])
    rotation = { value = "11111111ns", source = "measured" }
    """
    lines = [f"# {line}" for line in comments.splitlines()]
    lines += [f"name = {_quoted(name)}", f"kind = {_quoted(kind)}", f"title = {_quoted(title)}", "", "[parameters]"]
    for field in dataclasses.fields(parameters):
        if field.name in sources:
            value = _written(getattr(parameters, field.name), field.metadata)
            lines.append(f"{field.name} = {{ value = {value}, source = {_quoted(sources[field.name])} }}")
    return "\n".join(lines) + "\n"


def _written(value: Any, declared: Mapping[str, Any]) -> str:
    """A value as TOML, exact, with its unit."""
    if isinstance(value, tuple):
        return json.dumps([list(row) for row in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    parse = declared["parse"]
    if parse is None:
        return _quoted(value) if isinstance(value, str) else str(value)
    unit = {"parse_duration": "ns", "parse_size": "B"}.get(parse.__name__, "B/s")
    return _quoted(f"{value}{unit}")


def _quoted(text: str) -> str:
    return json.dumps("".join(character if character.isprintable() else " " for character in text), ensure_ascii=False)
