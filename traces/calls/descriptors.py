"""Descriptors of lines of ``strace`` without their paths (no ``-y``): they are followed from the calls that made them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from traces.calls.processes import OpenFile, Process
from traces.calls.strace import BegunCall, StraceReader
from traces.calls.syntax import arguments_of, descriptor_of, hexadecimal, string_of

#: Stands for the folder in which a program began, until a call tells it.
UNKNOWN_FOLDER = "/(unknown folder)"
NAMELESS = "what was read or written by descriptors that no call here opened (strace -y names them)"
_OPENS = ("open", "openat", "openat2", "creat")
#: Calls that make descriptors of what is no file, and a path of its kind.
_MAKERS = {"pipe": "pipe:", "pipe2": "pipe:", "memfd_create": "/memfd:"}
_MAKERS |= dict.fromkeys(("socket", "socketpair", "accept", "accept4"), "socket:")
_MAKERS |= dict.fromkeys(("eventfd", "eventfd2", "epoll_create", "epoll_create1", "timerfd_create", "pidfd_open"), "anon_inode:")
_MAKERS |= dict.fromkeys(("signalfd", "signalfd4", "inotify_init", "inotify_init1", "io_uring_setup", "perf_event_open"), "anon_inode:")
#: Calls that move no data of the file whose descriptor they get.
_WITHOUT_DATA = ("dup", "dup2", "dup3", "fcntl", "lseek", "fstat", "newfstatat", "statx")


class FollowingReader(StraceReader):
    """Gives descriptors that have no path in a line the one by which they were opened, as renames have left it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        #: What threads began to close: the number is free, and may be another's, before the call returns.
        self._closing: dict[int, OpenFile | None] = {}

    def line(self, thread: int, later: int, text: str) -> Iterator[dict[str, Any]]:
        if match := re.match(r"close\((\d+)", text):
            self._closing[thread] = self._lineage.process(thread).descriptors.get(int(match[1]))
        yield from super().line(thread, later, text)

    def _call(self, thread: int, begun: BegunCall, result: str, took: int | None) -> Iterator[dict[str, Any]]:
        process, value = self._lineage.process(thread), re.match(r"\d+", result)
        number = int(value[0]) if value else -1
        if begun.name == "close":
            descriptor = descriptor_of(begun.text).number
            if process.descriptors.get(descriptor) is self._closing.pop(thread, None):
                process.descriptors.pop(descriptor, None)
            return
        if begun.name == "fchdir":
            begun.text = self._with_path(process, begun.text)
        before = process.descriptors.get(number) if begun.name in _OPENS else None
        if before and not any(before is each for each in self._closing.values()):
            self.miss("calls that closed descriptors", f"process {process.number}")
        for row in super()._call(thread, begun, result, took):
            if begun.name in _OPENS:
                process.descriptors[number].path = row["path"]
            yield row
        if begun.name in _MAKERS and number >= 0:
            pair = re.search(r"\[(\d+)(?:<[^>]*>)?, (\d+)", begun.text)
            for each in map(int, pair.groups()) if pair else (number,):
                process.assign(each, OpenFile(-1, path=_MAKERS[begun.name]), "CLOEXEC" in begun.text)
        elif begun.name == "getcwd" and number > 0:
            process.folder = string_of(arguments_of(begun.text)[0]) or process.folder

    def on(self, process: Process, text: str, base: dict[str, Any]) -> tuple[OpenFile, dict[str, Any]]:
        opened, row = super().on(process, self._with_path(process, text), base)
        if not row["path"] and base["error"] is None and base["call"] not in _WITHOUT_DATA:
            self.miss(NAMELESS, f"descriptor {descriptor_of(text).number} of process {process.number}")
        return opened, row

    def path_of(self, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
        if relative:
            named = self._with_path(process, arguments[at])
            folder = descriptor_of(named)
            if folder.number < 0:
                process.folder = folder.path or process.folder
            elif not folder.path:
                named = f"{folder.number}<{hexadecimal(UNKNOWN_FOLDER)}>"
            arguments = [*arguments[:at], named, *arguments[at + 1 :]]
        path = super().path_of(process, arguments, relative, at)
        if path.startswith(UNKNOWN_FOLDER):
            self.miss("the folder that a path begins in (strace -y names it)", path.removeprefix(f"{UNKNOWN_FOLDER}/"))
        return path

    def _with_path(self, process: Process, text: str) -> str:
        """A descriptor with its path, as far as that is known."""
        descriptor = descriptor_of(text)
        opened = process.descriptors.get(descriptor.number)
        if descriptor.path or opened is None:
            return text
        return f"{descriptor.number}<{hexadecimal(self.names.path_of(opened.file) or opened.path)}>"
