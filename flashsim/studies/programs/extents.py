"""Extents of files on their device, as the file system tells (FIEMAP)."""

from __future__ import annotations

import fcntl
import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: The request, its flag that writes what is dirty first, and the layouts of its head and of an extent.
_FIEMAP, _SYNC = 0xC020660B, 1
_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQIIII")
#: Extents that are asked for at once, and flags of those that have no place: unknown, delayed, and inside of metadata.
_AT_ONCE, _PLACELESS, _LAST = 256, 0x2 | 0x4 | 0x200, 0x1

Extents = list[tuple[int, int, int]]


def extents_of(paths: Iterable[str]) -> dict[str, Extents]:
    """Extents of the files that still are, by path: byte of the file, byte of the device, and length.

    Files of other devices than the one on which most lie are left out, and so are those whose file system does not tell.
    """
    by_path, devices = dict[str, Extents](), dict[str, int]()
    for path in dict.fromkeys(paths):
        if Path(path).is_file() and (pieces := _extents(path)):
            by_path[path], devices[path] = pieces, os.stat(path).st_dev
    most = Counter(devices.values()).most_common(1)
    return {path: pieces for path, pieces in by_path.items() if devices[path] == most[0][0]}


def _extents(path: str) -> Extents:
    pieces, start, is_last = Extents(), 0, False
    try:
        with open(path, "rb") as file:
            while not is_last:
                data = bytearray(_HEAD.pack(start, (1 << 64) - 1 - start, _SYNC, 0, _AT_ONCE, 0) + bytes(_AT_ONCE * _EXTENT.size))
                fcntl.ioctl(file.fileno(), _FIEMAP, data)
                count = _HEAD.unpack_from(data)[3]
                for number in range(count):
                    logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(data, _HEAD.size + number * _EXTENT.size)
                    if not flags & _PLACELESS:
                        pieces.append((logical, physical, length))
                    start, is_last = logical + length, bool(flags & _LAST)
                is_last = is_last or not count
    except OSError:
        return []
    return pieces
