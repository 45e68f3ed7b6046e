"""Text of ``perf trace`` (Linux, ``tools/perf``): the requests that the calls cause of a device, on a host as in `traces.format.calls`.

Each line is told in the words of ``strace``, whose reader follows descriptors.  It has milliseconds since the begin, how long the call
took, the command, the thread, and arguments by name, without those that are 0.  Names of files are pointers in it, so that a file is known
from its first read, write or sync on, and renames and removals are not.  perf asks a moment later which file a descriptor stands for: one
that is soon closed can be told as the next file of its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flashsim.core.errors import DamagedFileError
from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.core.units import MICROSECONDS, SECONDS
from traces.calls.page_cache import HostSettings
from traces.calls.schema import Recording, is_possible, lines_of, table_in_time
from traces.calls.strace import StraceReader
from traces.calls.syntax import hexadecimal
from traces.format._text import looks_like
from traces.format.base import Example
from traces.format.calls import RecordingInText

#: Time, duration, command, thread and what follows; a question mark stands for what was begun before.
LINE = re.compile(r" *(?:(\d+\.\d{3})|\?) \( *(?:(\d+\.\d{3}) ms)? *\): .+?/(\d+) +(.*?) *")
_ENDED = re.compile(r"(?:\.\.\. \[continued\]: )?(\w+)\((.*?)\)+ += ?(.*)")
_BEGUN = re.compile(r"(\w+)\((.*)\) +\.\.\.")
_ARGUMENT = re.compile(r"(\w+): ([^,]*(?:<[^>]*>)?[^,]*)")
_RESULT = re.compile(r"^(\d+)<(.*)>")
_DESCRIPTOR = re.compile(r"(-?\d+|CWD)(?:<(.*)>)?")
#: Parameters of calls in their order, by the names that the kernel gives them.
_PARAMETERS = {
    call: parameters.split()
    for calls, parameters in (
        ("read write", "fd buf count"),
        ("readv writev", "fd vec vlen"),
        ("pread64 pwrite64", "fd buf count pos"),
        ("preadv pwritev", "fd vec vlen pos_l"),
        ("preadv2 pwritev2", "fd vec vlen pos_l flags"),
        ("open", "filename flags"),
        ("openat", "dfd filename flags"),
        ("creat", "pathname"),
        ("dup", "fildes"),
        ("dup2 dup3", "oldfd newfd"),
        ("fcntl", "fd cmd arg"),
        ("close fsync fdatasync syncfs fchdir", "fd"),
        ("lseek", "fd offset whence"),
        ("sync_file_range", "fd offset nbytes"),
        ("ftruncate", "fd length"),
        ("fallocate", "fd mode offset len"),
        ("mmap", "addr len prot flags fd off"),
        ("sendfile", "out_fd in_fd offset count"),
        ("copy_file_range splice", "fd_in off_in fd_out off_out len"),
        ("rename link symlink renameat renameat2 linkat symlinkat unlink unlinkat rmdir mkdir mkdirat truncate", "name"),
        ("sync fork vfork wait4 io_uring_setup", ""),
        ("clone clone3", "clone_flags"),
    )
    for call in calls.split()
}
#: What stands before the words of an argument in strace's.
_PREFIXES = {"flags": "O_", "prot": "PROT_", "whence": "SEEK_", "cmd": "F_", "mode": "FALLOC_FL_", "clone_flags": "CLONE_"}


def recording_of(lines: Iterable[str], source: Path) -> Recording:
    """The recording that lines of perf trace tell; a `DamagedFileError` names their source, and a line that is none of perf trace's."""
    reader = StraceReader(is_exact=False)
    return Recording(table_in_time(_rows(reader, source, lines)), missed=lines_of(reader.missed))


