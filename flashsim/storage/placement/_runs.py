"""Files as runs of bytes, which are taken as pages are written."""

from collections.abc import Iterator
from typing import ClassVar

from flashsim.core.request import Integers
from flashsim.storage.heap_file import File
from flashsim.storage.placement.base import Room


class Taken:
    """The room of one file: its pages so far, its runs of bytes, and what is left of the last."""

    def __init__(self) -> None:
        self.pages = 0
        self.runs: list[tuple[int, int]] = []
        self.left = 0

    def add(self, offset: int, size: int) -> None:
        """Note a run of bytes that is the file's; it may go on where the last one ends."""
        begin, length = self.runs[-1] if self.runs else (0, -1)
        if begin + length == offset:
            self.runs[-1] = (begin, length + size)
        else:
            self.runs.append((offset, size))
        self.left = size

    def use(self, count: int, page_size: int) -> tuple[int, int, int]:
        """Put pages into the last run: the first, their number, and where it lies."""
        offset = sum(self.runs[-1]) - self.left
        self.left -= count * page_size
        self.pages += count
        return self.pages - count, count, offset


class Runs:
    """Gives every file the room that its pages need, when they are written."""

    writes_metadata: ClassVar[bool] = False

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken: dict[File, Taken] = {}

    def reserved(self, file: File, pages: int) -> int:
        """For how many pages a run is taken when so many need one."""
        return pages

    def take(self, file: File, count: int) -> Iterator[tuple[int, int, int]]:
        """Give room to the next `count` pages of a file: first page, number and offset in bytes of each run."""
        taken, size = self._taken.setdefault(file, Taken()), file.page_size
        fitting = min(count, taken.left // size)
        if fitting:
            yield taken.use(fitting, size)
        if count > fitting:
            length = self.reserved(file, count - fitting) * size
            taken.add(self._room.take(length, f"file {file.name}"), length)
            yield taken.use(count - fitting, size)

    def drop(self, file: File) -> list[tuple[int, int]]:
        """Take back the room of a file: offset and length of each run."""
        runs = self._taken.pop(file).runs
        self._room.free.extend(runs)
        return runs

    def metadata_due(self, now: bool) -> tuple[Integers, Integers] | None:
        return None
