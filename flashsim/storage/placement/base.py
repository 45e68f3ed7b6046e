"""Parts of a placement: a device map says on which device a file lies, and a file system gives it room there.

A member defines `FileSystem`, the class of each device's file system: `FileRuns`, which writes pages and nothing else, or one derived from
it; and `DEVICE_MAP`, which is `ONE_DEVICE` unless it says otherwise, `RELATIONS_AND_TEMPORARIES` or its own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from flashsim.core.errors import CapacityError, FlashsimError
from flashsim.core.members import Family
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.heap_file import File


@dataclass(frozen=True)
class DeviceMap:
    """The number of devices, and the device on which a file lies."""

    devices: int
    device: Callable[[File], int]


@dataclass
class Room:
    """The free bytes of one device: a frontier, and runs given back below it.

    A file system's own lengths are multiplied by `scale`, on a device that is a miniature; a zoned drive has zones of `zone` bytes.
    """

    capacity: int
    frontier: int = 0
    scale: float = 1.0
    zone: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int, what: str) -> int:
        """The offset of a run of `size` bytes, which is taken; a `CapacityError` if there is none."""
        for index, (offset, length) in enumerate(self.free):
            if length >= size:
                self.free[index : index + 1] = [(offset + size, length - size)] if length > size else []
                return offset
        if self.frontier + size > self.capacity:
            raise CapacityError(f"device: {format_size(self.capacity)}, but {what} needs {format_size(size)} more than is free")
        self.frontier += size
        return self.frontier - size


ONE_DEVICE = DeviceMap(1, lambda file: 0)
#: Base relations on the first device, temporary files on the second.
RELATIONS_AND_TEMPORARIES = DeviceMap(2, lambda file: int(file.temporary))


class FileRoom:
    """The room of one file: its pages so far, its runs of bytes, and the free bytes of the last."""

    def __init__(self) -> None:
        self.pages = 0
        self.runs: list[tuple[int, int]] = []
        self.rest = 0

    def add(self, offset: int, size: int) -> None:
        """Note a run of bytes that is the file's; it may go on where the last one ends."""
        begin, length = self.runs[-1] if self.runs else (0, -1)
        if begin + length == offset:
            self.runs[-1] = (begin, length + size)
        else:
            self.runs.append((offset, size))
        self.rest = size

    def use(self, count: int, page_size: int) -> tuple[int, int, int]:
        """Put pages into the last run: the first, their number, and where it lies."""
        offset = sum(self.runs[-1]) - self.rest
        self.rest -= count * page_size
        self.pages += count
        return self.pages - count, count, offset


class FileRuns:
    """The file system of one device, which gives every file the room that its pages need, when they are written."""

    writes_metadata: ClassVar[bool] = False
    #: Whether what it gives back is trimmed always, as whole zones.
    resets_zones: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "reserved" in vars(cls):
            raise FlashsimError("placement: a file system defines reserved, which is called reserved_pages now")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._rooms: dict[File, FileRoom] = {}

    def reserved_pages(self, file: File, pages: int) -> int:
        """Pages of a new run when `pages` need room."""
        return pages

    def take(self, file: File, count: int) -> Iterator[tuple[int, int, int]]:
        """Give room to the next `count` pages of a file: first page, number and offset in bytes of each run."""
        own, size = self._rooms.setdefault(file, FileRoom()), file.page_size
        fitting = min(count, own.rest // size)
        if fitting:
            yield own.use(fitting, size)
        if count > fitting:
            length = self.reserved_pages(file, count - fitting) * size
            own.add(self._room.take(length, f"file {file.name}"), length)
            yield own.use(count - fitting, size)

    def drop(self, file: File) -> list[tuple[int, int]]:
        """Take back the room of a file: offset and length of each run."""
        runs = self._rooms.pop(file).runs
        self._room.free.extend(runs)
        return runs

    def metadata_due(self, now: bool) -> tuple[Integers, Integers] | None:
        """Offsets and lengths of what it has to write itself, by now or at once; None where that is nothing."""
        return None


class Placement(Protocol):
    """A member of the family."""

    DEVICE_MAP: DeviceMap = ONE_DEVICE
    FileSystem: type[FileRuns]


PLACEMENTS = Family("flashsim.storage.placement", "placement", Placement)
