"""Preset files: TOML beside the module that reads them, or anywhere by path; a preset's name is its file's name."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError, MissingFileError, UnknownNameError


@dataclass(frozen=True)
class PresetFolder:
    """The presets of one kind.

    Parameters
    ----------
    path
        Where they are.
    kind
        What an error message calls one, such as ``"device preset"``.
    """

    path: Path
    kind: str

    def names(self) -> list[str]:
        """The presets that come with flashsim, sorted."""
        return sorted(path.stem for path in self.path.glob("*.toml"))

    def read(self, name: str) -> tuple[Path, dict[str, Any]]:
        """The file of a preset, given its name or the path of a TOML file, and what it holds.

        Raises
        ------
        UnknownNameError
            No preset has that name; close ones are suggested.
        MissingFileError
            There is no file at that path, or it cannot be read.
        DamagedFileError
            The file is no TOML.
        """
        if name.endswith(".toml"):
            path = Path(name)
        elif name in self.names():
            path = self.path / f"{name}.toml"
        else:
            raise UnknownNameError(self.kind, name, self.names())
        try:
            return path, tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise MissingFileError(f"{self.kind}: cannot read {path}: {problem.strerror}") from problem
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise DamagedFileError(f"{self.kind}: {path} is no valid TOML: {problem}") from problem
