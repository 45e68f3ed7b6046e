"""Where the platter is: its angle is a function of absolute time, in integers, so that it never drifts.

At time 0 angle 0 passes under the heads.  A track of n sectors has n slots; slot v starts ``v * rotation // n`` nanoseconds after
angle 0, also for v >= n (later revolutions), since ``(v + n) * rotation // n == v * rotation // n + rotation`` exactly.
"""

from __future__ import annotations

from flashsim.core.kernel import kernel


@kernel
def slot_start(slot: int, per_track: int, rotation: int) -> int:
    """Nanoseconds from angle 0 to the start of a slot, which is the end of the slot before."""
    return slot * rotation // per_track


@kernel
def revolution_for(time: int, offset: int, rotation: int) -> int:
    """The earliest passage of angle 0 from which `offset` nanoseconds later is not before `time`."""
    return -((offset - time) // rotation) * rotation


@kernel
def slots_ended(elapsed: int, per_track: int, rotation: int) -> int:
    """The slots that have ended `elapsed` nanoseconds after angle 0: the largest v with ``slot_start(v) <= elapsed``."""
    return ((elapsed + 1) * per_track - 1) // rotation
