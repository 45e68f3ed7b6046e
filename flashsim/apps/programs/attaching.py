"""The state of a process when its recording begins: its open files with their positions, its threads, and its mapped files.

A process that runs already stands still (SIGSTOP) while that is read and strace attaches, so that nothing moves in between.
"""

import ctypes
import os
import platform
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from flashsim.core.errors import InvalidParameterError, RefusedError
from traces.calls.handlers import MAPPED, RINGS
from traces.calls.processes import OpenFile, Process
from traces.calls.schema import APPEND, DIRECT, DSYNC, SYNC
from traces.calls.syntax import escape, kind_of

#: Seconds that a process is given to stand still, and that strace is given to attach.
_PATIENCE = 5.0
#: Seconds after which strace has told of a signal that its processes got when this one did, and bytes of its lines in which that stands.
_LATE, _TAIL = 0.2, 32 << 20
_LINE = re.compile(r"(\d+) +(\d+\.\d{9}) (.*)")
#: Flags of an open file, those of two bits first.
_FLAGS = ((os.O_SYNC, SYNC), (os.O_DSYNC, DSYNC), (os.O_DIRECT, DIRECT), (os.O_APPEND, APPEND))
_MAP = re.compile(r"([0-9a-f]+)-([0-9a-f]+) .(.).s [0-9a-f]+ \S+ \d+ +(/.*)")


@dataclass
class ProcessState:
    """A process when its recording begins, its threads, what the recording misses of what it did before, and its standard output's path."""

    process: Process
    threads: Sequence[int] = ()
    missed: dict[str, set[str]] = field(default_factory=dict)
    output: str = ""


def state_of_own(folder: str) -> ProcessState:
    """The state that a program has which this process runs in a folder: standard input and output."""
    return ProcessState(_process_of(os.getpid(), 0, folder, (0, 1, 2)), output=os.readlink("/proc/self/fd/1"))


@contextmanager
def standing(pid: int) -> Iterator[ProcessState]:
    """The state of a process that stands still.

    Raises
    ------
    InvalidParameterError, RefusedError
        There is no such process, or it is this one; it is another user's.
    """
    if pid == os.getpid():
        raise InvalidParameterError("pid", pid, "it is the process that records")
    try:
        folder = os.readlink(f"/proc/{pid}/cwd")
        was_still = _is_still(pid)
        os.kill(pid, signal.SIGSTOP)
    except (FileNotFoundError, ProcessLookupError):
        raise InvalidParameterError("pid", pid, "there is no such process") from None
    except PermissionError:
        raise RefusedError(f"record: process {pid} is another user's") from None
    try:
        is_still = _wait(lambda: _is_still(pid))
        state = ProcessState(_process_of(pid, pid, folder), [int(each) for each in os.listdir(f"/proc/{pid}/task")])
        _look_at_memory(pid, state)
        if not is_still:
            state.missed["where in its files the process was, as it did not stand still"] = {f"process {pid}"}
            for opened in state.process.descriptors.values():
                opened.position = None
        yield state
    except FileNotFoundError:
        raise InvalidParameterError("pid", pid, "the process ended before recording began") from None
    finally:
        if not was_still:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def wait_attached(pid: int, strace: subprocess.Popen[bytes], state: ProcessState) -> None:
    """Wait until strace watches all threads of a process, or has ended."""
    if not _wait(lambda: strace.poll() is not None or all(_watcher_of(task) == strace.pid for task in _tasks(pid))):
        state.missed["calls before strace watched all threads"] = {f"process {pid}"}


def hand_on(strace: int, lines: Path, number: int) -> None:
    """Send a signal to the processes of a program that strace runs, unless they got it too; as a terminal does, to none in other groups."""
    time.sleep(_LATE)
    with suppress(OSError):
        got = _receivers(lines, signal.Signals(number).name)
        first = Path(f"/proc/{strace}/task/{strace}/children").read_text().split()[:1]
        groups = {os.getpgrp(), *(os.getpgid(int(each)) for each in first)}
        for pid in [int(place.name) for place in Path("/proc").glob("[0-9]*") if _watcher_of(place) == strace]:
            with suppress(ProcessLookupError):
                if os.getpgid(pid) in groups and not any(int(task.name) in got for task in _tasks(pid)):
                    os.kill(pid, number)


