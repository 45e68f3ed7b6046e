"""What the ext3 file system puts between the blocks of a file, and writes beside them.

A file's blocks of 4 KiB are mapped by indirect blocks of 1,024 entries, each of which lies just before the data that it maps: a hole of 4
KiB in every 4 MiB.  (The twelve blocks that the inode itself maps, and the few blocks that map indirect blocks, are left out.)  Changed
metadata goes to the journal, in one run with a descriptor and a commit block, and then to its place.  ext3 does so every five seconds;
here it does so every 250 MB of data, five seconds at 50 MB/s, so that a run is the same on fast and slow devices.

Source: S. Tweedie, "Journaling the Linux ext2fs Filesystem", LinuxExpo 1998; block map and journal of Linux 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from flashsim.core.request import Integers
from flashsim.core.units import MB, MIB

#: Bytes of a block of the file system, and of the data that an indirect block maps.
BLOCK, MAPPED = 4096, 1024 * 4096
#: Bytes of the journal (mke2fs's choice for large volumes), and data written between two commits.
JOURNAL, COMMIT = 128 * MIB, 250 * MB


class Metadata:
    """The indirect blocks that have changed since the last commit, and the journal.

    Parameters
    ----------
    take
        Takes room on the device for the journal: bytes, and for whom; the offset.
    """

    def __init__(self, take: Callable[[int, str], int]) -> None:
        self._journal = take(JOURNAL, "the journal")
        self._head = 0  # bytes from the journal's begin to where it goes on
        self._changed: dict[int, None] = {}  # in the order of change
        self._written = 0

    def changed(self, block: int, written: int) -> None:
        """Data of so many bytes were added that the indirect block at that offset maps."""
        self._changed[block] = None
        self._written += written

    def forget(self, blocks: Iterable[int]) -> None:
        """The file that indirect blocks mapped is gone: they are never written."""
        for block in blocks:
            self._changed.pop(block, None)

    def due(self, now: bool) -> tuple[Integers, Integers] | None:
        """Offsets and lengths of what is written by now: the journal's run, and every changed block; None where that is nothing."""
        if not self._changed or not (now or self._written >= COMMIT):
            return None
        run = min((len(self._changed) + 2) * BLOCK, JOURNAL)
        if self._head + run > JOURNAL:
            self._head = 0
        offsets = np.array([self._journal + self._head, *self._changed], np.int64)
        lengths = np.full(len(offsets), BLOCK, np.int64)
        lengths[0] = run
        self._head += run
        self._changed.clear()
        self._written = 0
        return offsets, lengths
