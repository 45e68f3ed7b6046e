"""Seek times by distance, from a curve, a formula or a measurement, and their mean."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers
from flashsim.core.units import MILLISECONDS
from flashsim.hdd.description import DriveDescription

Floats = npt.NDArray[np.float64]


def seek_curve(parameters: DriveDescription) -> Integers:
    """Seek times of a drive: nanoseconds by distance in cylinders, shape (cylinders,); 0 for distance 0.

    A measured table counts before a formula, and that before Lee's curve; explicit first seeks count before all.
    """
    if parameters.seek_table:
        curve = measured_curve(parameters.cylinders, parameters.seek_table)
    elif parameters.seek_formula:
        curve = two_part_curve(parameters.cylinders, parameters.seek_formula[0])
    else:
        curve = lee_curve(parameters.cylinders, parameters.seek_single, parameters.seek_average, parameters.seek_full).copy()
    first = np.array([row[0] for row in parameters.seek_first[: parameters.cylinders - 1]], np.float64)
    curve[1 : 1 + len(first)] = np.rint(first * MILLISECONDS)
    return curve


@lru_cache(maxsize=4)
def lee_curve(cylinders: int, single: int, average: int, full: int) -> Integers:
    """Seek times by distance.

    ``t(x) = a sqrt(x - 1) + b (x - 1) + c`` with ``a = (-10 c + 15 average - 5 full) / (3 sqrt(N))``,
    ``b = (7 c - 15 average + 8 full) / (3 N)``, ``c = single``: its mean over random pairs of cylinders is `average`.

    N is the drive's cylinders; `single`, `average` and `full` are nanoseconds for one cylinder, on average, and for all.  Returns
    nanoseconds by distance in cylinders, shape (cylinders,); 0 for distance 0.

    Source: Lee and Katz, "An analytic performance model of disk arrays", SIGMETRICS 1993; DiskSim's manual of disk models, 1.5.1.
    """
    a = (-10 * single + 15 * average - 5 * full) / (3 * math.sqrt(cylinders))
    b = (7 * single - 15 * average + 8 * full) / (3 * cylinders)
    steps = np.arange(cylinders - 1, dtype=np.float64)  # distance - 1
    times = np.zeros(cylinders, np.int64)
    times[1:] = np.rint(a * np.sqrt(steps) + b * steps + single)
    return times


def two_part_curve(cylinders: int, row: Sequence[float]) -> Integers:
    """Seek times by distance x: ``a + b sqrt(x)`` below a boundary, ``c + d x`` from there on.

    A row is the boundary in cylinders, then a, b, c and d in milliseconds.

    Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994; DiskSim's manual of disk models,
    1.5.2.

    The HP 97560's curve, 3.24 + 0.400 sqrt(x) and 8.00 + 0.008 x, at 100 and 1000 cylinders:

    >>> two_part_curve(1962, (383, 3.24, 0.4, 8.0, 0.008))[[100, 1000]].tolist()
    [7240000, 16000000]
    """
    boundary, a, b, c, d = row
    distance = np.arange(cylinders, dtype=np.float64)
    times = np.rint(np.where(distance < boundary, a + b * np.sqrt(distance), c + d * distance) * MILLISECONDS).astype(np.int64)
    times[0] = 0
    return times


def measured_curve(cylinders: int, rows: Sequence[Sequence[float]]) -> Integers:
    """Seek times by distance from measured ones, linear between them and beyond the last as between the last two.

    Rows are (cylinders, milliseconds), distances ascending; below the first the time is that of the first.
    """
    points = np.array(rows, np.float64)
    distance = np.arange(cylinders, dtype=np.float64)
    milliseconds = np.interp(distance, points[:, 0], points[:, 1])
    if len(points) > 1:
        (before, earlier), (last, latest) = points[-2:]
        milliseconds = np.where(distance > last, latest + (distance - last) * (latest - earlier) / (last - before), milliseconds)
    times = np.rint(milliseconds * MILLISECONDS).astype(np.int64)
    times[0] = 0
    return times


def random_distances(weights: Floats) -> Floats:
    """The probability of each distance between two cylinders drawn independently with the given weights.

    Weights, shape (cylinders,), are all equal for random cylinders, and sectors a cylinder for random addresses.  Returns shape
    (cylinders,), which sums to 1.
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
