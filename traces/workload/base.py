"""The contract of a workload: named runs of requests that vary one parameter of how a device is accessed.

The nine members that come with flashsim are the micro-benchmarks of uFLIP: Bouganim, Jónsson, Bonnet, "uFLIP: Understanding Flash IO
Patterns", CIDR 2009.  A run is declared by patterns; its requests follow from them and a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from flashsim.core import errors, rng, units
from flashsim.core.members import Family
from flashsim.core.request import READ, SECTOR, WRITE, Integers, Requests, make_requests

#: Sequential and random reads, random and sequential writes; writes last, sequential ones on areas of their own.
BASELINES = ("SR", "RR", "RW", "SW")
#: The least area, in requests of the baseline's size.
_LEAST_AREA = 128


@dataclass(frozen=True)
class WorkloadSpace:
    """Space and amount of a workload's requests.

    Raises
    ------
    InvalidParameterError
        An area of fewer than 128 requests, sizes that are no multiples of `least`, or no requests.
    """

    #: Bytes of the device that runs may touch, from its start.
    size: int
    #: Bytes of a request, unless a run varies them.
    block: int = 32 * units.KIB
    count: int = 1024
    #: The smallest request and shift that the device takes, bytes.
    least: int = SECTOR
    write: bool = True
    #: A few values of every parameter instead of all.
    quick: bool = False

    def __post_init__(self) -> None:
        if self.least < SECTOR or self.least % SECTOR:
            raise errors.InvalidParameterError("least", self.least, f"it must be a multiple of {SECTOR}")
        if self.block < self.least or self.block % self.least:
            raise errors.InvalidParameterError("block", units.format_size(self.block), f"it must be a multiple of {self.least} B")
        if self.size < _LEAST_AREA * self.block:
            bound = f"at least {units.format_size(_LEAST_AREA * self.block)} are needed ({_LEAST_AREA} requests)"
            raise errors.InvalidParameterError("size", units.format_size(self.size), bound)
        if self.count < 1:
            raise errors.InvalidParameterError("count", self.count, "it must be at least 1")

    def baselines(self, names: tuple[str, ...] = BASELINES) -> tuple[str, ...]:
        """The baseline patterns that may run here."""
        return names if self.write else tuple(name for name in names if "W" not in name)

    def pattern(self, name: str, number: int = 0, block: int = 0) -> Pattern:
        """A baseline pattern, in requests of `block` bytes (the setting's, if 0).

        Sequential writes of run `number` have an area of their own, so that the device's state stays as it is.
        """
        block = block or self.block
        operation = READ if name[1] == "R" else WRITE
        if name != "SW":
            return Pattern(operation, block, self.size // block * block, random=name[0] == "R")
        length = min(max(self.count, 2), self.size // 2 // block) * block
        return Pattern(operation, block, length, number % (self.size // length) * length)

    def doubles(self, first: int, last: int, quick: int = 4) -> list[int]:
        """`first`, its doubles up to `last`; of them every `quick`-th in a quick setting."""
        values = [first << power for power in range(max(1, (last // first).bit_length()))]
        return values[::quick] if self.quick else values


@dataclass(frozen=True)
class Pattern:
    """Offsets of the requests of one process (formulas of uFLIP, section 3)."""

    operation: int
    #: IOSize, bytes.
    size: int
    #: The area, bytes.
    target_size: int
    target_offset: int = 0
    #: Bytes that all requests are moved by.
    shift: int = 0
    #: Anywhere in the area on multiples of the size, instead of one after another.
    random: bool = False
    #: Requests from one to the next: 1 forwards, -1 backwards, 0 always the same place.
    increment: int = 1
    #: The area in so many parts, whose places are taken in turn.
    partitions: int = 1

    def offsets(self, count: int, random: np.random.Generator) -> Integers:
        """Byte offsets of `count` requests, shape (count,), all within the area."""
        places = (self.target_size - (self.size if self.shift else 0)) // self.size
        if places < self.partitions:
            bound = f"an area of {units.format_size(self.target_size)} has {places} places of {units.format_size(self.size)}"
            raise errors.InvalidParameterError("partitions", self.partitions, bound)
        index = np.arange(count, dtype=np.int64)
        if self.random:
            place = random.integers(0, places, count)
        elif self.partitions > 1:
            part = places // self.partitions
            place = index % self.partitions * part + index // self.partitions % part
        else:
            place = self.increment * index % places
        return self.target_offset + self.shift + place * self.size

    def part(self, number: int, parts: int) -> Pattern:
        """The workload in one of `parts` equal, contiguous areas."""
        length = self.target_size // self.size // parts * self.size
        return replace(self, target_size=length, target_offset=self.target_offset + number * length)


@dataclass(frozen=True)
class WorkloadRun:
    """One run: patterns, and how their requests follow each other; every process waits for its request before it sends the next."""

    #: The pattern's, such as ``"SR"`` or ``"SR/RW"``.
    name: str
    #: The value of the parameter that the workload varies.
    value: int
    #: One a process; or, with a `ratio`, two that one process mixes.
    patterns: tuple[Pattern, ...]
    count: int
    #: r of the first pattern for one of the second.
    ratio: int = 0
    #: Nanoseconds that a process waits after every `burst` requests.
    pause: int = 0
    burst: int = 1

    @property
    def writes(self) -> bool:
        """True if the run changes the device's state."""
        return any(pattern.operation == WRITE for pattern in self.patterns)

    def requests(self, seed: int) -> Requests:
        """The requests, dtype REQUEST, shape (count,); `stream` is the process, `dependency` its request before."""
        index = np.arange(self.count, dtype=np.int64)
        processes = 1 if self.ratio else len(self.patterns)
        owner = (index % (self.ratio + 1) == 0).astype(np.int64) if self.ratio else index % processes
        requests = make_requests(READ, np.zeros(self.count, np.int64), SECTOR)
        for number, pattern in enumerate(self.patterns):
            mine = owner == number
            random = rng.generator(seed, "workload", self.name, self.value, number)
            requests["operation"][mine], requests["length"][mine] = pattern.operation, pattern.size
            requests["offset"][mine] = pattern.offsets(int(mine.sum()), random)
        requests["stream"] = 0 if self.ratio else owner
        requests["dependency"] = np.where(index >= processes, index - processes, -1)
        requests["think"] = np.where((index >= processes) & (index // processes % self.burst == 0), self.pause, 0)
        return requests


class DeviceWorkload(Protocol):
    """A member of the family."""

    PARAMETER: str  # what it varies
    UNIT: str  # of that parameter: "bytes", "ns" or "count"

    def runs(self, setting: WorkloadSpace) -> Iterator[WorkloadRun]:
        """The runs in order: reads first, each value of the parameter from small to large."""


FAMILY = Family("traces.workload", "workload", DeviceWorkload)


def baseline_runs(setting: WorkloadSpace, values: list[int], names: tuple[str, ...] = BASELINES) -> Iterator[tuple[str, int, Pattern]]:
    """Name, value and baseline pattern of every run that varies one parameter of one process, reads first."""
    for name in setting.baselines(names):
        for number, value in enumerate(values):
            yield name, value, setting.pattern(name, number)
