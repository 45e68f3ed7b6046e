"""A volume lays files out on one or two devices and says where their pages are.

Placements: ``packed`` puts pages one after another in the order in which they are written, as a log does; ``spread`` reserves a run of
the expected length for every temporary file; ``two-disks`` is packed, with base relations on the first device and temporary files
on the second (the assumption of Haas et al.); ``ext3`` is packed, with what that file system puts between the pages and writes beside
them (`flashsim.storage.ext3`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError, UnknownNameError
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.ext3 import BLOCK, MAPPED, Metadata
from flashsim.storage.heap_file import File, HeapFile, ranges

PLACEMENTS = ("packed", "spread", "two-disks", "ext3")

#: A reserved run is so much longer than the file is expected to be.
_SPREAD_MARGIN = 1.1


def check_placement(placement: str) -> None:
    """Refuse a placement that does not exist."""
    if placement not in PLACEMENTS:
        raise UnknownNameError("placement", placement, PLACEMENTS)


class Extents(NamedTuple):
    """Runs of bytes on one device, shape (n,) each."""

    device: int
    offsets: Integers
    lengths: Integers

    def parts(self, page_size: int, parts: Sequence[tuple[int, int]]) -> Extents:
        """Some bytes, (first byte, bytes), of every page of these runs, page by page."""
        pages = self.lengths // page_size
        begins = np.repeat(self.offsets, pages) + (ranges(np.zeros_like(pages), pages) * page_size)
        offsets, lengths = (np.array(column, np.int64) for column in zip(*parts, strict=True))
        return Extents(self.device, (begins[:, None] + offsets).reshape(-1), np.tile(lengths, len(begins)))


@dataclass
class _Room:
    """The free bytes of one device: a frontier, and runs given back below it."""

    capacity: int
    frontier: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int, what: str) -> int:
        for index, (offset, length) in enumerate(self.free):
            if length >= size:
                self.free[index : index + 1] = [(offset + size, length - size)] if length > size else []
                return offset
        if self.frontier + size > self.capacity:
            raise CapacityError(f"device: {format_size(self.capacity)}, but {what} needs {format_size(size)} more than are left")
        self.frontier += size
        return self.frontier - size


@dataclass
class _Segments:
    """Where a file is: pages ``first[i]`` and on lie at ``offset[i]`` and on, up to the next segment or the file's end."""

    device: int
    first: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    reserved: list[tuple[int, int]] = field(default_factory=list)  # runs of bytes taken
    room_left: int = 0  # bytes left in the last run
    maps: list[int] = field(default_factory=list)  # on ext3, where the blocks are that map the file

    def reserve(self, offset: int, size: int) -> bool:
        """Note a run of bytes that is the file's; whether it goes on where the last one ends."""
        begin, length = self.reserved[-1] if self.reserved else (0, -1)
        if begin + length != offset:
            self.reserved.append((offset, size))
            return False
        self.reserved[-1] = (begin, length + size)
        return True

    def follows(self, page: int, offset: int, page_size: int) -> bool:
        """Whether a page there goes on where the last segment ends."""
        return bool(self.first) and offset == self.offset[-1] + (page - self.first[-1]) * page_size

    def add(self, page: int, offset: int, contiguous: bool) -> None:
        if not contiguous:
            self.first.append(page)
            self.offset.append(offset)


