"""The nominal figures of a preset, for which a join's buffers are divided."""

from __future__ import annotations

from flashsim.core.units import MILLISECONDS
from flashsim.device.presets import Preset
from models.disk import Disk


def disk_of(preset: Preset, page_size: int) -> Disk:
    """A preset's nominal figures: mean seek, latency of a request, sequential rates."""
    told = preset.nominal
    return Disk.from_rates(told.seek / MILLISECONDS, told.latency / MILLISECONDS, page_size, told.read_rate, told.write_rate)
