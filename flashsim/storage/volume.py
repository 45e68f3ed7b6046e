"""A volume lays files out on one or more devices and says where their pages are; a placement says how (`flashsim.storage.placement`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.storage.heap_file import File, HeapFile, ranges
from flashsim.storage.placement.base import PLACEMENTS, DeviceMap, FileRuns, Room


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


class _Segments:
    """Places of a file: pages ``first[i]`` and on lie at ``offset[i]`` and on, up to the next segment or the file's end."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.count = 0
        self._places = np.empty((2, 4), np.int64)

    def add(self, page: int, offset: int) -> None:
        last = self.count - 1
        if last >= 0 and offset == self._places[1, last] + (page - self._places[0, last]) * self.page_size:
            return
        if self.count == self._places.shape[1]:
            self._places = np.concatenate([self._places, np.empty_like(self._places)], axis=1)
        self._places[:, self.count] = page, offset
        self.count += 1

    def locate(self, device: int, starts: Integers, counts: Integers) -> Extents:
        places, size = self._places, self.page_size
        if len(starts) == 1:
            start, count = starts.item(), counts.item()
            at = bisect_right(places[0, : self.count], start) - 1 if self.count > 1 else 0
            if at == self.count - 1 or start + count <= places.item(0, at + 1):
                begin = places.item(1, at) + (start - places.item(0, at)) * size
                return Extents(device, np.array((begin,)), np.array((count * size,)))
        if self.count == 1:
            return Extents(device, places.item(1, 0) + (starts - places.item(0, 0)) * size, counts * size)
        first, offset = places[:, : self.count]
        index = np.searchsorted(first, starts, side="right") - 1
        last = np.searchsorted(first, starts + counts - 1, side="right") - 1
        if np.any(last > index):
            starts, counts = _cut(starts, counts, first, index, last)
            index = np.searchsorted(first, starts, side="right") - 1
        return Extents(device, offset[index] + (starts - first[index]) * size, counts * size)


class Volume:
    """Files on devices of these sizes (bytes): as many devices as the placement needs, a member's name or the path of a Python file.

    `scale` is that of devices which are miniatures, `zones` the bytes of a zone of each device, 0 of one without zones.
    """

    def __init__(self, capacities: Sequence[int], placement: str = "packed", scale: float = 1.0, zones: Sequence[int] = ()) -> None:
        member = PLACEMENTS.load(placement)
        device_map: DeviceMap = member.DEVICE_MAP
        if len(capacities) != device_map.devices:
            raise InvalidParameterError("devices", len(capacities), f"placement {placement} needs {device_map.devices}")
        self.device = device_map.device
        self._rooms = [Room(size, scale=scale, zone=zone) for size, zone in zip(capacities, zones or [0] * len(capacities), strict=True)]
        self._systems: list[FileRuns] = [member.FileSystem(room) for room in self._rooms]
        self._files: dict[File, _Segments] = {}

    @property
    def laid_out_size(self) -> int:
        """Bytes of each device that files have ever lain on, or of the device that has most."""
        return max(room.frontier for room in self._rooms)

    def add(self, file: HeapFile) -> Extents:
        """Place a base relation, as the database file that holds it; the extents are those of its pages of tuples.

        The places that the page format reserves (a header) have room like all others, and hold no tuples.
        """
        segments = self._files[file] = _Segments(file.page_size)
        runs, page = _runs(file), 0
        for place, count, offset in self._systems[self.device(file)].take(file, runs[-1][1]):
            for begin, end in runs:
                first, last = max(begin, place), min(end, place + count)
                if first < last:
                    segments.add(page, offset + (first - place) * file.page_size)
                    page += last - first
        extents = min(1, file.pages)
        return self.locate(file, np.zeros(extents, np.int64), np.full(extents, file.pages))

    def extend(self, file: File, count: int) -> None:
        """Make room for `count` more pages at the end of a temporary file."""
        if count:
            segments = self._files.setdefault(file, _Segments(file.page_size))
            for _, run, offset in self._systems[self.device(file)].take(file, count):
                segments.add(file.pages, offset)
                file.pages += run

    @property
    def resets_zones(self) -> bool:
        """Whether what is dropped is always trimmed."""
        return any(system.resets_zones for system in self._systems)

    def lays_in_a_row(self, device: int) -> bool:
        """Pages that a file gets together lie one after another, as no file system of its own has it."""
        return type(self._systems[device]) is FileRuns

    def extend_each(self, files: Sequence[File], counts: Integers) -> tuple[Integers, Integers]:
        """Make room at the ends of temporary files, whose new pages lie in a row; returns the first of them each time, and its offset."""
        firsts, offsets = [], []
        for file, count in zip(files, counts.tolist(), strict=True):
            segments = self._files.setdefault(file, _Segments(file.page_size))
            ((_, _, offset),) = self._systems[self.device(file)].take(file, count)
            segments.add(file.pages, offset)
            firsts.append(file.pages)
            offsets.append(offset)
            file.pages += count
        return np.array(firsts), np.array(offsets)

    def drop(self, file: File) -> list[tuple[int, int, int]]:
        """Forget a temporary file, which is empty then; the (device, offset, length) of what it held are free again."""
        if self._files.pop(file, None) is None:
            return []
        file.pages = 0
        device = self.device(file)
        return [(device, offset, length) for offset, length in self._systems[device].drop(file)]

    def metadata_due(self, now: bool = False) -> list[Extents]:
        """Writes of file systems themselves that are due, or all of them with `now`."""
        writes = [(device, system.metadata_due(now)) for device, system in enumerate(self._systems)]
        return [Extents(device, *written) for device, written in writes if written is not None]

    def locate(self, file: File, starts: Integers, counts: Integers) -> Extents:
        """Places of a file's extents, in order; an extent that lies in several places is cut."""
        segments = self._files.get(file)
        if segments is None:
            if len(starts):
                raise InvalidParameterError("file", file.name, "it has pages that are on no device of this run")
            segments = _Segments(file.page_size)
        return segments.locate(self.device(file), starts, counts)


def _runs(file: HeapFile) -> list[tuple[int, int]]:
    """The places in a base file, from 0, at which its pages lie: begin and end of each run."""
    runs, begin, pending = [], 0, file.pages
    for reserved in file.layout.reserved_places:
        before = reserved - begin
        if pending > before or not before:
            runs += [(begin, reserved)] if before else []
            begin, pending = reserved + 1, pending - before
    return [*runs, (begin, begin + pending)]


def _cut(starts: Integers, counts: Integers, first: Integers, index: Integers, last: Integers) -> tuple[Integers, Integers]:
    pieces = last - index + 1
    owner = np.repeat(np.arange(len(starts)), pieces)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.where(within == 0, starts[owner], first[index[owner] + within])
    border = np.append(first, np.iinfo(np.int64).max)[index[owner] + within + 1]
    ends = np.minimum((starts + counts)[owner], border)
    return begins, ends - begins
