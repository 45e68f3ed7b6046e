"""Smaller drives: a part of a drive, as fast as the whole, and a drive in miniature, whose times shrink with it.

A part has so many times less capacity, and is as full when what lies on it is as many times smaller.  Channels, dies, tracks and all times
stay.  A flash drive has fewer erase blocks a plane, and the share of flash pages that garbage collection can use beyond what the host
addresses stays (blocks that are in reserve or spare are none of it, and as many as ever).  A disk has fewer cylinders, between which the
arm moves as between those of the whole that lie as many times farther apart: so what fills the outer fiftieth of either has the same
seeks.  What a part cannot keep is the grain: within a cylinder of it there is no seek, and a plane of few blocks collects garbage somewhat
differently.

In a miniature, what has a length or a fixed time shrinks, and rates stay, as for a ship's model in a tank.  Relations and memory of a
tenth make requests of a tenth: on the same drive a seek then weighs ten times as much beside a transfer.  On a drive whose tracks, caches
and erase blocks hold a tenth and whose seeks and revolutions take a tenth, everything takes a tenth, and ratios of times are those of the
large drive.  Three things cannot shrink, since they are the grain of the model: a page of the database, a flash page with its own times,
and a command.  So a command of the miniature stands for several of the drive: its latency shrinks, and what theirs add to a byte is taken
off the link's rate.  Where every request is a page, a page stands for several that are as much shorter: only the first of them can be one
that does not go on where the last one ended.
"""

import math
from dataclasses import replace
from typing import Any

from flashsim.core.errors import CapacityError, InvalidParameterError, RefusedError
from flashsim.core.units import MILLISECONDS, SECONDS, format_size
from flashsim.device import engines, presets
from flashsim.device.block_layer import MAXIMUM_COMMAND
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.seek import seek_curve
from flashsim.ssd.parameters import SsdParameters

#: Erase blocks outside the reserve that a plane keeps at least; cylinders that each zone of a disk does.
LEAST_BLOCKS, LEAST_CYLINDERS = 4, 4
SHORT = 96  #: Flash pages of an erase block of a small drive at most: whole word lines of any number of bits.
#: Of a part in use at least: blocks a plane outside the reserve, spare ones beyond those that its open blocks hold back, and log blocks
#: or pages of a cached map.
_BLOCKS, _BEYOND, _GRAINS = 24, 2, 16
_COARSE = 0.2  #: Blocks of a collector that cost-benefit, whose ages are coarse where blocks are few, loses at least.
#: How many times as large an SLC cache of a part in use may be, in blocks, as its share of the whole's.
_CACHE_GRAIN = 1.03
#: The share of what is spare by which planes of a part in use may differ in how full they are.
_UNEVEN = 0.05
_TRACKS = ("slips", "defects")  #: Parts of a disk that are told by the numbers of its tracks.


def part_of(preset: Preset, parts: int) -> Preset:
    """One of `parts` parts of a drive; of an array, of each of its drives.

    >>> from flashsim.device import presets
    >>> whole = presets.load("iodrive-slc-160gb")
    >>> hundredth = part_of(whole, 100)
    >>> hundredth.name, round(whole.capacity / hundredth.capacity)
    ('iodrive-slc-160gb/100', 100)
    """
    if parts < 1:
        raise InvalidParameterError("parts of a drive", parts, "it must be at least 1")
    if preset.disk is not None:
        changes = _part_of_disk(preset.name, preset.disk, parts)
    elif preset.flash is not None:
        changes = _part_of_flash(preset.name, preset.flash, parts)
    else:
        raise RefusedError(f"device: {preset.name} is a queueing station, which has no parts")
    return replace(preset, name=f"{preset.name}/{parts}", parameters=replace(preset.parameters, **changes))


