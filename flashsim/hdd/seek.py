"""How long the arm takes to move: Lee's seek curve, and its mean over a distribution of distances."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers

Floats = npt.NDArray[np.float64]


def lee_curve(cylinders: int, single: int, average: int, full: int) -> Integers:
    """Seek times by distance.

    ``t(x) = a sqrt(x - 1) + b (x - 1) + c`` with ``a = (-10 c + 15 average - 5 full) / (3 sqrt(N))``,
    ``b = (7 c - 15 average + 8 full) / (3 N)``, ``c = single``: its mean over random pairs of cylinders is `average`.

    Parameters
    ----------
    cylinders
        N, the cylinders of the drive.
    single, average, full
        Nanoseconds for one cylinder, on average, and for all.

    Returns
    -------
    Integers
        Nanoseconds by distance in cylinders, shape (cylinders,); 0 for distance 0.

    References
    ----------
    Lee and Katz, "An analytic performance model of disk arrays", SIGMETRICS 1993; DiskSim's manual of disk models, 1.5.1.
    """
    a = (-10 * single + 15 * average - 5 * full) / (3 * math.sqrt(cylinders))
    b = (7 * single - 15 * average + 8 * full) / (3 * cylinders)
    steps = np.arange(cylinders - 1, dtype=np.float64)  # distance - 1
    times = np.zeros(cylinders, np.int64)
    times[1:] = np.rint(a * np.sqrt(steps) + b * steps + single)
    return times


def random_distances(weights: Floats) -> Floats:
    """The probability of each distance between two cylinders drawn independently with the given weights.

    Parameters
    ----------
    weights
        Shape (cylinders,); all equal for random cylinders, sectors a cylinder for random addresses.

    Returns
    -------
    Floats
        Shape (cylinders,), sums to 1.
    """
    share = weights / weights.sum()
    length = len(share)
    spectrum = np.fft.rfft(share, 2 * length)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, 2 * length)[:length]
    correlation[1:] *= 2
    return np.maximum(correlation, 0.0) / correlation.sum()


def mean_seek(curve: Integers, weights: Floats) -> float:
    """Mean nanoseconds of a seek between random positions, distance 0 excluded (that is no seek)."""
    chances = random_distances(weights)[1:]
    return float(chances @ curve[1:] / chances.sum()) if len(chances) else 0.0
