"""An array of equal disks as one device, striped (RAID 0): which drive holds which bytes, and what its two models have in common.

Stripe after stripe goes to the next drive in turn.  What a command touches on one drive is one run of bytes, so each drive gets at most one
command; one that moves no data goes to all drives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import count, size
from flashsim.core.request import COMMAND, READ, WRITE, Commands, Integers, Requests
from flashsim.core.units import KIB, format_size
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.disk import COUNTER_NAMES, HddPowerCut, statistics

#: The host of an array may have any number of commands on the way, since each drive has a queue of its own.
ANY_DEPTH = 1 << 40


@dataclass(frozen=True, kw_only=True)
class Striping:
    """Spread of bytes over the drives of an array."""

    drives: int = count("equal drives, striped (RAID 0)", 2)
    stripe: int = size("bytes of an array on one drive before those on the next", default=64 * KIB)

    def check(self, sector_size: int, capacity: int) -> None:
        """Refuse stripes that drives of that capacity cannot hold."""
        if self.stripe % sector_size:
            raise InvalidParameterError("stripe", f"{self.stripe} B", f"it must be a multiple of the sector, {sector_size} B")
        if not 0 < self.stripe <= capacity:
            raise InvalidParameterError("stripe", format_size(self.stripe), f"a drive holds {format_size(capacity)}")

    def capacity(self, each: int) -> int:
        """Bytes that the host can address on drives of so many: whole stripes on all of them."""
        return each // self.stripe * self.stripe * self.drives

    def split(self, requests: Requests, commands: Commands, each: int) -> Commands:
        """Commands of an array as commands of its drives, of which number d begins at d times the bytes of each.

        >>> from flashsim.core.host_queue import one_command_each
        >>> from flashsim.core.request import make_requests
        >>> requests = make_requests(READ, 2048, 8192)
        >>> Striping(drives=2, stripe=4096).split(requests, one_command_each(requests), 65536)[["offset", "length"]].tolist()
        [(2048, 4096), (65536, 4096)]
        """
        parts = np.empty(len(commands) * self.drives, COMMAND)
        operations = np.ascontiguousarray(requests["operation"], np.int64)
        return parts[: _fill(parts, np.ascontiguousarray(commands), operations, self.drives, self.stripe, each)]

    def merge(self, extents: Sequence[tuple[int, int, int]]) -> Integers:
        """Rows (offset, length) of an array's bytes, ascending and joined where they touch, of (drive, offset, length) on its drives."""
        pieces = []
        for drive, start, length in extents:
            while length > 0:
                row, within = divmod(start, self.stripe)
                here = min(length, self.stripe - within)
                pieces.append(((row * self.drives + drive) * self.stripe + within, here))
                start, length = start + here, length - here
        runs: list[tuple[int, int]] = []
        for offset, length in sorted(pieces):
            if runs and sum(runs[-1]) >= offset:
                runs[-1] = (runs[-1][0], max(sum(runs[-1]), offset + length) - runs[-1][0])
            else:
                runs.append((offset, length))
        return np.array(runs, np.int64).reshape(-1, 2)


@lean_kernel
def _fill(parts: Commands, commands: Commands, operations: Integers, drives: int, stripe: int, each: int) -> int:
    count = 0
    for row in range(commands.shape[0]):
        request, offset, length = commands[row]["request"], commands[row]["offset"], commands[row]["length"]
        data = operations[request] == READ or operations[request] == WRITE
        first, last = offset // stripe, (offset + length - 1) // stripe
        for turn in range(drives):
            if data:
                stripe_here = first + turn  # the first stripe that this drive has of the command
                if stripe_here > last:
                    break
                drive = stripe_here % drives
                final = last - (last - stripe_here) % drives
                start = stripe_here // drives * stripe + (offset - first * stripe if turn == 0 else 0)
                end = final // drives * stripe + (offset + length - last * stripe if final == last else stripe)
            else:
                drive, start, end = turn, 0, 0
            parts[count]["request"] = request
            parts[count]["offset"] = drive * each + start
            parts[count]["length"] = end - start
            count += 1
    return count


Model = TypeVar("Model", bound=DeviceModel)


class StripedDrives(Generic[Model]):
    """Equal drives and what is spread over them.

    `drives`: fresh ones; `parameters`: of each of them; `striping`: how bytes are spread over them.
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
        """Counters of all drives together (`flashsim.hdd.state.disk.COUNTERS`)."""
        each_drive = [drive.statistics() for drive in self._drives]
        return statistics({name: sum(each[name] for each in each_drive) for name in COUNTER_NAMES})
