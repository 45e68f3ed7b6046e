"""Open files of processes: which file a descriptor stands for, where it reads and writes next, and what forks and renames do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from traces.calls.schema import APPEND


@dataclass
class OpenFile:
    """An open file, which several descriptors may share.

    Parameters
    ----------
    file
        The file's number; -1 for what is no file.
    position
        Where the next read or write begins; None where that is not known.
    flags
        Bits of `traces.calls.schema.FLAGS`.
    """

    file: int
    position: int | None = 0
    flags: int = 0


@dataclass
class Process:
    """A process as its threads share it: its number, its working folder and its descriptors."""

    number: int
    folder: str
    descriptors: dict[int, OpenFile] = field(default_factory=dict)

    def given(self, path: str, other: int) -> int:
        """The file of a path that says a descriptor, as ``/proc/self/fd/3`` does; another where it says none."""
        match = re.fullmatch(r"/proc/(?:self|thread-self|\d+)/fd/(\d+)", path)
        opened = self.descriptors.get(int(match[1])) if match else None
        return opened.file if opened else other


class Namespace:
    """Numbers of files by path, and their sizes as far as they are known.

    Attributes
    ----------
    whole
        Begin of paths all of whose files are known, so that one that comes is empty; None for none.
    """

    def __init__(self) -> None:
        self.whole: str | None = None
        self._by_path: dict[str, int] = {}
        self.sizes: dict[int, int] = {}
        self._next = 0

    def number(self, path: str) -> int:
        """The number of the file at a path; a file that was not seen before gets the next."""
        if path not in self._by_path:
            self._by_path[path] = self._next
            self._next += 1
            if self.whole and path.startswith(self.whole):
                self.sizes[self._by_path[path]] = 0
        return self._by_path[path]

    def renamed(self, old: str, new: str, is_exchange: bool = False) -> None:
        """A file, or a folder with all below it, has another path; a rename to another path of the same file does nothing."""
        if old in self._by_path and self._by_path[old] == self._by_path.get(new):
            return
        moved = self._below(old)
        back = self._below(new) if is_exchange else {}
        for path in moved:
            del self._by_path[path]
        for path in self._below(new):
            del self._by_path[path]
        self._by_path |= {new + path[len(old) :]: number for path, number in moved.items()}
        self._by_path |= {old + path[len(new) :]: number for path, number in back.items()}

    def _below(self, path: str) -> dict[str, int]:
        return {each: number for each, number in self._by_path.items() if each == path or each.startswith(path + "/")}

    def linked(self, file: int, new: str) -> None:
        """A file has one more path."""
        self._by_path[new] = file

    def removed(self, path: str) -> None:
        """A path stands for no file any more."""
        self._by_path.pop(path, None)

    def grown(self, file: int, end: int) -> None:
        """Bytes up to `end` of a file are written."""
        if file in self.sizes:
            self.sizes[file] = max(self.sizes[file], end)

    def place(self, opened: OpenFile, is_write: bool) -> int | None:
        """Offset at which the next read or write of an open file begins; None where that is not known."""
        if is_write and opened.flags & APPEND:
            return self.sizes.get(opened.file)
        return opened.position
