"""A part of a drive: so many times less capacity, as fast as the whole, and as full when what lies on it is as many times smaller.

Channels, dies, tracks and all times stay.  A flash drive has fewer erase blocks a plane, and the share of flash pages that garbage
collection can use beyond what the host addresses stays (blocks that are in reserve or spare are none of it, and as many as ever).  A disk
has fewer cylinders, between which the arm moves as between those of the whole that lie as many times farther apart: so what fills the
outer fiftieth of either has the same seeks.  What a part cannot keep is the grain: within a cylinder of it there is no seek, and a plane of
few blocks collects garbage somewhat differently.
"""

from dataclasses import replace
from typing import Any

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.units import MILLISECONDS
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.seek import seek_curve
from flashsim.ssd.parameters import SsdParameters

#: Erase blocks outside the reserve that a plane keeps at least; cylinders that each zone of a disk does.
LEAST_BLOCKS, LEAST_CYLINDERS = 4, 4
#: Parts of a disk that are told by the numbers of its tracks.
_TRACKS = ("slips", "defects")


def part_of(preset: Preset, parts: int) -> Preset:
    """One of so many parts of a drive; of an array, of each of its drives.

    Examples
    --------
    >>> from flashsim.device import presets
    >>> whole = presets.load("iodrive-slc-160gb")
    >>> hundredth = part_of(whole, 100)
    >>> hundredth.name, round(whole.capacity / hundredth.capacity)
    ('iodrive-slc-160gb/100', 100)
    """
    if parts < 1:
        raise InvalidParameterError("parts of a drive", parts, "it must be at least 1")
    if preset.disk is not None:
        changes = _disk(preset.name, preset.disk, parts)
    elif preset.flash is not None:
        changes = _flash(preset.name, preset.flash, parts)
    else:
        raise RefusedError(f"device: {preset.name} is a queueing station, which has no parts")
    return replace(preset, name=f"{preset.name}/{parts}", parameters=replace(preset.parameters, **changes))


def _flash(name: str, flash: SsdParameters, parts: int) -> dict[str, Any]:
    kept = flash.gc_reserve + flash.spare_blocks
    whole = flash.blocks_per_plane - kept
    used = round(whole / parts)
    if used < LEAST_BLOCKS:
        raise InvalidParameterError("parts of a drive", parts, f"a plane of {name} has {whole} blocks, and needs {LEAST_BLOCKS} of them")
    held = {each: max(1, round(getattr(flash, each) / parts)) for each in ("log_blocks",) if getattr(flash, each)}
    if flash.map_cache:
        held["map_cache"] = max(1, round(flash.map_cache / parts / flash.page_size)) * flash.page_size
    if flash.gc_stop:
        held["gc_stop"] = flash.gc_reserve + round((flash.gc_stop - flash.gc_reserve) / parts)
    capacity = flash.capacity * used // whole // flash.page_size * flash.page_size
    return held | {"blocks_per_plane": used + kept, "capacity": capacity}


def _disk(name: str, disk: HddParameters, parts: int) -> dict[str, Any]:
    strange = [each for each in _TRACKS if getattr(disk, each)] + ["cylinders left out"] * any(
        len(row) > 2 and row[7] for row in disk.zones
    )
    if strange:
        raise RefusedError(f"device: {name} has {', '.join(strange)}, and no parts")
    fewest = min(int(row[0]) for row in disk.zones)
    if round(fewest / parts) < LEAST_CYLINDERS:
        told = f"a zone of {name} has {fewest} cylinders, and needs {LEAST_CYLINDERS} of them"
        raise InvalidParameterError("parts of a drive", parts, told)
    zones = tuple((round(int(row[0]) / parts), *row[1:]) for row in disk.zones)
    curve = seek_curve(disk)[parts::parts] / MILLISECONDS
    seeks = tuple((distance, float(time)) for distance, time in enumerate(curve.tolist(), start=1))
    return {"zones": zones, "seek_table": seeks, "seek_first": (), "capacity": 0}
