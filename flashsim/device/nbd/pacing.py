"""Simulated time held against real time: requests enter the drive when they come, and completions are told when they are due.

With a time scale F, simulated time passes F times slower than real time: a request that arrives R real nanoseconds after the start is
submitted at R / F, and one that completes at S is due F * S after the start.  Between two calls the drive stands still, so it never runs
ahead of what may still arrive.  With F = 0 nothing is imposed: requests that come together are submitted together, at once when all
before them are done.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from flashsim.core.errors import InvalidParameterError, ReadOnlyDeviceError
from flashsim.core.request import Completions, Integers, Requests
from flashsim.core.units import NEVER
from flashsim.device.device import Device


def check_scale(scale: float) -> None:
    """Refuse a time scale that is negative, infinite, or no number."""
    if not 0 <= scale < math.inf:
        raise InvalidParameterError("time scale", f"{scale:g}", "it must be a number and at least 0 (0: no latency is imposed)")


class Pacer:
    """One drive under a real clock.

    Parameters
    ----------
    device
        Idle.
    scale
        Real seconds a simulated second, or 0: none at all.
    start
        The real clock, ns; it never goes back.
    """

    def __init__(self, device: Device, scale: float, start: int) -> None:
        check_scale(scale)
        self._device, self._start, self._origin = device, start, device.now
        self._scale = Fraction(scale)  # exact, so that what is due at a real time has completed by then
        self.refusal = ""  # why the drive takes no more writes, if that is so

    def submit(self, requests: Requests, received: Sequence[int]) -> Integers:
        """Take requests that came at these real times, in order; return their ids, shape (n,)."""
        at: int | Integers = self._device.now
        if self._scale:
            at = np.array([self._simulated(real) for real in received], np.int64)
        return self._device.submit(requests, at)

    def collect(self, now: int) -> Completions:
        """What has completed by a real time; without imposed latency, everything."""
        return self._advance(self._simulated(now), every=True) if self._scale else self.finish()

    def finish(self) -> Completions:
        """Everything that is outstanding, in no real time."""
        parts = [self._advance()]
        while self._device.outstanding:
            parts.append(self._advance())
        return np.concatenate(parts)

    def due(self, completed: int) -> int | None:
        """The real time at which a completion is due; None where no latency is imposed."""
        return self._real(completed) if self._scale else None

    def next(self) -> int:
        """The real time before which nothing completes, ns; NEVER while nothing is asked of the drive."""
        if not self._device.outstanding:
            return NEVER
        event = self._device.next_event
        return NEVER if event >= NEVER else self._real(event)

    def _simulated(self, real: int) -> int:
        """The drive's time by then, no fraction of a nanosecond early; not before what it has reached."""
        passed = (real - self._start) * self._scale.denominator // self._scale.numerator
        return max(self._device.now, self._origin + passed)

    def _real(self, simulated: int) -> int:
        """The first real nanosecond by which the drive has reached a time."""
        return self._start - (self._origin - simulated) * self._scale.numerator // self._scale.denominator

    def _advance(self, until: int = NEVER, *, every: bool = False) -> Completions:
        """Let simulated time pass; a drive that refuses writes from now on goes on with what else it has to do."""
        try:
            return self._device.advance(until, every=every)
        except ReadOnlyDeviceError as problem:
            self.refusal = str(problem)
            return self._device.advance(until, every=every)
