"""The inside of a flash drive that runs programs: memory and cores, and their prices and powers; the bus is the drive's own parameter."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.parameters import count, duration, size
from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.ssd.energy import power
from flashsim.ssd.parameters import SsdParameters

MOST_CORES = 1024  #: As many cores as no drive has.
#: Power of a machine with a drive when idle, W (do2012, section 5.4.1.2), and energy of its host to take in and scan a byte, J: solved from
#: the thesis's energies over idle of the SSD and the disk.
MACHINE_IDLE, HOST_BYTE = 235.0, 82.6e-9


@dataclass(frozen=True)
class Inside:
    """Declared values of a drive's inside; make it with `flashsim.core.parameters.build`."""

    memory: int = size("bytes of the drive's memory that sessions may have")
    cores: int = count("cores of the drive that programs may have", most=MOST_CORES)
    page_work: int = duration("time of one core to open a database page")
    tuple_work: int = duration("time of one core to visit a tuple and test it, in pages that hold rows")
    column_work: int = duration("the same in pages that hold columns (PAX)")
    match_work: int = duration("time of one core on a tuple that qualifies: to copy its columns to the results, or to add them up")
    sessions: int = count("most sessions at once", most=1024, default=8)
    patience: int = duration(
        "time without a command of its host after which the drive closes a session", MILLISECONDS, default=60 * SECONDS
    )
    core_power: int = power("one core at work, above idle", default=0)
    idle: int = power("the whole drive, always", default=0)
    active: int = power("the whole drive while it reads at its full internal bandwidth, above idle, without its cores", default=0)


def check(inside: Inside, parameters: SsdParameters) -> None:
    """Refuse an inside that does not go with its drive."""
    if not parameters.bus_rate:
        raise RefusedError("inside: the drive needs a bus_rate, the rate of the bus between its channels and its memory")
    if inside.memory > parameters.capacity:
        raise InvalidParameterError("memory", inside.memory, f"the drive itself holds {parameters.capacity} B")


class InsideEnergy(NamedTuple):
    """Energy of one drive by state, pJ."""

    idle: int
    #: Flash, channels, bus and link: above idle, for as long as the bus was busy.
    reading: int
    cores: int

    @property
    def over_idle(self) -> int:
        return self.reading + self.cores


def energy_of(inside: Inside, statistics: Mapping[str, Any], elapsed: int) -> InsideEnergy:
    """The energy of a run that took so many ns, from what `flashsim.device.smart.runtime.SmartDrive.statistics` counted in it.

    >>> inside = Inside(memory=1, cores=2, page_work=0, tuple_work=0, column_work=0, match_work=0, idle=4000, active=9000, core_power=500)
    >>> energy_of(inside, {"bus_busy_ns": 10**9, "core_busy_ns": 2 * 10**9}, 3 * 10**9)
    InsideEnergy(idle=12000000000000, reading=9000000000000, cores=1000000000000)
    """
    return InsideEnergy(elapsed * inside.idle, statistics["bus_busy_ns"] * inside.active, statistics["core_busy_ns"] * inside.core_power)
