"""Text of ``strace``, with any options for processes, times and paths: the requests that calls cause, as in `traces.format.calls`.

A line has the process, a time and how long the call took, as far as options ask for them.  Strings and paths are escaped as a terminal
shows them; the reader of recordings takes them in hexadecimal.  On a terminal lines have a process while there are several, and what
programs print stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.core.units import SECONDS
from traces.calls.descriptors import UNKNOWN_FOLDER, FollowingReader
from traces.calls.page_cache import HostSettings
from traces.calls.processes import Process
from traces.calls.schema import Recording, is_possible, lines_of, table_in_time
from traces.format._text import looks_like
from traces.format.base import Example
from traces.format.calls import RecordingInText

_HEAD = (
    r" *(?:\[pid +(?P<pid>\d{1,7})(?:<[^>]*>)?\] +|(?P<number>\d{1,7})(?:<[^>]*>)? +)?"
    r"(?:(?P<day>\d\d:\d\d:\d\d(?:\.\d{1,9})?) |(?P<seconds>\d{8,11}|\d{1,11}\.\d{1,9}) )?(?:\(\+ +[\d.]+\) )?"
)
_REST = r"<\.\.\. [\w?]+ resumed>.*|\+\+\+ (?:exited|killed|superseded).*|--- (?:SIG|stopped|\{).*"
_LINE = re.compile(rf"{_HEAD}(?P<text>[\w?]+\(.*|{_REST})", re.DOTALL)
#: A call of which the line tells the end, or that it goes on; other text has parts that look like calls.
_WHOLE = re.sub(r"\?P<\w+>", "?:", rf"{_HEAD}(?:\w+\(.*(?:\) += .*|<unfinished \.\.\.>)|{_REST})").encode()
_ENDS = re.compile(r"\) = |<[^<>]* \.\.\.>$|(?:\+\+\+|---)$")
_NOTE = re.compile(r"(?:strace: )?Process (\d{1,7}) attached$")
_OTHER_NOTE = re.compile(r"strace: .*|(?:\[pid +\d+\] )?\[ Process PID=\d+ runs in .*|Process \d+ detached|\s*")
_MADE = re.compile(r"(?:<\.\.\. )?(?:clone3?|v?fork)\b.* = (\d{1,7})")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
#: A descriptor's path, or protocol and addresses; a device has its numbers beside it with ``-yy``.
_PATH = re.compile(r"(\d+|AT_FDCWD)<(?:([A-Za-z][\w-]*:\[.*?\])|([^<>]*?)(?: \(deleted\))?(?:<(?:char|block) [\d:]+>)?)>")
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b", b"e": b"\x1b"}
_TAKES = re.compile(r" <(\d{1,9})(?:\.(\d{1,9}))?>$")
#: A clock is set back by an hour at most in the night in which summer ends; by more, the day is the next.
_HOUR, _DAY = 3600 * SECONDS, 24 * 3600 * SECONDS


def recording_of(lines: Iterable[str], source: Path) -> Recording:
    """The recording that lines of strace tell; a `DamagedFileError` names their source, and a line that is none of strace's."""
    text = _StraceText(source)
    table = table_in_time(text.rows(lines))
    if text.clock and not text.has_durations:
        text.reader.miss("how long calls took (strace -T)", "they count as time to think")
    return Recording(table, missed=lines_of(text.reader.missed), facts={"timed": bool(text.clock)})


def _encode(text: str) -> str:
    """Text with strings and paths in hexadecimal, one blank before the result, and nine digits of a duration."""
    text = _STRING.sub(lambda match: f'"{_hexadecimal(match[1])}"', text)
    text = _PATH.sub(lambda match: f"{match[1]}<{_hexadecimal(match[2] or match[3] or '')}>", text)
    return _TAKES.sub(lambda match: f" <{match[1]}.{match[2] or '':0<9}>", re.sub(r"\) += ", ") = ", text))


def _hexadecimal(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in _ESCAPE.sub(_unescape, text.encode()))


def _unescape(match: re.Match[bytes]) -> bytes:
    said = match[1]
    if said[:1] == b"x" and len(said) > 1:
        return bytes([int(said[1:], 16)])
    return bytes([int(said, 8) & 255]) if said.isdigit() else _LETTERS.get(said, said)


