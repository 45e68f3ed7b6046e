"""Fits a rotating disk: period, zones, skews, heads, seeks over distance, overhead, link and read-ahead, each measured by itself."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from flashsim.core.parameters import build
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, make_requests
from flashsim.core.units import GB, KIB, MIB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.hdd.parameters import HddParameters
from flashsim.studies.bench.targets import Target
from flashsim.studies.calibration.fitting import Estimate, Floats
from flashsim.studies.calibration.rotating import Platters, Skews, Spinning, Zone

#: Seeks of each distance.
_SEEKS = 40
#: Reads from the cache, their sizes, and repeats of each.
_HIT_SIZES, _HITS = (1, 32, 64, 128, 192), 9
#: How far ahead is looked for what was read ahead.
_MOST_AHEAD = 32 * MIB
#: Places that are looked at for zones, and distances of seeks; fewer where time is short.
_PLACES, _DISTANCES = (8, 48), (8, 24)
#: Turns that a look at a place, or at a distance, takes about.
_TURNS_OF_PLACE, _TURNS_OF_DISTANCE = 90, 160
_ASSUMED_OVERHEAD = 100 * MICROSECONDS


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


@dataclass(frozen=True)
class HddFit:
    """A fitted disk, with the source of each value and what else was found."""

    parameters: HddParameters
    sources: dict[str, str]
    estimates: list[Estimate]
    findings: list[str]


def fit(target: Target, spinning: Spinning, time: int, seed: int, progress: Progress | None = None) -> HddFit:
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
    return _disk(target, spinning, zones, skews, inside, curve)


def _disk(target: Target, spinning: Spinning, zones: list[Zone], skews: Skews, inside: Electronics, curve: SeekCurve) -> HddFit:
    heads, period = max(1, skews.heads), spinning.period
    rows = [[-(-(zone.end - zone.first) // (zone.per_track * heads)), zone.per_track] for zone in zones]
    cylinders = sum(count for count, _ in rows)
    head_switch = round(skews.track * period) if skews.heads else 0
    single, full = curve.single, curve.full(cylinders)
    values = {
        "capacity": target.size,
        "sector_size": target.least,
        "rotation": round(period),
        "heads": heads,
        "zones": rows,
        "seek_single": max(1, round(single)),
        "seek_average": max(1, round(curve.average(cylinders))),
        "seek_full": max(1, round(full)),
        "head_switch": head_switch,
        "write_settle": 0,
        "link_rate": round(inside.link_rate) or 10 * GB,
        "overhead": round(inside.overhead) or _ASSUMED_OVERHEAD,
        "read_ahead": inside.read_ahead // target.least * target.least,
        "write_behind": inside.read_ahead // target.least * target.least,
        "queue_depth": 1,
    }
    assumed = "assumed: reads do not tell"
    seeks = f"measured: seeks of {len(curve.distances)} distances, {format_duration(round(curve.error))} about the curve"
    hits = "measured: reads of what was read ahead" if inside.overhead else assumed
    sources = {
        "capacity": "measured: what was used",
        "sector_size": "measured: the least request that is taken",
        "rotation": f"measured: standard error {spinning.error:.3g} ns",
        "heads": "measured: tracks between the larger skews" if skews.heads else "assumed: cylinders cannot be told from tracks",
        "zones": "measured: angles of sectors",
        "seek_single": seeks,
        "seek_average": seeks,
        "seek_full": seeks,
        "head_switch": "measured: skew between tracks of a cylinder",
        "write_settle": assumed,
        "link_rate": hits,
        "overhead": hits,
        "read_ahead": "measured: how far after a read the next one is served at once",
        "write_behind": f"{assumed}; as the read-ahead",
        "queue_depth": assumed,
    }
    return HddFit(build(HddParameters, values), sources, _estimates(spinning, curve, cylinders), _findings(zones, skews, inside, curve))


def _estimates(spinning: Spinning, curve: SeekCurve, cylinders: int) -> list[Estimate]:
    width = 1.96 * curve.error / np.sqrt(max(1, len(curve.distances) - 3))
    estimates = [Estimate("rotation", spinning.period, spinning.period - 1.96 * spinning.error, spinning.period + 1.96 * spinning.error)]
    for name, value in (
        ("seek single", curve.single),
        ("seek average", curve.average(cylinders)),
        ("seek full", curve.full(cylinders)),
    ):
        estimates.append(Estimate(name, value, max(1.0, value - width), value + width))
    return estimates


def _findings(zones: list[Zone], skews: Skews, inside: Electronics, curve: SeekCurve) -> list[str]:
    findings = [f"{len(zones)} zones of {zones[0].per_track} to {zones[-1].per_track} sectors a track"]
    if skews.heads:
        findings.append(f"{skews.heads} heads: skews of {skews.track:.1%} of a turn, and every {skews.heads} tracks {skews.cylinder:.1%}")
    else:
        findings.append("heads cannot be told: all tracks follow with one skew")
    findings.append(f"read-ahead of {format_size(inside.read_ahead)}" if inside.read_ahead else "no read-ahead was seen")
    findings.append(f"seeks are known to {format_duration(round(float(np.median(curve.widths))))} each")
    return findings
