"""Figures of a drive, and the loads that it was measured with."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.units import GB, KIB, MB, format_duration, format_size

#: Percentiles of latencies, by the names of their figures.
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
RATES = ("iops", "bandwidth")
#: The size of an SLC cache, where the rate of writes into an empty drive falls.
SLC_CACHE = "slc_cache"
FIGURES = (*RATES, "mean", *PERCENTILES, "write_amplification", SLC_CACHE)
#: The state in which an SLC cache has taken all that it can; and states of the drive before a load.
CACHE_FULL = "cache-full"
STATES = ("empty", "sequential", "steady", CACHE_FULL)
OPERATIONS = {"read": READ, "write": WRITE}


@dataclass(frozen=True)
class DriveLoad:
    """Requests that a drive was measured with: of one kind, or reads and writes mixed."""

    #: READ or WRITE; bytes of a request.
    operation: int
    size: int = 4 * KIB
    #: Places are drawn, otherwise they follow one another.
    random: bool = True
    #: Requests outstanding; each that completes is followed by another one.
    depth: int = 1
    #: State of the drive before: ``empty``, ``sequential`` (written once in order), or ``steady`` (after long random writes),
    #: ``cache-full`` (its SLC cache has taken all that it can).
    state: str = "sequential"
    #: Requests a second that arrive whether others are outstanding or not; 0: as `depth` says.
    rate: float = 0.0
    #: Share of the capacity that holds data.
    used: float = 1.0
    #: Share of reads among the requests, in drawn order, of a mixed load: its figures are of `operation` alone, its depth and
    #: its rate of all requests.  None: all requests are of `operation`.
    reads: float | None = None

    def __str__(self) -> str:
        words = f"{'random' if self.random else 'sequential'} {'write' if self.operation else 'read'} {format_size(self.size)}"
        words += f" at {self.rate:,.4g}/s" if self.rate else f" x {self.depth}"
        words += f", {self.reads:.0%} reads" if self.reads else ""
        words += f", {self.state}" if self.operation or self.state != "sequential" else ""
        return words + (f", {self.used:.0%} used" if self.used < 1 else "")


@dataclass(frozen=True)
class DriveFigure:
    """A figure of a drive under a load: requests or bytes a second of its operation, ns, or flash bytes over host bytes."""

    load: DriveLoad
    #: One of `FIGURES`; past a full SLC cache ``bandwidth`` alone.
    name: str
    value: float
    #: What it is beside the drive's own; nothing of most.
    note: str = ""

    @property
    def kind(self) -> str:
        """Figures of one kind: reads, writes or steady writes, or of a mixed load; a rate, a latency or the write amplification."""
        what = "rate" if self.name in RATES else "latency" if self.name not in ("write_amplification", SLC_CACHE) else self.name
        operation = "write" if self.load.operation else "read"
        return f"mixed {operation} {what}" if self.load.reads else f"{self.load.state if self.load.operation else 'read'} {what}"

    def show(self, value: float) -> str:
        if self.name == "bandwidth":
            return f"{value / MB:.4g} MB/s"
        if self.name in ("iops", "write_amplification"):
            return f"{value:,.4g}" if self.name == "iops" else f"{value:.3f}"
        if self.name == SLC_CACHE:
            return f"{value / GB:.4g} GB"
        return format_duration(round(value))


def check_load(values: Mapping[str, Any], where: str) -> DriveLoad:
    """The load of these values, or `InvalidParameterError`, whose message opens with where they stand."""
    load = DriveLoad(**values)
    for name, holds, bound in (
        ("size", load.size % SECTOR == 0 and 0 < load.size <= 64 * MB, f"a multiple of {SECTOR} B up to 64 MB is needed"),
        ("depth", load.depth == int(load.depth) and 1 <= load.depth <= 4096, "a whole number from 1 to 4096 is needed"),
        ("rate", load.rate >= 0, "it must be at least 0"),
        ("used", 0 < load.used <= 1, "a share above 0 and at most 1 is needed"),
        ("reads", load.reads is None or 0 < load.reads < 1, "a share above 0 and below 1 is needed"),
        (
            "state",
            not load.reads or load.state not in ("empty", CACHE_FULL),
            "a mixed load reads what was written before",
        ),
        (
            "state",
            load.state != CACHE_FULL or (load.operation == WRITE and not load.random and not load.rate),
            "only writes in order fill a cache",
        ),
    ):
        if not holds:
            raise InvalidParameterError(f"{where}: {name}", getattr(load, name), bound)
    return DriveLoad(**{**values, "depth": int(load.depth)})


def number(value: Any, where: str) -> float:
    """A finite number, or `InvalidParameterError`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameterError(where, repr(value), "a number is needed")
    return number
