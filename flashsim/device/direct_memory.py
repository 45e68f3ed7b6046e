"""Memory for direct I/O: aligned, in place before a request is timed, and on huge pages where it is large."""

import mmap
from contextlib import suppress
from threading import local

import numpy as np
import numpy.typing as npt

from flashsim.core.units import MIB

HUGE_PAGE = 2 * MIB
#: Memory that is kept for the next transfer is at most so large.
_MOST_KEPT = 64 * MIB

Bytes = npt.NDArray[np.uint8]


def aligned_buffer(size: int) -> Bytes:
    """Memory for direct I/O, shape (size,): it begins at a page of the operating system and is in place.

    From 2 MiB on it lies on huge pages where the system has them.  A device is told each piece of physical memory apart, and for a virtual
    disk a request of 1 MiB takes twice as long if its memory lies scattered over pages of 4 KiB.
    """
    huge = size >= HUGE_PAGE
    room = mmap.mmap(-1, size + HUGE_PAGE if huge else max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory = np.frombuffer(room, np.uint8)
    if huge:
        with suppress(AttributeError, OSError):  # this system has none, or refuses them
            room.madvise(mmap.MADV_HUGEPAGE)
        memory = memory[-memory.ctypes.data % HUGE_PAGE :]
    memory = memory[:size]
    memory[:: mmap.PAGESIZE] = 0
    return memory


class LastingMemory(local):
    """Memory that a thread uses for one transfer after the other."""

    def __init__(self) -> None:
        self._kept = np.empty(0, np.uint8)

    def take(self, size: int) -> Bytes:
        """Memory of this thread, shape (size,); what it holds lasts until the next call."""
        if size > _MOST_KEPT:
            return aligned_buffer(size)
        if size > len(self._kept):
            self._kept = aligned_buffer(max(size, HUGE_PAGE))
        return self._kept[:size]
