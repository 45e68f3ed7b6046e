"""Lines that ``strace`` writes of a program, as rows of `traces.calls.schema.SCHEMA`.

Every string has to be in hexadecimal (``-xx``), so that no byte of a path or a content can be taken for something else, and descriptors
with their paths (``-y``).  The descriptors of a process are followed through opens, copies, forks and positions, as calls such as ``read``
do not say where in a file they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flashsim.core.errors import DamagedFileError
from flashsim.core.units import SECONDS
from traces.calls import schema
from traces.calls.descriptors import Namespace, OpenFile, Process
from traces.calls.syntax import STRING, Descriptor, arguments_of, descriptor_of, flags_of, integer_of, kind_of, normal, string_of, unhex

#: Options that the reader of this module needs.  Times are those since the line before, as only they are of a clock that never goes back.
OPTIONS = ("-f", "-y", "-xx", "-a", "0", "--relative-timestamps=ns", "--syscall-times=ns")
#: Calls that make, rename or remove names.
_NAMING = "rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat"
_LINE = re.compile(r"(\d+) +(\d+)\.(\d{9}) (.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_RESULT = re.compile(r"(-?\d+|0x[0-9a-f]+|\?)(?:<([^>]*)>)?(?:\(deleted\))?(?: (E[A-Z0-9]+) \([^)]*\))?")
_TAKES = re.compile(r" <(\d+)\.(\d{9})>$")
_CONTROL_BLOCK = re.compile(r"aio_lio_opcode=IOCB_CMD_(\w+).*?aio_fildes=([^,]+)")
_NUMBER = re.compile(r"aio_(nbytes|offset)=(\d+)")
#: Flags that stay with an open file.
_LASTING = schema.DIRECT | schema.SYNC | schema.DSYNC | schema.APPEND


@dataclass
class _Open:
    """A call that has begun."""

    name: str
    text: str
    time: int


@dataclass
class Reader:
    """Turns lines of ``strace`` into rows.

    Parameters
    ----------
    contents
        Keep the bytes that are written.
    inherited
        Descriptors of the first process at its begin, by number: position and flags.
    folder
        Working folder of the first process.
    """

    contents: bool = False
    inherited: Mapping[int, tuple[int | None, int]] = field(default_factory=dict)
    folder: str = "/"
    names: Namespace = field(default_factory=Namespace)
    calls: int = 0
    now: int = 0
    missed: dict[str, set[str]] = field(default_factory=dict)
    _threads: dict[int, Process] = field(default_factory=dict)
    _begun: dict[int, _Open] = field(default_factory=dict)
    _births: list[tuple[int, str]] = field(default_factory=list)
    #: Standard output of the first process, which others may share; descriptor 1 of a child may be something else.
    _output: OpenFile | None = None
    #: Path of the descriptor that the last call returned, in which symbolic links are followed; empty for none.
    _returned: str = ""

    def rows(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Rows of the calls that the lines tell, in order of their ends.

        Raises
        ------
        DamagedFileError
            A line is none of strace's.
        """
        for number, line in enumerate(lines, 1):
            match = _LINE.match(line.rstrip("\n"))
            if match is None:
                raise DamagedFileError(f"strace: line {number}: it is no line of a recorded call: {line[:60]!r}")
            yield from self.line(int(match[1]), int(match[2]) * SECONDS + int(match[3]), match[4])
        for thread, begun in self._begun.items():
            if begun.name in (*schema.READS, *schema.WRITES, *schema.SYNCS):
                yield from self._call(thread, begun, "?", None)

    def line(self, thread: int, later: int, text: str) -> Iterator[dict[str, Any]]:
        """Rows of what a line tells of a thread; it begins so many ns later than the line before."""
        self.now = time = self.now + later
        if text.startswith(("+++", "---")):
            if text.startswith("+++"):
                self._threads.pop(thread, None)
            return
        process = self._process(thread)
        if match := _RESUMED.match(text):
            begun = self._begun.pop(thread, None)
            if begun is None:
                return
            text = begun.text + match[2]
        elif match := _CALL.match(text):
            begun = _Open(match[1], match[2], time)
            if begun.name in ("clone", "clone3", "fork", "vfork"):
                self._births.append((process.number, begun.text))
            if match[2].endswith("<unfinished ...>"):
                begun.text = match[2].removesuffix("<unfinished ...>").rstrip()
                self._begun[thread] = begun
                return
            text = begun.text
        else:
            return
        took = _TAKES.search(text)
        inner, _, result = text[: took.start() if took else None].rpartition(") = ")
        begun.text = inner
        yield from self._call(thread, begun, result, int(took[1]) * SECONDS + int(took[2]) if took else None)

    def _process(self, thread: int) -> Process:
        """The process of a thread; one that is seen first comes from the oldest call of clone or fork that is still open."""
        if thread not in self._threads:
            parent, flags = self._births.pop(0) if self._births else (thread, "")
            source = next((each for each in self._threads.values() if each.number == parent), None)
            if source and "CLONE_THREAD" in flags:
                self._threads[thread] = source
            elif source:
                shares = "CLONE_FILES" in flags
                self._threads[thread] = Process(thread, source.folder, source.descriptors if shares else dict(source.descriptors))
            else:
                given = {each: OpenFile(-2, *state) for each, state in self.inherited.items()} if not self._threads else {}
                self._output = given.get(1, self._output)
                self._threads[thread] = Process(thread, self.folder, given)
        return self._threads[thread]

    def _opened(self, process: Process, descriptor: Descriptor) -> OpenFile:
        """Open file of a descriptor; one that nothing was seen to open has a position that is not known."""
        opened = process.descriptors.get(descriptor.number)
        is_file = kind_of(descriptor.path) == "file"
        if opened is None:
            opened = process.descriptors[descriptor.number] = OpenFile(-2, None)
        if opened.file == -2:
            opened.file = self.names.number(descriptor.path) if is_file else -1
        return opened

    def _miss(self, what: str, where: str) -> None:
        self.missed.setdefault(what, set()).add(where)

    def _call(self, thread: int, begun: _Open, result: str, took: int | None) -> Iterator[dict[str, Any]]:
        process, name = self._threads[thread], begun.name
        self.calls += 1
        match = _RESULT.match(result)
        value, error = (None, None) if match is None or match[1] == "?" else (int(match[1], 0), match[3])
        self._returned = descriptor_of(result).path
        base: dict[str, Any] = {"time": begun.time, "duration": took, "process": process.number, "thread": thread}
        base |= {"call": name, "result": value, "error": error, "flags": 0, "file": -1, "kind": "other"}
        arguments = arguments_of(begun.text)
        if name in ("clone", "clone3", "fork", "vfork"):
            if value is None or value < 0:
                self._births = [birth for birth in self._births if birth != (process.number, begun.text)]
            return
        handler = _HANDLERS.get(name)
        if name in ("truncate", *_NAMING.split()) and not any(map(string_of, arguments)):
            self._miss("names of files that are made, renamed, removed or resized", name)
        elif handler is not None:
            yield from handler(self, process, arguments, base)

    def _on(self, process: Process, text: str, base: dict[str, Any]) -> tuple[OpenFile, dict[str, Any]]:
        """The open file that a call works on, and its row with what is known of that file."""
        descriptor = descriptor_of(text)
        opened = self._opened(process, descriptor)
        return opened, base | {"file": opened.file, "path": descriptor.path, "kind": kind_of(descriptor.path), "flags": opened.flags}

    def data(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Bytes are read or written, at the place that the call gives, or at the open file's."""
        name, result = base["call"], base["result"] or 0
        opened, row = self._on(process, arguments[0], base)
        is_write, has_place = name in schema.WRITES, name.startswith("p")
        lengths = [int(each) for each in re.findall(r"iov_len=(\d+)", arguments[1])]
        asked = (sum(lengths) or result) if "v" in name else integer_of(arguments[2])
        place = integer_of(arguments[3]) if has_place and len(arguments) > 3 else None
        if name.endswith("v2") and len(arguments) > 4:
            row["flags"] |= schema.DSYNC * ("RWF_DSYNC" in arguments[4]) | schema.SYNC * ("RWF_SYNC" in arguments[4])
        place = self.names.place(opened, True) if is_write and has_place and opened.flags & schema.APPEND else place
        if place is None or place < 0:
            place = self.names.place(opened, is_write)
            if opened.file >= 0 and place is None and (result > 0):
                self._miss("where in its file a read or write began", row["path"])
            if place is not None and base["error"] is None:
                opened.position = place + result
        if is_write and opened.file >= 0 and place is not None:
            self.names.grown(opened.file, place + result)
        if is_write and opened is self._output:
            row["flags"] |= schema.PRINTED
        if is_write and self.contents and (row["kind"] == "file" or row["flags"] & schema.PRINTED):
            strings = STRING.findall(arguments[1])
            row["content"] = b"".join(unhex(each) for each, _ in strings)[:result]
            if len(row["content"]) < result:
                self._miss("all bytes that were written", row["path"])
        yield row | {"offset": place if opened.file >= 0 else None, "length": asked}

    def open(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A file is opened."""
        if base["error"] or base["result"] is None:
            return
        name = base["call"]
        words = "O_WRONLY|O_CREAT|O_TRUNC" if name == "creat" else arguments[2 if name.startswith("openat") else 1]
        flags = flags_of(words)
        if string_of(arguments[name.startswith("openat")]) is None:
            process.descriptors[base["result"]] = OpenFile(-2, 0, flags & _LASTING)
            return
        path = self._returned or self._named(process, arguments, name.startswith("openat"))
        kind = kind_of(path)
        file = self.names.number(path) if kind == "file" else -1
        if kind == "file" and flags & schema.TRUNCATE:
            self.names.sizes[file] = 0
        process.descriptors[base["result"]] = OpenFile(file, 0, flags & _LASTING)
        yield base | {"file": file, "path": path, "kind": kind, "flags": flags}

    def _named(self, process: Process, arguments: list[str], relative: bool, at: int = 0) -> str:
        """The absolute path that a call names, by a string, or by a folder's descriptor and a string."""
        text = string_of(arguments[at + relative]) or ""
        folder = descriptor_of(arguments[at]).path if relative else process.folder
        return normal(text if text.startswith("/") else f"{folder}/{text}" if text else folder)

    def position(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The place of the next read or write changes."""
        opened, _ = self._on(process, arguments[0], base)
        if base["error"] is None and base["result"] is not None and opened.file >= 0:
            opened.position = base["result"]
            if arguments[2].startswith("SEEK_END") and integer_of(arguments[1]) == 0:
                self.names.sizes[opened.file] = base["result"]
        yield from ()

    def size(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The program asks for a file's size: then the recording knows it too."""
        match = re.search(r"st_size=(\d+)|stx_size=(\d+)", " ".join(arguments))
        if match and base["error"] is None:
            if base["call"] == "fstat" or (len(arguments) > 1 and arguments[1] == '""'):
                opened, row = self._on(process, arguments[0], base)
                file = opened.file if row["kind"] == "file" else -1
            else:
                file = self.names.number(self._named(process, arguments, True))
            if file >= 0:
                self.names.sizes[file] = int(match[1] or match[2])
        yield from ()

    def copy(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A descriptor is copied."""
        if base["error"] is None and base["result"] is not None and (base["call"] != "fcntl" or "F_DUPFD" in arguments[1]):
            process.descriptors[base["result"]] = self._on(process, arguments[0], base)[0]
        elif base["call"] == "fcntl" and arguments[1] == "F_SETFL" and base["error"] is None:
            opened = self._on(process, arguments[0], base)[0]
            opened.flags = (flags_of(arguments[2]) & _LASTING) | (opened.flags & (schema.SYNC | schema.DSYNC))
        yield from ()

    def close(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A descriptor is closed."""
        process.descriptors.pop(descriptor_of(arguments[0]).number, None)
        yield from ()

    def enter(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The process works in another folder."""
        if base["error"] is None:
            process.folder = descriptor_of(arguments[0]).path if base["call"] == "fchdir" else self._named(process, arguments, False)
        yield from ()

    def sync(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A program asks for its writes to be durable."""
        if base["call"] in ("sync", "msync"):
            yield base
            return
        row = self._on(process, arguments[0], base)[1]
        if base["call"] == "sync_file_range":
            row |= {"offset": integer_of(arguments[1]), "length": integer_of(arguments[2])}
        yield row | {"flags": row["flags"] | schema.DATA_ONLY * (base["call"] == "fdatasync")}

    def resize(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A file has another size."""
        if base["call"] == "truncate":
            path = self._named(process, arguments, False)
            row = base | {"file": self.names.number(path), "path": path, "kind": kind_of(path)}
        else:
            row = self._on(process, arguments[0], base)[1]
        if base["call"] == "fallocate":
            start, length = integer_of(arguments[2]) or 0, integer_of(arguments[3]) or 0
            row |= {"offset": start, "length": length, "other": arguments[1]}
            if base["error"] is None and "KEEP_SIZE" not in arguments[1]:
                self.names.grown(row["file"], start + length)
        else:
            row["length"] = integer_of(arguments[1])
            if base["error"] is None and row["length"] is not None:
                self.names.sizes[row["file"]] = row["length"]
        yield row

    def name(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A path comes, goes, or stands for another file."""
        call, relative = base["call"], "at" in base["call"]
        if base["error"] is not None or base["result"] is None:
            return
        if call.startswith("symlink"):
            yield base | {"path": self._named(process, arguments[1:], relative), "kind": "file", "other": string_of(arguments[0])}
            return
        old = self._named(process, arguments, relative)
        row = base | {"path": old, "kind": "file"}
        if call.startswith(("rename", "link")):
            new = self._named(process, arguments, relative, 1 + relative)
            row |= {"file": self.names.number(old), "other": new, "flags": schema.EXCHANGE * ("RENAME_EXCHANGE" in arguments[-1])}
            if call.startswith("link"):
                row["file"] = process.given(old, row["file"])
                self.names.linked(row["file"], new)
            else:
                self.names.renamed(old, new, bool(row["flags"]))
        elif call.startswith("unlink"):
            row["file"] = self.names.number(old)
            self.names.removed(old)
        yield row

    def mapping(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Memory stands for a file; what is written to it is seen nowhere."""
        if base["error"] is not None or len(arguments) < 6 or arguments[4].startswith("-1"):
            return
        _, row = self._on(process, arguments[4], base)
        if "MAP_SHARED" in arguments[3] and "PROT_WRITE" in arguments[2] and row["kind"] == "file":
            self._miss("writes through memory that stands for a file (mmap)", row["path"])
        shared = schema.SHARED * ("MAP_SHARED" in arguments[3])
        if row["kind"] == "file":
            place, length = integer_of(arguments[5]), integer_of(arguments[1])
            yield row | {"offset": place, "length": length, "flags": row["flags"] | shared, "result": 0}

    def ring(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A ring of io_uring is made, whose requests are no system calls."""
        if base["error"] is None:
            self._miss("requests of io_uring, which are no system calls", f"process {process.number}")
        yield from ()

    def submit(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Requests of libaio are submitted: a row each; they are taken to read and write all that they ask for."""
        blocks = re.split(r"\}, \{", arguments[2]) if len(arguments) > 2 else []
        for block in blocks[: base["result"] or 0]:
            match = _CONTROL_BLOCK.search(block)
            if match is None:
                continue
            _, row = self._on(process, match[2], base)
            numbers = {name: int(value) for name, value in _NUMBER.findall(block)}
            length = numbers.get("nbytes", 0)
            if match[1] in ("PREAD", "PREADV", "PWRITE", "PWRITEV", "FSYNC", "FDSYNC"):
                call = "io_fsync" if "SYNC" in match[1] else "io_read" if "READ" in match[1] else "io_write"
                length = sum(int(each) for each in re.findall(r"iov_len=(\d+)", block)) or length
                if call == "io_write" and self.contents:
                    row["content"] = b"".join(unhex(each) for each, _ in STRING.findall(block))
                    if len(row["content"]) < length:
                        self._miss("all bytes that were written", row["path"])
                yield row | {"call": call, "offset": numbers.get("offset"), "length": length, "result": length}

    def transfer(self, process: Process, arguments: list[str], base: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Bytes go from one file to another within the kernel: a read and a write."""
        call, count = base["call"], base["result"] or 0
        if base["error"] is not None:
            return
        first, second = (1, 0) if call == "sendfile" else (0, 2)
        places = (arguments[2], "NULL") if call == "sendfile" else (arguments[1], arguments[3])
        for name, text, place_text in (("read", arguments[first], places[0]), ("write", arguments[second], places[1])):
            opened, row = self._on(process, text, base)
            number = re.search(r"\d+", place_text)
            place = int(number[0]) if number else self.names.place(opened, name == "write")
            if number is None and opened.position is not None:
                opened.position += count
            if name == "write" and opened.file >= 0 and place is not None:
                self.names.grown(opened.file, place + count)
            if name == "write" and self.contents and row["kind"] == "file" and count:
                self._miss(schema.COPIED, row["path"])
            other = descriptor_of(arguments[second if name == "read" else first]).path
            yield row | {"call": name, "offset": place if opened.file >= 0 else None, "length": count, "other": other}


_HANDLERS: dict[str, Any] = {
    call: handler
    for calls, handler in (
        ("read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2", Reader.data),
        ("open openat openat2 creat", Reader.open),
        ("dup dup2 dup3 fcntl", Reader.copy),
        ("fstat newfstatat statx", Reader.size),
        ("chdir fchdir", Reader.enter),
        ("fsync fdatasync sync syncfs sync_file_range msync", Reader.sync),
        ("truncate ftruncate fallocate", Reader.resize),
        (_NAMING, Reader.name),
        ("sendfile copy_file_range splice", Reader.transfer),
        ("close", Reader.close),
        ("lseek", Reader.position),
        ("mmap", Reader.mapping),
        ("io_uring_setup", Reader.ring),
        ("io_submit", Reader.submit),
    )
    for call in calls.split()
}
#: System calls that are recorded, as strace takes them; one that a machine does not have is left out.
EXPRESSION = "trace=" + ",".join(
    f"?{call}" for call in [*_HANDLERS, "io_getevents", "vmsplice", "clone", "clone3", "fork", "vfork", "execve"]
)
