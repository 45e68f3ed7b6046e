"""Lines that ``strace`` writes of a program, as rows of `traces.calls.schema.SCHEMA`.

Every string has to be in hexadecimal (``-xx``), so that no byte of a path or a content can be taken for something else, and descriptors
with their paths (``-y``).  The descriptors of a process are followed through opens, copies, forks and positions, as calls such as ``read``
do not say where in a file they begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashsim.core.errors import DamagedFileError
from flashsim.core.units import SECONDS
from traces.calls import handlers, schema
from traces.calls.processes import BIRTHS, WAITS, Lineage, OpenFile, PathNamespace, Process
from traces.calls.syntax import (
    STRING,
    Descriptor,
    arguments_of,
    descriptor_of,
    flags_of,
    integer_of,
    kind_of,
    normal,
    path_of,
    string_of,
    unhex,
)

#: Options that the reader of this module needs.  Times are those since the line before, as only they are of a clock that never goes back.
OPTIONS = ("-f", "-y", "-xx", "-a", "0", "--relative-timestamps=ns", "--syscall-times=ns")
#: The option that shows all requests of libaio that are submitted and ended at once; without it strace shows as many as bytes of a string.
ALL_REQUESTS = ("-e", "abbrev=!io_submit,io_getevents,io_pgetevents")
_LINE = re.compile(r"(\d+) +(\d+)\.(\d{9}) (.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_UNFINISHED = re.compile(r" *<(?:unfinished|pid changed to \d+) \.\.\.>$")
_SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (\d+)")
_RESULT = re.compile(r"(0x[0-9a-f]+|-?\d+|\?)(?:<([^>]*)>)?(?:\(deleted\))?(?: (E[A-Z0-9]+) \([^)]*\))?")
_TAKES = re.compile(r" <(\d+)\.(\d{9})>$")
#: Flags of a call itself, and those that stay with an open file.
_OF_A_CALL = {"RWF_DSYNC": schema.DSYNC, "RWF_SYNC": schema.SYNC, "RWF_APPEND": schema.APPEND}
#: Names of calls of programs of 32 bits, and those that do the same.
_OF_32_BITS = {"mmap2": "mmap", "ftruncate64": "ftruncate", "truncate64": "truncate", "fcntl64": "fcntl", "fstat64": "fstat"}
_OF_32_BITS |= {"fstatat64": "newfstatat", "sendfile64": "sendfile", "_llseek": "lseek"}
_LASTING = schema.DIRECT | schema.SYNC | schema.DSYNC | schema.APPEND


@dataclass
class BegunCall:
    """A call that has begun."""

    name: str
    text: str
    time: int


@dataclass
class StraceReader:
    """Turns lines of ``strace`` into rows."""

    #: Keep the bytes that are written.
    contents: bool = False
    #: The first process when recording begins.
    first: Process = field(default_factory=lambda: Process(0, "/"))
    #: Its threads at that time, where it ran before.
    threads: Sequence[int] = ()
    #: The path of a descriptor is that at the time of the call.
    is_exact: bool = True
    #: Where standard output of the first process goes, as strace tells it; empty if that is not known.
    output: str = ""
    #: The bytes of a file at a path, from an offset on and so many, if it has not changed since recording began.
    copied: Callable[[str, int, int], bytes | None] = lambda *_: None
    names: PathNamespace = field(default_factory=PathNamespace)
    calls: int = 0
    now: int = 0
    missed: dict[str, set[str]] = field(default_factory=dict)
    _begun: dict[int, BegunCall] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lineage = Lineage(self.first, self.threads)
        #: Standard output of the first process, which others may share; descriptor 1 of a child may be something else.
        self._output = self.first.descriptors.get(1)

    def rows(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Rows of the calls that the lines tell, in order of their ends; a `DamagedFileError` of a line that is none of strace's."""
        for number, line in enumerate(lines, 1):
            match = _LINE.match(line.rstrip("\n"))
            if match is None:
                raise DamagedFileError(f"strace: line {number}: it is not a line of a recorded call: {line[:60]!r}")
            yield from self.line(int(match[1]), int(match[2]) * SECONDS + int(match[3]), match[4])
        yield from self.remainder()

    def remainder(self) -> Iterator[dict[str, Any]]:
        """Rows of the calls that had not returned when the lines end."""
        for thread, begun in self._begun.items():
            if begun.name in (*schema.READS, *schema.WRITES, *schema.SYNCS):
                yield from self._call(thread, begun, "?", None)

    def line(self, thread: int, later: int, text: str) -> Iterator[dict[str, Any]]:
        """Rows of what a line tells of a thread; it begins so many ns later than the line before."""
        self.now = time = self.now + later
        if text.startswith(("+++", "---")):
            if match := _SUPERSEDED.match(text):
                self._begun |= {thread: self._begun.pop(int(match[1]))} if int(match[1]) in self._begun else {}
            elif text.startswith("+++"):
                self._lineage.exit(thread)
            return
        self._lineage.process(thread)
        if match := _RESUMED.match(text):
            begun = self._begun.pop(thread, None)
            if begun is None:
                return
            text = begun.text + match[2]
        elif match := _CALL.match(text):
            begun = BegunCall(match[1], match[2], time)
            if begun.name in BIRTHS:
                self._lineage.begin(thread, begun.text)
            if unfinished := _UNFINISHED.search(match[2]):
                begun.text = match[2][: unfinished.start()]
                self._begun[thread] = begun
                return
            text = begun.text
        else:
            return
        took = _TAKES.search(text)
        inner, _, result = text[: took.start() if took else None].rpartition(") = ")
        begun.text = inner
        yield from self._call(thread, begun, result, int(took[1]) * SECONDS + int(took[2]) if took else None)

    def _open_file(self, process: Process, descriptor: Descriptor) -> OpenFile:
        """Open file of a descriptor; one that nothing was seen to open has a position that is not known."""
        opened = process.descriptors.get(descriptor.number)
        is_file = kind_of(descriptor.path) == "file"
        if opened is None or (self.is_exact and not self._is_still(opened, descriptor.path)):
            opened = process.descriptors[descriptor.number] = OpenFile(-2, None)
            if is_file and self.is_exact:  # it may have come from another process, and moves with a descriptor there
                self._lineage.forget_places(self.names.number(descriptor.path))
        if opened.file == -2:
            opened.file = self.names.number(descriptor.path) if is_file else -1
        return opened

    def _is_still(self, opened: OpenFile, path: str) -> bool:
        """Whether a descriptor stands for the file that it did; calls that are not recorded may have closed it and opened another."""
        if opened.file == -2 or not path:
            return True
        if opened.file == -1 or kind_of(path) != "file":
            return opened.file == -1 and kind_of(path) != "file"
        is_renaming = any(begun.name in handlers.NAMING.split() for begun in self._begun.values())
        return is_renaming or self.names.is_of(opened.file, path)

    def miss(self, what: str, where: str) -> None:
        """The recording misses something that a file or a process did."""
        self.missed.setdefault(what, set()).add(where)

    def _call(self, thread: int, begun: BegunCall, result: str, took: int | None) -> Iterator[dict[str, Any]]:
        process, name = self._lineage.process(thread), _OF_32_BITS.get(begun.name, begun.name)
        self.calls += 1
        match = _RESULT.match(result)
        value, error = (None, None) if match is None or match[1] == "?" else (int(match[1], 0), match[3])
        base: dict[str, Any] = {"time": begun.time, "duration": took, "process": process.number, "thread": thread}
        base |= {"call": name, "result": value, "error": error, "flags": 0, "file": -1, "kind": "other"}
        told = path_of(match[2]) if match and match[2] else None
        arguments = arguments_of(begun.text)
        if begun.name == "_llseek" and value == 0:
            base["result"] = integer_of(arguments.pop(2)[1:-1])
        if name in BIRTHS:
            if "CLONE_UNTRACED" in begun.text:
                self.miss("what a process did that may not be watched (CLONE_UNTRACED)", f"process {process.number}")
            if not self._lineage.end(thread, value):
                self.miss("which process made another one, of two that did at the same time", f"process {process.number}")
            if value is not None and value > 0:
                yield base
            return
        handler = _HANDLERS.get(name)
        if name in ("truncate", *handlers.NAMING.split()) and not any(map(string_of, arguments)):
            self.miss("names of files that are made, renamed, removed or resized", name)
        elif handler is not None:
            yield from handler(self, process, arguments, base | {"path": told} if told else base) or ()

    def on(self, process: Process, text: str, base: dict[str, Any]) -> tuple[OpenFile, dict[str, Any]]:
        """The open file that a call works on, and its row with what is known of that file."""
        descriptor = descriptor_of(text)
        opened = self._open_file(process, descriptor)
        return opened, base | {"file": opened.file, "path": descriptor.path, "kind": kind_of(descriptor.path), "flags": opened.flags}

    def data(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Bytes are read or written, at the place that the call gives, or at the open file's."""
        name, result = base["call"], base["result"] or 0
        arguments = [*arguments, "", "", ""]  # strace tells the first one alone of a read that has not returned
        opened, row = self.on(process, arguments[0], base)
        is_write, has_place = name in schema.WRITES, name.startswith("p")
        lengths = [int(each) for each in re.findall(r"iov_len=(\d+)", arguments[1])]
        asked = (sum(lengths) or result) if "v" in name else integer_of(arguments[2])
        place = integer_of(arguments[3]) if has_place else None
        if name.endswith("v2"):
            row["flags"] |= sum(bit for word, bit in _OF_A_CALL.items() if word in arguments[4])
            row["flags"] &= ~schema.APPEND if re.search(r"RWF_NOAPPEND|0x20\b", arguments[4]) else -1  # older straces have no name for it
        is_moving, appends = place is None or place < 0, is_write and bool(row["flags"] & schema.APPEND)
        if is_moving or appends:
            place = self.names.sizes.get(opened.file) if appends else opened.position
            if opened.file >= 0 and result > 0:
                self._in_order(opened, row, appends)
                if place is None:
                    self.miss("where in its file a read or write began", row["path"])
        if is_moving and base["error"] is None:
            opened.position = place if place is None else place + result
        if is_write and opened.file >= 0 and place is not None:
            self.names.grow(opened.file, place + result)
        if is_write and self.is_output(opened, row):
            row["flags"] |= schema.PRINTED
        if is_write and self.contents and (row["kind"] == "file" or row["flags"] & schema.PRINTED):
            strings = STRING.findall(arguments[1])
            row["content"] = b"".join(unhex(each) for each, _ in strings)[:result]
            if len(row["content"]) < result:
                self.miss("all bytes that were written", row["path"])
        yield row | {"offset": place if opened.file >= 0 else None, "length": asked}

    def is_output(self, opened: OpenFile, row: dict[str, Any]) -> bool:
        """Whether an open file is standard output of the first process, or one like it that was opened by ``/dev/stdout``."""
        return opened is self._output or row["path"] == self.output != ""

    def _in_order(self, opened: OpenFile, row: dict[str, Any], appends: bool) -> None:
        """Calls that go on where the one before ended are taken in the order of their ends; that of two at the same time is not known."""
        before = self.names.appended.get(opened.file, 0) if appends else opened.moved
        if row["time"] < before:
            self.miss("the order of calls at the same time, each of which begins where the one before ends", row["path"])
        end = max(before, self.now, row["time"] + (row["duration"] or 0))
        if appends:
            self.names.appended[opened.file] = end
        else:
            opened.moved = end

    def open(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if base["error"] or base["result"] is None:
            return
        name = base["call"]
        words = "O_WRONLY|O_CREAT|O_TRUNC" if name == "creat" else arguments[2 if name.startswith("openat") else 1]
        flags = flags_of(words)
        opened = OpenFile(-2, 0, flags & _LASTING)
        process.assign(base["result"], opened, "O_CLOEXEC" in words)
        if string_of(arguments[name.startswith("openat")]) is None:
            return
        given = self.path_of(process, arguments, name.startswith("openat"))
        path, is_unnamed = base.get("path", given), "O_TMPFILE" in words
        kind = kind_of(path)
        if kind == kind_of(given) == "file" and path != given and not is_unnamed:
            self.names.leads(given, path)
        if is_unnamed:
            self.names.remove(path)
        opened.file = self.names.number(path) if kind == "file" else -1
        if kind == "file" and (flags & schema.TRUNCATE or is_unnamed):
            self.names.sizes[opened.file] = 0
        yield base | {"file": opened.file, "path": path, "kind": kind, "flags": flags}

    def path_of(self, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
        """The absolute path that a call names, by a string, or by a folder's descriptor and a string."""
        text = string_of(arguments[at + relative]) or ""
        folder = (descriptor_of(arguments[at]).path if relative else "") or process.folder
        return normal(text if text.startswith("/") else f"{folder}/{text}" if text else folder)

    def position(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        """The place of the next read or write changes."""
        opened, _ = self.on(process, arguments[0], base)
        if base["error"] is None and base["result"] is not None and opened.file >= 0:
            opened.position = base["result"]
            if arguments[2].startswith("SEEK_END") and integer_of(arguments[1]) == 0:
                self.names.sizes[opened.file] = base["result"]

    def size(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        """The program asks for a file's size: then the recording knows it too."""
        said = " ".join(arguments)
        match = re.search(r"st_size=(\d+)|stx_size=(\d+)", said)
        if match and base["error"] is None and "S_IFLNK" not in said:
            if base["call"] == "fstat" or (len(arguments) > 1 and arguments[1] == '""'):
                opened, row = self.on(process, arguments[0], base)
                file = opened.file if row["kind"] == "file" else -1
            else:
                file = self.names.number(self.names.real(self.path_of(process, arguments, True), True))
            if file >= 0:
                self.names.sizes[file] = int(match[1] or match[2])

    def copy(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        if base["error"] is None and base["result"] is not None and (base["call"] != "fcntl" or "F_DUPFD" in arguments[1]):
            is_closing = base["call"] != "dup" and "CLOEXEC" in "".join(arguments[1:])
            process.assign(base["result"], self.on(process, arguments[0], base)[0], is_closing)
        elif base["call"] == "fcntl" and arguments[1] == "F_SETFD" and base["error"] is None:
            number = descriptor_of(arguments[0]).number
            (process.closing.add if "FD_CLOEXEC" in arguments[-1] else process.closing.discard)(number)
        elif base["call"] == "fcntl" and arguments[1] == "F_SETFL" and base["error"] is None:
            opened = self.on(process, arguments[0], base)[0]
            opened.flags = (flags_of(arguments[2]) & _LASTING) | (opened.flags & (schema.SYNC | schema.DSYNC))

    def close(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        process.descriptors.pop(descriptor_of(arguments[0]).number, None)

    def close_range(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        """Descriptors are closed, or will be when the process runs another program."""
        first, last = (integer_of(each) or 0 for each in arguments[:2])
        numbers = [each for each in process.descriptors if first <= each <= last] if base["error"] is None else []
        if "CLOSE_RANGE_UNSHARE" in arguments[2]:
            process.descriptors, process.closing = dict(process.descriptors), set(process.closing)
        if "CLOSE_RANGE_CLOEXEC" in arguments[2]:
            process.closing.update(numbers)
        else:
            process.descriptors = {each: opened for each, opened in process.descriptors.items() if each not in numbers}

    def execute(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        if base["error"] is None and base["result"] == 0:
            process.execute()

    def enter(self, process: Process, arguments: list[str], base: dict[str, Any]) -> None:
        if base["error"] is None:
            process.folder = descriptor_of(arguments[0]).path if base["call"] == "fchdir" else self.path_of(process, arguments, False)

    def sync(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A program asks for its writes to be durable."""
        if base["call"] in ("sync", "msync"):
            yield base
            return
        row = self.on(process, arguments[0], base)[1]
        if base["call"] == "sync_file_range":
            row |= {"offset": integer_of(arguments[1]), "length": integer_of(arguments[2])}
        yield row | {"flags": row["flags"] | schema.DATA_ONLY * (base["call"] == "fdatasync")}

    def resize(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if base["call"] == "truncate":
            path = self.path_of(process, arguments, False)
            opened = process.at(path)
            path = (self.names.path_of(opened.file) if opened else None) or self.names.real(path, True)
            row = base | {"file": opened.file if opened else self.names.number(path), "path": path, "kind": kind_of(path)}
        else:
            row = self.on(process, arguments[0], base)[1]
        if base["call"] == "fallocate":
            start, length = integer_of(arguments[2]) or 0, integer_of(arguments[3]) or 0
            row |= {"offset": start, "length": length, "other": arguments[1]}
            if base["error"] is None and "KEEP_SIZE" not in arguments[1]:
                self.names.grow(row["file"], start + length)
        else:
            row["length"] = integer_of(arguments[1])
            if base["error"] is None and row["length"] is not None:
                self.names.sizes[row["file"]] = row["length"]
        yield row


_HANDLERS: dict[str, Any] = {
    call: handler
    for calls, handler in (
        ("read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2", StraceReader.data),
        ("open openat openat2 creat", StraceReader.open),
        ("dup dup2 dup3 fcntl", StraceReader.copy),
        ("fstat newfstatat statx", StraceReader.size),
        ("chdir fchdir", StraceReader.enter),
        ("fsync fdatasync sync syncfs sync_file_range msync", StraceReader.sync),
        ("truncate ftruncate fallocate", StraceReader.resize),
        (handlers.NAMING, handlers.name),
        ("sendfile copy_file_range splice", handlers.transfer),
        ("close", StraceReader.close),
        ("close_range", StraceReader.close_range),
        ("lseek", StraceReader.position),
        ("mmap", handlers.map_memory),
        ("mprotect pkey_mprotect", handlers.protect_memory),
        ("mremap", handlers.move_memory),
        ("execve execveat", StraceReader.execute),
        ("io_uring_setup", handlers.ring),
        ("io_submit", handlers.submit),
        ("io_getevents io_pgetevents", handlers.complete),
        ("chroot pivot_root", handlers.move_root),
        (" ".join(WAITS), handlers.end_process),
    )
    for call in calls.split()
}
#: System calls that are recorded, as strace takes them; one that a machine does not have is left out.
EXPRESSION = "trace=" + ",".join(f"?{call}" for call in [*_HANDLERS, "vmsplice", "io_uring_enter", *BIRTHS, *_OF_32_BITS])
