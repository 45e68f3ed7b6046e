"""Looks at a rotating device's layout: sectors a track, skews and heads, from the angles at which sectors pass.

A read from the media ends when its sector has passed; the time modulo the period is the sector's angle.  Sectors are read in falling
order, so that read-ahead never has them: on one track, angles differ by the sectors between them over the sectors a track, and at the end
of each track the skew comes on top (Worthington et al., SIGMETRICS 1995; Talagala, Arpaci-Dusseau and Patterson, "Microbenchmark-based
extraction of local and global disk characteristics", UC Berkeley 1999).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.bench.targets import Target
from experiments.calibration.fitting import Floats
from flashsim.core.request import READ, Integers, make_requests
from flashsim.core.rng import generator

#: A first distance between two sectors, less than a track of any drive; pairs that are read for it, and for the final one.
_FIRST, _FIRST_PAIRS, _PAIRS = 32, 7, 15
#: The pairs lie within so many such distances.
_SPAN = 64
#: Sectors a track that differ by less than this are those of one zone.
_SAME = 0.01
#: Reads a track while looking for skews, and tracks: more than two cylinders of a drive with 8 heads.
_A_TRACK, _TRACKS = 4, 20
#: Angles are this accurate, in turns; a skew is more.
_ANGLE = 0.02


@dataclass(frozen=True)
class Zone:
    """Sectors from `first` to before `end` that have `per_track` on a track."""

    first: int
    end: int
    per_track: int


@dataclass(frozen=True)
class Skews:
    """Between one track's end and the next one's begin, in turns: within a cylinder and to the next; and the heads.

    `heads` is 0 where both skews look alike, so that cylinders cannot be told.
    """

    track: float
    cylinder: float
    heads: int


class Platters:
    """A rotating device: its sectors and its period (ns)."""

    def __init__(self, target: Target, period: float, seed: int) -> None:
        self.target, self.period = target, period
        self.sector = target.least
        self.sectors = target.size // target.least
        self.random = generator(seed, "platters")

    def angles(self, sectors: Integers) -> Floats:
        """Where the platter is when these sectors have been read, one after another, in turns from 0 to 1."""
        completions = self.target.measure(make_requests(READ, sectors * self.sector, self.sector, serial=True), 0)
        turns: Floats = completions["completed"].astype(np.float64) / self.period % 1.0
        return turns

    def per_track(self, sector: int) -> float:
        rough = _FIRST / self._turn_between(sector, _FIRST, _FIRST_PAIRS)
        distance = max(_FIRST // 2, int(rough / 6))
        return distance / self._turn_between(sector, distance, _PAIRS)

    def _turn_between(self, sector: int, distance: int, pairs: int) -> float:
        span = _SPAN * max(distance, _FIRST)
        low = int(np.clip(sector - span // 2, 0, self.sectors - span - distance - 1))
        first = low + self.random.integers(0, span, pairs)
        angles = self.angles(np.stack([first + distance, first], axis=1).ravel()).reshape(pairs, 2)
        return float(np.median((angles[:, 0] - angles[:, 1]) % 1.0))

    def zones(self, most: int) -> list[Zone]:
        """The zones, from looks at `most` places: evenly first, then between neighbours that differ."""
        found = {int(place): self.per_track(int(place)) for place in np.linspace(0, self.sectors - 1, most // 2 + 1)}
        for _ in range(most - most // 2):
            places = sorted(found)
            gaps = [(high - low, low, high) for low, high in pairwise(places) if not _alike(found[low], found[high])]
            if not gaps:
                break
            _, low, high = max(gaps)
            found[(low + high) // 2] = self.per_track((low + high) // 2)
        return _merged(found, self.sectors)

    def skews(self, per_track: int) -> Skews:
        """The skews and heads at the begin of the device, where a track has `per_track` sectors."""
        step = per_track // _A_TRACK
        places = np.arange(_TRACKS * _A_TRACK + 1) * step
        angles = self.angles(places[::-1])[::-1]
        jumps = (np.diff(angles) - step / per_track + _ANGLE) % 1.0 - _ANGLE
        at = np.flatnonzero(jumps > _ANGLE)
        if len(at) == 0:
            return Skews(0.0, 0.0, 0)
        sizes = jumps[at]
        middle = (sizes.min() + sizes.max()) / 2
        large = sizes > middle
        if sizes.max() - sizes.min() < _ANGLE or large.sum() < 2 or large.all():
            return Skews(float(np.median(sizes)), float(np.median(sizes)), 0)
        tracks = np.rint(np.diff(at[large]) * step / per_track)
        return Skews(float(np.median(sizes[~large])), float(np.median(sizes[large])), int(np.median(tracks)))


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(one, other)


def _merged(found: dict[int, float], sectors: int) -> list[Zone]:
    places = sorted(found)
    groups = [[places[0]]]
    for place in places[1:]:
        if _alike(found[place], float(np.median([found[one] for one in groups[-1]]))):
            groups[-1].append(place)
        else:
            groups.append([place])
    edges = [0, *((before[-1] + after[0]) // 2 for before, after in pairwise(groups)), sectors]
    return [
        Zone(low, high, max(4, round(float(np.median([found[one] for one in group])))))
        for group, low, high in zip(groups, edges, edges[1:], strict=False)
    ]
