"""Packed, with what the ext3 file system puts between the blocks of a file and writes beside them.

A file's blocks of 4 KiB are mapped by indirect blocks of 1,024 entries, each of which lies just before the data that it maps: a hole of 4
KiB in every 4 MiB.  (The twelve blocks that the inode itself maps, and the few blocks that map indirect blocks, are left out.)  Changed
metadata goes to the journal, in one run with a descriptor and a commit block, and then to its place.  ext3 does so every five seconds;
here it does so every 250 MB of data, five seconds at 50 MB/s, so that a run is the same on fast and slow devices.

Source: S. Tweedie, "Journaling the Linux ext2fs Filesystem", LinuxExpo 1998; block map and journal of Linux 2.6.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.units import MB, MIB
from flashsim.storage.heap_file import File
from flashsim.storage.placement.base import FileRoom, FileRuns, Room

#: Bytes of a block of the file system, and of the data that an indirect block maps.
BLOCK, MAPPED = 4096, 1024 * 4096
#: Bytes of the journal (mke2fs's choice for large volumes), and data written between two commits.
JOURNAL, COMMIT = 128 * MIB, 250 * MB


class FileSystem(FileRuns):
    """Gives room in whole blocks behind indirect blocks, and keeps those that have changed since the last commit, and the journal."""

    writes_metadata: ClassVar[bool] = True

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._mapped, self._commit = MAPPED * room.scale, COMMIT * room.scale
        self._journal_size = max(1, round(JOURNAL / BLOCK * room.scale)) * BLOCK
        self._journal = room.take(self._journal_size, "the journal")
        self._head = 0  # bytes from the journal's begin to where it goes on
        self._maps: dict[File, list[int]] = {}  # where the indirect blocks of a file are
        self._changed: dict[int, None] = {}  # in the order of change
        self._bytes = 0

    def take(self, file: File, count: int) -> Iterator[tuple[int, int, int]]:
        size = file.page_size
        unit = max(size, BLOCK)  # pages of several blocks, or blocks of several pages, are not cut
        per_map = max(1, round(self._mapped / unit)) * unit // size
        own, maps = self._rooms.setdefault(file, FileRoom()), self._maps.setdefault(file, [])
        while count:
            unmapped = per_map - own.pages % per_map
            run = min(count, unmapped)
            if own.rest:
                run = min(count, own.rest // size)
            else:
                reserved = min(unmapped, self.reserved_pages(file, run))
                ahead, blocks = BLOCK if own.pages % per_map == 0 else 0, -(-reserved * size // BLOCK) * BLOCK
                offset = self._room.take(ahead + blocks, f"file {file.name}")
                own.add(offset, ahead + blocks)
                own.rest = blocks
                maps += [offset] if ahead else []
            self._changed[maps[-1]] = None
            self._bytes += run * size
            yield own.use(run, size)
            count -= run

    def drop(self, file: File) -> list[tuple[int, int]]:
        for block in self._maps.pop(file):
            self._changed.pop(block, None)
        return super().drop(file)

    def metadata_due(self, now: bool) -> tuple[Integers, Integers] | None:
        if not self._changed or not (now or self._bytes >= self._commit):
            return None
        run = min((len(self._changed) + 2) * BLOCK, self._journal_size)
        if self._head + run > self._journal_size:
            self._head = 0
        offsets = np.array([self._journal + self._head, *self._changed], np.int64)
        lengths = np.full(len(offsets), BLOCK, np.int64)
        lengths[0] = run
        self._head += run
        self._changed.clear()
        self._bytes = 0
        return offsets, lengths
