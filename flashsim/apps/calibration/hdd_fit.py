"""Fits a rotating disk: period, zones, skews, heads, seeks over distance, overhead, link and read-ahead, each measured by itself."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from flashsim.apps.calibration.cells import Estimate, Fit, Floats
from flashsim.apps.calibration.rotating import Platters, Skews, Spinning, TrackZone
from flashsim.core.parameters import build
from flashsim.core.protocols import Progress
from flashsim.core.units import GB, KIB, MIB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.experiments.bench.targets import Target
from flashsim.hdd.parameters import HddParameters

#: Seeks of each distance.
_SEEKS = 40
#: Reads from the cache, their sizes, and repeats of each.
_HIT_SIZES, _HITS = (1, 32, 64, 128, 192), 9
#: The longest read-ahead that is looked for.
_MOST_AHEAD = 32 * MIB
#: Places that are looked at for zones, and distances of seeks; fewer where time is short.
_PLACES, _DISTANCES = (8, 48), (8, 24)
#: Turns that a look at a place, or at a distance, takes about.
_TURNS_OF_PLACE, _TURNS_OF_DISTANCE = 90, 160
_ASSUMED_OVERHEAD = 100 * MICROSECONDS


@dataclass(frozen=True)
class SeekCurve:
    """``t(x) = root sqrt(x - 1) + slope (x - 1) + single`` ns for x cylinders."""

    root: float
    slope: float
    single: float
    #: Width of the interval in which the time of each measured distance lies, ns.
    widths: Floats
    #: The standard deviation of the measured times about the curve, ns.
    error: float

    def average(self, cylinders: int) -> float:
        """The average of Lee's formula for a drive with that number of cylinders (`flashsim.hdd.state.seek.lee_curve`), ns."""
        return (3 * np.sqrt(cylinders) * self.root + 10 * self.single + 5 * self.full(cylinders)) / 15

    def full(self, cylinders: int) -> float:
        """The seek across all cylinders of Lee's formula, ns."""
        return float(self.single + np.sqrt(cylinders) * self.root + cylinders * self.slope)


class Electronics(NamedTuple):
    """Ns of a command, bytes a second, and bytes; the overhead is 0 where nothing is read ahead, so that it is unknown."""

    overhead: float
    link_rate: float
    read_ahead: int


