"""Writes that are no system calls, as lines beside those of ``strace``: requests of io_uring, and writes through mapped files.

At a call that submits requests or syncs, strace writes a line, and a notice (`flashsim.apps.programs.notices`) shows this module the
program's memory.  What it sees there becomes lines of calls that do the same, before the line of that call.
"""

import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from flashsim.apps.programs.mapped_files import MappedFile, MappedFiles
from flashsim.apps.programs.notices import Notice
from flashsim.apps.programs.rings import RingRequest, SubmissionRing, UnseenError, read_memory
from traces.calls.handlers import MAPPED, RINGS
from traces.calls.schema import WRITES
from traces.calls.syntax import escape, hexadecimal, kind_of

#: Numbers of descriptors that stand for mapped files.
_FIRST = 1 << 24
#: Calls that sync a descriptor's file.
_OF_A_FILE = ("fsync", "fdatasync", "sync_file_range")
#: The flag of msync that waits for what it writes.
_SYNCHRONOUS = 4
_WRITTEN = re.compile(r"\d+<([^>]*)>")
_LINE = re.compile(r"(\d+) +\d+\.\d{9} (?:(\w+)\(|(\+\+\+))")
#: Stands for the end of a process in the place of a call.
_END = "+++"

Place = tuple[int, str, int]


