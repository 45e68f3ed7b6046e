"""The kernel's block layer: host requests are checked, and split into commands of a maximum size.

The commands of a request are dispatched in order with no host gap, up to the device's queue depth (`core.host`).
"""

from __future__ import annotations

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import COMMAND, FLUSH, SECTOR, Commands, Requests
from flashsim.core.units import KIB, format_size

#: The largest command of Linux kernels around 2009 (``max_sectors_kb`` = 128).
MAXIMUM_COMMAND = 128 * KIB


def check(requests: Requests, capacity: int, name: str) -> None:
    """Refuse requests that no device of that capacity can serve.

    Raises
    ------
    InvalidParameterError
        An offset or length that is no multiple of the sector, or an empty read, write or trim.
    CapacityError
        A request that begins or ends outside the device.
    """
    offset, length = requests["offset"], requests["length"]
    ragged = (offset % SECTOR != 0) | (length % SECTOR != 0)
    if ragged.any():
        row = int(np.argmax(ragged))
        raise InvalidParameterError("request", f"{length[row]} B at {offset[row]}", f"{name} takes multiples of its {SECTOR} B sector")
    empty = (length <= 0) & (requests["operation"] != FLUSH)
    if empty.any():
        raise InvalidParameterError("request length", int(length[np.argmax(empty)]), "it must be positive")
    outside = (offset < 0) | (offset + length > capacity)
    if outside.any():
        row = int(np.argmax(outside))
        raise CapacityError(f"request: {length[row]} B at {offset[row]}, but {name} holds {format_size(capacity)}")


def split(requests: Requests, maximum: int = MAXIMUM_COMMAND) -> Commands:
    """The commands of requests, each at most `maximum` bytes, in order; shape (m,), dtype COMMAND.

    Examples
    --------
    >>> from flashsim.core.request import WRITE, make_requests
    >>> split(make_requests(WRITE, 0, 300 * 1024))["length"].tolist()
    [131072, 131072, 45056]
    """
    pieces = np.maximum(1, -(-requests["length"] // maximum))
    owner = np.repeat(np.arange(len(requests)), pieces)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    commands = np.empty(len(owner), COMMAND)
    commands["request"] = owner
    commands["offset"] = requests["offset"][owner] + within * maximum
    commands["length"] = np.minimum(maximum, requests["length"][owner] - within * maximum)
    return commands
