"""Exact draws by Zipf's law: of n ranks, rank k is drawn with a probability in proportion to k**-skew.

By rejection-inversion (Hörmann, Derflinger: Rejection-inversion to generate variates from monotone discrete distributions, ACM TOMACS 6(3),
1996), which takes neither tables nor sums, so that n may be anything, and another one for every draw.
"""

from math import gcd

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers

Floats = npt.NDArray[np.float64]

#: Below this, (exp(x) - 1) / x and log(1 + x) / x are 1 + x / 2 and 1 - x / 2 as exactly as numbers are.
_TINY = 1e-8


class Zipf:
    """Draws of ranks from 1 on.

    Parameters
    ----------
    ranks
        n: one for all draws, or one a draw, shape (size,).
    skew
        At least 0, which is uniform.
    """

    def __init__(self, ranks: int | Integers, skew: float) -> None:
        self._ranks, self._skew = np.asarray(ranks, np.float64), skew
        self._first = float(self._integral(np.asarray(1.5))) - 1
        self._last = self._integral(self._ranks + 0.5)
        #: So far above a rank all is accepted that is rounded down to it.
        self._sure = 2 - float(self._inverse(self._integral(np.asarray(2.5)) - 2.0**-skew))

    def draw(self, size: int, random: np.random.Generator) -> Integers:
        ranks, left = np.empty(size, np.int64), np.arange(size)
        while len(left):
            last, most = (each if each.ndim == 0 else each[left] for each in (self._last, self._ranks))
            under = last + random.random(len(left)) * (self._first - last)
            place = self._inverse(under)
            nearest = np.clip(np.floor(place + 0.5), 1, most)
            unsure = np.flatnonzero(nearest - place > self._sure)
            at = nearest[unsure]
            refused = unsure[under[unsure] < self._integral(at + 0.5) - at**-self._skew]
            ranks[left] = nearest
            left = left[refused]
        return ranks

    def _integral(self, place: Floats) -> Floats:
        """Of x**-skew, from 1."""
        log = np.log(place)
        power = (1 - self._skew) * log
        return log * np.where(np.abs(power) < _TINY, 1 + power / 2, np.expm1(power) / np.where(power == 0, 1, power))

    def _inverse(self, value: Floats) -> Floats:
        power = np.maximum((1 - self._skew) * value, -1)
        with np.errstate(divide="ignore"):
            log = np.where(np.abs(power) < _TINY, 1 - power / 2, np.log1p(power) / np.where(power == 0, 1, power))
        return np.exp(value * log)


def scattered(ranks: Integers, pages: int) -> Integers:
    """Pages from 0 on, another one for every rank from 0 on, with those of neighbouring ranks a golden section of all apart."""
    step = max(1, round(pages * 0.6180339887498949))
    while gcd(step, pages) > 1:
        step += 1
    return ranks * step % pages
