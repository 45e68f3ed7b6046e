"""Files that a program writes through memory: pages that differ from what was last seen of them."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.units import GIB
from traces.calls.page_cache import PAGE

#: Bytes that are compared at once, and bytes of all copies together at most.
_AT_ONCE, _MOST = 16 << 20, GIB


@dataclass
class MappedFile:
    """A file that is mapped, by a descriptor of this process, and what was last seen of it."""

    descriptor: int
    #: Process and thread that mapped it first.
    process: int
    thread: int
    _seen: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return os.readlink(f"/proc/self/fd/{self.descriptor}").removesuffix(" (deleted)")

    @property
    def seen_bytes(self) -> int:
        """Bytes that this object holds."""
        return sum(map(len, self._seen.values()))

    def changes(self) -> Iterator[tuple[int, bytes]]:
        """Places and bytes of runs of pages that have changed since the last call, of which the first has the file as it is mapped."""
        size = os.fstat(self.descriptor).st_size
        for begin, end in _data(self.descriptor, size):
            for place in range(begin // _AT_ONCE * _AT_ONCE, end, _AT_ONCE):
                now = np.frombuffer(os.pread(self.descriptor, min(_AT_ONCE, size - place), place), np.uint8)
                before = self._seen.get(place, now[:0])
                if len(before) < len(now):
                    before = np.concatenate([before, np.zeros(len(now) - len(before), np.uint8)])
                self._seen[place] = now
                differing = np.flatnonzero(now != before[: len(now)]) // PAGE
                if len(differing):
                    yield from _runs(place, now, np.unique(differing))


def _runs(place: int, now: np.ndarray, pages: Integers) -> Iterator[tuple[int, bytes]]:
    for run in np.split(pages, np.flatnonzero(np.diff(pages) > 1) + 1):
        first, last = int(run[0]) * PAGE, (int(run[-1]) + 1) * PAGE
        yield place + first, now[first:last].tobytes()


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Extents of a file that are no holes; chunks that they share are given once."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:  # holes alone
            return
        end = max(os.lseek(descriptor, begin, os.SEEK_HOLE), begin + 1)
        end = min(size, -(-end // _AT_ONCE) * _AT_ONCE)
        yield begin, end


class MappedFiles:
    """All files that a program has mapped, shared and writable, by device and inode."""

    def __init__(self) -> None:
        self._files: dict[tuple[int, int], MappedFile] = {}
        self.refused: set[str] = set()

    def map(self, process: int, thread: int, number: int) -> None:
        """A descriptor's file is mapped; its state is that before the program writes to the memory."""
        try:
            descriptor = os.open(f"/proc/{process}/fd/{number}", os.O_RDONLY)
        except OSError:
            return
        found = os.fstat(descriptor)
        identity = (found.st_dev, found.st_ino)
        if not stat.S_ISREG(found.st_mode) or identity in self._files:
            os.close(descriptor)
            return
        mapped = MappedFile(descriptor, process, thread)
        held = sum(each.seen_bytes for each in self._files.values())
        if held + found.st_blocks * 512 > _MOST:
            self.refused.add(mapped.path)
            os.close(descriptor)
            return
        for _ in mapped.changes():
            pass
        self._files[identity] = mapped

    def of(self, process: int, number: int | None = None) -> list[MappedFile]:
        """Files that a call by a process syncs: that of a descriptor, or all."""
        if number is None or not self._files:
            return list(self._files.values())
        try:
            found = os.stat(f"/proc/{process}/fd/{number}")
        except OSError:
            return []
        mapped = self._files.get((found.st_dev, found.st_ino))
        return [mapped] if mapped else []

    def close(self) -> None:
        for mapped in self._files.values():
            os.close(mapped.descriptor)
        self._files.clear()
