"""Times in constant memory: a histogram of buckets of equal relative width, as in HdrHistogram, and the step in which times are told."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers
from flashsim.core.units import MICROSECONDS, MILLISECONDS, SECONDS, format_duration

#: Buckets between a power of two and the next one: a bucket's middle is at most 1 in 512 away from what is in it.
_STEPS = 256


class Histogram:
    """Counts of non-negative integers; mean, least and most are exact, percentiles are within 0.2 %.

    Examples
    --------
    >>> times = Histogram()
    >>> times.add(np.arange(1, 101))
    >>> times.percentile(50), times.maximum
    (50, 100)
    """

    def __init__(self) -> None:
        self._counts = np.zeros(65 * _STEPS, np.int64)
        self._sum = 0
        self.minimum = self.maximum = 0

    def add(self, values: Integers) -> None:
        if len(values):
            self.minimum = min(self.minimum, int(values.min())) if self.count else int(values.min())
            fraction, exponent = np.frexp(values.astype(np.float64))
            within = ((fraction - 0.5) * (2 * _STEPS)).astype(np.int64)
            bucket = np.where(values > 0, exponent * _STEPS + within, 0)
            self._counts += np.bincount(bucket, minlength=len(self._counts))
            self._sum += int(values.sum())
            self.maximum = max(self.maximum, int(values.max()))

    def merge(self, other: Histogram) -> None:
        self.minimum = min((each.minimum for each in (self, other) if each.count), default=0)
        self._counts += other._counts
        self._sum += other._sum
        self.maximum = max(self.maximum, other.maximum)

    @property
    def count(self) -> int:
        return int(self._counts.sum())

    @property
    def mean(self) -> float:
        """Mean of the values; 0 if there are none."""
        return self._sum / self.count if self.count else 0.0

    def percentile(self, share: float) -> int:
        """The value that `share` percent of all do not exceed (nearest rank); 0 of none."""
        if not self.count:
            return 0
        rank = max(1, int(np.ceil(share / 100 * self.count - 1e-9)))
        return int(np.clip(_middle(np.searchsorted(np.cumsum(self._counts), rank)), self.minimum, self.maximum))

    def distribution(self) -> tuple[Integers, npt.NDArray[np.float64]]:
        """Values, ascending, and the share of all that do not exceed each, shape (buckets in use,)."""
        used = np.flatnonzero(self._counts)
        return np.clip(_middle(used), self.minimum, self.maximum), np.cumsum(self._counts[used]) / max(1, self.count)


def _middle(bucket: Integers | np.intp) -> Integers:
    exponent, within = np.divmod(np.asarray(bucket, np.int64), _STEPS)
    low = np.ldexp(0.5 + within / (2 * _STEPS), exponent)
    width = np.ldexp(1 / (2 * _STEPS), exponent)
    middle = np.where(width <= 1, np.ceil(low), low + width / 2)
    return np.where(np.asarray(bucket) == 0, 0, middle).astype(np.int64)


#: Times in shorter steps are as exact as a replay needs them.
_COARSE = MILLISECONDS
#: Steps that clocks have, ns; the longest that divides all times is taken.
_CLOCKS = (SECONDS, 100 * MILLISECONDS, 10 * MILLISECONDS, MILLISECONDS, 100 * MICROSECONDS, 10 * MICROSECONDS, MICROSECONDS, 100, 10, 1)


class Clock:
    """The step of the times of arrival, as far as they tell.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.add(np.array([7, 7, 7, 8, 8]) * SECONDS)
    >>> format_duration(clock.step), clock.together
    ('1 s', 3)
    """

    def __init__(self) -> None:
        self.count = self.together = 0
        self._place, self._last = 0, -1

    def add(self, arrivals: Integers) -> None:
        """Take times of arrival that are known, ns, shape (n,)."""
        if not len(arrivals):
            return
        while (arrivals % _CLOCKS[self._place]).any():
            self._place += 1
        self.count += len(arrivals)
        self.together += int((np.diff(arrivals, prepend=self._last) == 0).sum())
        self._last = int(arrivals[-1])

    @property
    def step(self) -> int:
        """The longest step, ns, of which all times are multiples."""
        return _CLOCKS[self._place]

    @property
    def bursts(self) -> str:
        """One sentence where coarse times make bursts of most requests; empty where they do not."""
        if self.step < _COARSE or 2 * self.together < self.count:
            return ""
        together = f"{self.together:,} of {self.count:,} requests arrive with the one before"
        return f"times are told in steps of {format_duration(self.step)}: {together}; --pace asap replays without times"
