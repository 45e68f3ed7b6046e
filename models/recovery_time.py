"""Time of recovery from a crash, by phase, from its requests and the devices' times.

A device of c servers takes b requests that are made at once in ceil(b / c) times its time of service, and what comes one after the other
in one each.  At published sizes a phase is what it reads: Do, 2012, 4.4.2.2 has a log of 70 to 90 GB and an SSD of 140 GB.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceTimes:
    """Times of a device, in any unit."""

    #: Of a request.
    read: float
    write: float
    #: Requests that are served at once.
    servers: int = 1


#: Requests: the device, whether they write, how many are made at once, and how often.
Work = Mapping[tuple[str, bool, int], int]


def phase_time(work: Work, devices: Mapping[str, DeviceTimes]) -> float:
    """Time of a phase, in the unit of the devices.

    Examples
    --------
    >>> ssd = DeviceTimes(read=0.001, write=0.002, servers=4)
    >>> round(phase_time({("ssd", False, 10): 1, ("ssd", True, 1): 5}, {"ssd": ssd}), 6)
    0.013
    """
    return sum(
        count * -(-batch // devices[name].servers) * (devices[name].write if writes else devices[name].read)
        for (name, writes, batch), count in work.items()
    )


def scan_seconds(size: float, rate: float) -> float:
    """Seconds in which so many bytes are read in order, such as a log, a frame table, or all frames of an SSD that are verified.

    Examples
    --------
    LVR's deep verification of 140 GB took 380 s; the disk that read LBR's entries of 51 B, of 17.1 million frames, in 12.1 s reads a log
    of 70 GB in a quarter of an hour:

    >>> round(140e9 / 380 / 1e6)
    368
    >>> rate = 51 * 140e9 / 8192 / 12.1
    >>> round(scan_seconds(70e9, rate))
    972
    """
    return size / rate