class _StraceText:
    """Lines in the words of recordings."""

    def __init__(self, source: Path) -> None:
        self.reader = FollowingReader(first=Process(0, UNKNOWN_FOLDER))
        self.source, self.has_durations = source, False
        #: What times count from: day, epoch or line; empty where there are none, and None before the first line.
        self.clock: str | None = None
        self._last = 0
        self._part = ""
        #: Threads that run; 0 is one whose number lines do not tell, which `_named_first` is once they do.
        self._running, self._children, self._attached, self._named_first = set[int](), set[int](), set[int](), -1
        self._has_ended = self._is_first_waiting = False

    def rows(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        number = 1
        for number, line in enumerate(lines, 1):
            try:
                rows = list(self._rows_of(line.rstrip("\r\n")))
                why = "" if all(map(is_possible, rows)) else "it has numbers that no call has"
                why = why if line.endswith("\n") else "it is cut short"
            except DamagedFileError as problem:
                why = str(problem)
            except (ValueError, LookupError, TypeError, OverflowError):
                why = "it is not a call that can be read"
            if why:
                raise DamagedFileError(f"trace: {self.source}, line {number}: {why}: {line.strip()[:60]!r}")
            yield from rows
        if self._part:
            raise DamagedFileError(f"trace: {self.source}, line {number}: the call that it belongs to is cut short")
        if self._running:
            self.reader.miss("what programs did after the end of the text", f"{len(self._running)} of them")
        yield from self.reader.remainder()

    def _rows_of(self, line: str) -> Iterator[dict[str, Any]]:
        line, self._part = self._part + line, ""
        if note := _NOTE.search(line):
            self._attached.add(int(note[1]))
            self._part = line[: note.start()]
            return
        if _OTHER_NOTE.fullmatch(line):
            return
        match = _LINE.fullmatch(line)
        if match is None:
            raise DamagedFileError("it is not a line of strace, whose lines option -o keeps apart from what a program prints")
        text = _encode(match["text"])
        if not _ENDS.search(text):
            if not re.match(r"writev?\([12]\b", text):
                raise DamagedFileError("it is cut short")
            self._part = f"{line}\n"  # what it prints follows
            return
        later, thread = self._later(match), self._thread(match, text)
        self._children |= self._attached
        self._running |= self._attached  # which strace may tell within a line that has begun
        self._attached.clear()
        self.has_durations |= _TAKES.search(text) is not None
        if "<detached ...>" not in text:
            yield from self.reader.line(thread, later, text)

    def _later(self, match: re.Match[str]) -> int:
        """How much later a line is than the one before, ns; without times 1, which keeps their order."""
        said, day = match["seconds"], match["day"]
        clock = "day" if day else "" if not said else "epoch" if int(said.partition(".")[0]) >= 10_000_000 else "line"
        is_first = self.clock is None
        self.clock = clock if self.clock is None else self.clock
        if clock != self.clock:
            raise DamagedFileError("its time is of another kind than that of the lines before")
        whole, _, part = (day or said or "0").partition(".")
        seconds = 0
        for each in whole.split(":"):
            seconds = 60 * seconds + int(each)
        time = seconds * SECONDS + int(f"{part:0<9}")
        if clock in ("", "line"):
            return (time if clock else 1) * (not is_first)
        later, self._last = 0 if is_first else time - self._last, time
        if clock == "day" and later < -_HOUR:
            later += _DAY
        if later < 0:
            self.reader.miss("by how much the clock was set back", day or said)
        return max(later, 0)

    def _thread(self, match: re.Match[str], text: str) -> int:
        """The thread of a line; one that has no number is of the only one that runs."""
        said = match["pid"] or match["number"]
        if said is None:
            if self._has_ended and not self._running:
                raise DamagedFileError("the program has ended before; strace-log-merge joins files of -ff (made with -ttt)")
            if len(self._running) > 1:
                self.reader.miss("which process made calls without its number", f"{len(self._running)} processes")
            thread = 0 if 0 in self._running or not self._running else min(self._running)
        else:
            thread = int(said)
            is_new = thread not in self._children | self._attached and self._named_first < 0 and 0 in self._running
            if is_new and (text.startswith("<...") or not self._is_first_waiting):
                self._named_first = thread
            thread = 0 if thread == self._named_first else thread
        self._children |= {int(made[1])} if (made := _MADE.match(text)) else set()
        self._running.add(thread)
        if thread == 0:
            self._is_first_waiting = text.endswith("...>")
        if text.startswith("+++"):
            other = re.search(r"in pid (\d+)", text)
            self._running.discard(int(other[1]) if other else thread)
            self._has_ended = True
        return thread


class _Strace(RecordingInText):
    NAME = "strace"
    TITLE = "text of strace, through a page cache and a file system"
    BASIS = "calls as strace prints them in its first lines; times of a day, in s, or none"
    LEAVES_OUT = "calls that reach no device, contents, mapped memory, files of descriptors that no call opened without -y"
    NEWLINE = "\n"
    recording_of = staticmethod(recording_of)

    def recognise(self, path: Path) -> bool:
        return looks_like(path, _WHOLE)


_host = _Strace(HostSettings())
TITLE, LEAVES_OUT, BASIS = _host.TITLE, _host.LEAVES_OUT, _host.BASIS
recognise, with_options, read = _host.recognise, _host.with_options, _host.read
EXAMPLE = Example(
    rb"""7     23:59:59.999990 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>
7     00:00:00.000010 pread64(3, "a\0"..., 100, 0) = 100 <0.000010>
7     00:00:00.000030 openat(AT_FDCWD, "/b", O_RDWR) = 4 <0.000010>
7     00:00:00.000050 pwrite64(4, "b\n"..., 4096, 0 <unfinished ...>
7     00:00:00.000070 <... pwrite64 resumed>) = 4096 <0.000020>
7     00:00:00.000090 fsync(4)          = 0 <0.000010>
""",
    [
        (READ, 128 << 20, 4096, 20_000),
        (WRITE, (128 << 20) + 4096, 4096, 100_000),
        (WRITE, 0, 2 * 4096, 100_000),
        (FLUSH, 0, 0, 100_000),
        (WRITE, 2 * 4096, 4096, 100_000),
        (WRITE, 64 << 20, 4096, 100_000),
    ],
)
