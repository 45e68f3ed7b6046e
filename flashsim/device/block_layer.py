"""The kernel's block layer: host requests are checked, and split into commands of a maximum size.

No command goes over the end of a zone.  The commands of a request are dispatched in order with no host gap, up to the device's queue depth
(`core.host`).
"""

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.request import COMMAND, FLUSH, SECTOR, Commands, Integers, Requests
from flashsim.core.units import KIB, format_size

MAXIMUM_COMMAND = 128 * KIB  #: The largest command of Linux kernels around 2009 (``max_sectors_kb`` = 128).

# What a request can be refused for.
_NONE, _RAGGED, _EMPTY, _OUTSIDE = range(4)


def check(requests: Requests, capacity: int, name: str) -> None:
    """Refuse requests that no device of that capacity can serve."""
    row, fault = _first_refused(np.ascontiguousarray(requests), capacity)
    if fault == _NONE:
        return
    length, offset = requests["length"][row], requests["offset"][row]
    if fault == _RAGGED:
        raise InvalidParameterError("request", f"{length} B at {offset}", f"{name} takes multiples of its {SECTOR} B sector")
    if fault == _EMPTY:
        raise InvalidParameterError("request length", int(length), "it must be positive")
    raise CapacityError(f"request: {length} B at {offset}, but {name} holds {format_size(capacity)}")


@lean_kernel
def _first_refused(requests: Requests, capacity: int) -> tuple[int, int]:
    """The first row that has a fault, and which."""
    for row in range(requests.shape[0]):
        offset, length = requests[row]["offset"], requests[row]["length"]
        if offset % SECTOR != 0 or length % SECTOR != 0:
            return row, _RAGGED
        if length <= 0 and requests[row]["operation"] != FLUSH:
            return row, _EMPTY
        if offset < 0 or length > capacity or offset > capacity - length:
            return row, _OUTSIDE
    return -1, _NONE


def command_counts(lengths: Integers, maximum: int = MAXIMUM_COMMAND) -> Integers:
    """Commands that requests of these lengths (bytes) are split into, shape (n,)."""
    return np.maximum(1, -(-lengths // maximum))


def split(requests: Requests, maximum: int = MAXIMUM_COMMAND, zone: int = 0) -> Commands:
    """The commands of requests, each at most `maximum` bytes and within one zone, in order; shape (m,), dtype COMMAND.

    >>> from flashsim.core.request import WRITE, make_requests
    >>> split(make_requests(WRITE, 0, 300 * 1024))["length"].tolist()
    [131072, 131072, 45056]
    """
    if zone:
        offset: Integers = requests["offset"]
        length: Integers = requests["length"]
        first, last = offset // zone, (offset + np.maximum(length, 1) - 1) // zone
        of = np.repeat(np.arange(len(requests)), last - first + 1)
        begins = (first[of] + np.arange(len(of)) - np.searchsorted(of, of)) * zone
        requests = requests[of]
        starts = requests["offset"] = np.maximum(offset[of], begins)
        requests["length"] = np.minimum((offset + length)[of], begins + zone) - starts
    pieces = command_counts(requests["length"], maximum)
    commands = np.empty(int(pieces.sum()), COMMAND)
    _fill(commands, np.ascontiguousarray(requests), pieces, maximum)
    if zone:
        numbers: Integers = commands["request"]
        commands["request"] = of[numbers]
    return commands


@lean_kernel
def _fill(commands: Commands, requests: Requests, pieces: Integers, maximum: int) -> None:
    command = 0
    for row in range(requests.shape[0]):
        for piece in range(pieces[row]):
            start = piece * maximum
            commands[command]["request"] = row
            commands[command]["offset"] = requests[row]["offset"] + start
            commands[command]["length"] = min(maximum, requests[row]["length"] - start)
            command += 1
