"""CPU work of the paper's joins, by kind, counted by the algorithms themselves, without any device.

The counts of the calibration cells at scale 1 are committed beside this module, since counting them takes two minutes;
``python -m experiments.do2009.cpu_work`` counts them again and prints the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from algorithms.joins.base import JoinParameters, plan
from experiments.joining import lay_out
from flashsim.core.request import Completions, Requests
from flashsim.core.units import MIB
from flashsim.device.block_layer import command_counts
from flashsim.execution.requests import Work
from flashsim.execution.trace_only import trace_only
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.relation import Relation
from flashsim.storage.source import load_pair
from flashsim.storage.source.do2009 import KEYS, SEED, PaperRecords
from models.haas import Disk

JOINS = ("bnl", "sort-merge", "grace-hash", "hybrid-hash")
#: The calibration columns of table 3: buffer pools in the paper's MB.
MEMORY = (200, 500)
PAGE_SIZE = 8192
#: TPC-H's scale factor in section 4.2.
SCALE_FACTOR = 30
_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Counted:
    """What one run asks of the CPU.

    Parameters
    ----------
    work
        User work by kind.
    commands, bytes
        What the kernel handles: device commands of at most 128 KiB, and bytes.
    """

    work: Mapping[Work, int]
    commands: int
    bytes: int

    def as_dict(self) -> dict[str, int]:
        """JSON-ready."""
        return {kind.value: self.work[kind] for kind in Work if kind in self.work} | {"commands": self.commands, "bytes": self.bytes}

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Counted:
        """What `as_dict` gave."""
        return cls({Work(name): count for name, count in counts.items() if name not in ("commands", "bytes")}, counts["commands"], counts["bytes"])


def paper_disk(page_size: int) -> Disk:
    """The HDD of table 2, for which the paper divides its buffers."""
    return Disk.from_rates(12, 5.56, page_size, 34 * MIB)


class _Commands:
    """Counts the commands and bytes of requests."""

    def __init__(self) -> None:
        self.commands = 0
        self.bytes = 0

    def record(self, requests: Requests, completions: Completions | None, label: str) -> None:
        self.commands += int(command_counts(requests["length"]).sum())
        self.bytes += int(requests["length"].sum())

    def close(self) -> None:
        """Nothing to do."""


def count(join: str, memory: int, *, page_size: int = PAGE_SIZE, page_io: bool = False, scale: float = 1.0, seed: int = SEED) -> Counted:
    """Run a join without devices and count its work.

    Parameters
    ----------
    memory
        The buffer pool in the paper's MB, which are MiB; it shrinks with the scale.

    Raises
    ------
    InvalidParameterError
        Too little memory at this scale.
    """
    disk = paper_disk(page_size)
    pages = max(1, round(memory * scale * MIB / page_size))
    parameters = JoinParameters(pages, page_io, latency_ratio=disk.latency_ratio, access_ratio=disk.access_ratio)
    files = [lay_out(relation, page_size) for relation in _relations(scale, seed)]
    sink = _Commands()
    run = trace_only(plan(join, files[0], files[1], parameters), files, sink)
    return Counted(run.total().work, sink.commands, sink.bytes)


@lru_cache(maxsize=1)
def _relations(scale: float, seed: int) -> tuple[Relation, Relation]:
    customer, orders = (PaperRecords(name, SCALE_FACTOR * scale, seed) for name in ("customer", "orders"))
    return load_pair(customer, orders, KEYS["customer"], KEYS["orders"])


def temporary_pages(scale: float = 1.0, seed: int = SEED) -> list[int]:
    """Pages of temporary files that would hold all customers, and all orders: they are written full."""
    full: list[HeapFile] = [heap_file(relation, PAGE_SIZE) for relation in _relations(scale, seed)]
    return [file.pages for file in full]


def committed() -> dict[str, Any]:
    """The counts at scale 1: ``temporary_pages``, and by join and buffer pool (its MB as text) what `Counted.from_dict` reads."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def text() -> str:
    """The file of counts, counted anew."""
    lines = [
        "# Work of the four joins at scale 1 with the buffer pools of table 3's calibration columns (MB), and the pages of temporary files",
        "# that would hold each relation; printed by python -m experiments.do2009.cpu_work.",
        f"temporary_pages = {temporary_pages()}",
    ]
    for join in JOINS:
        for memory in MEMORY:
            lines += ["", f"[{join}.{memory}]", *(f"{name} = {value:_}" for name, value in count(join, memory).as_dict().items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")
