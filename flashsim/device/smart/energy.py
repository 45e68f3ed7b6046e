"""Energy of a drive with programs inside by state: always, while pages pass the bus of its memory, and while cores are at work."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flashsim.device.smart.inside import Inside


class Energy(NamedTuple):
    """Energy of one drive by state, pJ."""

    idle: int
    #: Flash, channels, bus and link: above idle, for as long as the bus was busy.
    reading: int
    cores: int

    @property
    def over_idle(self) -> int:
        return self.reading + self.cores


def energy_of(inside: Inside, statistics: Mapping[str, Any], elapsed: int) -> Energy:
    """The energy of a run that took so many ns, from what `flashsim.device.smart.runtime.SmartDrive.statistics` counted in it.

    Examples
    --------
    >>> inside = Inside(memory=1, cores=2, page_work=0, tuple_work=0, column_work=0, match_work=0, idle=4000, active=9000, core_power=500)
    >>> energy_of(inside, {"bus_busy_ns": 10**9, "core_busy_ns": 2 * 10**9}, 3 * 10**9)
    Energy(idle=12000000000000, reading=9000000000000, cores=1000000000000)
    """
    return Energy(elapsed * inside.idle, statistics["bus_busy_ns"] * inside.active, statistics["core_busy_ns"] * inside.core_power)