class Volume:
    """Files on devices.

    Parameters
    ----------
    capacities
        Bytes of each device: one, or two for ``two-disks``.
    placement
        One of `PLACEMENTS`.
    """

    def __init__(self, capacities: Sequence[int], placement: str = "packed") -> None:
        check_placement(placement)
        wanted = 2 if placement == "two-disks" else 1
        if len(capacities) != wanted:
            raise InvalidParameterError("devices", len(capacities), f"placement {placement} needs {wanted}")
        self.placement = placement
        self._rooms = [_Room(capacity) for capacity in capacities]
        self._files: dict[File, _Segments] = {}
        self._metadata = Metadata(self._rooms[0].take) if placement == "ext3" else None

    def add(self, file: HeapFile) -> Extents:
        """Place a base relation, as the database file that holds it; the extents are those of its leaves.

        The places that the page format reserves (a header) have room like all others, and hold no tuples.
        """
        segments, leaf = _Segments(0), 0
        runs = _runs(file)
        for place, count, offset in self._base_room(file, segments, runs[-1][1]):
            for begin, end in runs:
                first, last = max(begin, place), min(end, place + count)
                if first < last or (file.pages == 0 and not segments.first):
                    segments.add(leaf, offset + (first - place) * file.page_size, contiguous=False)
                    leaf += max(0, last - first)
        self._files[file] = segments
        return self.locate(file, np.zeros(1, np.int64), np.array([file.pages]))

    def _base_room(self, file: HeapFile, segments: _Segments, places: int) -> Iterable[tuple[int, int, int]]:
        """Take room for all pages of a base relation: first place, number and offset of each run."""
        if self._metadata is not None:
            return self._mapped(file, segments, 0, places)
        offset = self._rooms[0].take(places * file.page_size, f"relation {file.name}")
        segments.reserve(offset, places * file.page_size)
        return [(0, places, offset)]

    def _mapped(self, file: File, segments: _Segments, page: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Take room for pages of a file on ext3, in whole blocks: first page, number and offset of each run, behind its map."""
        per_map, size, room = MAPPED // file.page_size, file.page_size, self._rooms[0]
        assert self._metadata is not None
        while count:
            if segments.room_left:
                run = min(count, segments.room_left // size)
                offset = sum(segments.reserved[-1]) - segments.room_left
                segments.room_left -= run * size
            else:
                run = min(count, per_map - page % per_map)
                ahead, blocks = BLOCK if page % per_map == 0 else 0, -(-run * size // BLOCK) * BLOCK
                offset = room.take(ahead + blocks, f"file {file.name}") + ahead
                segments.reserve(offset - ahead, ahead + blocks)
                if ahead:
                    segments.maps.append(offset - ahead)
                segments.room_left = blocks - run * size
            self._metadata.changed(segments.maps[-1], run * size)
            yield page, run, offset
            page, count = page + run, count - run

    def metadata_due(self, now: bool = False) -> Extents | None:
        """What the file system itself writes by now, or at once if it is `now` asked to commit; None where that is nothing."""
        due = self._metadata.due(now) if self._metadata else None
        return Extents(0, *due) if due else None

    def device(self, file: File) -> int:
        """On which device a file is, or would be if somebody wrote it."""
        return len(self._rooms) - 1 if file.temporary else 0

    def lengthen(self, file: File, pages: int) -> None:
        """Make a temporary file at least so many pages long."""
        if pages > file.pages:
            self.extend(file, pages - file.pages)

    def extend(self, file: File, count: int) -> None:
        """Make room for `count` more pages at the end of a temporary file."""
        device = self.device(file)
        segments = self._files.setdefault(file, _Segments(device))
        if self._metadata is not None:
            for page, run, offset in self._mapped(file, segments, file.pages, count):
                segments.add(page, offset, segments.follows(page, offset, file.page_size))
                file.pages += run
            return
        need, page = count * file.page_size, file.pages
        if segments.room_left >= need:
            segments.room_left -= need
        else:
            page += self._use_up(segments, file)
            need = (file.pages + count - page) * file.page_size
            reserve = max(need, int(file.expected_pages * _SPREAD_MARGIN) * file.page_size) if self.placement == "spread" else need
            offset = self._rooms[device].take(reserve, f"file {file.name}")
            segments.add(page, offset, segments.reserve(offset, reserve))
            segments.room_left = reserve - need
        file.pages += count

    @staticmethod
    def _use_up(segments: _Segments, file: File) -> int:
        """Pages that still fit into the file's last reserved run."""
        pages = segments.room_left // file.page_size
        segments.room_left = 0
        return pages

    def drop(self, file: File) -> list[tuple[int, int, int]]:
        """Forget a temporary file; the (device, offset, length) of what it held are free again."""
        segments = self._files.pop(file, None)
        if segments is None:
            return []
        self._rooms[segments.device].free.extend(segments.reserved)
        if self._metadata is not None:
            self._metadata.forget(segments.maps)
        return [(segments.device, offset, length) for offset, length in segments.reserved]

    def locate(self, file: File, starts: Integers, counts: Integers) -> Extents:
        """Where extents of a file are, in order; one that spans segments is cut at their borders."""
        segments = self._files[file]
        first, offset = np.array(segments.first, np.int64), np.array(segments.offset, np.int64)
        index = np.searchsorted(first, starts, side="right") - 1
        last = np.searchsorted(first, starts + counts - 1, side="right") - 1
        if np.any(last > index):
            starts, counts = _cut(starts, counts, first, index, last)
            index = np.searchsorted(first, starts, side="right") - 1
        return Extents(segments.device, offset[index] + (starts - first[index]) * file.page_size, counts * file.page_size)


def _runs(file: HeapFile) -> list[tuple[int, int]]:
    """The places in a base file, from 0, at which its pages lie: begin and end of each run."""
    runs, begin, left = [], 0, file.pages
    for reserved in file.layout.reserved_places:
        before = reserved - begin
        if left > before or not before:
            runs += [(begin, reserved)] if before else []
            begin, left = reserved + 1, left - before
    return [*runs, (begin, begin + left)]


def _cut(starts: Integers, counts: Integers, first: Integers, index: Integers, last: Integers) -> tuple[Integers, Integers]:
    pieces = last - index + 1
    owner = np.repeat(np.arange(len(starts)), pieces)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.where(within == 0, starts[owner], first[index[owner] + within])
    border = np.append(first, np.iinfo(np.int64).max)[index[owner] + within + 1]
    ends = np.minimum((starts + counts)[owner], border)
    return begins, ends - begins
