"""Namespaces: ranges of one drive that have a name and logical addresses of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import SECTOR, Integers, Requests
from flashsim.core.units import format_size
from flashsim.device import block_layer
from flashsim.device.device import Device


@dataclass(frozen=True)
class Namespace:
    """A range of a device, whose time passes for all of its namespaces alike; requests to it end as those of the device do."""

    device: Device  #: The drive.
    name: str  #: Of the namespace.
    #: Bytes of the drive before it, and in it.
    offset: int
    capacity: int

    def submit(self, requests: Requests, at: int | Integers | None = None) -> Integers:
        """Take requests, whose offsets count from the namespace's begin; return their ids on the device, shape (n,)."""
        block_layer.check(requests, self.capacity, f"namespace {self.name}")
        moved = requests.copy()
        moved["offset"] += self.offset
        return self.device.submit(moved, at)


def divide(device: Device, sizes: Mapping[str, int]) -> dict[str, Namespace]:
    """Divide a device into namespaces of these sizes (bytes), one behind the other; what is left belongs to none.

    Raises InvalidParameterError: a size is no positive multiple of the sector, or a namespace ends within a zone or a mapping unit;
    CapacityError: they do not fit.

    >>> spaces = divide(Device.open("intel-x25e-64gb"), {"log": 10**9, "data": 2**30})
    >>> [(space.name, space.offset) for space in spaces.values()]
    [('log', 0), ('data', 1000000000)]
    """
    flash = device.preset.flash
    unit = flash.mapping_unit if flash is not None else 0
    grain, what = (device.zone_size, "zone") if device.zone_size else (unit or SECTOR, "mapping unit")
    spaces, begin = {}, 0
    for name, size in sizes.items():
        try:
            size = index(size)
        except TypeError:
            raise InvalidParameterError(f"namespace {name}", repr(size), "a whole number of bytes is needed") from None
        if size <= 0 or size % SECTOR:
            raise InvalidParameterError(f"namespace {name}", f"{size} B", f"it must be a multiple of {SECTOR} B, and not empty")
        if begin + size > device.capacity:
            left = f"{device.name} has {format_size(device.capacity - begin)} left"
            raise CapacityError(f"namespace {name}: {format_size(size)}, but {left}")
        if (begin + size) % grain and begin + size < device.capacity:
            raise InvalidParameterError(f"namespace {name}", f"{size} B", f"it must end with a {what}, of {grain} B")
        spaces[name] = Namespace(device, name, begin, size)
        begin += size
    return spaces
