"""Looks at a rotating device: whether it turns and how fast, sectors a track, skews and heads, from the angles at which sectors pass.

Reads of one sector that come from the media end at one angle, whatever happens in between: the times when they complete are congruent
modulo the rotation period.  The period is the longest one for which all these times have one phase; a device without platters has none
(Worthington, Ganger, Patt and Wilkes, "On-line extraction of SCSI disk drive parameters", SIGMETRICS 1995, re-read sectors for the same
end).

The time modulo the period is a sector's angle.  Sectors are read in falling order, so that read-ahead never has them: on one track, angles
differ by the sectors between them over the sectors a track, and at the end of each track the skew comes on top (Worthington et al.;
Talagala, Arpaci-Dusseau and Patterson, "Microbenchmark-based extraction of local and global disk characteristics", UC Berkeley 1999).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flashsim.apps.calibration.cells import Floats
from flashsim.core.request import READ, Integers, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import MILLISECONDS, format_duration
from flashsim.experiments.bench.targets import Target

#: Random reads that are faster than this come from no platter: half a turn at 15,000/min takes 2 ms.
_FASTEST = MILLISECONDS
#: First reads at random places, and the percentage of them that are not held up by what else the machine does, even a busy one.
_FIRST_READS, _UNDISTURBED = 64, 5
#: Periods that are looked for: 30,000 to 2,400 turns a minute.
_SHORTEST, _LONGEST = 2 * MILLISECONDS, 25 * MILLISECONDS
#: Times an anchor is read again, reads elsewhere before it (more where a cache of many segments still holds it).
_READS, _BETWEEN = 60, (1, 8, 32)
#: A read that takes less than this share of a usual one came from a cache.
_CACHED = 0.2
#: The mean of all phases, as unit vectors, is at least so long if something turns; of 30 arbitrary phases one in 10,000 is above 0.55.
_COHERENT = 0.7
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
class Spinning:
    """The rotation period, ns, and its standard error; 0 of a device that does not turn.  `finding` says why."""

    period: float
    error: float
    finding: str


def rotation_of(target: Target, seed: int) -> Spinning:
    """Decide by the data whether a device turns, and measure its period."""
    random = generator(seed, "rotation")
    somewhere = random.integers(0, target.size // target.least, _FIRST_READS) * target.least
    usual = float(np.percentile(response_times(target.measure(make_requests(READ, somewhere, target.least, serial=True), 0)), _UNDISTURBED))
    measurement = f"a random read of {target.least} B takes {format_duration(round(usual))} undisturbed"
    if usual < _FASTEST:
        return Spinning(0.0, 0.0, f"not rotating: {measurement}")
    for between in _BETWEEN:
        ends = _anchor_times(target, random, between, usual)
        if len(ends) >= _READS // 2:
            break
    else:
        return Spinning(0.0, 0.0, f"not rotating as far as can be told: {measurement}, and a sector that is read again comes from a cache")
    period, coherence = find_period(ends)
    if coherence < _COHERENT:
        return Spinning(0.0, 0.0, f"not rotating: {measurement}, but at no period (coherence {coherence:.2f})")
    turns = np.rint((ends - ends[0]) / period)
    slope, covariance = np.polyfit(turns, ends - ends[0], 1, cov=True)
    error = float(np.sqrt(max(covariance[0][0], 0.0)))
    finding = f"rotating: {60e9 / slope[0]:,.0f}/min, as {len(ends)} reads of one sector tell (coherence {coherence:.2f})"
    return Spinning(float(slope[0]), error, finding)


def _anchor_times(target: Target, random: np.random.Generator, between: int, usual: float) -> Floats:
    """Completion times of reads of one sector that did not come from a cache, ns."""
    sectors = target.size // target.least
    offsets = random.integers(0, sectors, (_READS, between + 1)) * target.least
    offsets[:, -1] = sectors // 3 * target.least
    completions = target.measure(make_requests(READ, offsets.ravel(), target.least, serial=True), 0)
    anchors = completions[between :: between + 1]
    return anchors["completed"][response_times(anchors) > _CACHED * usual].astype(np.float64)


def find_period(ends: Floats) -> tuple[float, float]:
    """The longest period at which all times have about one phase, and how well they agree (1: exactly).

    Examples
    --------
    >>> turns = np.array([0, 2, 3, 5, 9, 10, 12, 13, 17, 20, 23, 24])
    >>> period, coherence = find_period(turns * 8.0e6 + 1.0e6)
    >>> round(period / MILLISECONDS, 1), round(coherence, 2)
    (8.0, 1.0)
    """
    times = ends - ends[0]
    frequencies = np.arange(1 / _LONGEST, 1 / _SHORTEST, 0.05 / times.max())
    strength = np.concatenate([np.abs(np.exp(2j * np.pi * np.outer(part, times)).mean(axis=1)) for part in np.array_split(frequencies, 64)])
    first = int(np.argmax(strength >= 0.95 * strength.max()))
    near = slice(first, first + 40)  # up to the next whole peak: its top
    top = first + int(np.argmax(strength[near]))
    return float(1 / frequencies[top]), float(strength[top])


@dataclass(frozen=True)
class TrackZone:
    """Sectors from `first` to before `end` that have `per_track` on a track."""

    first: int
    end: int
    per_track: int


@dataclass(frozen=True)
class Skews:
    """Between one track's end and the next one's begin, in turns: within a cylinder and to the next; and the heads.

    `heads` is 0 where both skews look alike, so that cylinders are unknown.
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

    def times(self, sectors: Integers, lengths: int | Integers = 1, think: int | Integers = 0) -> Floats:
        """Times (ns) of reads, one after another, of the given lengths (sectors) from each of these sectors on."""
        offsets, sizes = sectors * self.sector, lengths * self.sector
        return response_times(self.target.measure(make_requests(READ, offsets, sizes, serial=True, think=think), 0)).astype(np.float64)

    def angles(self, sectors: Integers) -> Floats:
        """Angles of the platter after reads of these sectors, one after another, in turns from 0 to 1."""
        completions = self.target.measure(make_requests(READ, sectors * self.sector, self.sector, serial=True), 0)
        turns: Floats = completions["completed"].astype(np.float64) / self.period % 1.0
        return turns

    def per_track(self, sector: int) -> float:
        rough = _FIRST / self._turn(sector, _FIRST, _FIRST_PAIRS)
        distance = max(_FIRST // 2, int(rough / 6))
        return distance / self._turn(sector, distance, _PAIRS)

    def _turn(self, sector: int, distance: int, pairs: int) -> float:
        span = _SPAN * max(distance, _FIRST)
        low = int(np.clip(sector - span // 2, 0, self.sectors - span - distance - 1))
        first = low + self.random.integers(0, span, pairs)
        angles = self.angles(np.stack([first + distance, first], axis=1).ravel()).reshape(pairs, 2)
        return float(np.median((angles[:, 0] - angles[:, 1]) % 1.0))

    def zones(self, most: int) -> list[TrackZone]:
        """The zones, from looks at `most` places: evenly first, then between neighbours that differ."""
        per_track = {int(place): self.per_track(int(place)) for place in np.linspace(0, self.sectors - 1, most // 2 + 1)}
        for _ in range(most - most // 2):
            places = sorted(per_track)
            gaps = [(high - low, low, high) for low, high in pairwise(places) if not _alike(per_track[low], per_track[high])]
            if not gaps:
                break
            _, low, high = max(gaps)
            per_track[(low + high) // 2] = self.per_track((low + high) // 2)
        return _zones(per_track, self.sectors)

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


def _zones(per_track: dict[int, float], sectors: int) -> list[TrackZone]:
    places = sorted(per_track)
    groups = [[places[0]]]
    for place in places[1:]:
        if _alike(per_track[place], float(np.median([per_track[one] for one in groups[-1]]))):
            groups[-1].append(place)
        else:
            groups.append([place])
    edges = [0, *((before[-1] + after[0]) // 2 for before, after in pairwise(groups)), sectors]
    return [
        TrackZone(low, high, max(4, round(float(np.median([per_track[one] for one in group])))))
        for group, low, high in zip(groups, edges, edges[1:], strict=False)
    ]
