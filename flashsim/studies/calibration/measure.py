"""Measures the cells of a calibration: warm-up left out, repeated in shuffled order, summarised with their confidence.

A visit to a cell is one call as warm-up and some that count; every round visits each cell once, in an order of its own, so that a slow
drift of the device meets all cells alike.  What a cell shows is the mean of the lower half of its samples: what others do on the machine
only ever adds to a time, and may add to many.  It is smoother than a median, and simulated samples are summarised alike.  Its confidence
comes from drawing whole visits anew, as the samples of one visit share their circumstances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashsim.core.protocols import Progress
from flashsim.core.request import Completions, Requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.studies.bench.targets import Target
from flashsim.studies.calibration.cells import CalibrationCell

Floats = npt.NDArray[np.float64]

#: Rounds after the first, which only tells how long each cell takes.
ROUNDS = 5
#: Calls of a visit that count, at most.
_MOST_CALLS = 64
_RESAMPLES = 200


@dataclass(frozen=True)
class Measured:
    """What a device showed in one cell.

    Parameters
    ----------
    visits
        The samples (ns) of each visit: of each request, if it is alone on the device; otherwise from submission of a batch to the
        completion of its last request.
    latencies
        The median time of a single request, ns.
    """

    cell: CalibrationCell
    visits: list[Floats]
    latency: float

    @property
    def time(self) -> float:
        """The mean of the lower half of the samples, ns."""
        return undisturbed(np.concatenate(self.visits))

    @property
    def bandwidth(self) -> float:
        return self.cell.batch_bytes * SECONDS / self.time

    def resampled(self, seed: int) -> Floats:
        """What `time` is when visits are drawn anew, shape (200,)."""
        random = generator(seed, "resampled", self.cell.name)
        draws = random.integers(0, len(self.visits), (_RESAMPLES, len(self.visits)))
        return np.array([undisturbed(np.concatenate([self.visits[visit] for visit in draw])) for draw in draws])

    def interval(self, seed: int) -> tuple[float, float]:
        """The 95 % interval of `time`, ns."""
        low, high = np.percentile(self.resampled(seed), [2.5, 97.5])
        return float(low), float(high)

    @property
    def noise(self) -> float:
        """The spread between visits: the standard deviation of what each shows, over what all do."""
        return float(np.std([undisturbed(visit) for visit in self.visits]) / self.time)


def undisturbed(values: Floats) -> float:
    """The mean of the lower half.

    Examples
    --------
    >>> undisturbed(np.array([2.0, 1.0, 4.0, 1000.0]))
    1.5
    """
    return float(np.sort(values)[: -(-len(values) // 2)].mean())


def samples(cell: CalibrationCell, completions: Completions) -> Floats:
    """The samples of one call, ns: see `Measured`.  A chain of requests of several sizes counts as one sample, its mean."""
    if cell.depth > 1:
        return np.array([completions["completed"].max() - completions["submitted"].min()], np.float64)
    times = (completions["completed"] - completions["submitted"]).astype(np.float64)
    return times if len(cell.sizes) == 1 else times.mean(keepdims=True)


def measure(
    target: Target, cells: Sequence[CalibrationCell], time: int, seed: int, progress: Progress | None = None, rounds: int = ROUNDS
) -> list[Measured]:
    """Measure all cells within about `time` ns of the device's own time (a simulated drive's is virtual)."""
    clock = _Clock(target)
    pilot = [clock.serve(cell.requests(target.size, seed, -1, index))[1] for index, cell in enumerate(cells)]
    share = time / (rounds * len(cells))
    calls = [int(np.clip(share / taken, 1, _MOST_CALLS)) for taken in pilot]
    visits: list[list[Floats]] = [[] for _ in cells]
    latencies: list[list[Floats]] = [[] for _ in cells]
    order = generator(seed, "order")
    for number in range(rounds):
        for place, index in enumerate(order.permutation(len(cells))):
            cell = cells[index]
            if progress:
                progress(number * len(cells) + place, rounds * len(cells), cell.name)
            todo = [cell.requests(target.size, seed, number, call) for call in range(-1, calls[index])]
            done = [clock.serve(requests)[0] for requests in todo][1:]
            visits[index].append(np.concatenate([samples(cell, completions) for completions in done]))
            latencies[index].append(np.concatenate([completions["completed"] - completions["submitted"] for completions in done]))
    medians = [float(np.median(np.concatenate(found))) for found in latencies]
    return [Measured(cell, found, latency) for cell, found, latency in zip(cells, visits, medians, strict=True)]


class _Clock:
    """Tells how long each call took by the device's own clock, pauses between the calls included."""

    def __init__(self, target: Target) -> None:
        self.target, self._last = target, 0

    def serve(self, requests: Requests) -> tuple[Completions, int]:
        completions = self.target.measure(requests, 0)
        end = int(completions["completed"].max())
        taken = end - (self._last or int(completions["submitted"].min()))
        self._last = end
        return completions, max(1, taken)
