"""The fit of a drive of either kind: a fitted parameter with its confidence, and least squares on logarithms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from flashsim.core.units import MB, format_duration
from flashsim.hdd.parameters import HddParameters
from flashsim.ssd.parameters import SsdParameters
from flashsim.studies.calibration.cells import Floats

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
        if "pages" in self.name:
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

    Noise: one step of Gauss and Newton follows each draw.  What the model cannot show: the residuals, as in linear regression.  No
    interval is wider than a factor of `UNKNOWN` each way.

    Parameters
    ----------
    times, draws
        What was measured, shape (n,), and logarithms of how far it is off when drawn anew, shape (n, draws).
    known
        Share to which what was measured is known at best: without it, fewer figures than parameters seem to tell all of them.
    ways, uneven
        Signs of the steps of the derivatives, of which the one counts that changes a figure less.  Changes of each figure, as logarithms,
        that tell nothing: other draws change it as much.
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
    noise = (inverse @ draws).var(axis=1)
    freedom = max(1, len(times) - len(names))
    misfit = float(solution.residuals @ solution.residuals) / freedom * np.sum(inverse**2, axis=1)
    width = 1.96 * np.sqrt(noise + misfit + known**2 * _spread(jacobian))
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
