"""What a drive's parameters say of its times at first sight: a mean seek, a latency, and the rates of moving much in order."""

import math
from dataclasses import dataclass

import numpy as np

from flashsim.core.units import SECONDS
from flashsim.device.station import StationParameters
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.layout import SLOT_UNIT, zones_of
from flashsim.hdd.state.seek import mean_seek, seek_curve
from flashsim.ssd.parameters import SsdParameters


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
