"""Preset files: TOML beside the module that reads them, or anywhere by path; a preset's name is its file's name."""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, MissingFileError, RefusedError, UnknownNameError, printable
from flashsim.core.input_files import read_text

#: The variable that lets presets name Python files; processes that a command starts inherit it.
ALLOW_CODE = "FLASHSIM_ALLOW_CODE"


@dataclass(frozen=True)
class PresetFolder:
    """The presets of one kind."""

    path: Path  #: Where they are.
    kind: str  #: What an error message calls one, such as ``"device preset"``.

    def names(self) -> list[str]:
        return sorted(path.stem for path in self.path.glob("*.toml"))

    def read(self, name: str) -> tuple[Path, dict[str, Any]]:
        """The file of a preset, given its name or the path of a TOML file, and what it holds."""
        if name.endswith(".toml"):
            path = Path(name)
        elif name in self.names():
            path = self.path / f"{name}.toml"
        else:
            raise UnknownNameError(self.kind, name, self.names())
        try:
            return path, tomllib.loads(read_text(path))
        except OSError as problem:
            raise MissingFileError(f"{self.kind}: cannot read {path}: {problem.strerror}") from problem
        except (ValueError, RecursionError) as problem:  # no TOML, no UTF-8, numbers of thousands of digits; nested too deep
            reason = str(problem).partition("; use sys.")[0]  # Python's advice to programmers
            raise DamagedFileError(f"{self.kind}: {path} is not valid TOML: {reason}") from problem


def check_members(kind: str, values: Mapping[str, Any]) -> None:
    """Refuse values that name a Python file, unless the environment's ``FLASHSIM_ALLOW_CODE`` is ``1``, ``true``, ``yes`` or ``on``."""
    allowed = os.environ.get(ALLOW_CODE, "").strip().lower() in ("1", "true", "yes", "on")
    for name, value in values.items():
        if isinstance(value, str) and value.endswith(".py") and not allowed:
            bound = "names a Python file, which would be run; if you trust it, say flashsim --allow-code ..., or in Python set"
            raise RefusedError(f"{kind}: {name}: {value!r} {bound} os.environ['{ALLOW_CODE}'] = '1'")


def as_toml(document: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """A preset as the text of its file: names, then sections in which every value has its source.

    `document`: texts by name, and sections: ``{"value": ..., "source": ...}`` by name, where a value is text, a number, true or false,
    several texts, or rows of numbers; `comments`: lines that stand above the sections.

    >>> values = {"heads": {"value": 4, "source": "counted"}, "zones": {"value": [[10, 1.5], [20, 2]], "source": "measured"}}
    >>> print(as_toml({"name": "mine", "parameters": values}, ["As measured."]), end="")
    name = "mine"
    <BLANKLINE>
    # As measured.
    <BLANKLINE>
    [parameters]
    heads = { value = 4, source = "counted" }
    zones.value = [
        [10, 1.5],
        [20, 2],
    ]
    zones.source = "measured"
    """
    lines = [f"{name} = {_entry(value)}" for name, value in document.items() if not isinstance(value, Mapping)]
    if comments:
        lines += ["", *(f"# {printable(line)}" for line in comments)]
    for title, section in document.items():
        if isinstance(section, Mapping):
            lines += ["", f"[{title}]", *(line for name, entry in section.items() for line in _value_lines(name, entry))]
    return "\n".join(lines) + "\n"


def _value_lines(name: str, entry: Mapping[str, Any]) -> list[str]:
    value, source = entry["value"], _entry(str(entry["source"]))
    if isinstance(value, Sequence) and not isinstance(value, str) and not all(isinstance(each, str) for each in value):
        rows = [f"    [{', '.join(_entry(number) for number in row)}]," for row in value]
        return [f"{name}.value = [", *rows, "]", f"{name}.source = {source}"]
    shown = _entry(value) if isinstance(value, str) or not isinstance(value, Sequence) else f"[{', '.join(map(_entry, value))}]"
    return [f"{name} = {{ value = {shown}, source = {source} }}"]


def _entry(value: str | float) -> str:
    return json.dumps(printable(value) if isinstance(value, str) else value, ensure_ascii=False)
