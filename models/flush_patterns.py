"""Calls and requests with which hash partitioning writes its buckets: numbers and lengths.

Tuples fall into B buckets like balls into bins.  Traditional partitioning writes a bucket's buffer when it is full.  N-Hash has a circular
buffer of n sub-buffers a bucket, and when one of them is full it writes the full sub-buffers of all of them in one call: as one request
where they lie side by side, as two where they run over the buffer's end.

Source: Shin et al., "Optimizing hash partitioning for solid state drives", SAC 2016, section 3: here *shin2016*.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import check_least

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlushPattern:
    """Calls and requests that write the buckets of one file."""

    #: While tuples come; all requests together.
    calls: int
    requests: float
    tuples: float  #: That these move.
    last: float  #: Requests at the end, for what is left, in one call of N-Hash; of the traditional method each is a call.
    fill: float  #: Share of the output buffers that a call empties.

    @property
    def at_once(self) -> float:
        return self.requests / max(1, self.calls)

    @property
    def length(self) -> float:
        return self.tuples / max(1.0, self.requests)


def traditional(buckets: int, room: float, tuples: float) -> FlushPattern:
    """Output buffers with room for `room` tuples: each is a call and a request, and a last one of each bucket is written half full.

    >>> traditional(4, 10, 1000)
    FlushPattern(calls=98, requests=98, tuples=980, last=4, fill=0.25)
    """
    check_least(1, buckets=buckets, room=room)
    calls = max(0, math.floor(tuples / room - buckets / 2))
    return FlushPattern(calls, calls, calls * room, min(buckets, tuples), 1 / buckets)


@lru_cache(maxsize=4096)
def n_hash(buckets: int, slots: int, room: float, tuples: float) -> FlushPattern:
    """Circular buffers of some sub-buffers, by balls into bins.

    That a sub-buffer is full shows when a tuple does not fit any more.  So of every circular buffer but the one that was full, a call
    leaves a sub-buffer with anything between one tuple and all of its `room` c.  When x more tuples have come to each on the average, one
    has received a number N that is Poisson with mean x, and holds the K = n c of a full buffer or fewer with probability

        P(x) = (G(K - 1) - G(K - c - 1)) / c,    G(m) = (m + 1) Q(m) - x Q(m - 1),    Q(m) = P(N <= m).

    The one that was full has nothing left, so none overflows by x with probability P(x)^(B - 1) Q(K), whose integral over x is the mean
    at which one does; the tuple that finds no room belongs to the next call.  As many tuples as come are written, in whole sub-buffers.
    A circular buffer has none to write with probability G(c - 1) / c; m of them run over the end in m - 1 of n places, but for the first
    time.  One that is not divided is written when it is full, as a traditional one.

    `buckets` is B, `slots` n, `room` the tuples that a sub-buffer holds, c, and `tuples` those that are put to the buffers.

    Raises InvalidParameterError: less than one of the three.

    Shin et al., table 1, 10 MB: 259 buckets, 32 KiB in sub-buffers of 8 KiB with 56 tuples, 15 million tuples.

    >>> pattern = n_hash(259, 4, 56, 15_000_000)
    >>> pattern.calls, round(pattern.at_once), round(8 * pattern.length / 56, 1), round(pattern.fill, 2)
    (400, 361, 14.8, 0.65)
    """
    check_least(1, buckets=buckets, slots=slots, room=room)
    if slots == 1:
        return traditional(buckets, room, tuples)
    capacity = slots * room

    from scipy.special import gammaincc  # which every join would wait for

    def none_full(x: Floats) -> Floats:
        others = _holds(x, capacity - 1, room) ** (buckets - 1)
        return others * gammaincc(capacity + 1, x)

    arrivals = _window(none_full, capacity)
    quiet = none_full(arrivals)
    mean = float(arrivals[0] + np.trapezoid(quiet, arrivals)) - 1 / buckets
    ends = -np.diff(quiet)
    idle = float(ends @ _holds((arrivals[1:] + arrivals[:-1]) / 2, room - 1, room) / max(ends.sum(), 1e-300))
    parts, written = mean / room, 1 - idle  # sub-buffers of a circular buffer, and circular buffers of which some are written
    calls = math.floor(tuples / (buckets * mean))
    wrapped = max(0.0, parts - written) / slots * (calls - 1) / max(1, calls)
    rest = tuples - calls * buckets * mean
    last = buckets * min(1.0, rest) * (1 + min(1.0, rest / (buckets * capacity)) * (calls > 0))
    return FlushPattern(calls, calls * buckets * (written + wrapped), calls * buckets * mean, last, parts / slots)


def _holds(arrivals: Floats, most: float, room: float) -> Floats:
    """Probability that no more than so many tuples have come, or up to c - 1 fewer, each as likely."""
    below = _partial_sum(most - room, arrivals) if most >= room else 0.0
    return np.clip((_partial_sum(most, arrivals) - below) / room, 0.0, 1.0)


def _partial_sum(most: float, mean: Floats) -> Floats:
    """G(m): the sum of P(N <= j) over j = 0 .. m for a Poisson N."""
    from scipy.special import gammaincc

    return (most + 1) * gammaincc(most + 1, mean) - mean * (gammaincc(most, mean) if most > 0 else 0.0)


def _window(quiet: Callable[[Floats], Floats], capacity: float) -> Floats:
    """257 numbers of tuples over which the probability that no buffer has overflowed falls from one to nothing."""
    coarse = capacity * np.geomspace(1e-5, 1 + 9 / math.sqrt(capacity) + 9 / capacity, 257)
    chances = quiet(coarse)
    first, last = int(np.argmax(chances < 1 - 1e-4)), int(np.argmax(chances < 1e-6))
    return np.linspace(coarse[first - 1] if first else 0.0, coarse[last] if last else coarse[-1], 257)
