"""The cells of a calibration: which requests are sent, how large, how many at once and in which order; their times, and fits to them.

A visit to a cell is one call as warm-up and some that count; every round visits each cell once, in an order of its own, so that a slow
drift of the device meets all cells alike.  A cell's time is the mean of the lower half of its samples: what others do on the machine
only ever adds to a time, and may add to many.  It is smoother than a median, and simulated samples are summarised alike.  Its confidence
comes from drawing whole visits anew, as the samples of one visit share their circumstances.

A fit of a drive of either kind is one of least squares on logarithms, each fitted parameter with its confidence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.stats import t as student

from flashsim.core.protocols import Progress
from flashsim.core.request import OPERATIONS, READ, WRITE, Completions, Requests, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import KIB, MB, MIB, SECONDS, format_duration, format_size
from flashsim.experiments.bench.targets import Target
from flashsim.hdd.parameters import HddParameters
from flashsim.ssd.parameters import SsdParameters

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
_ROUNDS = 5
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

    def resample(self, seed: int) -> Floats:
        """`time` when visits are drawn anew, shape (200,)."""
        random = generator(seed, "resampled", self.cell.name)
        draws = random.integers(0, len(self.visits), (_RESAMPLES, len(self.visits)))
        return np.array([undisturbed_time(np.concatenate([self.visits[visit] for visit in draw])) for draw in draws])

    def interval(self, seed: int) -> tuple[float, float]:
        low, high = np.percentile(self.resample(seed), [2.5, 97.5])
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


def measure(target: Target, cells: Sequence[CalibrationCell], time: int, seed: int, progress: Progress | None = None) -> list[CellTimes]:
    """Measure all cells within about `time` ns of the device's own time (a simulated drive's is virtual)."""
    ends = [0]
    share, calls = time / (_ROUNDS * len(cells)), []
    for index, cell in enumerate(cells):  # the first round: how long a call takes, pauses between calls included
        completions = target.measure(cell.requests(target.size, seed, -1, index), 0)
        ends.append(int(completions["completed"].max()))
        duration = ends[-1] - (ends[-2] or int(completions["submitted"].min()))
        calls.append(int(np.clip(share / max(1, duration), 1, _MOST_CALLS)))
    visits: list[list[Floats]] = [[] for _ in cells]
    latencies: list[list[Floats]] = [[] for _ in cells]
    order = generator(seed, "order")
    for number in range(_ROUNDS):
        for place, index in enumerate(order.permutation(len(cells))):
            cell = cells[index]
            if progress:
                progress(number * len(cells) + place, _ROUNDS * len(cells), cell.name)
            requests = [cell.requests(target.size, seed, number, call) for call in range(-1, calls[index])]
            calls_made = [target.measure(each, 0) for each in requests][1:]
            visits[index].append(np.concatenate([samples(cell, completions) for completions in calls_made]))
            latencies[index] += map(response_times, calls_made)
    medians = [float(np.median(np.concatenate(times))) for times in latencies]
    return [CellTimes(cell, own, median) for cell, own, median in zip(cells, visits, medians, strict=True)]


#: Times of all cells (ns) for some parameters.
Model = Callable[[Floats], Floats]

#: An interval that reaches this far, as a factor, says that the measurements do not determine the parameter.
UNKNOWN = 10.0
#: A step of the numerical derivatives, in logarithms: larger than what whole nanoseconds and drawn places make uneven.
STEP = 0.02
#: Sensitivity of all figures together below which a parameter, or some together, are taken for unknown.
_FLAT = 1e-6
#: Residuals (logarithms) beyond which a cell counts less: cells that the model cannot show must not spoil the others.
_OUTLIER = 0.5


@dataclass(frozen=True)
class Estimate:
    """A fitted parameter: its value and the 95 % interval, in ns or bytes a second, a share or a number."""

    name: str
    value: float
    low: float
    high: float

    @property
    def unknown(self) -> bool:
        """True where what was measured does not determine the parameter."""
        return self.high >= self.value * UNKNOWN * 0.99

    @property
    def relative(self) -> float:
        return (self.high - self.low) / (2 * self.value) if self.value else 0.0

    def __str__(self) -> str:
        value, low, high = map(self._show, (self.value, self.low, self.high))
        return f"{self.name} {value}, 95 % interval {low} to {high}"

    def _show(self, value: float) -> str:
        if "rate" in self.name:
            return f"{value / MB:.4g} MB/s"
        if "pages" in self.name or "spread" in self.name:
            return f"{value:.3g}"
        return f"{value:.3%}" if "share" in self.name else format_duration(round(value))


@dataclass(frozen=True)
class Fit:
    """A fitted drive: its parameters, the source of each value, the estimates among them, and sentences on what was found besides."""

    parameters: SsdParameters | HddParameters
    sources: Mapping[str, str]
    estimates: list[Estimate]
    findings: list[str]


@dataclass(frozen=True)
class Solution:
    """Parameters by least squares, and the residual of each cell's logarithm."""

    values: Floats
    residuals: Floats

    @property
    def cost(self) -> float:
        return cost(self.residuals)