class UnseenWrites:
    """Takes notices of a program's calls, and puts what they show between the lines of strace.

    With `contents`, at most `longest` bytes of a write are kept.
    """

    def __init__(self, contents: bool, longest: int) -> None:
        self._contents, self._longest = contents, longest
        self._lines: dict[Place, list[str]] = {}
        self._counts = Counter[tuple[int, str]]()
        self._processes: dict[int, int] = {}
        self._rings = list[SubmissionRing]()
        self._files = MappedFiles()
        self._opened = set[tuple[int, int]]()
        self._by_path: dict[str, MappedFile] = {}
        self.missed: dict[str, set[str]] = {}
        #: What strace alone would miss, and this object does not.
        self.seen: dict[str, set[str]] = {MAPPED: set(), RINGS: set()}

    def take(self, notice: Notice) -> None:
        """Look at what a thread is about to do."""
        thread, call, arguments = notice
        number = self._counts[thread, call]
        if call != "mmap":
            self._counts[thread, call] += 1
        try:
            process = self._process(thread)
            if call == "mmap":
                self._map(process, thread, arguments)
            elif call.startswith("io_uring"):
                self._serve_ring(process, call, arguments, (thread, call, number))
            else:
                place, files = (thread, call, number), self._durable_by(process, call, arguments)
                self._compare(place, files)
                if call == "msync" and arguments[2] & _SYNCHRONOUS:
                    for mapped in files:
                        self._put(place, f"fdatasync({self._open(place, mapped)}) = 0")
        except UnseenError as problem:
            self._miss(str(problem), f"process {process}")
        except (OSError, ValueError, struct.error) as problem:  # the thread was killed meanwhile, or its memory is not as it should be
            self._miss(f"what a call did ({call}: {problem})", f"thread {thread}")

    def finish(self) -> None:
        """The program has ended: what no call synced is written before the end of the process that mapped it."""
        for mapped in self._files.all():
            self._compare((mapped.process, _END, 0), [mapped])
            self._by_path |= {hexadecimal(os.fsencode(path)): mapped for path in mapped.paths}
        for path in self._files.refused:
            self._miss("writes through memory to a file too large to be compared", path)

    def between(self, lines: Iterable[str]) -> Iterator[str]:
        """Lines of strace with those of this object.

        A file may be written by calls while it is compared, and the line of such a call may come later.  So all pages of a file that is
        written in both ways are written as they are at the end, when the process that mapped it ends.
        """
        counts, mapped_now, written = Counter[tuple[int, str]](), list[MappedFile](), list[MappedFile]()
        for line in lines:
            match = _LINE.match(line)
            if match:
                thread, call = int(match[1]), match[2] or _END
                yield from self._lines.pop((thread, call, counts[thread, call]), ())
                counts[thread, call] += 1
                if call in ("mmap", *WRITES) and (path := _WRITTEN.search(line)) and (mapped := self._by_path.get(path[1])):
                    if call == "mmap":
                        mapped_now.append(mapped)
                    elif mapped in mapped_now and mapped not in written:
                        written.append(mapped)
                elif call == _END:
                    for mapped in [each for each in written if each.process == thread]:
                        self._write((thread, _END, 1), mapped, mapped.all_changes())
                    yield from self._lines.pop((thread, _END, 1), ())
            yield line
        self._files.close()

    def _durable_by(self, process: int, call: str, arguments: tuple[int, ...]) -> list[MappedFile]:
        """Mapped files that a call makes durable."""
        if call in _OF_A_FILE:
            return self._files.of_descriptor(process, arguments[0])
        return self._files.in_memory_of(process, *arguments[:2]) if call == "msync" else self._files.all()

    def _process(self, thread: int) -> int:
        """The process of a thread."""
        if thread not in self._processes:
            status = Path(f"/proc/{thread}/status").read_text()
            process = self._processes[thread] = int(status.partition("\nTgid:")[2].split()[0])
            self._processes[process] = process
        return self._processes[thread]

    def _miss(self, what: str, where: str) -> None:
        self.missed.setdefault(what, set()).add(where)

    def _map(self, process: int, thread: int, arguments: tuple[int, ...]) -> None:
        number = arguments[4] & 0xFFFFFFFF
        path = os.readlink(f"/proc/{process}/fd/{number}")
        if path.startswith("anon_inode:[io_uring]"):
            new = [each for each in self._rings if each.thread == thread and each.descriptor < 0]
            if new:
                new[-1].open(number)
                self.seen[RINGS].add(f"process {process}")
        elif kind_of(path) == "file":
            self._files.map(process, thread, number)
            if path not in self._files.refused:
                self.seen[MAPPED].add(escape(path))

    def _serve_ring(self, process: int, call: str, arguments: tuple[int, ...], place: Place) -> None:
        if call == "io_uring_setup":
            self._rings.append(SubmissionRing(process, place[0], arguments[1]))
            return
        number = arguments[0] & 0xFFFFFFFF
        ring = next((each for each in reversed(self._rings) if each.process == process and each.descriptor == number), None)
        if ring is None:
            return
        if call == "io_uring_register":
            if missed := ring.register(arguments[1] & 0xFFFFFFFF, arguments[2], arguments[3] & 0xFFFFFFFF):
                self._miss(missed, f"process {process}")
            return
        requests, others = ring.requests(arguments[1] & 0xFFFFFFFF)
        for each in others:
            self._miss(each, f"process {process}")
        for request in requests:
            if request.operation == "FSYNC":
                self._compare(place, [each for each in self._files.all() if each.path == request.path])
        if requests:
            blocks = "}, {".join(self._block(process, each) for each in requests)
            self._put(place, f"io_submit(0, {len(requests)}, [{{{blocks}}}]) = {len(requests)}")

    def _block(self, process: int, request: RingRequest) -> str:
        """A request as strace shows one of libaio."""
        text = f"aio_lio_opcode=IOCB_CMD_{request.operation}, aio_fildes={_descriptor(request.descriptor, request.path)}"
        length = sum(each for _, each in request.memory)
        if self._contents and "WRITE" in request.operation:
            data = b"".join(read_memory(process, *each) for each in request.memory)[: self._longest]
            text += f', aio_buf="{hexadecimal(data)}"'
        text += f", aio_nbytes={length}"
        return text if request.offset is None else f"{text}, aio_offset={request.offset}"

    def _compare(self, place: Place, files: Iterable[MappedFile]) -> None:
        """Put lines of writes of what has changed in files."""
        for mapped in files:
            self._write(place, mapped, mapped.changes())

    def _write(self, place: Place, mapped: MappedFile, changes: Iterable[tuple[int, bytes]]) -> None:
        """Put lines of writes of bytes at places of a file."""
        for offset, data in changes:
            kept = hexadecimal(data[: self._longest]) if self._contents else ""
            self._put(place, f'pwrite64({self._open(place, mapped)}, "{kept}", {len(data)}, {offset}) = {len(data)}')

    def _open(self, place: Place, mapped: MappedFile) -> str:
        """A descriptor of a file in a process, whose number no other has; a line opens it before the first."""
        key, path = (self._process(place[0]), mapped.descriptor), mapped.path
        name = _descriptor(_FIRST + mapped.descriptor, path)
        if key not in self._opened:
            self._opened.add(key)
            self._put(place, f'openat(AT_FDCWD, "{hexadecimal(os.fsencode(path))}", O_RDWR) = {name}')
        return name

    def _put(self, place: Place, text: str) -> None:
        self._lines.setdefault(place, []).append(f"{place[0]} 0.000000000 {text} <0.000000000>\n")


def _descriptor(number: int, path: str) -> str:
    return f"{number}<{hexadecimal(os.fsencode(path))}>"
