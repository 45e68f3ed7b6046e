"""Processes of a program: which one a thread belongs to, its open files, and what forks and renames do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from traces.calls.schema import APPEND

#: Calls that make a thread or a process, and calls that wait for the end of a process.
BIRTHS, WAITS = ("clone", "clone3", "fork", "vfork"), ("wait4", "waitpid", "waitid")


@dataclass
class OpenFile:
    """An open file, which several descriptors may share."""

    #: The file's number; -1 for what is no file.
    file: int
    #: Where the next read or write begins; None where that is not known.
    position: int | None = 0
    #: Bits of `traces.calls.schema.FLAGS`.
    flags: int = 0
    #: Time of the end of the call that moved the position last.
    moved: int = 0
    #: As it was opened; empty where lines tell it with each descriptor.
    path: str = ""


@dataclass
class Process:
    """A process as its threads share it."""

    number: int
    #: In which it works.
    folder: str
    #: Its open files, by descriptor.
    descriptors: dict[int, OpenFile] = field(default_factory=dict)
    #: Descriptors that are closed when the process runs another program.
    closing: set[int] = field(default_factory=set)
    #: Memory that stands for a file, and may come to be written: begin, end, and the file's path.
    mapped: list[tuple[int, int, str]] = field(default_factory=list)
    #: Requests of libaio that have not ended, by the bytes that they ask for.
    submitted: Counter[int] = field(default_factory=Counter)

    def at(self, path: str) -> OpenFile | None:
        """The open file of a path that says a descriptor, as ``/proc/self/fd/3`` does."""
        match = re.fullmatch(r"/(?:proc/(?:self|thread-self|\d+)|dev)/fd/(\d+)", path)
        return self.descriptors.get(int(match[1])) if match else None

    def child(self, number: int, is_sharing: bool) -> Process:
        """A process that this one makes; it shares the descriptors, or has a copy of them."""
        descriptors, closing = (self.descriptors, self.closing) if is_sharing else (dict(self.descriptors), set(self.closing))
        return Process(number, self.folder, descriptors, closing, list(self.mapped))

    def assign(self, descriptor: int, opened: OpenFile, is_closing: bool) -> None:
        """A descriptor stands for an open file from now on."""
        self.descriptors[descriptor] = opened
        (self.closing.add if is_closing else self.closing.discard)(descriptor)

    def execute(self) -> None:
        self.descriptors = {each: opened for each, opened in self.descriptors.items() if each not in self.closing}
        self.closing, self.mapped = set(), []


class PathNamespace:
    """Numbers of files by path, and their sizes as far as they are known."""

    def __init__(self) -> None:
        #: Begin of paths all of whose files are known, so that one that comes is empty; None for none.
        self.whole: str | None = None
        self._by_path: dict[str, int] = {}
        self._paths: dict[int, set[str]] = {}
        self._links: dict[str, str] = {}
        self.sizes: dict[int, int] = {}
        #: Time of the end of the call that appended last, by file.
        self.appended: dict[int, int] = {}
        self._next = 0

    def number(self, path: str) -> int:
        """The number of the file at a path; a file that was not seen before gets the next."""
        if path not in self._by_path:
            self._by_path[path] = self._next
            self._paths[self._next] = {path}
            self._next += 1
            if self.whole and path.startswith(self.whole):
                self.sizes[self._by_path[path]] = 0
        return self._by_path[path]

    def rename(self, old: str, new: str, is_exchange: bool = False) -> None:
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
        for path, number in (*self._below(new).items(), *(self._below(old).items() if is_exchange else ())):
            self._paths[number].add(path)
        self._links = {link: path for link, path in self._links.items() if link not in (old, new)}

    def _below(self, path: str) -> dict[str, int]:
        return {each: number for each, number in self._by_path.items() if each == path or each.startswith(path + "/")}

    def link(self, file: int, new: str) -> None:
        """A file has one more path."""
        self._by_path[new] = file
        self._paths.setdefault(file, set()).add(new)

    def remove(self, path: str) -> None:
        self._by_path.pop(path, None)
        self._links.pop(path, None)

    def is_of(self, file: int, path: str) -> bool:
        """Whether a path is, or was, one of a file's."""
        return path in self._paths[file]

    def path_of(self, file: int) -> str | None:
        """A path of a file that stands for it now."""
        return next((path for path in sorted(self._paths.get(file, ())) if self._by_path.get(path) == file), None)

    def leads(self, given: str, path: str) -> None:
        """A path that a program gave is that of a file with another path, by a symbolic link in it."""
        link, target = given.split("/"), path.split("/")
        while len(link) > 1 and len(target) > 1 and link[-1] == target[-1]:
            link, target = link[:-1], target[:-1]
        if len(link) > 1:
            self._links["/".join(link)] = "/".join(target)

    def real(self, path: str, is_followed: bool) -> str:
        """A path without the symbolic links that are known; its last part stays a link unless that is followed."""
        head, tail = (path, "") if is_followed else (path.rpartition("/")[0], "/" + path.rpartition("/")[2])
        while head:
            if head in self._links:
                return self._links[head] + tail
            head, _, part = head.rpartition("/")
            tail = f"/{part}{tail}"
        return path

    def grow(self, file: int, end: int) -> None:
        """Bytes up to `end` of a file are written."""
        if file in self.sizes:
            self.sizes[file] = max(self.sizes[file], end)

    def place(self, opened: OpenFile, is_write: bool) -> int | None:
        """Offset at which the next read or write of an open file begins; None where that is not known."""
        if is_write and opened.flags & APPEND:
            return self.sizes.get(opened.file)
        return opened.position


