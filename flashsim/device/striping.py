"""Striping (RAID 0): which drive of an array holds which bytes, and what a command of the host means to each.

Stripe after stripe goes to the next drive in turn.  What a command touches on one drive is one run of bytes, so each drive gets at most one
command; one that moves no data goes to all drives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.parameters import count, size
from flashsim.core.request import COMMAND, READ, WRITE, Commands, Integers, Requests
from flashsim.core.units import KIB, format_size


@dataclass(frozen=True, kw_only=True)
class Striping:
    """How bytes are spread over the drives of an array."""

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

        Examples
        --------
        >>> from flashsim.core.host_queue import one_command_each
        >>> from flashsim.core.request import make_requests
        >>> requests = make_requests(READ, 2048, 8192)
        >>> Striping(drives=2, stripe=4096).split(requests, one_command_each(requests), 65536)[["offset", "length"]].tolist()
        [(2048, 4096), (65536, 4096)]
        """
        found = np.empty(len(commands) * self.drives, COMMAND)
        operations = np.ascontiguousarray(requests["operation"], np.int64)
        return found[: _fill(found, np.ascontiguousarray(commands), operations, self.drives, self.stripe, each)]

    def merge(self, extents: Sequence[tuple[int, int, int]]) -> Integers:
        """Rows (offset, length) of an array's bytes, ascending and joined where they touch, of (drive, offset, length) on its drives."""
        pieces = []
        for drive, start, length in extents:
            while length > 0:
                row, within = divmod(start, self.stripe)
                here = min(length, self.stripe - within)
                pieces.append(((row * self.drives + drive) * self.stripe + within, here))
                start, length = start + here, length - here
        joined: list[tuple[int, int]] = []
        for offset, length in sorted(pieces):
            if joined and sum(joined[-1]) >= offset:
                joined[-1] = (joined[-1][0], max(sum(joined[-1]), offset + length) - joined[-1][0])
            else:
                joined.append((offset, length))
        return np.array(joined, np.int64).reshape(-1, 2)


@lean_kernel
def _fill(found: Commands, commands: Commands, operations: Integers, drives: int, stripe: int, each: int) -> int:
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
            found[count]["request"] = request
            found[count]["offset"] = drive * each + start
            found[count]["length"] = end - start
            count += 1
    return count
