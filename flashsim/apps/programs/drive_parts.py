"""The part of a drive on which a load runs in the place of the whole.

A part has all channels and dies, and so the rates and latencies of the whole, and fewer erase blocks per plane (`flashsim.device.scaling`).
Write amplification depends on how much spare flash there is for the pages that the load writes again and again.  On a whole drive that is
often hundreds of times as much.  The emptiest blocks take these pages in turn, and the more blocks there are, the emptier those are: of
a Samsung 980 PRO under pgbench, which writes 0.5 GB, a part with 4.5 times as much spare flash amplifies writes by 6 % more than the whole.
In the smallest part, bursts of writes wait longer for collection (a Micron 7450 PRO: by a fifth), in one of one and a half times its
blocks no longer than the states of one drive differ.  A load whose pages do not fit is folded: addresses count modulo the capacity.
"""

from dataclasses import dataclass

from flashsim.device.presets import Preset
from flashsim.device.scaling import part_in_use
from flashsim.ssd.parameters import SsdParameters

#: Least ratio of a part's blocks to those of the smallest part, least ratio of its spare flash to the pages that a load writes, and mapping
#: units that neither may exceed.
_LARGER, _SPARE, _MOST_UNITS = 1.5, 12, 32 << 20


@dataclass(frozen=True)
class LoadSize:
    """What a load needs of a drive: where its furthest request ends, and the distinct bytes that it writes."""

    reach: int
    written: int


def units_of(flash: SsdParameters) -> int:
    """Mapping units that a drive has flash for."""
    return flash.pools * flash.blocks_per_plane * flash.slots_per_block


def part_for(preset: Preset, size: LoadSize) -> Preset:
    """The part of a flash drive for a load; a disk, and an array, as they are."""
    if preset.flash is None or preset.array is not None:
        return preset
    least = part_in_use(preset)
    assert least.flash is not None
    larger = max(_LARGER, _SPARE * size.written / (least.capacity * least.flash.effective_overprovisioning), size.reach / least.capacity)
    larger = min(larger, _MOST_UNITS / units_of(least.flash))
    return part_in_use(preset, larger) if larger > 1 else least
