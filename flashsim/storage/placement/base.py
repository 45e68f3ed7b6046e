"""What a placement is made of: a device map says on which device a file lies, and a file system gives it room there.

A member defines `DEVICE_MAP`, one of `flashsim.storage.placement._device_maps` or its own, and `FileSystem`, a class of which every
device has one (those of `flashsim.storage.placement._runs` write pages and nothing else).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from flashsim.core.errors import CapacityError
from flashsim.core.members import Family
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.heap_file import File


@dataclass(frozen=True)
class DeviceMap:
    """How many devices there are, and on which of them a file lies."""

    devices: int
    device: Callable[[File], int]


@dataclass
class Room:
    """The free bytes of one device: a frontier, and runs given back below it.

    A file system's own lengths are multiplied by `scale`, on a device that is a miniature.
    """

    capacity: int
    frontier: int = 0
    scale: float = 1.0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int, what: str) -> int:
        """A run of so many bytes; its offset.

        Raises
        ------
        CapacityError
            There is none.
        """
        for index, (offset, length) in enumerate(self.free):
            if length >= size:
                self.free[index : index + 1] = [(offset + size, length - size)] if length > size else []
                return offset
        if self.frontier + size > self.capacity:
            raise CapacityError(f"device: {format_size(self.capacity)}, but {what} needs {format_size(size)} more than are left")
        self.frontier += size
        return self.frontier - size


class FileSystem(Protocol):
    """A member's class: who gives the files of one device room."""

    writes_metadata: ClassVar[bool]

    def __init__(self, room: Room) -> None: ...

    def take(self, file: File, count: int) -> Iterator[tuple[int, int, int]]:
        """Give room to the next `count` pages of a file: first page, number and offset in bytes of each run."""

    def drop(self, file: File) -> list[tuple[int, int]]:
        """Take back the room of a file: offset and length of each run."""

    def metadata_due(self, now: bool) -> tuple[Integers, Integers] | None:
        """Offsets and lengths of what it has to write itself, by now or at once; None where that is nothing."""


class Placement(Protocol):
    """A member of the family."""

    DEVICE_MAP: DeviceMap
    FileSystem: type[FileSystem]


PLACEMENTS = Family("flashsim.storage.placement", "placement", Placement)
