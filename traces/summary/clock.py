"""In which steps the times of a trace are told, and how many of its requests therefore seem to arrive at once."""

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.units import MICROSECONDS, MILLISECONDS, SECONDS, format_duration

#: Times in shorter steps are as exact as a replay needs them.
_COARSE = MILLISECONDS
#: Steps that clocks have, ns; the longest that divides all times is taken.
_STEPS = (SECONDS, 100 * MILLISECONDS, 10 * MILLISECONDS, MILLISECONDS, 100 * MICROSECONDS, 10 * MICROSECONDS, MICROSECONDS, 100, 10, 1)


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
        while (arrivals % _STEPS[self._place]).any():
            self._place += 1
        self.count += len(arrivals)
        self.together += int((np.diff(arrivals, prepend=self._last) == 0).sum())
        self._last = int(arrivals[-1])

    @property
    def step(self) -> int:
        """The longest step, ns, of which all times are multiples."""
        return _STEPS[self._place]

    @property
    def bursts(self) -> str:
        """One sentence where coarse times make bursts of most requests; empty where they do not."""
        if self.step < _COARSE or 2 * self.together < self.count:
            return ""
        together = f"{self.together:,} of {self.count:,} requests arrive with the one before"
        return f"times are told in steps of {format_duration(self.step)}: {together}; --pace asap replays without times"
