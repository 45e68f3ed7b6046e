"""Differences of hit ratios with confidence: paired means of windows of a trace, grouped until they do not depend on each other.

The two policies of a pair see the same windows, so that what differs from window to window for both cancels.  Neighbouring windows are
merged, two by two, until von Neumann's ratio finds no serial correlation of the differences any more (Fishman: Grouping observations in
digital simulation, Management Science 24(5), 1978), and no fewer than `FEWEST` are left; then Student's t gives the interval.  It assumes
that the trace goes on as it is (that windows are draws from one stationary process), and about normal means of windows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

Floats = npt.NDArray[np.float64]

#: Windows that a trace is cut into, and the fewest that they are merged into.
WINDOWS, FEWEST = 512, 16
#: The confidence of an interval, and of the test for correlation.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean with the half width of its interval.

    Parameters
    ----------
    windows
        Means that it rests on.
    independent
        Whether these pass the test; otherwise the interval is too narrow.
    """

    mean: float
    half: float
    windows: int
    independent: bool

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies above or below 0; 0 where it does not tell."""
        return 0 if abs(self.mean) <= self.half else 1 if self.mean > 0 else -1


def interval(differences: Floats, mean: float | None = None) -> Interval:
    """The mean of differences, one a window, shape (n,), n at least 2; `mean` is that of all references, where windows differ in length.

    Examples
    --------
    >>> told = interval(np.array([0.5, 0.25] * 32))
    >>> told.mean, round(told.half, 3), told.windows, told.independent, told.sign
    (0.375, 0.031, 64, True, 1)
    """
    means = differences
    while not (independent := _independent(means)) and len(means) >= 2 * FEWEST:
        means = means[: len(means) // 2 * 2].reshape(-1, 2).mean(axis=1)
    spread = float(means.std(ddof=1))
    half = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2)) * spread / len(means) ** 0.5
    return Interval(float(differences.mean()) if mean is None else mean, half, len(means), independent)


def _independent(means: Floats) -> bool:
    count, squares = len(means), float(((means - means.mean()) ** 2).sum())
    if squares == 0 or count < 3:
        return True
    correlation = 1 - float((np.diff(means) ** 2).sum()) / (2 * squares)
    return correlation * ((count**2 - 1) / (count - 2)) ** 0.5 <= float(ndtri(CONFIDENCE))
