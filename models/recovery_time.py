"""Time of recovery from a crash, by phase, from its requests and the devices' times.

A device of c servers takes b requests that are made at once in ceil(b / c) times its time of service, and what comes one after the other
in one each.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceTimes:
    """Times of a device, in any unit."""

    #: Of a request.
    read: float
    write: float
    servers: int = 1  #: Requests that are served at once.


#: Requests: the device, whether they write, how many are made at once, and how often.
Work = Mapping[tuple[str, bool, int], int]


def phase_time(work: Work, devices: Mapping[str, DeviceTimes]) -> float:
    """Time of a phase, in the unit of the devices.

    >>> ssd = DeviceTimes(read=0.001, write=0.002, servers=4)
    >>> round(phase_time({("ssd", False, 10): 1, ("ssd", True, 1): 5}, {"ssd": ssd}), 6)
    0.013
    """
    return sum(
        count * -(-batch // devices[name].servers) * (devices[name].write if writes else devices[name].read)
        for (name, writes, batch), count in work.items()
    )
