"""Policies beside each other: by how much hit ratios differ, with confidence, who is best at which size, and what the optimum would do.

The two policies of a pair see the same windows, so that what differs from window to window for both cancels.  Neighbouring windows are
merged, two by two, until von Neumann's ratio finds no serial correlation of the differences any more (Fishman: Grouping observations in
digital simulation, Management Science 24(5), 1978), and no fewer than `FEWEST` are left; then Student's t gives the interval.  It assumes
that the trace goes on as it is (that windows are draws from one stationary process), and about normal means of windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from flashsim.core.errors import InvalidParameterError
from flashsim.studies.caching.running import PolicyRun
from flashsim.studies.caching.session import CacheRuns

#: Windows that a trace is cut into, and the fewest that they are merged into.
WINDOWS, FEWEST = 512, 16
#: The confidence of an interval, and of the test for correlation.
CONFIDENCE = 0.95
#: The bound that every comparison has beside it.
OPTIMUM = "opt"
METHOD = (
    f"Differences are means over windows of the trace, paired, with {CONFIDENCE:.0%} intervals by Student's t; windows are merged until "
    f"von Neumann's ratio finds no serial correlation, down to {FEWEST}. They assume that the trace goes on as it is; each holds by itself."
)


@dataclass(frozen=True)
class Interval:
    """A mean with the half width of its interval."""

    mean: float
    half: float
    #: Means that it rests on.
    windows: int
    #: The differences pass the test; otherwise the interval is too narrow.
    independent: bool

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies above or below 0; 0 where it does not tell."""
        return 0 if abs(self.mean) <= self.half else 1 if self.mean > 0 else -1


def interval(differences: npt.NDArray[np.float64], mean: float | None = None) -> Interval:
    """The mean of differences, one a window, shape (n,), n at least 2; `mean` is that of all references, where windows differ in length.

    Examples
    --------
    >>> result = interval(np.array([0.5, 0.25] * 32))
    >>> result.mean, round(result.half, 3), result.windows, result.independent, result.sign
    (0.375, 0.031, 64, True, 1)
    """
    means = differences
    while not (independent := _independent(means)) and len(means) >= 2 * FEWEST:
        means = means[: len(means) // 2 * 2].reshape(-1, 2).mean(axis=1)
    spread = float(means.std(ddof=1))
    half = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2)) * spread / len(means) ** 0.5
    return Interval(float(differences.mean()) if mean is None else mean, half, len(means), independent)


def _independent(means: npt.NDArray[np.float64]) -> bool:
    count, squares = len(means), float(((means - means.mean()) ** 2).sum())
    if squares == 0 or count < 3:
        return True
    correlation = 1 - float((np.diff(means) ** 2).sum()) / (2 * squares)
    return correlation * ((count**2 - 1) / (count - 2)) ** 0.5 <= float(ndtri(CONFIDENCE))


@dataclass(frozen=True)
class Pair:
    """Two policies at one size: how much more often the first hits."""

    first: PolicyRun
    second: PolicyRun
    difference: Interval

    def row(self) -> dict[str, Any]:
        """JSON-ready; the difference of hit ratios as a share."""
        difference, size = self.difference, self.first.size
        names = (self.first.policy, self.second.policy)
        return {
            "size": size.label,
            "pages": size.frames,
            "policy": names[0],
            "against": names[1],
            "difference": difference.mean,
            "half_width": difference.half,
            "windows": difference.windows,
            "independent": difference.independent,
            "better": {1: names[0], -1: names[1], 0: None}[difference.sign],
        }


class PolicyComparison:
    """Runs of policies at the same sizes, with windows and the optimum among them, compared pair by pair."""

    def __init__(self, results: CacheRuns) -> None:
        self.results = results
        if len(results.runs[0].windows) < FEWEST:
            references = f"{results.runs[0].counts.references:,} references"
            raise InvalidParameterError("trace", references, f"a comparison needs at least {FEWEST} after the warm-up")
        self.pairs = [
            Pair(first, second, interval(first.windows - second.windows, first.hit_ratio - second.hit_ratio))
            for _, runs in self.by_size()
            for first, second in combinations(runs, 2)
        ]

    def by_size(self) -> Iterator[tuple[int, list[PolicyRun]]]:
        for frames, runs in groupby(self.results.runs, lambda each: each.size.frames):
            yield frames, list(runs)

    def pair(self, frames: int, first: str, second: str) -> Interval:
        """The difference of hit ratios of two policies at a size."""
        for each in self.pairs:
            if each.first.size.frames == frames and {each.first.policy, each.second.policy} == {first, second}:
                difference = each.difference
                return difference if each.first.policy == first else replace(difference, mean=-difference.mean)
        return Interval(0.0, 0.0, 0, True)

    def best(self) -> list[dict[str, Any]]:
        """A row a size, JSON-ready: the best policy without knowledge of the future, its equals, its hit ratio and the optimum's."""
        rows = []
        for frames, runs in self.by_size():
            mine = [each for each in runs if not each.future]
            best = max(mine or runs, key=lambda each: each.hit_ratio)
            alike = [each.policy for each in mine if each is not best and not self.pair(frames, best.policy, each.policy).sign]
            bound = next((each.hit_ratio for each in runs if each.policy == OPTIMUM), None)
            row: dict[str, Any] = {"size": best.size.label, "pages": frames, "best": best.policy, "alike": alike}
            rows.append(row | {"hit_ratio": best.hit_ratio, "optimum": bound})
        return rows

    def as_dict(self) -> dict[str, Any]:
        document = self.results.as_dict()
        return document | {"confidence": CONFIDENCE, "method": METHOD, "pairs": [each.row() for each in self.pairs], "best": self.best()}


def with_optimum(names: Sequence[str]) -> list[str]:
    return [*(each for each in names if each != OPTIMUM), OPTIMUM]
