"""A disk from the figures of a data sheet: another disk's zones, arm and cache are scaled until it shows them."""

from dataclasses import replace
from typing import Any

from flashsim.apps.calibration.nominal_figures import figures
from flashsim.core.errors import RefusedError
from flashsim.core.units import MB, MINUTES, format_size
from flashsim.device.figures import CitedFigures
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters

#: Links that a drive may have, bytes a second, and how many times as fast as its outermost track one is at least.
_LINKS = {"Serial ATA, 6 Gbit/s": 600 * MB, "Serial Attached SCSI, 12 Gbit/s": 1200 * MB, "Serial Attached SCSI, 24 Gbit/s": 2400 * MB}
_AHEAD = 1.5
_SEEKS = ("seek_single", "seek_average", "seek_full")
_ROUNDS, _MET = 8, 0.005


def rotation_of(rpm: float) -> int:
    """Time of a revolution, ns."""
    return round(MINUTES / rpm)


def disk_like(
    preset: Preset, cited: CitedFigures, capacity: int | None, rotation: int | None, cache: int | None, heads: int | None
) -> tuple[HddParameters, dict[str, str]]:
    """A disk that shows the figures of a data sheet, and the sources of what was changed.

    The outermost zone's rate scales the sectors of all tracks, the mean seek all seeks, and the capacity the cylinders of all zones.  Half
    of the cache holds what was read ahead, in segments of the base's size, and half what is written behind.

    Raises RefusedError: it is an array, or zones or seeks are measured ones.
    """
    disk = preset.disk
    assert disk is not None
    measured = disk.slips or disk.defects or disk.seek_formula or disk.seek_table or disk.seek_first
    if preset.array or measured or any(len(row) > 2 for row in disk.zones):
        raise RefusedError(f"preset: {preset.name} is an array, or has measured seeks, skews, slips or defects, which no data sheet scales")
    changes: dict[str, Any] = {name: value for name, value in (("rotation", rotation), ("heads", heads)) if value}
    reasons = dict.fromkeys(changes, "data sheet") | ({"capacity": "data sheet", "zones": "data sheet: capacity"} if capacity else {})
    if cache:
        half, each = cache // 2 // disk.sector_size * disk.sector_size, disk.segment_size or disk.read_ahead
        changes |= {"write_behind": half, "segments": max(1, half // each) if each else 1}
        reasons |= {"segments": f"estimate: as many as half of {format_size(cache)} hold", "write_behind": "estimate: the other half"}
    if rate := cited.sequential_read:
        name, link = next(((name, link) for name, link in _LINKS.items() if link > _AHEAD * rate), (preset.name, disk.link_rate))
        changes |= {"bus_read": 0, "bus_write": 0, "bulk_transfer": 0, "link_rate": link}
        reasons["link_rate"] = f"estimate: as {name}"
        reasons["zones"] = "fitted: the data sheet's sequential read on the outermost tracks; estimate: inner ones in proportion"
    if cited.mean_seek:
        reasons |= dict.fromkeys(_SEEKS, "fitted: the data sheet's mean seek, all in proportion")
    wanted = (capacity or disk.capacity) // disk.sector_size * disk.sector_size
    disk = _holding(disk, wanted, **changes)
    names = [name for name in ("mean_seek", "sequential_read") if getattr(cited, name)]
    for _ in range(_ROUNDS):
        for figure in figures(replace(preset, parameters=disk, cited=cited), names):
            if figure.name == "mean_seek":
                disk = replace(disk, **{name: max(1, round(getattr(disk, name) / figure.ratio)) for name in _SEEKS})
            elif abs(figure.ratio - 1) > _MET:
                disk = _holding(disk, wanted, zones=tuple((row[0], max(4, round(row[1] / figure.ratio))) for row in disk.zones))
    return disk, reasons


def _holding(disk: HddParameters, capacity: int, **changes: Any) -> HddParameters:
    """The disk with changes, and with as many times as many cylinders as the capacity needs."""
    zones, heads = changes.pop("zones", disk.zones), changes.get("heads", disk.heads)
    times = capacity / disk.sector_size / heads / sum(int(row[0]) * int(row[1]) for row in zones)
    return replace(disk, capacity=capacity, zones=tuple((int(row[0] * times) + 1, *row[1:]) for row in zones), **changes)