def _rows(reader: StraceReader, source: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    begun: dict[str, tuple[int, str]] = {}
    paths: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = LINE.fullmatch(line.rstrip("\n"))
        if match:
            try:
                rows = list(_rows_of(reader, match, f"/unnamed/{number}", begun, paths))
                if all(map(is_possible, rows)):
                    yield from rows
                    continue
            except (ValueError, IndexError, OverflowError):
                pass
        if line.startswith("LOST"):
            reader.missed.setdefault("calls that perf lost", set()).add(line.strip())
        elif match or (line.strip() and not line.startswith("#")):
            raise DamagedFileError(f"trace: {source}, line {number}: it is not a line of perf trace: {line[:60]!r}")


def _rows_of(
    reader: StraceReader, line: re.Match[str], unnamed: str, begun: dict[str, tuple[int, str]], paths: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Rows of a line; calls that have `begun` by thread, and `paths` of descriptors, are kept from line to line."""
    begin, took, thread, text = line.groups()
    time = _nanoseconds(begin or "0")
    if first := _BEGUN.fullmatch(text):
        begun[thread] = time, first[2]
    elif ended := _ENDED.fullmatch(text):
        call, given, result = ended.groups()
        if "[continued]" in text:
            time, given = begun.pop(thread, (time, ""))
        if call in _PARAMETERS and begin:
            paths.update(_RESULT.findall(result))
            if call in ("open", "openat", "creat"):
                paths[result] = unnamed  # until a line tells it
            returned = _RESULT.sub(lambda each: f"{each[1]}<{hexadecimal(each[2])}>", result)
            said = f"{call}({_arguments(call, given, paths)}) = {returned or '?'}"
            yield from reader.line(int(thread), time - reader.now, f"{said} <{_nanoseconds(took) / SECONDS:.9f}>" if took else said)


def _nanoseconds(milliseconds: str) -> int:
    return int(milliseconds.replace(".", "")) * MICROSECONDS


def _arguments(call: str, text: str, paths: dict[str, str]) -> str:
    """Arguments as strace has them; the path of a descriptor that a line does not tell is that of the line before."""
    given = dict(_ARGUMENT.findall(text))
    words = []
    for name in _PARAMETERS[call]:
        value = given.get(name, "0").strip()
        if name.endswith("fd") or name in ("fildes", "fd_in", "fd_out"):
            match = _DESCRIPTOR.fullmatch(value)
            descriptor, path = match.groups() if match else ("-1", None)
            if path:
                paths[descriptor] = path
            value = "AT_FDCWD" if descriptor == "CWD" else f"{descriptor}<{hexadecimal(paths.get(descriptor, ''))}>"
        elif name in _PREFIXES and value[:1].isalpha():
            prefix = "MAP_" if (call, name) == ("mmap", "flags") else "RWF_" if "v2" in call else _PREFIXES[name]
            value = "|".join(f"{prefix}{word}" for word in value.split("|"))
        elif call == "clone3":
            value = "CLONE_THREAD|CLONE_FILES"  # a pointer, and threads are what it is mostly called for
        words.append(value)
    return ", ".join(words)


class _PerfTrace(RecordingInText):
    NAME = "perf-trace"
    TITLE = "text of perf trace, through a page cache and a file system"
    BASIS = "calls as perf trace prints them in its first lines; times in ms"
    LEAVES_OUT = "calls that reach no device, names of files that are made, renamed or removed, contents, mapped memory"
    recording_of = staticmethod(recording_of)

    def recognise(self, path: Path) -> bool:
        return looks_like(path, LINE.pattern.encode())


_host = _PerfTrace(HostSettings())
TITLE, LEAVES_OUT, BASIS = _host.TITLE, _host.LEAVES_OUT, _host.BASIS
recognise, with_options, read = _host.recognise, _host.with_options, _host.read
EXAMPLE = Example(
    b"""     1.000 ( 0.010 ms): shop/7 openat(dfd: CWD, filename: 0xe71f1d00, flags: RDWR|CLOEXEC)                     = 3
     1.020 ( 0.010 ms): shop/7 pread64(fd: 3</a>, buf: 0x7ffd, count: 100)                             = 100
     1.060 (         ): shop/7 pwrite64(fd: 4</b>, buf: 0x7ffd, count: 4096)                           ...
     1.060 ( 0.020 ms): shop/7  ... [continued]: pwrite64())                                           = 4096
     1.100 ( 0.010 ms): shop/7 fsync(fd: 4)                                                            = 0
""",
    [
        (READ, 128 << 20, 4096, 1_020_000),
        (WRITE, (128 << 20) + 4096, 4096, 1_100_000),
        (WRITE, 0, 4 * 4096, 1_100_000),
        (FLUSH, 0, 0, 1_100_000),
        (WRITE, 4 * 4096, 4096, 1_100_000),
        (WRITE, 64 << 20, 3 * 4096, 1_100_000),
    ],
)
