"""Does something turn in there, and how fast?  Reads of one sector that come from the media end at one angle, whatever happens in between.

The times when such reads complete are then congruent modulo the rotation period.  The period is the longest one for which all these times
have one phase; a device without platters has none (Worthington, Ganger, Patt and Wilkes, "On-line extraction of SCSI disk drive
parameters", SIGMETRICS 1995, re-read sectors for the same end).
"""

from dataclasses import dataclass

import numpy as np

from experiments.bench.targets import Target
from experiments.calibration.fitting import Floats
from flashsim.core.request import READ, Completions, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import MILLISECONDS, format_duration

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
    usual = float(np.percentile(_times(target.measure(make_requests(READ, somewhere, target.least, serial=True), 0)), _UNDISTURBED))
    said = f"a random read of {target.least} B takes {format_duration(round(usual))} undisturbed"
    if usual < _FASTEST:
        return Spinning(0.0, 0.0, f"not rotating: {said}")
    for between in _BETWEEN:
        ends = _anchored(target, random, between, usual)
        if len(ends) >= _READS // 2:
            break
    else:
        return Spinning(0.0, 0.0, f"not rotating as far as can be told: {said}, and a sector that is read again comes from a cache")
    period, coherence = find_period(ends)
    if coherence < _COHERENT:
        return Spinning(0.0, 0.0, f"not rotating: {said}, but at no period (coherence {coherence:.2f})")
    turns = np.rint((ends - ends[0]) / period)
    slope, covariance = np.polyfit(turns, ends - ends[0], 1, cov=True)
    error = float(np.sqrt(max(covariance[0][0], 0.0)))
    finding = f"rotating: {60e9 / slope[0]:,.0f}/min, as {len(ends)} reads of one sector tell (coherence {coherence:.2f})"
    return Spinning(float(slope[0]), error, finding)


def _anchored(target: Target, random: np.random.Generator, between: int, usual: float) -> Floats:
    """When reads of one sector completed that did not come from a cache, ns."""
    sectors = target.size // target.least
    offsets = random.integers(0, sectors, (_READS, between + 1)) * target.least
    offsets[:, -1] = sectors // 3 * target.least
    completions = target.measure(make_requests(READ, offsets.ravel(), target.least, serial=True), 0)
    anchors = completions[between :: between + 1]
    return anchors["completed"][_times(anchors) > _CACHED * usual].astype(np.float64)


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


def _times(completions: Completions) -> Floats:
    return (completions["completed"] - completions["submitted"]).astype(np.float64)
