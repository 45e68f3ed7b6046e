"""Pages of requests: which ones each touches, and all of them one after the other."""

from collections.abc import Iterator

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.transactions import BATCH

#: Pages of one device; they are numbered one device after the other, without overlap up to an exbibyte each of 4 KiB.
_DEVICE_SHIFT = 48


def pages_touched(device: Integers, offset: Integers, length: Integers, page_size: int) -> tuple[Integers, Integers]:
    """The first page of each request, unlike those of other devices, and how many it touches, in whole or in part, shape (n,) each."""
    first = offset // page_size
    return (device << _DEVICE_SHIFT) + first, np.where(length > 0, -(-(offset + length) // page_size) - first, 0)


def expanded(begin: Integers, counts: Integers) -> Iterator[tuple[Integers, Integers]]:
    """The numbers of runs that begin somewhere, one run after the other, some at a time, and from which run each is.

    Examples
    --------
    >>> [(pages.tolist(), runs.tolist()) for pages, runs in expanded(np.array([7, 3]), np.array([3, 2]))]
    [([7, 8, 9, 3, 4], [0, 0, 0, 1, 1])]
    """
    until = np.cumsum(counts)
    total = int(until[-1]) if len(until) else 0
    for start in range(0, total, BATCH):
        stop = min(start + BATCH, total)
        first, last = np.searchsorted(until, (start, stop - 1), side="right")
        runs = np.arange(first, last + 1)
        before = until[runs] - counts[runs]
        held = np.minimum(until[runs], stop) - np.maximum(before, start)
        yield np.repeat(begin[runs] - before, held) + np.arange(start, stop), np.repeat(runs, held)
