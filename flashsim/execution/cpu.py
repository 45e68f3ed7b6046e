"""What CPU work costs: algorithms count it by kind, a preset prices it, drivers add the kernel's time for every request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.errors import DamagedFileError
from flashsim.core.preset_files import PresetFolder
from flashsim.core.request import Integers
from flashsim.execution.requests import Work

_FOLDER = PresetFolder(Path(__file__).parent / "cpu_presets", "CPU preset")
#: Kinds of device that the kernel's prices are told apart by, and its prices.
KINDS = ("hdd", "ssd")
_PARTS = ("per_request", "per_byte")


@dataclass(frozen=True)
class CpuModel:
    """Prices, in nanoseconds.

    Parameters
    ----------
    user
        A unit of each kind of work: a tuple, or for `Work.PAGE` a page.
    per_request, per_byte
        Kernel time of a device command and of a byte moved, by kind of device.
    sources
        Where each price comes from, by its name in the preset file, such as ``user.hash`` or ``kernel.ssd.per_byte``.
    """

    name: str
    user: Mapping[Work, float]
    per_request: Mapping[str, float]
    per_byte: Mapping[str, float]
    sources: Mapping[str, str]

    def user_time(self, work: Mapping[Work, int]) -> float:
        """User time of some work, ns."""
        return sum(self.user[kind] * count for kind, count in work.items())

    def kernel_times(self, kind: str, lengths: Integers, commands: Integers) -> Integers:
        """Kernel time of each request, ns, given its bytes and device commands, shape (n,)."""
        times = self.per_request[kind] * commands + self.per_byte[kind] * lengths
        return np.rint(times).astype(np.int64)

    def prices(self) -> Iterator[tuple[str, float]]:
        """Every price by its name, user prices first."""
        for work in Work:
            yield f"user.{work.value}", self.user[work]
        for kind in KINDS:
            yield f"kernel.{kind}.per_request", self.per_request[kind]
            yield f"kernel.{kind}.per_byte", self.per_byte[kind]

    def as_toml(self, comments: Sequence[str] = ()) -> str:
        """The model as the text of a preset file, which `load` reads; comments stand at its top."""
        lines, section = [f"# {line}".rstrip() for line in comments], ""
        for name, price in self.prices():
            part, _, last = name.rpartition(".")
            if part != section:
                lines += [*([""] if lines else []), f"[{part}]"]
                section = part
            lines.append(f"{last} = {{ nanoseconds = {price:g}, source = {json.dumps(self.sources[name], ensure_ascii=False)} }}")
        return "\n".join(lines) + "\n"


def names() -> list[str]:
    """The CPU presets that come with flashsim, sorted."""
    return _FOLDER.names()


def load(name: str) -> CpuModel:
    """The CPU preset of that name, or in the TOML file at that path.

    Raises
    ------
    UnknownNameError
        No preset has that name.
    MissingFileError, DamagedFileError
        The file does not exist; or is not a CPU preset, lacks a price, or has one that is no number of at least 0.
    """
    path, document = _FOLDER.read(name)
    sources: dict[str, str] = {}

    def price(entry: Mapping[str, Any], name: str) -> float:
        sources[name] = str(entry.get("source", ""))
        value = float(entry["nanoseconds"])
        if not 0 <= value < math.inf:
            raise DamagedFileError(f"CPU preset: {path}: {name}: {value:g}, but a price is a number of at least 0")
        return value

    try:
        user = {Work(kind): price(entry, f"user.{kind}") for kind, entry in document["user"].items()}
        kernel = {part: {kind: price(document["kernel"][kind][part], f"kernel.{kind}.{part}") for kind in KINDS} for part in _PARTS}
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise DamagedFileError(f"CPU preset: {path} lacks or misspells {problem}") from problem
    missing = [kind.value for kind in Work if kind not in user]
    if missing:
        raise DamagedFileError(f"CPU preset: {path} has no price for {', '.join(missing)}")
    return CpuModel(path.stem, user, kernel["per_request"], kernel["per_byte"], sources)