def seek_curve(platters: Platters, zones: list[TrackZone], heads: int, overhead: float, points: int) -> SeekCurve:
    """Measure seeks of `points` distances, backwards, to random angles.

    An access takes the seek and then at most one turn: it lies between the seek and a turn more.  So the seek lies between the longest
    access less a turn and the shortest.  The curve is fitted by least squares with no negative part, so that it never falls; exact points
    count more.
    """
    cylinders = sum((zone.end - zone.first) // (zone.per_track * heads) for zone in zones)
    distances = np.unique(np.rint(np.geomspace(1, 0.9 * cylinders, points))).astype(np.int64)
    accesses = np.array([_accesses(platters, zones, heads, distance) - overhead for distance in distances.tolist()])
    low, high = accesses.max(axis=1) - platters.period, accesses.min(axis=1)
    times, widths = (low + high) / 2, np.abs(high - low)
    weight = 1 / np.maximum(widths, np.median(widths) / 4)
    steps = distances.astype(np.float64) - 1.0
    columns = np.stack([np.sqrt(steps), steps, np.ones(len(steps))], axis=1)
    solution, _ = nnls(columns * weight[:, None], np.maximum(times, 1.0) * weight)
    root, slope, single = solution.tolist()
    return SeekCurve(root, slope, max(1.0, single), widths, float(np.std(times - columns @ solution)))


def _accesses(platters: Platters, zones: list[TrackZone], heads: int, distance: int) -> Floats:
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
        turn = int((number + platters.random.random()) / _SEEKS * target_track)
        sectors += [begin + per_track * heads // 2, target + target_track * heads // 2 + turn]
    return platters.times(np.minimum(np.array(sectors), platters.sectors - 1))[1::2]


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
    return platters.times(sectors, np.tile([1, size], repeats), np.tile([0, wait], repeats))[1::2]


def fit(target: Target, spinning: Spinning, time: int, seed: int, progress: Progress | None = None) -> Fit:
    """Measure and fit a disk that turns, within about `time` ns."""
    platters = Platters(target, spinning.period, seed)
    turns = time / spinning.period
    places = int(np.clip(turns / 2 / _TURNS_OF_PLACE, *_PLACES))
    distances = int(np.clip(turns / 2 / _TURNS_OF_DISTANCE, *_DISTANCES))
    stages = iter(range(4))

    def tell(message: str) -> None:
        if progress:
            progress(next(stages), 4, message)

    tell("zones")
    zones = platters.zones(places)
    tell("skews")
    skews = platters.skews(zones[0].per_track)
    heads = max(1, skews.heads)
    tell("cache and link")
    rate = zones[-1].per_track * platters.sector * SECONDS / spinning.period / 1.3
    inside = electronics(platters, rate)
    tell("seeks")
    overhead = (inside.overhead or _ASSUMED_OVERHEAD) + spinning.period / zones[0].per_track
    curve = seek_curve(platters, zones, heads, overhead, distances)
    rows = [[-(-(zone.end - zone.first) // (zone.per_track * heads)), zone.per_track] for zone in zones]
    cylinders = sum(count for count, _ in rows)
    seeks = {"single": curve.single, "average": curve.average(cylinders), "full": curve.full(cylinders)}
    values = _values(target, spinning, rows, skews, inside, curve, seeks)
    width = 1.96 * curve.error / np.sqrt(max(1, len(curve.widths) - 3))
    estimates = [Estimate("rotation", spinning.period, spinning.period - 1.96 * spinning.error, spinning.period + 1.96 * spinning.error)]
    estimates += [Estimate(f"seek {name}", value, max(1.0, value - width), value + width) for name, value in seeks.items()]
    parameters = build(HddParameters, {name: value for name, (value, _) in values.items()})
    sources = {name: source for name, (_, source) in values.items()}
    return Fit(parameters, sources, estimates, _findings(zones, skews, inside, curve))


def _values(
    target: Target, spinning: Spinning, zones: list[list[int]], skews: Skews, inside: Electronics, curve: SeekCurve, seeks: dict[str, float]
) -> dict[str, tuple[Any, str]]:
    """The value and the source of every parameter."""
    assumption = "assumed: reads do not tell"
    curve_source = f"measured: seeks of {len(curve.widths)} distances, {format_duration(round(curve.error))} about the curve"
    hits = "measured: reads of what was read ahead" if inside.overhead else assumption
    tracks = "measured: tracks between the larger skews" if skews.heads else "assumed: cylinders cannot be told from tracks"
    ahead = inside.read_ahead // target.least * target.least
    return {
        "capacity": (target.size, "measured: what was used"),
        "sector_size": (target.least, "measured: the least request that is taken"),
        "rotation": (round(spinning.period), f"measured: standard error {spinning.error:.3g} ns"),
        "heads": (max(1, skews.heads), tracks),
        "zones": (zones, "measured: angles of sectors"),
        **{f"seek_{name}": (max(1, round(value)), curve_source) for name, value in seeks.items()},
        "head_switch": (round(skews.track * spinning.period) if skews.heads else 0, "measured: skew between tracks of a cylinder"),
        "write_settle": (0, assumption),
        "link_rate": (round(inside.link_rate) or 10 * GB, hits),
        "overhead": (round(inside.overhead) or _ASSUMED_OVERHEAD, hits),
        "read_ahead": (ahead, "measured: how far after a read the next one is served at once"),
        "write_behind": (ahead, f"{assumption}; as the read-ahead"),
        "queue_depth": (1, assumption),
    }


def _findings(zones: list[TrackZone], skews: Skews, inside: Electronics, curve: SeekCurve) -> list[str]:
    findings = [f"{len(zones)} zones of {zones[0].per_track} to {zones[-1].per_track} sectors a track"]
    if skews.heads:
        findings.append(f"{skews.heads} heads: skews of {skews.track:.1%} of a turn, and every {skews.heads} tracks {skews.cylinder:.1%}")
    else:
        findings.append("heads cannot be told: all tracks follow with one skew")
    findings.append(f"read-ahead of {format_size(inside.read_ahead)}" if inside.read_ahead else "no read-ahead was seen")
    findings.append(f"seeks are known to {format_duration(round(float(np.median(curve.widths))))} each")
    return findings
