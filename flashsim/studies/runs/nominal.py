"""The nominal figures of a preset, for which a join's buffers are divided."""

from dataclasses import replace

from flashsim.core.units import MILLISECONDS
from flashsim.device.presets import Preset
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.timing import timing_of
from models.disk import Disk


def disk_of(preset: Preset, page_size: int) -> Disk:
    """A preset's nominal figures: mean seek, latency of a request, sequential rates; of flash also what one of many writes takes."""
    told = preset.nominal
    disk = Disk.from_rates(told.seek / MILLISECONDS, told.latency / MILLISECONDS, page_size, told.read_rate, told.write_rate)
    return replace(disk, together_ms=_together(preset.flash, disk)) if preset.flash else disk


def _together(drive: SsdParameters, disk: Disk) -> float:
    """What a write of a page that is handed over with others takes besides its transfer: see `models.psync`."""
    sent = disk.page_write_ms or disk.page_transfer_ms
    alone, held = timing_of(drive).write_overhead / MILLISECONDS, drive.link_write_command / MILLISECONDS
    return max(alone - sent, held, (disk.latency_ms + sent) / drive.queue_depth - sent)
