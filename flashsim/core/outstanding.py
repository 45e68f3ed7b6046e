"""The outstanding level: how many requests have been submitted and have not completed, as a distribution over time."""

from copy import deepcopy
from typing import Any

import numpy as np

from flashsim.core.request import Integers

#: Requests may be told in another order than that of their submission, by as many places.
_PLACES = 1 << 14
_QUANTILES = (50, 90, 99)


def level_steps(submitted: Integers, completed: Integers) -> tuple[Integers, Integers]:
    """Times when the outstanding level changes, ns, ascending, and the level from then on, shape (2 n,) each.

    >>> times, levels = level_steps(np.array([0, 2]), np.array([5, 9]))
    >>> times.tolist(), levels.tolist()
    ([0, 2, 5, 9], [1, 2, 1, 0])
    """
    times = np.concatenate([completed, submitted])
    order = np.argsort(times, kind="stable")  # at one time, ends before begins
    return times[order], np.cumsum(np.where(order < len(completed), -1, 1))


class OutstandingLevel:
    """Time by number of outstanding requests, from the first submission to the last completion, in constant memory.

    Requests that are told more than 16,384 places late count from where the sweep stands.

    >>> level = OutstandingLevel()
    >>> level.add(np.array([0, 2]), np.array([5, 10]))
    >>> level.as_dict()["mean"], level.times().tolist()
    (1.3, [0, 7, 3])
    """

    def __init__(self) -> None:
        self._times = np.zeros(1, np.int64)  # spent at each level so far, ns
        self._now: int | None = None  # until then
        self._ends = np.zeros(0, np.int64)  # of requests that are outstanding then
        self._pairs = np.empty((2, 0), np.int64)  # submissions and completions of the requests told last, which are not yet swept
        self._count = 0  # of those

    def add(self, submitted: Integers, completed: Integers) -> None:
        """Take requests, by when they were submitted and completed, ns, shape (n,)."""
        if not self._pairs.size:
            self._pairs = np.empty((2, 2 * _PLACES), np.int64)
        for first in range(0, len(submitted), _PLACES):
            part = slice(first, first + _PLACES)
            count = len(submitted[part])
            if self._count + count > 2 * _PLACES:
                self._sweep(_PLACES)
            self._pairs[:, self._count : self._count + count] = submitted[part], completed[part]
            self._count += count

    def _sweep(self, keep: int) -> None:
        """Go on to where all but `keep` of the pairs' requests have been submitted, or, if `keep` is 0, have completed."""
        pairs = self._pairs[:, : self._count]
        if not (pairs[0, 1:] >= pairs[0, :-1]).all():
            pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
        begins, ends = pairs[:, : self._count - keep]
        if self._now is None:
            self._now = int(begins[0])
        begins = np.maximum(begins, self._now)
        ends = np.concatenate([self._ends, np.maximum(ends, begins)])
        until = int(pairs[0, -keep]) if keep else int(ends.max(initial=self._now))
        until = max(until, self._now)
        if not len(self._ends) and ends[-1] <= until and (ends[:-1] <= begins[1:]).all():  # one after the other
            busy = int((ends - begins).sum())
            self._spend(np.arange(2), np.array([until - self._now - busy, busy]))
            self._go_on(until, ends[:0], pairs, keep)
            return
        over = ends <= until
        times, levels = level_steps(begins, ends[over])
        levels = np.concatenate([[0], levels]) + len(self._ends)
        spent = np.diff(np.concatenate([[self._now], times, [until]]))
        self._spend(levels, spent)
        self._go_on(until, ends[~over], pairs, keep)

    def _spend(self, levels: Integers, spent: Integers) -> None:
        levels, spent = levels[spent > 0], spent[spent > 0]
        self._times = np.pad(self._times, (0, max(0, int(levels.max(initial=0)) + 1 - len(self._times))))
        np.add.at(self._times, levels, spent)

    def _go_on(self, until: int, ends: Integers, pairs: Integers, keep: int) -> None:
        """Stand where the requests that are not yet swept begin."""
        self._now, self._ends = until, ends
        self._pairs[:, :keep] = pairs[:, self._count - keep :].copy()
        self._count = keep

    def times(self) -> Integers:
        """Time, ns, by number of outstanding requests, shape (maximum + 1,); more may follow."""
        if not self._count:
            return self._times.copy()
        whole = deepcopy(self)
        whole._sweep(0)
        return whole._times

    def as_dict(self) -> dict[str, Any] | None:
        """JSON-ready; None where no time has passed.

        ``duration`` (ns); over that time the ``mean``, the levels that are not exceeded in 50, 90 and 99 % of it (``p50``, ...), the
        ``max`` and the share in which nothing is outstanding (``idle``); and ``levels`` with the ``shares`` of the time spent at each.
        """
        times = self.times()
        duration = int(times.sum())
        if not duration:
            return None
        levels, until = np.flatnonzero(times), np.cumsum(times)
        quantiles = {f"p{share}": int(np.searchsorted(until, -(-share * duration // 100))) for share in _QUANTILES}
        mean = sum(level * int(times[level]) for level in levels.tolist()) / duration
        return {
            "duration": duration,
            "mean": mean,
            **quantiles,
            "max": int(levels[-1]),
            "idle": int(times[0]) / duration,
            "levels": levels.tolist(),
            "shares": (times[levels] / duration).tolist(),
        }
