"""What CPU work costs: algorithms count it by kind, a preset prices it, drivers add the kernel's time for every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flashsim.core.errors import DamagedFileError
from flashsim.core.preset_files import PresetFolder
from flashsim.core.request import Integers
from flashsim.execution.requests import Work

_FOLDER = PresetFolder(Path(__file__).parent / "cpu_presets", "CPU preset")


@dataclass(frozen=True)
class CpuModel:
    """Prices, in nanoseconds.

    Parameters
    ----------
    user
        A unit of each kind of work.
    per_request, per_byte
        Kernel time of a device command and of a byte moved, by kind of device.
    sources
        Where each price comes from, by its name in the preset file.
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


def names() -> list[str]:
    """The CPU presets that come with flashsim, sorted."""
    return _FOLDER.names()


def load(name: str) -> CpuModel:
    """The CPU preset of that name, or in the TOML file at that path.

    Raises
    ------
    UnknownNameError
        No preset has that name, or the file prices an unknown kind of work.
    MissingFileError, DamagedFileError
        The file does not exist, or is not a CPU preset.
    """
    path, document = _FOLDER.read(name)
    try:
        user = {Work(kind): float(entry["nanoseconds"]) for kind, entry in document["user"].items()}
        kernel = document["kernel"]
        per_request = {kind: float(kernel[kind]["per_request"]["nanoseconds"]) for kind in ("hdd", "ssd")}
        per_byte = {kind: float(kernel[kind]["per_byte"]["nanoseconds"]) for kind in ("hdd", "ssd")}
    except (KeyError, TypeError, ValueError) as problem:
        raise DamagedFileError(f"CPU preset: {path} lacks or misspells {problem}") from problem
    missing = [kind.value for kind in Work if kind not in user]
    if missing:
        raise DamagedFileError(f"CPU preset: {path} has no price for {', '.join(missing)}")
    sources = {f"user.{kind}": str(entry.get("source", "")) for kind, entry in document["user"].items()}
    for kind in ("hdd", "ssd"):
        sources |= {f"kernel.{kind}.{part}": str(kernel[kind][part].get("source", "")) for part in ("per_request", "per_byte")}
    return CpuModel(path.stem, user, per_request, per_byte, sources)
