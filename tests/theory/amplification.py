"""Write amplification of one simulated drive in batches of writes, with the formula's answer beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from flashsim.core.request import WRITE, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.testing.flash_drives import PAGE, drive, serve_all
from models.write_amplification import d_choices, fifo, fifo_hot_cold, greedy, greedy_hot_cold, random

RESERVE = 2
#: A batch is so many writes of the whole drive: neighbours then hardly depend on each other.
BATCH = 2


@dataclass(frozen=True)
class Trial:
    """One policy on one drive under one kind of traffic: uniform, or the share `hot_writes` of writes to the share `hot_data` of pages."""

    gc: str
    alpha: float
    pages_per_block: int
    choices: int = 1
    hot_writes: float = 0.0
    hot_data: float = 0.0

    @property
    def label(self) -> str:
        """Policy and traffic."""
        policy = f"{self.gc}, d = {self.choices}" if self.gc == "d-choices" else self.gc
        return f"{policy}, {self.hot_writes:.0%} to {self.hot_data:.0%}" if self.hot_writes else policy

    def __str__(self) -> str:
        """As tests name it."""
        return f"{self.label}, alpha {self.alpha}, {self.pages_per_block} pages"

    @property
    def tolerance(self) -> float:
        """How far a simulation may be from the formula: the mean field of d choices is exact for large drives, the others approximate."""
        if self.hot_writes:
            return 0.03
        return 0.005 if self.gc == "d-choices" else 0.01

    def parameters(self, blocks: int) -> SsdParameters:
        """A drive of one die with so many blocks outside the reserve."""
        logical = round(blocks * self.pages_per_block / self.alpha)
        return drive(
            capacity=logical * PAGE, channels=1, blocks_per_plane=blocks + RESERVE, pages_per_block=self.pages_per_block,
            gc_reserve=RESERVE, queue_depth=1, gc=self.gc, gc_choices=self.choices,
        )  # fmt: skip

    def predicted(self, alpha: float) -> float:
        """What the formula says of a drive with exactly this alpha."""
        if self.hot_writes and self.gc == "fifo":
            return fifo_hot_cold(alpha, self.hot_writes, self.hot_data)
        if self.hot_writes:
            return greedy_hot_cold(alpha, self.hot_writes, self.hot_data, self.pages_per_block)
        if self.gc == "fifo":
            return fifo(alpha)
        if self.gc == "greedy":
            return greedy(alpha, self.pages_per_block)
        return random(alpha) if self.gc == "random" else d_choices(alpha, self.pages_per_block, self.choices).write_amplification

    def run_length(self, blocks: int) -> int:
        """Writes of the whole drive to measure over, a multiple of BATCH.

        With victims of valid share v, A = 1 / (1 - v); n victims chosen blindly and independently of each other give it a relative
        standard error of A sigma / sqrt n, which is to be a fifth of the tolerance.  Policies that look for empty blocks need less than
        the least, four batches.
        """
        least = 4 * BATCH
        if self.gc not in ("random", "d-choices"):
            return least
        steady = d_choices(self.alpha, self.pages_per_block, self.choices)
        share = np.arange(self.pages_per_block + 1) / self.pages_per_block
        sigma = math.sqrt(steady.victims @ share**2 - (steady.victims @ share) ** 2)
        victims = (steady.write_amplification * sigma / (self.tolerance / 5)) ** 2
        victims_a_batch = BATCH * steady.write_amplification * blocks / self.alpha
        return max(least, BATCH * math.ceil(victims / victims_a_batch))


@dataclass(frozen=True)
class Amplification:
    """Write amplification of successive batches of equally many writes, in steady state, and the formula's."""

    batches: npt.NDArray[np.float64]
    predicted: float

    @cached_property
    def mean(self) -> float:
        """Flash pages programmed over host pages written, over all batches."""
        return float(self.batches.mean())

    @cached_property
    def half_width(self) -> float:
        """Half the width of the mean's 95 % confidence interval."""
        count = len(self.batches)
        return float(student.ppf(0.975, count - 1) * self.batches.std(ddof=1) / math.sqrt(count))

    @property
    def error(self) -> float:
        """The mean's relative distance from the formula."""
        return self.mean / self.predicted - 1

    @property
    def drift(self) -> float:
        """Difference of the means of the later and the earlier half, in units of the widest that chance explains but once in a thousand."""
        halves = np.array_split(self.batches, 2)
        freedom = len(self.batches) - 2
        variance = sum(float(((half - half.mean()) ** 2).sum()) for half in halves) / freedom
        widest = student.ppf(0.9995, freedom) * math.sqrt(variance * sum(1 / len(half) for half in halves))
        return float((halves[1].mean() - halves[0].mean()) / widest)


def overwrites(cell: Trial, logical: int, count: int) -> Integers:
    """Pages to write; hot pages lie spread over the drive."""
    numbers = generator(1, "overwrites", cell)
    if not cell.hot_writes:
        return numbers.integers(0, logical, count)
    order, size = numbers.permutation(logical), round(cell.hot_data * logical)
    is_hot = numbers.random(count) < cell.hot_writes
    return order[np.where(is_hot, numbers.integers(0, size, count), numbers.integers(size, logical, count))]


def simulated(cell: Trial, blocks: int, warm_up: int = 4, measured: int | None = None) -> Amplification:
    """Fill a drive in order, overwrite it `warm_up` times over and measure from then on, by default for the cell's run length.

    After three overwrites no batch differs from later ones by more than chance; a plain fill starts 4 to 13 % too low.
    """
    parameters = cell.parameters(blocks)
    length = cell.run_length(blocks) if measured is None else measured
    engine = SsdEngine(parameters)
    engine.load(0, parameters.capacity)
    pages = overwrites(cell, parameters.logical_pages, (warm_up + length) * parameters.logical_pages)
    counters = []
    for batch in np.split(pages, range(warm_up * parameters.logical_pages, len(pages), BATCH * parameters.logical_pages)):
        serve_all(engine, make_requests(WRITE, batch * PAGE, PAGE), engine.now)
        counters.append([engine.statistics()[name] for name in ("flash_programs", "host_writes")])
    programs, writes = np.diff(np.array(counters), axis=0).T
    return Amplification(programs / writes, cell.predicted(1 + parameters.effective_overprovisioning))
