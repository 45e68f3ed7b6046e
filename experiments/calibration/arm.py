"""Looks at a rotating device's arm and electronics: seeks over distance, the command's overhead, the link and the read-ahead."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from experiments.calibration.fitting import Floats
from experiments.calibration.tracks import Platters, Zone
from flashsim.core.request import READ, make_requests
from flashsim.core.units import KIB, MIB, SECONDS

#: Seeks of each distance.
_SEEKS = 40
#: Reads from the cache, their sizes, and repeats of each.
_HIT_SIZES, _HITS = (1, 32, 64, 128, 192), 9
#: How far ahead is looked for what was read ahead.
_MOST_AHEAD = 32 * MIB


@dataclass(frozen=True)
class SeekCurve:
    """``t(x) = root sqrt(x - 1) + slope (x - 1) + single`` ns for x cylinders, and what was measured of it.

    Parameters
    ----------
    distances, times, widths
        Cylinders, ns, and the width of the interval that each time is known to lie in.
    error
        The standard deviation of the measured times about the curve, ns.
    """

    root: float
    slope: float
    single: float
    distances: Floats
    times: Floats
    widths: Floats
    error: float

    def at(self, distance: float) -> float:
        """The time for some cylinders, ns."""
        return float(self.root * np.sqrt(distance - 1) + self.slope * (distance - 1) + self.single)

    def average(self, cylinders: int) -> float:
        """What Lee's formula calls the average of a drive with so many cylinders (`flashsim.hdd.state.seek.lee_curve`), ns."""
        return (3 * np.sqrt(cylinders) * self.root + 10 * self.single + 5 * self.full(cylinders)) / 15

    def full(self, cylinders: int) -> float:
        """What Lee's formula calls a seek across all cylinders, ns."""
        return float(self.single + np.sqrt(cylinders) * self.root + cylinders * self.slope)


@dataclass(frozen=True)
class Electronics:
    """Ns of a command, bytes a second, and bytes; the overhead is 0 where nothing is read ahead, so that it cannot be told."""

    overhead: float
    link_rate: float
    read_ahead: int


def seek_curve(platters: Platters, zones: list[Zone], heads: int, overhead: float, points: int) -> SeekCurve:
    """Measure seeks of `points` distances, backwards, to random angles.

    An access takes the seek and then at most one turn: it lies between the seek and a turn more.  So the seek lies between the longest
    access less a turn and the shortest.
    """
    cylinders = sum((zone.end - zone.first) // (zone.per_track * heads) for zone in zones)
    distances = np.unique(np.rint(np.geomspace(1, 0.9 * cylinders, points))).astype(np.int64)
    times, widths = [], []
    for distance in distances.tolist():
        accesses = _accesses(platters, zones, heads, distance) - overhead
        low, high = accesses.max() - platters.period, accesses.min()
        times.append((low + high) / 2)
        widths.append(abs(high - low))
    root, slope, single, error = _fit(distances.astype(np.float64), np.array(times), np.array(widths))
    return SeekCurve(root, slope, single, distances.astype(np.float64), np.array(times), np.array(widths), error)


def _accesses(platters: Platters, zones: list[Zone], heads: int, distance: int) -> Floats:
    """Access times (ns) of reads so many cylinders before the one before."""
    edges = np.array([0, *np.cumsum([(zone.end - zone.first) // (zone.per_track * heads) for zone in zones])])

    def sector_of(cylinder: int) -> tuple[int, int]:
        row = int(np.clip(np.searchsorted(edges, cylinder, "right") - 1, 0, len(zones) - 1))
        zone = zones[row]
        return zone.first + (cylinder - int(edges[row])) * zone.per_track * heads, zone.per_track

    sectors = []
    for number in range(_SEEKS):
        source = int(platters.random.integers(distance, edges[-1]))
        begin, per_track = sector_of(source)
        target, target_track = sector_of(source - distance)
        half = per_track * heads // 2
        turn = int((number + platters.random.random()) / _SEEKS * target_track)
        sectors += [begin + half, min(target + target_track * heads // 2 + turn, platters.sectors - 1)]
    offsets = np.minimum(np.array(sectors), platters.sectors - 1) * platters.sector
    completions = platters.target.measure(make_requests(READ, offsets, platters.sector, serial=True), 0)[1::2]
    times: Floats = (completions["completed"] - completions["submitted"]).astype(np.float64)
    return times


def _fit(distances: Floats, times: Floats, widths: Floats) -> tuple[float, float, float, float]:
    """Least squares with no negative part, so that the curve never falls; exact points count more."""
    weight = 1 / np.maximum(widths, np.median(widths) / 4)
    steps = distances - 1.0
    columns = np.stack([np.sqrt(steps), steps, np.ones(len(steps))], axis=1)
    found, _ = nnls(columns * weight[:, None], np.maximum(times, 1.0) * weight)
    return float(found[0]), float(found[1]), max(1.0, float(found[2])), float(np.std(times - columns @ found))


def electronics(platters: Platters, rate: float) -> Electronics:
    """Measure reads that the drive has already read ahead; `rate` is that of its media, bytes a second."""
    wait = int(1.5 * 256 * KIB * SECONDS / rate + 2 * platters.period)
    medians = [float(np.median(_ahead(platters, 1, size, wait, _HITS))) for size in _HIT_SIZES]
    if medians[0] > platters.period / 4:
        return Electronics(0.0, 0.0, 0)
    slope, overhead = np.polyfit(np.array(_HIT_SIZES) * platters.sector, medians, 1)
    low, high = max(_HIT_SIZES) * platters.sector, _MOST_AHEAD
    while high - low > max(platters.sector, low // 32):
        middle = (low + high) // 2 // platters.sector * platters.sector
        there = _ahead(platters, middle // platters.sector, 1, int(1.2 * middle * SECONDS / rate + 4 * platters.period), 6)
        low, high = (middle, high) if np.sort(there)[-2] < platters.period / 8 else (low, middle)  # a miss may be lucky, a hit held up
    return Electronics(max(1.0, float(overhead)), SECONDS / max(float(slope), 1e-3), low)


def _ahead(platters: Platters, distance: int, size: int, wait: int, repeats: int) -> Floats:
    """Times (ns) of reads of `size` sectors that begin `distance` sectors after the end of another, `wait` ns later."""
    last = max(2, platters.sectors - distance - size - 1)
    first = platters.random.integers(0, last, repeats)
    sectors = np.stack([first, first + distance], axis=1).ravel()
    lengths = np.tile([1, size], repeats) * platters.sector
    think = np.tile([0, wait], repeats)
    requests = make_requests(READ, sectors * platters.sector, lengths, serial=True, think=think)
    completions = platters.target.measure(requests, 0)[1::2]
    times: Floats = (completions["completed"] - completions["submitted"]).astype(np.float64)
    return times
