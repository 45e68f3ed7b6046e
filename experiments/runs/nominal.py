"""The nominal figures of a preset, for which a join's buffers are divided."""

from __future__ import annotations

import numpy as np

from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.device.presets import Preset
from flashsim.hdd.layout import SLOT_UNIT, zones_of
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.seek import mean_seek, seek_curve
from models.disk import Disk


def disk_of(preset: Preset, page_size: int) -> Disk:
    """A preset's nominal figures: mean seek, latency of a request, sequential rates."""
    parameters = preset.parameters
    if isinstance(parameters, HddParameters):
        seek = parameters.seek_average or mean_seek(seek_curve(parameters), np.ones(parameters.cylinders))
        reads = _link_rate(parameters, parameters.bus_read, parameters.read_hit_after_read)
        writes = _link_rate(parameters, parameters.bus_write, parameters.write_hit_after_write)
        read, write = (min(streaming_rate(parameters), rate) for rate in (reads, writes))
        latency = parameters.rotation / 2 / MILLISECONDS
        return Disk.from_rates(seek / MILLISECONDS, latency, page_size, read, write if write != read else None)
    latency = parameters.read_latency / MILLISECONDS
    return Disk.from_rates(0, latency, page_size, parameters.link_read_rate, parameters.link_write_rate)


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
