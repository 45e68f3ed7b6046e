"""The problem of dividing the buffers of a join on a drive, and the prices of its requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flashsim.core.errors import UnknownNameError
from models.allocation.buffers import Allocation, GraceAllocation, HybridAllocation, exact
from models.join_costs.base import Sizes, allocate
from models.ssd_drive import Drive, Timing
from models.ssd_joins import JOINS, DetailedCost, Layout, detailed_cost

#: Margin of the largest bucket over its share, as a share of memory, since hashing spreads tuples by chance.
SPREAD = 0.02


@dataclass(frozen=True)
class Problem:
    """A join on a drive whose buffers are to be divided."""

    algorithm: str  #: One of `models.ssd_joins.JOINS`.
    #: Relations, temporaries and memory, in pages.
    sizes: Sizes
    drive: Drive
    layout: Layout = "packed"  #: See `models.ssd_joins.Layout`.

    def __post_init__(self) -> None:
        if self.algorithm not in JOINS:
            raise UnknownNameError("algorithm", self.algorithm, JOINS)
        self.fallback()

    def fallback(self) -> Allocation:
        """A division by Haas et al. that fits where the rules here find none, in hardly any memory; refuses too little, with the bound."""
        return allocate(self.algorithm, self.sizes.r, self.sizes.s, self.sizes.memory, 1, 2, self.sizes.fudge)

    def cost(self, allocation: Allocation) -> DetailedCost:
        return detailed_cost(self.algorithm, self.sizes, self.drive, allocation, self.layout)

    def least(self, candidates: Iterable[Allocation]) -> DetailedCost:
        """The cheapest of some allocations, with input buffers as they are or cut down to whole commands."""
        divisions = list(candidates) or [self.fallback()]
        return min((self.cost(each) for division in divisions for each in self._trimmed(division)), key=lambda join: join.seconds)

    def _trimmed(self, allocation: Allocation) -> Iterator[Allocation]:
        yield allocation
        names = [name for name in ("inner", "input", "phase2_input") if getattr(allocation, name, 0) > self.command]
        if names:
            cut: dict[str, Any] = {name: self.whole(getattr(allocation, name)) for name in names}
            yield replace(allocation, **cut)
        if isinstance(allocation, (GraceAllocation, HybridAllocation)) and allocation.phase2_input > allocation.output > 0:
            # Buckets are read back in whole pieces.
            yield replace(allocation, phase2_input=allocation.phase2_input // allocation.output * allocation.output)

    @property
    def command(self) -> int:
        return self.drive.command_pages

    def whole(self, pages: float) -> int:
        """Length of at least one page; above a command, of whole commands."""
        return max(1, math.ceil(pages)) if pages <= self.command else int(pages // self.command) * self.command

    def rounded(self, pages: float) -> set[int]:
        """Whole commands, no more and no fewer pages than that, also with a quicker command at their end; up to a command, whole pages."""
        sizes = {self.whole(pages)}
        if pages > self.command:
            sizes |= {math.ceil(pages), self.whole(pages + self.command)}
        if self.quicker:
            sizes |= {length + more for length in sizes if length >= self.command for more in (self.quicker - self.command, self.quicker)}
        return sizes

    @property
    def quicker(self) -> int:
        """The length of command that waits least for a page, if a shorter one does than a whole one; else 0."""
        rounds, once = self.drive.rounds, self.drive.write.command_ms
        if not rounds.rotation_ms:
            return 0
        best = min(range(self.command, 0, -1), key=lambda pages: (once + rounds(pages)) / pages)
        return best if best < self.command else 0

    @property
    def table(self) -> Fraction:
        return max(1, self.sizes.r) * exact(self.sizes.fudge)

    @property
    def reserve(self) -> int:
        """Pages of the second phase that are left for input: a command, and what chance may add to a bucket."""
        return min(max(1, self.sizes.memory // 4), self.command + math.ceil(SPREAD * self.sizes.memory))

    def second_page(self) -> tuple[float, float]:
        """Milliseconds a page of reading and of writing in requests of many commands."""
        read, write = self.drive.read, self.drive.write
        rounds = self.drive.rounds(self.command)
        return read.page_ms + read.command_ms / self.command, write.page_ms + (write.command_ms + rounds) / self.command


@dataclass(frozen=True)
class RequestPrice:
    """Price of a request besides its pages: once if it is long, and how much more if it is one command."""

    start: float
    command: float

    @classmethod
    def of(cls, timing: Timing, rounds: float = 0.0) -> RequestPrice:
        """The price in one direction, where a command also waits for the platter."""
        return cls(timing.start_ms + timing.several_ms, timing.command_ms + rounds - timing.several_ms)

    @property
    def first(self) -> float:
        return self.start + self.command

    def dearer(self, ms: float) -> RequestPrice:
        return replace(self, start=self.start + ms)
