"""Figures of a drive: those that it is meant to show, which a preset may cite, and those that its parameters give at first sight."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.core.parameters import count, duration, rate
from flashsim.core.units import MB, MICROSECONDS, SECONDS
from flashsim.device.station import StationParameters
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.layout import SLOT_UNIT, zones_of
from flashsim.hdd.state.seek import mean_seek, seek_curve
from flashsim.ssd.parameters import SsdParameters


def _maybe(declared: Any) -> Any:
    return dataclasses.field(default=None, metadata=declared.metadata)


@dataclass(frozen=True)
class CitedFigures:
    """Bytes a second, ns, requests a second, erases; None where a preset cites nothing.  Make it with `flashsim.core.parameters.build`."""

    mean_seek: int | None = _maybe(duration("the arm's way to a read anywhere, of a disk alone on it", 1))
    rotational_latency: int | None = _maybe(duration("from the end of that seek until the first sector comes by", 1))
    sequential_read: int | None = _maybe(rate("reads of 1 MiB in order, as many outstanding as the drive takes"))
    sequential_write: int | None = _maybe(rate("writes of 1 MiB in order, as many outstanding as the drive takes"))
    read_access: int | None = _maybe(duration("a read of one sector anywhere, alone on the drive", 1))
    random_read: int | None = _maybe(duration("a read of 4 KiB anywhere, alone on the drive", 1))
    random_read_iops: int | None = _maybe(count("reads of 4 KiB a second, as many outstanding as the drive takes"))
    random_write: int | None = _maybe(duration("a write of 4 KiB anywhere, alone on a drive with free blocks", 1))
    random_write_iops: int | None = _maybe(count("writes of 4 KiB a second, many outstanding, on a drive with free blocks"))
    steady_write_iops: int | None = _maybe(
        count("writes of 4 KiB (of mapping_unit, if larger) a second to all of a full drive, as they last")
    )
    sequential_write_full: int | None = _maybe(rate("writes of 1 MiB in order once the SLC cache is full"))
    page_read: int | None = _maybe(duration("a read of 8 KiB anywhere, alone on the drive", 1))
    page_write: int | None = _maybe(duration("a write of 8 KiB anywhere, alone on a drive with free blocks", 1))
    block_erases: int | None = _maybe(count("erases that an erase block lasts, from which years are told; no drive wears out by it"))

    def as_dict(self) -> dict[str, int]:
        """The figures that are cited, in order of declaration."""
        return {name: value for name, value in vars(self).items() if value is not None}


def meaning(figure: str) -> str:
    return str(_FIELDS[figure].metadata["meaning"])


def show(figure: str, value: float) -> str:
    """A figure with its unit.

    >>> show("sequential_read", 120_000_000), show("read_access", 350_000), show("random_read_iops", 35000)
    ('120 MB/s', '350 us', '35,000/s')
    """
    if figure == "block_erases":
        return f"{value:,.0f}"
    if _FIELDS[figure].metadata["parse"] is None:
        return f"{value:,.0f}/s"
    return f"{value / MB:.4g} MB/s" if figure.startswith("sequential") else f"{value / MICROSECONDS:.4g} us"


_FIELDS = {field.name: field for field in dataclasses.fields(CitedFigures)}
#: Figures that are measured after long writes, only where they are asked for.
LONG = ("steady_write_iops", "sequential_write_full")
#: The names of all other figures that can be measured, and those of the mechanism that only disks have.
NAMES = tuple(name for name in _FIELDS if name not in ("block_erases", *LONG))
MECHANICAL = ("mean_seek", "rotational_latency")


@dataclass(frozen=True)
class Nominal:
    """Nanoseconds of a mean seek and of what every request waits, and bytes a second; a rate of writing only where it differs."""

    seek: float
    latency: float
    read_rate: float
    write_rate: float | None


def nominal_of(parameters: HddParameters | SsdParameters | StationParameters) -> Nominal:
    """A disk's mean seek, half a revolution, and the slower of media and link; a flash drive's latency of a read, and its link.

    Of a queueing station the time of a read, and the rate of its bytes.
    """
    if isinstance(parameters, StationParameters):
        return Nominal(0.0, parameters.read, parameters.rate or math.inf, None)
    if isinstance(parameters, SsdParameters):
        latency = parameters.read_submission + parameters.read_latency + parameters.link_read_command
        return Nominal(0.0, latency, parameters.link_read_rate, parameters.link_write_rate)
    seek = parameters.seek_average or mean_seek(seek_curve(parameters), np.ones(parameters.cylinders))
    reads = _link_rate(parameters, parameters.bus_read, parameters.read_hit_after_read)
    writes = _link_rate(parameters, parameters.bus_write, parameters.write_hit_after_write)
    read, write = (min(streaming_rate(parameters), rate) for rate in (reads, writes))
    return Nominal(seek, parameters.rotation / 2, read, write if write != read else None)


def _link_rate(parameters: HddParameters, bus: int, work: int) -> float:
    """Bytes a second that pass the link, the bus and the buffer where those are known (ns a sector), in commands with so much work (ns)."""
    slowest, command = max(bus, parameters.bulk_transfer), parameters.command_size
    rate = min(parameters.link_rate, parameters.sector_size * SECONDS / slowest if slowest else parameters.link_rate)
    return command / (command / rate + (parameters.overhead + work) / SECONDS) if command else rate


def streaming_rate(parameters: HddParameters) -> float:
    """Bytes a second of reading the whole drive in order, head switches and seeks to the next cylinder included."""
    sectors, time = 0, 0.0
    for zone in zones_of(parameters):
        skews = (parameters.heads - 1) * zone.track_skew + zone.cylinder_skew
        slots = parameters.heads * zone.slots + skews / SLOT_UNIT
        sectors += zone.cylinders * parameters.heads * zone.slots
        time += zone.cylinders * slots * parameters.rotation / zone.slots
    return sectors * parameters.sector_size * SECONDS / time
