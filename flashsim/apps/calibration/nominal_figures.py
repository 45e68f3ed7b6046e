"""A drive's nominal figures, measured below the block layer: bandwidth, latency and requests a second."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashsim.apps.calibration.drive_figures import DriveLoad
from flashsim.apps.calibration.figure_runs import results_of
from flashsim.core.errors import RefusedError, UnknownNameError
from flashsim.core.request import READ, SECTOR, WRITE, Integers, make_requests, response_times
from flashsim.core.rng import generator
from flashsim.core.units import GIB, KIB, MIB, SECONDS
from flashsim.device.device import Device
from flashsim.device.figures import LONG, MECHANICAL, NAMES
from flashsim.device.presets import Preset, refuse_zoned
from flashsim.device.scaling import most_parts, part_of

#: The largest command; larger than any request here, so that none is split.
_COMMAND = MIB
#: Bytes of an SSD that are read and written: enough for all dies, little enough to load at once.
_AREA = GIB // 4
_SINGLE_REQUESTS = 1000
#: Half a revolution is known within 0.4 % (one standard error) from so many waits.
_MECHANICAL_REQUESTS = 20_000
#: Requests of a steady state, before what a drive's pages ask for.
_STEADY_REQUESTS = 20_000
#: From where to where, in sizes of an SLC cache, a drive is written on when the cache is full, and the most of its capacity.
_FULL, _ON, _MOST_OF_ALL = 1.05, 1.35, 0.9
#: Erase blocks of a plane, and of its share of an SLC cache, that a part of a drive has at least for that.
_BLOCKS, _CACHE_BLOCKS = 32, 8


class NominalFigure(NamedTuple):
    """A figure, measured and (where the preset cites it) cited: bytes a second, ns, or requests a second; measured over cited, less 1."""

    name: str
    measured: float
    cited: int | None
    source: str
    difference: float | None

    @property
    def ratio(self) -> float:
        """Measured over cited; 1 where nothing is cited."""
        return 1 + (self.difference or 0.0)


def figures(preset: Preset, only: Sequence[str] | None = None, seed: int = 0) -> list[NominalFigure]:
    """Measure a drive's nominal figures, each on a fresh drive whose first part has been written once, in order.

    Random requests of a disk go to all of it, those of an SSD to that part, which lies on all dies: 256 MiB, or sixteen times its write
    buffer if that is more.  Rates are those of the middle half of a run.  It begins when at least twice the write buffer has been written,
    so writes go at the pace of flash.  Single writes end when they are acknowledged.  `only` are names of
    `flashsim.device.figures.CitedFigures`; by default all that a drive of its kind has, but for those after long writes
    (`flashsim.device.figures.LONG`), which are those of a part of a large drive.

    Raises
    ------
    UnknownNameError
        A figure that is not declared there, or that a drive of this kind does not have.
    RefusedError
        Writes are to be measured on a zoned drive, or those past an SLC cache that there is not.
    """
    cited = preset.cited.as_dict()
    every = []
    names = [name for name in NAMES if preset.kind == "hdd" or name not in MECHANICAL]
    chosen = names if only is None else only
    if any("write" in name for name in chosen):
        refuse_zoned(preset, "its reads can be measured")
    for name in chosen:
        if name not in names and (name not in LONG or preset.kind == "hdd"):
            raise UnknownNameError("figure", name, names)
        device = Device(preset, maximum_command=_COMMAND)
        area = min(max(_AREA, 16 * _buffer(device)), device.capacity) // _COMMAND * _COMMAND
        device.load(0, area)
        measure, *rest = _MEASUREMENTS[name]
        measured, beside = measure(device, area, seed, *rest), cited.get(name)
        every.append(NominalFigure(name, measured, beside, preset.cited_sources.get(name, ""), measured / beside - 1 if beside else None))
    return every


def _bandwidth(device: Device, area: int, seed: int, operation: int) -> float:
    return _COMMAND * _completions_a_second(device, operation, np.arange(area // _COMMAND) * _COMMAND, _COMMAND)


def _latency(device: Device, area: int, seed: int, operation: int, length: int) -> float:
    offsets = _random(device, area, length, _SINGLE_REQUESTS, seed)
    completions = device.serve(make_requests(operation, offsets, length, serial=True))
    return float(response_times(completions).mean())


def _mechanical(device: Device, area: int, seed: int, statistic: str) -> float:
    offsets = _random(device, area, SECTOR, _MECHANICAL_REQUESTS, seed)
    device.serve(make_requests(READ, offsets, SECTOR, serial=True))
    return float(device.statistics()[statistic])


def _rate(device: Device, area: int, seed: int, operation: int) -> float:
    count = 16 * device.preset.parameters.queue_depth + _SINGLE_REQUESTS
    if operation == WRITE:
        count += 8 * _buffer(device) // (4 * KIB)
    return _completions_a_second(device, operation, _random(device, area, 4 * KIB, count, seed), 4 * KIB)


def _steady_rate(device: Device, _area: int, seed: int) -> float:
    """Writes a second that last, as many outstanding as a queue takes (`flashsim.apps.calibration.figure_runs.results_of`)."""
    flash = device.preset.flash
    assert flash is not None
    load = DriveLoad(WRITE, max(4 * KIB, flash.mapping_unit), depth=flash.queue_depth, state="steady")
    return results_of(device.preset, [load], seed, _STEADY_REQUESTS)[load]["iops"]


def _bandwidth_past_cache(device: Device, _area: int, _seed: int) -> float:
    """Bytes a second of writes in order to an empty drive, after those that its SLC cache took."""
    whole = device.preset.flash
    if whole is None or not whole.slc_cache:
        raise RefusedError(f"sequential_write_full: {device.name} has no SLC cache (slc_cache)")
    parts = min(most_parts(device.preset), (whole.good_blocks - whole.gc_reserve) // _BLOCKS, whole.slc_blocks // _CACHE_BLOCKS)
    part = part_of(device.preset, parts) if parts > 1 else device.preset
    assert part.flash is not None
    cache, most = part.flash.slc_blocks * part.flash.slc_pages * part.flash.unit_size * whole.pools, int(_MOST_OF_ALL * part.capacity)
    last = min(round(_ON * cache) + 16 * _buffer(device), most) // _COMMAND
    first = min(round(_FULL * cache) // _COMMAND, (min(cache, most) // _COMMAND + last) // 2)
    ends = np.sort(Device(part, maximum_command=_COMMAND).serve(make_requests(WRITE, np.arange(last) * _COMMAND, _COMMAND))["completed"])
    return float((last - 1 - first) * _COMMAND * SECONDS / (ends[last - 1] - ends[first]))


def _buffer(device: Device) -> int:
    flash = device.preset.flash
    return flash.whole_page_buffer if flash else 0


def _random(device: Device, area: int, length: int, count: int, seed: int) -> Integers:
    within = device.capacity if device.kind == "hdd" else area
    return generator(seed, "figures", length).integers(0, within // length, count) * length


def _completions_a_second(device: Device, operation: int, offsets: Integers, length: int) -> float:
    ends = np.sort(device.serve(make_requests(operation, offsets, length))["completed"])
    first, last = len(ends) // 4, 3 * len(ends) // 4
    return float((last - first) * SECONDS / (ends[last] - ends[first]))


#: The function of each, and what it takes besides the device, the area and the seed.
_MEASUREMENTS: dict[str, tuple[Callable[..., float], *tuple[Any, ...]]] = {
    "mean_seek": (_mechanical, "mean_seek"),
    "rotational_latency": (_mechanical, "mean_wait"),
    "sequential_read": (_bandwidth, READ),
    "sequential_write": (_bandwidth, WRITE),
    "read_access": (_latency, READ, SECTOR),
    "random_read": (_latency, READ, 4 * KIB),
    "random_read_iops": (_rate, READ),
    "random_write": (_latency, WRITE, 4 * KIB),
    "random_write_iops": (_rate, WRITE),
    "steady_write_iops": (_steady_rate,),
    "sequential_write_full": (_bandwidth_past_cache,),
    "page_read": (_latency, READ, 8 * KIB),
    "page_write": (_latency, WRITE, 8 * KIB),
}
