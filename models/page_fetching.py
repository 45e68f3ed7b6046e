"""Bounds of page fetching: the fewest fetches by which pairs of pages meet in few frames, and the pages that random tuples lie on.

A page graph has a vertex a page and an edge a pair that must be in memory together once.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

from flashsim.core.errors import InvalidParameterError


def least_fetches(pages: int, edges: int, frames: int, largest_degree: int) -> int:
    """A lower bound of the fetches: every page once, and the i-th fetch lets at most min(i - 1, b - 1, D) pairs meet.

    `pages`: that have an edge; `frames`: b, at least 2; `largest_degree`: D, of any page.

    >>> least_fetches(5, 5, 2, 3), least_fetches(6, 9, 3, 3)
    (6, 6)
    """
    _check(pages, edges, frames)
    most = min(frames - 1, largest_degree)
    if edges == 0:
        return pages
    # the first `most` fetches let 0, 1, ..., most - 1 pairs meet, and each further one as many as `most`
    beginning = most * (most - 1) // 2
    triangle = math.ceil((1 + math.sqrt(1 + 8 * edges)) / 2)
    return max(pages, triangle if edges <= beginning else most + -(-(edges - beginning) // most))


def least_fetches_of_independent_orders(results: npt.ArrayLike, others: int, tuples: int, frames: int, doubt: float = 1e-9) -> int:
    """A lower bound that holds for almost every order of S, if that is drawn apart from R's and each row of R joins one of S.

    A plan of F fetches falls into phases of t.  In a phase, pages meet that it fetches, or of which one is fetched and the other one of the
    b that are there when it begins.  Of n pages there are at most ``(C(n, t) C(t + b, b))^(F / t)`` choices of such sets, and each lets at
    most ``F / t max(b t, ((b + t) / 2)^2)`` pairs of pages meet.  That all results lie on pairs that are chosen before S's order is drawn
    has a probability below Bregman's bound of a permanent.  If that, times the number of choices, is below `doubt`, there is a plan of F
    fetches with at most that probability.  t is the one that excludes most.

    Parameters
    ----------
    results
        Of each page of R, shape (pages,): at most one per row.
    others
        Pages of S.
    tuples
        On each page of S.
    frames
        b, at least 2.
    doubt
        The probability that the bound fails, over orders of S.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 frames, more results than rows of S, or a doubt that is no probability.

    Examples
    --------
    >>> least_fetches_of_independent_orders([12] * 8192, 8192, 25, 510)
    29156
    """
    counts = np.asarray(results, np.int64)
    pages, edges = len(counts) + others, int(counts.sum())
    _check(pages, edges, frames)
    if edges > others * tuples:
        raise InvalidParameterError("results", edges, f"S has {others * tuples} rows, and each joins at most one of R")
    if not 0 < doubt < 1:
        raise InvalidParameterError("doubt", doubt, "it must lie between 0 and 1")
    best = 0
    for phase in sorted({max(1, round(frames * share)) for share in np.geomspace(0.25, 16, 25)}):
        if phase > pages or edges == 0:
            break
        choices = _choices(pages, phase) + _choices(phase + frames, frames)
        covered = max(frames * phase, (frames + phase) ** 2 / 4)
        low, high = 0, 2 * edges // phase + 1  # phases: so many are excluded, so many are not
        while high - low > 1:
            middle = (low + high) // 2
            excluded = middle * choices + log_chance(counts, others, tuples, middle * covered) < math.log(doubt)
            low, high = (middle, high) if excluded else (low, middle)
        best = max(best, low * phase)
    return best + 1 if edges else 0


def log_chance(results: npt.ArrayLike, others: int, tuples: int, covered: float) -> float:
    """Logarithm of the probability, at most, that all results lie on a number of pairs of pages that are chosen before S's order is drawn.

    A row of a page of R that is paired with d pages of S has ``tuples d`` places to go.  The number of ways for all rows is a permanent, at
    most the product of ``(r!)^(1/r)`` over rows with r places each (Bregman 1973), divided by the number of all orders; the pairs are given
    to pages of R so that this is largest, which a Lagrange multiplier bounds from above.
    """
    some = np.asarray(results)
    counts, pages = np.unique(some[some > 0], return_counts=True)  # a page without results is paired with none
    paired = np.arange(1, others + 1)
    roots = gammaln(tuples * paired + 1) / (tuples * paired)
    gains = counts[:, None] * (roots - roots[-1])

    def bound(logarithm: float) -> float:
        price = math.exp(logarithm)
        return float(price * covered + pages @ np.max(gains - price * paired, axis=1))

    return min(0.0, float(minimize_scalar(bound, bounds=(-30, 10), method="bounded").fun))


def _choices(all_of: int, some: int) -> float:
    return float(gammaln(all_of + 1) - gammaln(some + 1) - gammaln(all_of - some + 1))


def yao(tuples: int, per_page: float, chosen: int) -> float:
    """The expected number of pages that `chosen` different random tuples lie on (Yao, CACM 20(4), 1977).

    `tuples` are the file's, `per_page` of them on each page, in the mean.

    >>> yao(100, 10, 100), round(yao(100, 10, 1), 6)
    (10.0, 1.0)
    """
    if not (0 <= chosen <= tuples and 0 < per_page <= tuples):
        raise InvalidParameterError("chosen", chosen, f"it must lie between 0 and the {tuples} tuples, of which {per_page} are on a page")
    rest = tuples - per_page
    if chosen > rest:
        return tuples / per_page
    missed = gammaln(rest + 1) - gammaln(rest - chosen + 1) - gammaln(tuples + 1) + gammaln(tuples - chosen + 1)
    return float(tuples / per_page * -math.expm1(missed))


def cardenas(pages: float, chosen: float) -> float:
    """Expected pages of tuples drawn independently, which may be the same (Cardenas, CACM 18(5), 1975).

    >>> round(cardenas(10, 1), 6)
    1.0
    """
    return float(pages * -math.expm1(chosen * math.log1p(-1 / pages))) if pages > 1 else min(float(pages), chosen)


class Accesses(NamedTuple):
    """Tuples of a file that are asked for in no order."""

    #: Of the file, and the tuples on one.
    pages: float
    each: float
    #: How many tuples are asked for, whichever they are, and how often each of them.
    tuples: float
    times: float = 1.0

    def chance_of_no_access(self, time: float) -> float:
        """The probability that a tuple is not asked for within a share of all time."""
        share = min(1.0, self.tuples / self.pages / self.each)
        return 1 - share + share * (1 - time) ** self.times

    def distinct(self, time: float) -> float:
        """Pages that are asked for within it."""
        return self.pages - self.pages * self.chance_of_no_access(time) ** self.each

    def misses(self, time: float) -> float:
        """Requests for pages that were not asked for within so much time before."""
        return self.tuples * self.times * self.chance_of_no_access(time) ** (self.each - 1) * (1 - time) ** (self.times - 1)


def least_recently_used(files: Iterable[Sequence[float]], frames: int, passing: float = 0.0) -> float:
    """The expected fetches if tuples of several files are asked for in no order, and frames hold the pages asked for last.

    A page stays until as many others have been asked for as there are frames, which is about as long for all pages (Che, Tung and Wang,
    IEEE JSAC 20(7), 2002); for one file this is what Mackert and Lohman estimate (ACM TODS 14(3), 1989), with tuples asked for once each.

    `files` are what is asked for of each (`Accesses`); `passing` is pages of others that are asked for once meanwhile, as by a scan.

    >>> round(least_recently_used([(100, 10**4, 10**6)] * 2, 200)), round(least_recently_used([(100, 10, 1000)] * 2, 100))
    (200, 1100)
    """
    accesses = [Accesses(*file) for file in files if file[0] and file[2]]
    accesses = [file._replace(each=max(1.0, file.each, file.tuples / file.pages)) for file in accesses]

    def distinct(time: float) -> float:
        return time * passing + sum(file.distinct(time) for file in accesses)

    if distinct(1) <= frames:
        return distinct(1)
    stays = float(brentq(lambda time: distinct(time) - frames, 0, 1))
    return frames + (1 - stays) * (passing + sum(file.misses(stays) for file in accesses))


def _check(pages: int, edges: int, frames: int) -> None:
    if pages < 0 or edges < 0:
        raise InvalidParameterError("pages and edges", f"{pages} and {edges}", "they must be at least 0")
    if frames < 2:
        raise InvalidParameterError("frames", frames, "two pages must be in memory together, so at least 2 are needed")
