"""Requests of a host to a device and their completions: two record types, kept in NumPy arrays.

Offsets and lengths are bytes, times are nanoseconds.  A request's `dependency` is the index, within the same submitted array, of a
request that must complete first (-1: none); it then arrives `think` nanoseconds after that completion.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

READ, WRITE, TRIM, FLUSH = 0, 1, 2, 3
OPERATIONS = ("read", "write", "trim", "flush")

#: A request's flags.  Only a flash drive with a bus of its memory takes the last two (`flashsim.ssd.parameters.SsdParameters.bus_rate`):
#: INTERNAL reads and writes flash for a program inside the drive, not over the host link; IN_MEMORY is for the drive's memory, not flash.
FORCE_UNIT_ACCESS, INTERNAL, IN_MEMORY = 1, 2, 4

SECTOR = 512  #: The logical sector: offsets and lengths are multiples of it.

REQUEST = np.dtype(
    [
        ("device", np.int16),
        ("operation", np.int8),
        ("priority", np.int8),
        ("stream", np.int16),
        ("flags", np.int16),
        ("offset", np.int64),
        ("length", np.int64),
        ("tag", np.int64),
        ("dependency", np.int64),
        ("think", np.int64),
    ]
)
COMPLETION = np.dtype(
    [
        ("id", np.int64),  # as returned by submit
        ("tag", np.int64),
        ("submitted", np.int64),  # when the request arrived at the host queue
        ("started", np.int64),  # when its first command was dispatched to the device
        ("completed", np.int64),
    ]
)
#: One device command of a (split) host request; `request` is the index in the submitted array.
COMMAND = np.dtype([("request", np.int64), ("offset", np.int64), ("length", np.int64)])

Requests = npt.NDArray[Any]
Completions = npt.NDArray[Any]
Commands = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]


def total(counts: Integers) -> int:
    """The sum of some numbers, which mostly are one."""
    return int(counts.item() if counts.size == 1 else counts.sum())


def response_times(completions: Completions) -> Integers:
    """Nanoseconds from a request's submission to its completion, one an entry."""
    times: Integers = completions["completed"] - completions["submitted"]
    return times


def make_requests(
    operation: int | Sequence[int] | npt.NDArray[Any],
    offset: int | Sequence[int] | npt.NDArray[Any],
    length: int | Sequence[int] | npt.NDArray[Any],
    *,
    serial: bool = False,
    think: int | npt.NDArray[Any] = 0,
    device: int = 0,
) -> Requests:
    """An array of requests, shape (n,), from broadcastable columns.

    Parameters
    ----------
    operation
        READ, WRITE, TRIM or FLUSH.
    offset, length
        Bytes.
    serial
        Each request depends on the one before it (synchronous I/O); otherwise all are independent.
    think
        Nanoseconds between the completion waited for and the arrival.
    device
        Its number.
    """
    columns = np.broadcast_arrays(np.atleast_1d(operation), np.atleast_1d(offset), np.atleast_1d(length))
    requests = np.zeros(columns[0].shape, REQUEST)
    requests["operation"], requests["offset"], requests["length"] = columns
    requests["device"] = device
    requests["dependency"] = np.arange(-1, len(requests) - 1) if serial else -1
    requests["think"] = think
    return requests
