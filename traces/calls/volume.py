"""Layout of files on a volume: a journal and other metadata first, then files, in the order in which they are first used."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence

from flashsim.core.units import MIB
from traces.calls.page_cache import PAGE

#: Bytes of the journal, and of the area of other metadata.
JOURNAL, METADATA = 64 * MIB, 64 * MIB
#: Extents of a file: its byte, the byte of the device, and the length of each.
Extents = Sequence[tuple[int, int, int]]


class Volume:
    """Files on a device, each in one piece unless its extents are known.

    `sizes` are the bytes that each file has at most, and `extents` where files lie, if that is known, by number.

    Examples
    --------
    >>> volume = Volume({0: 5000, 1: 100})
    >>> [[place - JOURNAL - METADATA for place, _ in volume.places(file, 50, 10)] for file in (0, 1)]
    [[50], [8242]]
    """

    def __init__(self, sizes: Mapping[int, int], extents: Mapping[int, Extents] | None = None) -> None:
        self._sizes, self._extents = sizes, dict(extents or {})
        self._begins: dict[int, int] = {}
        known = [place + length for pieces in self._extents.values() for _, place, length in pieces]
        self._end = max([JOURNAL + METADATA, *known])
        self._free: list[tuple[int, int]] = []

    def places(self, file: int, offset: int, length: int) -> Iterator[tuple[int, int]]:
        """Offsets and lengths on the device of a range of a file."""
        for begin, place, size in self._extents.get(file, ()):
            if begin <= offset < begin + size:
                piece = min(length, begin + size - offset)
                yield place + offset - begin, piece
                offset, length = offset + piece, length - piece
            if not length:
                return
        yield self._begin(file) + offset, length

    def _begin(self, file: int) -> int:
        if file not in self._begins:
            self._begins[file] = self._allocate(self._room(file))
        return self._begins[file]

    def _room(self, file: int) -> int:
        return max(1, -(-self._sizes.get(file, 0) // PAGE)) * PAGE

    def _allocate(self, size: int) -> int:
        """The first place that is free and large enough."""
        for number, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[number : number + 1] = [(begin + size, end)] if end - begin > size else []
                return begin
        begin, self._end = self._end, self._end + size
        return begin

    def release(self, file: int) -> None:
        """A file is no more, and its place is free."""
        if file not in self._begins:
            return
        begin = self._begins.pop(file)
        insort(self._free, (begin, begin + self._room(file)))
        merged = self._free[:1]
        for first, end in self._free[1:]:
            if first == merged[-1][1]:
                merged[-1] = merged[-1][0], end
            else:
                merged.append((first, end))
        self._free = merged
