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
    #: Paths that the file was seen to have.
    paths: set[str] = field(default_factory=set)
    _seen: dict[int, np.ndarray] = field(default_factory=dict)
    _changed: set[int] = field(default_factory=set)

    @property
    def path(self) -> str:
        path = os.readlink(f"/proc/self/fd/{self.descriptor}").removesuffix(" (deleted)")
        self.paths.add(path)
        return path

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
                    pages = np.unique(differing)
                    self._changed.update((pages + place // PAGE).tolist())
                    yield from _runs(place, now, pages)

    def forget_changes(self) -> None:
        """Count no page as changed so far."""
        self._changed.clear()

    def all_changes(self) -> Iterator[tuple[int, bytes]]:
        """Places and bytes, as last seen, of all pages that have changed so far."""
        for page in sorted(self._changed):
            place, first = page * PAGE // _AT_ONCE * _AT_ONCE, page * PAGE % _AT_ONCE
            if data := self._seen[place][first : first + PAGE].tobytes():
                yield page * PAGE, data


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
        mapped.forget_changes()
        self._files[identity] = mapped

    def all(self) -> list[MappedFile]:
        return list(self._files.values())

    def of_descriptor(self, process: int, number: int) -> list[MappedFile]:
        """The file that a descriptor of a process stands for, if it is mapped."""
        if not self._files:
            return []
        found = os.stat(f"/proc/{process}/fd/{number}")
        mapped = self._files.get((found.st_dev, found.st_ino))
        return [mapped] if mapped else []

    def in_memory_of(self, process: int, begin: int, length: int) -> list[MappedFile]:
        """Files that are mapped by a process itself, there in its memory."""
        if not self._files:
            return []
        identities = set[tuple[int, int]]()
        with open(f"/proc/{process}/maps", encoding="utf-8", errors="replace") as lines:
            for place, permitted, _, device, inode, *_ in (line.split() for line in lines):
                first, last = (int(each, 16) for each in place.split("-"))
                if permitted[3] == "s" and first < begin + length and begin < last:
                    major, minor = (int(each, 16) for each in device.split(":"))
                    identities.add((os.makedev(major, minor), int(inode)))
        return [mapped for identity, mapped in self._files.items() if identity in identities]

    def close(self) -> None:
        for mapped in self._files.values():
            os.close(mapped.descriptor)
        self._files.clear()