def _receivers(lines: Path, name: str) -> set[int]:
    """Threads that got a signal a moment ago, but not from this process, by the lines of strace."""
    with lines.open("rb") as file:
        file.seek(max(0, lines.stat().st_size - _TAIL))
        tail = file.read().decode("ascii", "replace").splitlines()
    age, got = time.time() - lines.stat().st_mtime, set[int]()
    for match in map(_LINE.match, reversed(tail)):
        if match is None or age > 2 * _LATE:
            break
        if match[3].startswith(f"--- {name} ") and f"si_pid={os.getpid()}," not in match[3]:
            got.add(int(match[1]))
        age += float(match[2])
    return got


def _wait(condition: Callable[[], bool]) -> bool:
    """Wait a while for a condition; whether it came."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def _tasks(pid: int) -> Sequence[Path]:
    try:
        return [*Path("/proc", str(pid), "task").iterdir()]
    except FileNotFoundError:
        return []


def _is_still(pid: int) -> bool:
    return all(_status_of(task, "State")[:1] in ("T", "t", "Z", "X", "") for task in _tasks(pid))


def _watcher_of(task: Path) -> int:
    return int(_status_of(task, "TracerPid") or 0)


def _status_of(task: Path, name: str) -> str:
    try:
        match = re.search(rf"^{name}:\s+(\S+)", (task / "status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return match[1] if match else ""


def _process_of(pid: int, number: int, folder: str, only: Sequence[int] | None = None) -> Process:
    """A process with positions and flags of its descriptors; those that are copies of one another share an open file."""
    process = Process(number, escape(folder))
    alike: dict[str, list[int]] = {}
    place = Path("/proc", str(pid), "fdinfo")
    for descriptor in sorted(int(each) for each in os.listdir(place)) if only is None else only:
        try:
            text = (place / str(descriptor)).read_text()
        except OSError:
            continue
        position, flags = re.search(r"pos:\s+(\d+)", text), re.search(r"flags:\s+([0-7]+)", text)
        if position and flags:
            bits, ours = int(flags[1], 8), 0
            for theirs, flag in _FLAGS:
                if bits & theirs == theirs:
                    bits, ours = bits & ~theirs, ours | flag
            like = alike.setdefault(position[1], [])
            opened = next((process.descriptors[each] for each in like if _is_shared(pid, each, descriptor)), None)
            like.append(descriptor)
            process.assign(descriptor, opened or OpenFile(-2, int(position[1]), ours), only is None and bool(bits & os.O_CLOEXEC))
    return process


def _is_shared(pid: int, first: int, second: int) -> bool:
    """Whether two descriptors of a process are copies, which move together (kcmp with KCMP_FILE)."""
    call = {"x86_64": 312, "aarch64": 272}.get(platform.machine())
    return call is not None and ctypes.CDLL(None).syscall(call, pid, pid, 0, first, second) == 0


def _look_at_memory(pid: int, state: ProcessState) -> None:
    """Mapped files and rings that a process made before its recording."""
    for line in Path("/proc", str(pid), "maps").read_text(errors="surrogateescape").splitlines():
        match = _MAP.match(line)
        if match is None or kind_of(match[4]) != "file":
            continue
        path = escape(match[4]).removesuffix(" (deleted)")
        if match[3] == "w":
            state.missed.setdefault(MAPPED, set()).add(path)
        else:
            state.process.mapped.append((int(match[1], 16), int(match[2], 16), path))
    for descriptor in Path("/proc", str(pid), "fd").iterdir():
        if "[io_uring]" in os.readlink(descriptor):
            state.missed.setdefault(RINGS, set()).add(f"process {pid}")
