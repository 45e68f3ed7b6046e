"""The demerit figure: how far the response times of two runs, such as a measured and a simulated one, lie apart."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import InvalidParameterError
from traces.summary.histogram import Histogram

Shares = npt.NDArray[np.float64]


def demerit(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The root mean square horizontal distance of the distribution functions of two sets of response times.

    Parameters
    ----------
    first, second
        Response times, ns, shape (n,) and (m,).

    Returns
    -------
    float
        In ns: the root of the mean, over all shares between 0 and 1, of the squared difference between the times that so large a share
        of each set does not exceed.  With n = m that is the difference between the sorted times, pair by pair.

    References
    ----------
    Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.

    Examples
    --------
    >>> demerit([3, 1, 2], [4, 2, 3]), demerit([1, 3], [1, 1, 3, 3]), demerit([0], [3, 4])
    (1.0, 0.0, 3.5355339059327378)
    """
    return _distance(*_sorted(np.asarray(first)), *_sorted(np.asarray(second)))


def histogram_demerit(first: Histogram, second: Histogram) -> float:
    """The same of response times that were only counted: each is then known within 0.2 %.

    Examples
    --------
    >>> one, other = Histogram(), Histogram()
    >>> one.add(np.array([1, 2, 3]))
    >>> other.add(np.array([2, 3, 4]))
    >>> histogram_demerit(one, other)
    1.0
    """
    return _distance(*first.distribution(), *second.distribution())


def _sorted(times: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Shares]:
    return np.sort(times), np.arange(1, len(times) + 1) / max(1, len(times))


def _distance(first: npt.NDArray[Any], first_shares: Shares, second: npt.NDArray[Any], second_shares: Shares) -> float:
    for times in (first, second):
        if not len(times):
            raise InvalidParameterError("response times", "none", "their distribution needs at least one")
    ends = np.union1d(first_shares, second_shares)
    widths = np.diff(ends, prepend=0.0)
    apart = _at(first, first_shares, ends) - _at(second, second_shares, ends)
    return math.sqrt(float(np.sum(widths * apart**2)))


def _at(values: npt.NDArray[Any], shares: Shares, ends: Shares) -> npt.NDArray[np.float64]:
    place = np.searchsorted(shares, ends, side="left")
    return values[np.minimum(place, len(values) - 1)].astype(np.float64)
