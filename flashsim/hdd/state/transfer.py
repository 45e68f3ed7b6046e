"""Movement of data: slots pass under the heads, and sectors cross the link.

The angle of the platter is a function of absolute time, in integers, so that it never drifts.  At time 0 angle 0 passes under the heads.  A
track of n slots is divided into n * SLOT_UNIT parts; part p passes ``p * rotation // (n * SLOT_UNIT)`` nanoseconds after angle 0, also for
later revolutions, since ``(p + n * SLOT_UNIT) * rotation // (n * SLOT_UNIT)`` is just a rotation more.
"""

from flashsim.core.kernel import inlined_kernel
from flashsim.core.units import SECONDS
from flashsim.hdd.state.layout import SLOT_UNIT


@inlined_kernel
def passing(part: int, slots: int, rotation: int) -> int:
    """Nanoseconds from angle 0 until a part of a track of so many slots passes."""
    return part * rotation // (slots * SLOT_UNIT)


@inlined_kernel
def revolution_for(time: int, offset: int, rotation: int) -> int:
    """The earliest passage of angle 0 from which `offset` nanoseconds later is not before `time`."""
    return -((offset - time) // rotation) * rotation


@inlined_kernel
def slots_ended(elapsed: int, part: int, slots: int, rotation: int) -> int:
    """Slots, the first of which begins at a part of the track, that have ended `elapsed` nanoseconds after angle 0."""
    return (((elapsed + 1) * slots * SLOT_UNIT - 1) // rotation - part) // SLOT_UNIT


@inlined_kernel
def crossing_time(sectors: int, size: int, rate: int, bus: int) -> int:
    """Nanoseconds for sectors of `size` bytes to cross a link of `rate` bytes a second and a bus of `bus` ns a sector, at least 1."""
    total = sectors * size
    return max(1, total // rate * SECONDS + (total % rate * SECONDS + rate // 2) // rate, sectors * bus)