@dataclass
class _Birth:
    """A call that makes a thread or a process and has not returned: its process, its arguments, and the thread that it is taken to make."""

    parent: Process
    flags: str
    child: int | None = None

    def process(self, child: int) -> Process:
        return self.parent if "CLONE_THREAD" in self.flags else self.parent.child(child, "CLONE_FILES" in self.flags)

    def is_like(self, other: _Birth) -> bool:
        """True if the thread that one of the two calls made is in the same process whichever made it."""
        words = [[word in each.flags for word in ("CLONE_THREAD", "CLONE_FILES")] for each in (self, other)]
        return self.parent is other.parent and words[0] == words[1]


class Lineage:
    """Processes of threads.

    `first` is the first process, as it is when recording begins; its number is 0 where that is not known before its first call.  `threads`
    are its threads then.
    """

    def __init__(self, first: Process, threads: Sequence[int] = ()) -> None:
        self._first, self._folder = first, first.folder
        self._processes = dict.fromkeys(threads, first)
        self._is_begun = bool(threads)
        self._births: dict[int, _Birth] = {}

    def process(self, thread: int) -> Process:
        """The process of a thread; one that is seen first was made by the oldest call that is open and made none yet."""
        if thread not in self._processes:
            birth = next((each for each in self._births.values() if each.child is None), None)
            if birth:
                birth.child, self._processes[thread] = thread, birth.process(thread)
            elif self._is_begun:
                self._processes[thread] = Process(thread, self._folder)
            else:
                self._first.number, self._is_begun, self._processes[thread] = self._first.number or thread, True, self._first
        return self._processes[thread]

    def begin(self, thread: int, flags: str) -> None:
        self._births[thread] = _Birth(self.process(thread), flags)

    def end(self, thread: int, child: int | None) -> bool:
        """That call returns the number of a thread, or none; whether the process of that thread is the one it was taken for."""
        birth = self._births.pop(thread)
        if child is None or child <= 0:
            return birth.child is None
        if birth.child == child:
            return True
        taken = next((each for each in self._births.values() if each.child == child), None)
        if taken:
            taken.child = birth.child
            return taken.is_like(birth)
        if birth.child is None:
            self._processes[child] = birth.process(child)
        return birth.child is None

    def forget_places(self, file: int) -> None:
        """Where reads and writes of an open file begin is not known any more."""
        for process in self._processes.values():
            for opened in process.descriptors.values():
                if opened.file == file:
                    opened.position = None

    def exit(self, thread: int) -> None:
        self._processes.pop(thread, None)
        self._births.pop(thread, None)
