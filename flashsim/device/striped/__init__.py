"""An array of equal disks as one device, striped: what its two models, compiled and in SimPy, have in common."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.model import DeviceModel
from flashsim.core.request import Commands, Requests
from flashsim.core.units import format_size
from flashsim.device.striping import Striping
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.report import COUNTERS, HddPowerCut, statistics

#: The host of an array may have any number of commands on the way, since each drive has a queue of its own.
ANY_DEPTH = 1 << 40

Model = TypeVar("Model", bound=DeviceModel)


class StripedDrives(Generic[Model]):
    """Equal drives and what is spread over them.

    Parameters
    ----------
    drives
        Fresh ones.
    parameters
        Of each of them.
    striping
        How bytes are spread over them.
    """

    def __init__(self, drives: Sequence[Model], parameters: HddParameters, striping: Striping) -> None:
        striping.check(parameters.sector_size, parameters.capacity)
        self.parameters = parameters
        self._drives, self._striping = list(drives), striping

    @property
    def capacity(self) -> int:
        return self._striping.capacity(self.parameters.capacity)

    def _split(self, requests: Requests, commands: Commands) -> Commands:
        """The drives' commands, of which drive d begins at d times its capacity; refuses what lies outside the array."""
        offset, length = commands["offset"], commands["length"]
        moves = (requests["operation"][commands["request"]] & ~1) == 0  # READ and WRITE
        outside = moves & ((offset < 0) | (length <= 0) | (offset > self.capacity - length))
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidParameterError("command", f"{length[row]} B at {offset[row]}", f"the array holds {format_size(self.capacity)}")
        pieces = self._striping.split(requests, commands, self.parameters.capacity)
        local = pieces.copy()
        local["offset"] %= self.parameters.capacity
        self.parameters.check(requests, local)
        return pieces

    def load(self, offset: int, length: int) -> None:
        """Nothing: whether a sector has been written does not change a hard disk's times."""

    def _cut(self, at: int, lost: Iterable[int]) -> HddPowerCut:
        """Cut the power of all drives, whose requests have the ids of the array's as tags; the requests `lost` have not completed."""
        unfinished = set(lost)
        vanished, extents = set(), []
        for number, drive in enumerate(self._drives):
            cut: Any = drive.power_cut(at)
            for owner, (offset, length) in zip(cut.tags.tolist(), cut.extents.tolist(), strict=True):
                if owner not in unfinished:
                    vanished.add(owner)
                    extents.append((number, offset, length))
        ids = [np.array(sorted(each), np.int64) for each in (unfinished, vanished)]
        return HddPowerCut(int(at), ids[0], ids[1], self._striping.merge(extents))

    def statistics(self) -> dict[str, Any]:
        """Counters of all drives together (`flashsim.hdd.report.COUNTERS`)."""
        told = [drive.statistics() for drive in self._drives]
        return statistics({name: sum(each[name] for each in told) for name in COUNTERS})