def cost(residuals: Floats) -> float:
    """The mean square of residuals; those of outliers count little more than linearly."""
    return float(np.mean(2 * _OUTLIER**2 * (np.sqrt(1 + (residuals / _OUTLIER) ** 2) - 1)))


def solve(
    model: Model, times: Floats, starts: Sequence[Sequence[Floats]], low: Floats, high: Floats, steps: int, step: Floats | float = STEP
) -> Solution:
    """Find the positive parameters whose model times (ns, one a cell) are nearest to the measured ones, by their logarithms.

    The search takes at most `steps` steps from the best of each group of `starts`; `step` is that of the derivatives, in logarithms.
    """
    bounds = (np.log(low), np.log(high))

    def residuals(logs: Floats) -> Floats:
        difference: Floats = np.log(model(np.exp(logs)) / times)
        return difference

    def search(start: Floats) -> Solution:
        solution = least_squares(
            residuals,
            np.clip(start, bounds[0] + 1e-6, bounds[1] - 1e-6),
            bounds=bounds,
            x_scale=1.0,
            diff_step=step / np.maximum(1e-3, np.abs(start)),
            loss="soft_l1",
            f_scale=_OUTLIER,
            max_nfev=steps,
        )
        return Solution(np.exp(solution.x), solution.fun)

    begins = [min(np.log(group), key=lambda logs: cost(residuals(logs))) if len(group) > 1 else np.log(group[0]) for group in starts]
    return min((search(start) for start in begins), key=lambda one: one.cost)


def estimates(
    names: Sequence[str],
    model: Model,
    solution: Solution,
    times: Floats,
    draws: Floats,
    step: Floats | float = STEP,
    known: float = 0.0,
    ways: Sequence[int] = (1,),
    uneven: Floats | float = 0.0,
) -> list[Estimate]:
    """The parameters with 95 % intervals, which hold both what noise does to them and what the model cannot show.

    Noise: one step of Gauss and Newton follows each draw, logarithms of how far the `times`, shape (n,), are off when drawn anew, shape (n,
    draws). What the model cannot show: the residuals, as in linear regression; both by Student's t, as few tell how large they are. No
    interval is wider than a factor of `UNKNOWN` each way.

    What was measured is `known` to a share at best: without that, fewer figures than parameters seem to tell all of them.  Of the steps of
    derivatives in several `ways` (signs) that counts which changes a figure less; changes up to `uneven` (logarithms) tell nothing.
    """
    steps = np.broadcast_to(step, len(names))

    def slopes(signed: Floats) -> Floats:
        points = solution.values * np.exp(np.diag(signed))  # one parameter a row
        changes = np.stack([np.log(model(values) / times) - solution.residuals for values in points], axis=1)
        result: Floats = np.where(np.abs(changes) < np.reshape(uneven, (-1, 1)), 0.0, changes) / signed
        return result

    either = np.stack([slopes(way * steps) for way in ways])
    jacobian = np.take_along_axis(either, np.abs(either).argmin(axis=0)[None], axis=0)[0]
    sensitivity = np.linalg.norm(jacobian, axis=0)
    inverse = np.linalg.pinv(jacobian, rcond=1e-3)
    noise, freedom = (inverse @ draws).var(axis=1, ddof=1), max(1, len(times) - len(names))
    misfit = float(solution.residuals @ solution.residuals) / freedom * np.sum(inverse**2, axis=1)
    far, far_of_noise, far_of_misfit = (float(student.ppf(0.975, each)) for each in (np.inf, draws.shape[1] - 1, freedom))
    width = np.sqrt(far_of_noise**2 * noise + far_of_misfit**2 * misfit + far**2 * known**2 * _spread(jacobian))
    width = np.where(sensitivity < 1e-3, np.log(UNKNOWN), np.minimum(width, np.log(UNKNOWN)))
    return [
        Estimate(name, float(value), float(value * np.exp(-spread)), float(value * np.exp(spread)))
        for name, value, spread in zip(names, solution.values, width, strict=True)
    ]


def _spread(jacobian: Floats) -> Floats:
    """The variance of each parameter for one of 1 of every figure; immense where figures do not change with it, or with some together."""
    _, values, directions = np.linalg.svd(jacobian, full_matrices=True)
    widths = np.full(len(directions), 1 / _FLAT)
    widths[: len(values)] = 1 / np.maximum(values, _FLAT)
    result: Floats = widths**2 @ directions**2
    return result
