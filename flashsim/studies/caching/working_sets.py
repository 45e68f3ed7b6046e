"""Working sets: how many pages a program asks for in a window of so many references, on average, for windows of all lengths in one pass.

A page is in the windows of T references that begin with one of its references and end before its next one: with x references from one
to the next, in min(T, x) of them, so that the times between references to a page tell all (Denning, Schwartz: Properties of the
working-set model, CACM 15 (3), 1972; with the last references, as here, exact of a finite trace: Slutz, Traiger: A note on the
calculation of average working set size, CACM 17 (10), 1974).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.kernel import lean_kernel
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FIRST_PAGE, Numbers
from flashsim.core.request import Integers
from traces.summary.reuse import sampled_rows

Reals = npt.NDArray[np.float64]

#: Windows between a power of two and the next one; shorter ones than twice as many references all have a point.
_STEPS = 32
_BUCKETS = 58 * _STEPS
# Of the times in a bucket: how many there are, and their sum.
_COUNT, _SUM = range(2)


class WorkingSetCurve(NamedTuple):
    """Windows, shape (n,) each, up to the whole trace."""

    #: References.
    windows: Integers
    #: Distinct pages in the window that ends at a reference, on average over all references; the first windows are shorter.
    pages: Reals
    #: The share of references to pages that are not in the window that ends before them.
    miss_ratio: Reals


class WorkingSets:
    """Takes references in batches, of a share of the pages; memory grows with these pages, 8 bytes each besides their numbers.

    Examples
    --------
    >>> sets = WorkingSets()
    >>> sets.add(np.array([7, 8, 7, 9]))
    >>> sets.curve().windows.tolist(), sets.curve().pages.tolist(), sets.curve().miss_ratio.tolist()
    ([1, 2, 3, 4], [1.0, 1.75, 2.0, 2.0], [1.0, 0.75, 0.75, 0.75])
    """

    def __init__(self, rate: float = 1.0) -> None:
        self.references = 0
        self._rate = rate
        self._numbers = PageNumbers()
        self._last = np.empty(0, np.int64)
        self._times = np.zeros((_BUCKETS, 2), np.int64)

    def add(self, pages: Integers) -> None:
        rows = np.arange(len(pages)) if self._rate == 1 else sampled_rows(pages, self._rate)
        numbers = self._numbers.number(pages[rows])
        if len(self._numbers) > len(self._last):
            more = np.full(max(len(self._numbers), len(self._last) * 5 // 4) - len(self._last), -1, np.int64)
            self._last = np.concatenate([self._last, more])
        _refer(numbers, rows + self.references, self._last, self._times)
        self.references += len(pages)

    def curve(self) -> WorkingSetCurve:
        """The curve of all references until now: windows of 1 to 64, and then 32 between a power of two and the next one."""
        times, again = self._times.copy(), self._times[:, _COUNT].copy()
        _end(self._last[: len(self._numbers)], self.references, times)
        count = int(np.searchsorted(_LONGEST, self.references)) + 1 if self.references else 0
        windows = np.minimum(_LONGEST[:count], self.references)
        counts, sums = np.cumsum(times[:count], axis=0).T
        scale = 1 / (self._rate * max(1, self.references))
        all_times = len(self._numbers) + again.sum()  # every reference begins one
        longer, misses = all_times - counts, all_times - np.cumsum(again[:count])
        return WorkingSetCurve(windows[1:], ((sums + windows * longer) * scale)[1:], np.minimum(misses * scale, 1.0)[1:])


def _longest() -> Integers:
    powers, steps = np.divmod(np.arange(_BUCKETS - 2 * _STEPS), _STEPS)
    return np.concatenate([np.arange(2 * _STEPS), (steps + _STEPS + 1 << powers + 1) - 1])


@lean_kernel
def _add(time: int, times: Integers) -> None:
    bucket = time
    if time >= 2 * _STEPS:
        power = math.frexp(float(time))[1] - 6
        bucket = _STEPS * power + (time >> power)
    times[bucket, _COUNT] += 1
    times[bucket, _SUM] += time


@lean_kernel
def _refer(numbers: Numbers, rows: Integers, last: Integers, times: Integers) -> None:
    for place in range(numbers.shape[0]):
        page = numbers[place] - FIRST_PAGE
        if last[page] >= 0:
            _add(rows[place] - last[page], times)
        last[page] = rows[place]


@lean_kernel
def _end(last: Integers, references: int, times: Integers) -> None:
    for page in range(last.shape[0]):
        _add(references - last[page], times)


_LONGEST = _longest()
