"""Which process a thread belongs to: threads and processes that calls of ``clone`` and ``fork`` make, as ``strace`` shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from traces.calls.descriptors import Observed, Process

#: Calls that make a thread or a process, and calls that wait for the end of a process.
CALLS, WAITS = ("clone", "clone3", "fork", "vfork"), ("wait4", "waitpid", "waitid")


@dataclass
class _Birth:
    """A call that makes a thread or a process and has not returned: its process, its arguments, and the thread that it is taken to make."""

    parent: Process
    flags: str
    child: int | None = None

    def process(self, child: int) -> Process:
        """The process of the thread that is made."""
        return self.parent if "CLONE_THREAD" in self.flags else self.parent.child(child, "CLONE_FILES" in self.flags)

    def is_like(self, other: _Birth) -> bool:
        """True if the thread that one of the two calls made is in the same process whichever made it."""
        words = [[word in each.flags for word in ("CLONE_THREAD", "CLONE_FILES")] for each in (self, other)]
        return self.parent is other.parent and words[0] == words[1]


def end(reader: Observed, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A process has ended that a thread waited for."""
    text = " ".join(arguments)
    said = re.search(r"si_pid=(\d+)", text) if base["call"] == "waitid" else None
    number = int(said[1]) if said else base["result"] or 0
    if base["error"] is None and number > 0 and not re.search("(WIF|CLD_)(STOPPED|CONTINUED|TRAPPED)", text):
        yield base | {"result": number}


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
        """A thread calls clone or fork."""
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
        """A thread ends."""
        self._processes.pop(thread, None)
        self._births.pop(thread, None)