def most_parts(preset: Preset) -> int:
    """Parts that a drive may be cut into at most, so that each has the erase blocks a plane that its translation layer needs."""
    if (flash := preset.flash) is None:
        return min(int(row[0]) for row in preset.disk.zones) // LEAST_CYLINDERS if preset.disk else 1
    whole = flash.blocks_per_plane - flash.gc_reserve - flash.spare_blocks
    for blocks in range(LEAST_BLOCKS, whole):
        try:
            engines.check_policies(part_of(preset, whole // blocks))
        except InvalidParameterError:
            continue
        return whole // blocks
    return 1


def small_drive(name: str, size: int = 1) -> Preset:
    """A part of a preset, by its name or file, which is fast to make anew: of few erase blocks, and short ones, that hold `size` bytes.

    Raises InvalidParameterError or CapacityError: the preset is an array, or smaller than that.
    """
    whole = presets.load(name)
    if whole.array is not None:
        raise InvalidParameterError("device", name, "an array loses power drive by drive: name one drive")
    if whole.capacity < size:
        raise CapacityError(f"device: {format_size(size)} are needed, and {whole.name} holds {format_size(whole.capacity)}")
    flash = whole.flash
    long = flash is not None and not flash.zone_size and flash.pages_per_block > SHORT  # zones are whole blocks, and stay
    if flash is not None and long and whole.capacity * SHORT // flash.pages_per_block >= 2 * size:
        sizes = {each: getattr(flash, each) * SHORT // flash.pages_per_block for each in ("capacity", "slc_cache")}
        sizes["capacity"] -= sizes["capacity"] % flash.page_size
        whole = replace(whole, parameters=replace(flash, pages_per_block=SHORT, **sizes))
    parts = max(1, min(most_parts(whole), whole.capacity // size))
    while parts > 1 and part_of(whole, parts).capacity < size:
        parts -= 1
    return part_of(whole, parts) if parts > 1 else whole


def _part_of_flash(name: str, flash: SsdParameters, parts: int) -> dict[str, Any]:
    reserve = flash.gc_reserve + flash.spare_blocks
    whole = flash.blocks_per_plane - reserve
    used = round(whole / parts)
    if used < LEAST_BLOCKS:
        raise InvalidParameterError("parts of a drive", parts, f"a plane of {name} has {whole} blocks, and needs {LEAST_BLOCKS} of them")
    sizes = {each: max(1, round(getattr(flash, each) / parts)) for each in ("log_blocks",) if getattr(flash, each)}
    if flash.map_cache:
        sizes["map_cache"] = max(1, round(flash.map_cache / parts / flash.page_size)) * flash.page_size
    if flash.gc_stop:
        sizes["gc_stop"] = flash.gc_reserve + round((flash.gc_stop - flash.gc_reserve) / parts)
    grain = flash.zone_size or flash.page_size
    capacity = flash.capacity * used // whole // grain * grain
    if flash.slc_cache:
        sizes["slc_cache"] = max(1, round(flash.slc_cache / parts))
    if flash.zone_size:
        sizes |= {each: min(getattr(flash, each), capacity // grain) for each in ("zone_open_limit", "zone_active_limit")}
    return sizes | {"blocks_per_plane": used + reserve, "capacity": capacity}


def _part_of_disk(name: str, disk: HddParameters, parts: int) -> dict[str, Any]:
    strange = [each for each in _TRACKS if getattr(disk, each)] + ["cylinders left out"] * any(
        len(row) > 2 and row[7] for row in disk.zones
    )
    if strange:
        raise RefusedError(f"device: {name} has {', '.join(strange)}, and no parts")
    fewest = min(int(row[0]) for row in disk.zones)
    if round(fewest / parts) < LEAST_CYLINDERS:
        bound = f"a zone of {name} has {fewest} cylinders, and needs {LEAST_CYLINDERS} of them"
        raise InvalidParameterError("parts of a drive", parts, bound)
    zones = tuple((round(int(row[0]) / parts), *row[1:]) for row in disk.zones)
    curve = seek_curve(disk)[parts::parts] / MILLISECONDS
    seeks = tuple((distance, float(time)) for distance, time in enumerate(curve.tolist(), start=1))
    return {"zones": zones, "seek_table": seeks, "seek_first": (), "capacity": 0}


def part_in_use(preset: Preset, larger: float = 1.0) -> Preset:
    """The smallest part of a flash drive that has the rates and latencies of the whole in any state of use; the whole if it is no larger.

    A plane has blocks enough for the open ones, for what planes differ by while one of them collects, and for counts of valid units that
    vary as their square root.  A collection frees pages that the host's writes then use up, so that on average half of what a victim gains
    is free beyond the reserve: of few blocks that is a larger share, and the part holds as much less.  Without this, a part of a drive with
    14 % of spare flash amplifies writes by 4 % more with 25 blocks a plane.  Victims that are moved in slices use up the reserve meanwhile,
    half a block on average: then what a victim gains beyond half a block is off, as parts of drives of eight dies confirm that amplify by
    1.03 to 3.5; of cost-benefit a fifth of a block at least (they amplify by 1.4 to 3.3).  Of 12 blocks a plane, 99th percentiles of reads
    beside writes would be 4 % too long.  `larger` multiplies its blocks.
    """
    from flashsim.ssd.ftl.base import compatible_layer

    flash = preset.flash
    if flash is None or preset.array is not None:
        raise RefusedError(f"device: {preset.name} is not a single flash drive")
    spare, slots, whole = flash.effective_overprovisioning, flash.slots_per_block, flash.good_blocks - flash.gc_reserve
    collects = not flash.zone_size and compatible_layer(flash).PLACES_FREELY
    blocks: float = _BLOCKS
    if collects:
        open_blocks = whole - flash.pool_limit // (slots - flash.group + 1)
        uneven = 0.0 if flash.allocation == "static" else (_UNEVEN * spare) ** -2 / slots
        blocks = max(blocks, (open_blocks + _BEYOND) * (1 + 1 / spare), uneven)
    grains = [size // _GRAINS for size in (flash.log_blocks, flash.map_cache // flash.page_size) if size]
    parts = min(int(whole / (larger * blocks)), most_parts(preset), *grains)
    if flash.slc_cache:  # a plane's share of it is whole blocks
        cache = flash.slc_cache / (flash.pools * flash.slc_pages * flash.unit_size)
        parts = max(range(1, parts + 1), key=lambda each: (math.ceil(cache / each) * each <= _CACHE_GRAIN * cache, each), default=1)
    if parts <= 1:
        return preset
    part = part_of(preset, parts)
    assert part.flash is not None
    if not collects:
        return part
    collectors = flash.pools if flash.gc_pool == "shared" else 1
    fewer, gain = (part.flash.good_blocks - part.flash.gc_reserve) * collectors, _gain(1 + spare)
    unused = max(_COARSE * (flash.gc == "cost-benefit"), gain - 0.5) if flash.gc_slicing else gain / 2
    capacity = int(part.capacity * (1 - unused / fewer) / (1 - unused / (whole * collectors))) // flash.unit_size * flash.unit_size
    return replace(part, parameters=replace(part.flash, capacity=capacity))


def _gain(alpha: float) -> float:
    """The share of a block that collecting the oldest one frees under uniform random writes, of `alpha` times as much flash as data."""
    valid = 0.0
    for _ in range(100):
        valid = math.exp(-alpha * (1 - valid))
    return 1 - valid


#: Scales of drives are whole multiples of it, so that an erase block of 64 flash pages has a whole number of them; and at least so many of
#: it, since an erase block has two pages at least.
STEP, LEAST = 1 / 64, 2
#: Commands that write-behind and read-ahead hold at least: with fewer the grain of the model holds the host up.
_COMMANDS = 2.5
_ARM = ("rotation", "seek_single", "seek_average", "seek_full", "head_switch", "write_settle", "write_move")
_HITS = ("read_hit_after_read", "read_hit_after_write", "write_hit_after_read", "write_hit_after_write")
#: Parts of a disk whose lengths or times are not told how to shrink.
_MEASURED = ("slips", "defects", "seek_formula", "seek_table", "seek_first", "bus_read", "bus_write", "bulk_transfer")


def miniature(preset: Preset, scale: float, *, page: int = 0) -> Preset:
    """A drive of which everything with a length or a fixed time is multiplied by a scale of at most 1, and not below two `STEP`.

    `page` is bytes of a page, where every request is one; 0 where requests are longer.
    """
    if preset.array is not None or not (preset.disk or preset.flash):
        raise RefusedError(f"miniature: {preset.name} is not a single disk or flash drive")
    if (disk := preset.disk) is not None:
        strange = [name for name in _MEASURED if getattr(disk, name)] + ["skews"] * any(len(row) > 2 for row in disk.zones)
        if strange:
            raise RefusedError(f"miniature: {preset.name} has {', '.join(strange)}, and shrinks only without")
        changes = _disk(disk, scale) | (_disk_pages(disk, scale) if page else _disk_commands(disk, scale))
        return replace(preset, parameters=replace(disk, **changes))
    assert preset.flash is not None
    if preset.flash.zone_size:
        raise RefusedError(f"miniature: {preset.name} is zoned, and its erase blocks, which make its zones, cannot be shorter")
    changes = _flash(preset.flash, scale) | (_flash_pages(preset.flash, scale, page) if page else _flash_commands(preset.flash, scale))
    return replace(preset, parameters=replace(preset.flash, **changes))


def _whole(size: float, unit: int) -> int:
    """The nearest number of whole units, in bytes, and at least one."""
    return max(1, round(size / unit)) * unit


def _disk(disk: HddParameters, scale: float) -> dict[str, Any]:
    zones = tuple((cylinders, max(1, round(sectors * scale))) for cylinders, sectors in disk.zones)
    command = disk.command_size or MAXIMUM_COMMAND
    buffers = {
        name: _whole(max(getattr(disk, name) * scale, min(getattr(disk, name), _COMMANDS * command)), disk.sector_size)
        for name in ("read_ahead", "write_behind")
        if getattr(disk, name)
    }
    times = {name: round(getattr(disk, name) * scale) for name in _ARM}
    return times | buffers | {"zones": zones, "capacity": 0}


def _disk_commands(disk: HddParameters, scale: float) -> dict[str, Any]:
    command = disk.command_size or MAXIMUM_COMMAND
    times = {name: round(getattr(disk, name) * scale) for name in _HITS}
    work = disk.overhead + disk.read_hit_after_read
    overhead = max(1, round(disk.overhead * scale))
    return times | {"overhead": overhead, "link_rate": _rate_with_time(disk.link_rate, (1 - scale) * work, command)}


def _disk_pages(disk: HddParameters, scale: float) -> dict[str, Any]:
    """The controller's work on a page that the buffer does not serve: nine of the ten that it stands for are served, at scale 0.1."""
    kinds = ("read", "write")
    pairs = [(f"{kind}_miss_after_{before}", f"{kind}_hit_after_{before}") for kind in kinds for before in kinds]
    return {miss: round(scale * getattr(disk, miss) + (1 - scale) * getattr(disk, hit)) for miss, hit in pairs}


def _flash(flash: SsdParameters, scale: float) -> dict[str, Any]:
    line = flash.levels if flash.one_shot else 1
    pages = max(2, line, round(flash.pages_per_block * scale / line) * line)
    share = pages / flash.pages_per_block
    names = ("map_cache",) if flash.write_buffer_mode == "coalescing" else ("write_buffer", "map_cache", "collection_debt")
    # parts of pages do not shrink
    buffers = {name: _whole(size * scale, flash.page_size) for name in names if (size := getattr(flash, name))}
    capacity = int(flash.capacity * share) // flash.page_size * flash.page_size
    if flash.slc_cache:
        buffers["slc_cache"] = max(1, int(flash.slc_cache * share))
    return buffers | {"pages_per_block": pages, "erase": max(1, round(flash.erase * share)), "capacity": capacity}


def _flash_commands(flash: SsdParameters, scale: float) -> dict[str, Any]:
    """A request's way there, the controller's work on a command (what a latency has beyond a flash page's own time), and the links."""
    changes: dict[str, Any] = {}
    for (name, chip), way in zip(_chip_times(flash).items(), ("read", "write"), strict=True):
        latency, rate, link = getattr(flash, name), getattr(flash, f"link_{way}_rate"), getattr(flash, f"link_{way}_command")
        saving = (1 - scale) * (latency - chip)
        changes |= {
            name: math.ceil(latency - saving),
            f"link_{way}_rate": _rate_with_time(rate, saving + (1 - scale) * link, MAXIMUM_COMMAND),
        }
        changes |= {f"link_{way}_command": round(scale * link), f"{way}_submission": round(scale * getattr(flash, f"{way}_submission"))}
    least = min(changes["read_latency"], changes["write_latency"])
    return changes | {"continuation_latency": min(flash.continuation_latency, least - 1)}


def _flash_pages(flash: SsdParameters, scale: float, page: int) -> dict[str, Any]:
    """The latency of a read that does not go on where the last one ended, where it matters; a write takes its chip's time anyway."""
    if not flash.continuation_latency or page > flash.continuation_limit:
        return {}
    longer = scale * flash.read_latency + (1 - scale) * flash.continuation_latency
    return {"read_latency": max(math.ceil(_chip_times(flash)["read_latency"]) + 1, round(longer))}


def _chip_times(flash: SsdParameters) -> dict[str, float]:
    """Time of a flash page in the chip and on its channel, ns, of each latency."""
    transfer = flash.unit_size * SECONDS / flash.channel_rate
    return {"read_latency": flash.read + transfer, "write_latency": flash.program + transfer}


def _rate_with_time(rate: int, time: float, command: int) -> int:
    """The rate at which a command also takes a time (ns) that it had before its transfer."""
    return int(command / (command / rate + time / SECONDS))
