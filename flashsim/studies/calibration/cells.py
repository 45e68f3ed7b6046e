"""The cells of a calibration: which requests are sent, how large, how many at once and in which order, and the times that they take.

A visit to a cell is one call as warm-up and some that count; every round visits each cell once, in an order of its own, so that a slow
drift of the device meets all cells alike.  A cell's time is the mean of the lower half of its samples: what others do on the machine
only ever adds to a time, and may add to many.  It is smoother than a median, and simulated samples are summarised alike.  Its confidence
comes from drawing whole visits anew, as the samples of one visit share their circumstances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE, Completions, Requests, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MIB, SECONDS, format_size
from flashsim.studies.bench.targets import Target

Floats = npt.NDArray[np.float64]

#: Requests of one at a time are sent in chains of so many at most, and of so many bytes; each is a sample of its own.
_CHAIN, _CHAIN_BYTES = 8, MIB


@dataclass(frozen=True)
class CalibrationCell:
    """A kind of requests of a calibration."""

    #: READ or WRITE.
    operation: int
    #: Bytes of a request; of several sizes a batch has each as often, in random order.
    sizes: tuple[int, ...]
    #: Requests that are submitted at once and then waited for, all of them (a batch); 1: each waits for the one before it.
    depth: int = 1
    #: Requests follow one another in the address space; otherwise they lie at random places.
    sequential: bool = False
    #: The fit does not see the cell, which judges the prediction.
    held_out: bool = False

    @property
    def name(self) -> str:
        """The cell in words, such as ``random read 4 KiB x 16``."""
        sizes = " + ".join(format_size(size) for size in self.sizes)
        return f"{'sequential' if self.sequential else 'random'} {OPERATIONS[self.operation]} {sizes} x {self.depth}"

    @property
    def batch_bytes(self) -> float:
        return float(np.mean(self.sizes)) * self.depth

    @property
    def chain(self) -> int:
        if self.depth > 1:
            return 1
        return _CHAIN if len(self.sizes) > 1 else max(1, min(_CHAIN, _CHAIN_BYTES // self.sizes[0]))

    def requests(self, area: int, seed: int, *visit: int) -> Requests:
        """Requests of a call within the first `area` bytes: a batch, or a chain of `chain` requests each waiting for the one before."""
        random = generator(seed, "calibration", self.name, *visit)
        count = self.depth * self.chain
        lengths = random.permutation(np.resize(np.array(self.sizes, np.int64), count))
        if self.sequential:
            first = int(random.integers(0, (area - int(lengths.sum())) // max(self.sizes) + 1)) * max(self.sizes)
            offsets = first + np.cumsum(lengths) - lengths
        else:
            offsets = random.integers(0, area // lengths) * lengths
        return make_requests(self.operation, offsets, lengths, serial=self.depth == 1)


#: Sizes and depths that the fit sees: (size, depths).  The product is at most 8 MiB, so that a batch takes no seconds.
_FITTED = ((4 * KIB, (1, 4, 16, 64)), (16 * KIB, (1, 8, 64)), (64 * KIB, (1, 4, 16)), (256 * KIB, (1, 8)), (MIB, (1, 8)), (4 * MIB, (1,)))
#: Sizes of sequential requests, one at a time: the operating system would merge several.
_SEQUENTIAL = (4 * KIB, 64 * KIB, MIB)
#: A page, and blocks as a join's.
_MIX = (8 * KIB, 32 * KIB, 64 * KIB, 256 * KIB)
#: Sizes and depths of cells that judge the prediction: others than the fit's, and the mix.
_HELD_OUT = (((8 * KIB,), (1, 8)), ((32 * KIB,), (1, 32)), ((128 * KIB,), (1, 4)), ((512 * KIB,), (2,)), (_MIX, (1, 8)))


def cells(least: int, write: bool) -> list[CalibrationCell]:
    """All cells of a device whose requests are multiples of `least` bytes."""
    # smaller writes are a matter of the flash page's size, which is assumed
    every = [CalibrationCell(READ, (least,))] if least < 4 * KIB else []
    for operation in (READ, WRITE) if write else (READ,):
        every += [CalibrationCell(operation, (size,), depth) for size, depths in _FITTED for depth in depths]
        every += [CalibrationCell(operation, (size,), sequential=True) for size in _SEQUENTIAL]
        every += [CalibrationCell(operation, sizes, depth, held_out=True) for sizes, depths in _HELD_OUT for depth in depths]
    return every


#: Rounds after the first, which only tells how long each cell takes.
ROUNDS = 5
#: Calls of a visit that count, at most.
_MOST_CALLS = 64
_RESAMPLES = 200


@dataclass(frozen=True)
class CellTimes:
    """The times of one cell on a device."""

    cell: CalibrationCell
    #: The samples (ns) of each visit: of each request, if it is alone on the device; otherwise from submission of a batch to the completion
    #: of its last request.
    visits: list[Floats]
    #: The median time of a single request, ns.
    latency: float

    @property
    def time(self) -> float:
        """The mean of the lower half of the samples, ns."""
        return undisturbed_time(np.concatenate(self.visits))

    @property
    def bandwidth(self) -> float:
        return self.cell.batch_bytes * SECONDS / self.time

    def resampled(self, seed: int) -> Floats:
        """`time` when visits are drawn anew, shape (200,)."""
        random = generator(seed, "resampled", self.cell.name)
        draws = random.integers(0, len(self.visits), (_RESAMPLES, len(self.visits)))
        return np.array([undisturbed_time(np.concatenate([self.visits[visit] for visit in draw])) for draw in draws])

    def interval(self, seed: int) -> tuple[float, float]:
        low, high = np.percentile(self.resampled(seed), [2.5, 97.5])
        return float(low), float(high)

    @property
    def noise(self) -> float:
        """The spread between visits: the standard deviation of the time that each shows, over that of all."""
        return float(np.std([undisturbed_time(visit) for visit in self.visits]) / self.time)


def undisturbed_time(values: Floats) -> float:
    """The mean of the lower half.

    Examples
    --------
    >>> undisturbed_time(np.array([2.0, 1.0, 4.0, 1000.0]))
    1.5
    """
    return float(np.sort(values)[: -(-len(values) // 2)].mean())


def samples(cell: CalibrationCell, completions: Completions) -> Floats:
    """The samples of one call, ns: see `CellTimes`.  A chain of requests of several sizes counts as one sample, its mean."""
    if cell.depth > 1:
        return np.array([completions["completed"].max() - completions["submitted"].min()], np.float64)
    times = response_times(completions).astype(np.float64)
    return times if len(cell.sizes) == 1 else times.mean(keepdims=True)


def measure(
    target: Target, cells: Sequence[CalibrationCell], time: int, seed: int, progress: Progress | None = None, rounds: int = ROUNDS
) -> list[CellTimes]:
    """Measure all cells within about `time` ns of the device's own time (a simulated drive's is virtual)."""
    ends = [0]
    share, calls = time / (rounds * len(cells)), []
    for index, cell in enumerate(cells):  # the first round: how long a call takes, pauses between calls included
        completions = target.measure(cell.requests(target.size, seed, -1, index), 0)
        ends.append(int(completions["completed"].max()))
        duration = ends[-1] - (ends[-2] or int(completions["submitted"].min()))
        calls.append(int(np.clip(share / max(1, duration), 1, _MOST_CALLS)))
    visits: list[list[Floats]] = [[] for _ in cells]
    latencies: list[list[Floats]] = [[] for _ in cells]
    order = generator(seed, "order")
    for number in range(rounds):
        for place, index in enumerate(order.permutation(len(cells))):
            cell = cells[index]
            if progress:
                progress(number * len(cells) + place, rounds * len(cells), cell.name)
            requests = [cell.requests(target.size, seed, number, call) for call in range(-1, calls[index])]
            calls_made = [target.measure(each, 0) for each in requests][1:]
            visits[index].append(np.concatenate([samples(cell, completions) for completions in calls_made]))
            latencies[index] += map(response_times, calls_made)
    medians = [float(np.median(np.concatenate(times))) for times in latencies]
    return [CellTimes(cell, own, median) for cell, own, median in zip(cells, visits, medians, strict=True)]
