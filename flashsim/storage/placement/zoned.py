"""Pages in the order in which they are written, zone by zone, as a file system lays them whose drive writes each zone in order.

Base relations have zones of their own, temporary files share the others.  A zone is free again, and reset, when no file lies in it any
more.  A drive without zones has segments, as a log-structured file system makes them.
"""

from collections import Counter
from collections.abc import Iterator

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MIB, format_size
from flashsim.storage.heap_file import File
from flashsim.storage.placement.base import FileRoom, FileRuns, Room

#: Bytes of a segment.
_SEGMENT = 64 * MIB


class FileSystem(FileRuns):
    """Two logs, of relations and of temporary files, of which each fills one zone at a time."""

    resets_zones = True

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._zone = room.zone or _SEGMENT
        #: Where each log goes on, by whether it is that of temporary files.
        self._fronts: dict[bool, int] = {}
        #: Bytes of each zone that files lie on.
        self._held: Counter[int] = Counter()

    def take(self, file: File, count: int) -> Iterator[tuple[int, int, int]]:
        own, size = self._rooms.setdefault(file, FileRoom()), file.page_size
        if self._zone % size:
            bound = f"zones of {format_size(self._zone)} hold no whole number of them"
            raise InvalidParameterError("page size", format_size(size), bound)
        while count:
            front = self._fronts.get(file.temporary, 0)
            if front % self._zone == 0:
                front = self._room.take(self._zone, f"file {file.name}")
            pages = min(count, (self._zone - front % self._zone) // size)
            own.add(front, pages * size)
            self._held[front // self._zone] += pages * size
            self._fronts[file.temporary] = front + pages * size
            count -= pages
            yield own.use(pages, size)

    def drop(self, file: File) -> list[tuple[int, int]]:
        for begin, length in self._rooms.pop(file).runs:
            for zone in range(begin // self._zone, -(-(begin + length) // self._zone)):
                first, end = max(begin, zone * self._zone), min(begin + length, (zone + 1) * self._zone)
                self._held[zone] -= end - first
        empty = [zone for zone, held in self._held.items() if not held]
        for zone in empty:
            del self._held[zone]
        self._fronts = {log: front for log, front in self._fronts.items() if (front - 1) // self._zone not in empty}
        runs = [(zone * self._zone, self._zone) for zone in empty]
        self._room.free.extend(runs)
        return runs
