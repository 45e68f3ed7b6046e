"""Fits a rotating disk: period, zones, skews, heads, seeks, overhead, link and read-ahead, each measured by itself."""

from dataclasses import dataclass

import numpy as np

from experiments.bench.targets import Target
from experiments.calibration.arm import Electronics, SeekCurve, electronics, seek_curve
from experiments.calibration.fitting import Estimate
from experiments.calibration.rotating import Spinning
from experiments.calibration.tracks import Platters, Skews, Zone
from flashsim.core.parameters import build
from flashsim.core.protocols import Progress
from flashsim.core.units import GB, MICROSECONDS, SECONDS, format_duration, format_size
from flashsim.hdd.parameters import HddParameters

#: Places that are looked at for zones, and distances of seeks; fewer where time is short.
_PLACES, _DISTANCES = (8, 48), (8, 24)
#: Turns that a look at a place, or at a distance, takes about.
_TURNS_OF_PLACE, _TURNS_OF_DISTANCE = 90, 160
_ASSUMED_OVERHEAD = 100 * MICROSECONDS


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
    told = [Estimate("rotation", spinning.period, spinning.period - 1.96 * spinning.error, spinning.period + 1.96 * spinning.error)]
    for name, value in (
        ("seek single", curve.single),
        ("seek average", curve.average(cylinders)),
        ("seek full", curve.full(cylinders)),
    ):
        told.append(Estimate(name, value, max(1.0, value - width), value + width))
    return told


def _findings(zones: list[Zone], skews: Skews, inside: Electronics, curve: SeekCurve) -> list[str]:
    found = [f"{len(zones)} zones of {zones[0].per_track} to {zones[-1].per_track} sectors a track"]
    if skews.heads:
        found.append(f"{skews.heads} heads: skews of {skews.track:.1%} of a turn, and every {skews.heads} tracks {skews.cylinder:.1%}")
    else:
        found.append("heads cannot be told: all tracks follow with one skew")
    found.append(f"read-ahead of {format_size(inside.read_ahead)}" if inside.read_ahead else "no read-ahead was seen")
    found.append(f"seeks are known to {format_duration(round(float(np.median(curve.widths))))} each")
    return found
