"""CPU work of the paper's joins, by kind, counted by the algorithms themselves, without any device.

The counts of the calibration cells at scale 1 are committed beside this module, since counting them takes two minutes;
``python -m flashsim.literature.do2009.cpu_work`` counts them again and prints the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algorithms.joins.base import JoinParameters, plan
from flashsim.core.protocols import Label
from flashsim.core.request import Completions, Requests
from flashsim.core.units import MIB
from flashsim.device.block_layer import command_counts
from flashsim.execution.drivers import run
from flashsim.execution.requests import Work
from flashsim.literature.do2009.runs import JOINS, PAGE_SIZE, relations
from flashsim.storage.heap_file import heap_file
from flashsim.storage.source.do2009 import SEED
from flashsim.studies.runs.joining import lay_out

#: The calibration columns of table 3: buffer pools in the paper's MB.
CALIBRATION_MEMORY = (200, 500)
FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Counted:
    """CPU work of one run.

    Parameters
    ----------
    work
        User work by kind.
    commands, bytes
        What the kernel handles: device commands of at most 128 KiB, and bytes.
    """

    work: Mapping[str, int]
    commands: int
    bytes: int

    def as_dict(self) -> dict[str, int]:
        return {kind.value: self.work[kind] for kind in Work if kind in self.work} | {"commands": self.commands, "bytes": self.bytes}

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Counted:
        """The inverse of `as_dict`."""
        return cls(
            {Work(name): count for name, count in counts.items() if name not in ("commands", "bytes")}, counts["commands"], counts["bytes"]
        )


class _Commands:
    """Counts the commands and bytes of requests."""

    def __init__(self) -> None:
        self.commands = 0
        self.bytes = 0

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        self.commands += int(command_counts(requests["length"]).sum())
        self.bytes += int(requests["length"].sum())

    def close(self) -> None:
        """Nothing to do."""


def count(join: str, memory: int, scale: float = 1.0, seed: int = SEED) -> Counted:
    """Run a join without devices and count its work: pages of 8 KiB, whole blocks, buffers as the paper divides them.

    Parameters
    ----------
    memory
        The buffer pool in the paper's MB, which are MiB; it shrinks with the scale.

    Raises
    ------
    InvalidParameterError
        Too little memory at this scale.
    """
    r, s = (lay_out(relation, PAGE_SIZE) for relation in relations(scale, seed))
    sink = _Commands()
    parameters = JoinParameters(round(memory * scale * MIB / PAGE_SIZE))
    (cost,) = run(lambda: plan(join, r, s, parameters), [r, s], sink=sink)
    return Counted(cost.total().work, sink.commands, sink.bytes)


def temporary_pages(scale: float = 1.0, seed: int = SEED) -> list[int]:
    """Pages of temporary files that would hold all customers, and all orders: they are written full."""
    return [heap_file(relation, PAGE_SIZE).pages for relation in relations(scale, seed)]


def committed() -> dict[str, Any]:
    """The counts at scale 1: ``temporary_pages``, and by join and buffer pool (its MB as text) what `Counted.from_dict` reads."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def text() -> str:
    lines = [
        "# Work of the four joins at scale 1 with the buffer pools of table 3's calibration columns (MB), and the pages of temporary files",
        "# that would hold each relation; printed by python -m flashsim.literature.do2009.cpu_work.",
        f"temporary_pages = {temporary_pages()}",
    ]
    for join in JOINS:
        for memory in CALIBRATION_MEMORY:
            lines += ["", f"[{join}.{memory}]", *(f"{name} = {value:_}" for name, value in count(join, memory).as_dict().items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")
