"""Striping (RAID 0): which drive of an array holds which bytes, and what a command of the host means to each.

Stripe after stripe goes to the next drive in turn.  What a command touches on one drive is one run of bytes, so each drive gets at most one
command.  An array's drives are told apart by address: drive d begins at d times a drive's capacity.
"""

from __future__ import annotations

import numpy as np

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import COMMAND, READ, WRITE, Commands, Integers, Requests
from flashsim.hdd.parameters import HddParameters


def split(requests: Requests, commands: Commands, parameters: HddParameters) -> Commands:
    """Commands of an array as commands of its drives; those that move no data go to all of them.

    Examples
    --------
    >>> from flashsim.core.host import one_command_each
    >>> from flashsim.core.parameters import build
    >>> from flashsim.core.request import make_requests
    >>> values = dict(capacity=65536, sector_size=512, rotation=10_000, heads=2, zones=[(8, 10)], seek_single=3000, seek_average=3000,
    ...               seek_full=3000, head_switch=2000, write_settle=0, overhead=1, read_ahead=0, write_behind=0, queue_depth=1)
    >>> array = build(HddParameters, values | dict(drives=2, stripe=4096))
    >>> requests = make_requests(READ, 2048, 8192)
    >>> split(requests, one_command_each(requests), array)[["offset", "length"]].tolist()
    [(2048, 4096), (65536, 4096)]
    """
    if parameters.drives == 1:
        return commands
    found = np.empty(len(commands) * parameters.drives, COMMAND)
    operations = np.ascontiguousarray(requests["operation"], np.int64)
    count = _fill(found, np.ascontiguousarray(commands), operations, parameters.drives, parameters.stripe, parameters.capacity)
    return found[:count]


def merge(extents: Integers, parameters: HddParameters) -> Integers:
    """Rows (offset, length) of bytes of the drives as such of the array's bytes, ascending and joined where they touch."""
    pieces = []
    for offset, length in extents.tolist():
        drive, start = divmod(offset, parameters.capacity)
        while length > 0:
            row, within = divmod(start, parameters.stripe)
            count = min(length, parameters.stripe - within)
            pieces.append(((row * parameters.drives + drive) * parameters.stripe + within, count))
            start, length = start + count, length - count
    joined: list[tuple[int, int]] = []
    for offset, length in sorted(pieces):
        if joined and sum(joined[-1]) >= offset:
            joined[-1] = (joined[-1][0], max(sum(joined[-1]), offset + length) - joined[-1][0])
        else:
            joined.append((offset, length))
    return np.array(joined, np.int64).reshape(-1, 2)


@lean_kernel
def _fill(found: Commands, commands: Commands, operations: Integers, drives: int, stripe: int, capacity: int) -> int:
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
            found[count]["offset"] = drive * capacity + start
            found[count]["length"] = end - start
            count += 1
    return count
