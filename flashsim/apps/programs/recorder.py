"""A program is recorded while it runs, unchanged: ``strace`` watches its system calls, the file system tells where its files lie."""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache, cached_property
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from flashsim.apps.programs import notices
from flashsim.apps.programs.attaching import ProcessState, hand_on, standing, state_of_own, wait_attached
from flashsim.apps.programs.unseen_writes import UnseenWrites
from flashsim.core.errors import FlashsimError, MissingFileError, RefusedError
from flashsim.core.units import MIB
from traces.calls.coverage import dirtied_bytes
from traces.calls.handlers import MAPPED
from traces.calls.page_cache import PAGE
from traces.calls.schema import READS, WRITES, Recording, lines_of, table_in_time
from traces.calls.strace import ALL_REQUESTS, EXPRESSION, OPTIONS, StraceReader
from traces.calls.syntax import STRING, escape, path_of, unescape

#: Bytes of a content that are kept; a longer write is cut, which the recording says.
LONGEST_CONTENT = 64 << 20
#: Calls of the small program that shows what recording a call costs, and MiB of the one that shows what contents cost.
_TRIAL, _TRIAL_MIB = 2000, 8
#: File systems without storage.
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "proc", "sysfs")
#: The clock of files lags behind the system's by this at most, ns: a tick, of which there are 100 a second or more.
_TICK = 10_000_000


def record(
    command: Sequence[str] = (),
    pid: int | None = None,
    contents: bool = False,
    folder: Path | None = None,
    extents: bool = False,
    before: Mapping[str, bytes] | None = None,
    calls_only: bool = False,
) -> Recording:
    """Run a program, or attach to one, until it ends; the calls that it made.

    Requests of io_uring and writes through mapped files are recorded too, but for `calls_only`, of a process that is attached to, and where
    the kernel gives no notices of calls.  The program's exit code stands in the recording's facts; one that a signal ended has 128 and the
    signal's number.  With `contents` the bytes that are written are recorded too, with `extents` where the files lie, as the file system
    says once the program has ended.  The program runs in `folder`, without one here; `before` holds all files below it when the program
    begins, which are numbered in this order.

    Raises
    ------
    RefusedError, MissingFileError
        There is no strace, or it may not watch programs here; there is no such program or process.
    """
    strace = _strace()
    if pid is None and shutil.which(command[0]) is None:
        if os.path.exists(command[0]):
            raise RefusedError(f"record: {command[0]!r} may not be executed")
        raise MissingFileError(f"record: no program {command[0]!r}")
    place = str(folder or os.getcwd())
    with tempfile.TemporaryDirectory(prefix="flashsim-record-") as own:
        lines, errors = Path(own, "calls"), Path(own, "errors")
        watch = [strace, *OPTIONS, *ALL_REQUESTS, "-q", "-s", str(LONGEST_CONTENT if contents else 0), "-o", str(lines), "-e", EXPRESSION]
        unseen = None if calls_only or pid or not notices.is_possible() else UnseenWrites(contents, LONGEST_CONTENT)
        # a filter of strace's own would not be asked at calls that give notices
        target = ["-p", str(pid)] if pid else [*([] if unseen else ["--seccomp-bpf"]), "--", *command]
        begin, since, before_bytes = time.monotonic(), time.time_ns(), _kernel_bytes()
        with errors.open("w") if pid else nullcontext() as file:
            code, state = _watch([*watch, *target], place, pid, file, lines, unseen)
        seconds, kernel_bytes = time.monotonic() - begin, _kernel_bytes()
        if not lines.exists() or (pid and code and not lines.stat().st_size):
            reason = f"process {pid}: {_reason(errors.read_text(), strace)}" if pid else command[0]
            raise RefusedError(f"record: strace could not watch {reason}")
        copied = Sources(lines, since).content
        reader = StraceReader(contents, state.process, state.threads, missed=state.missed, output=state.output, copied=copied)
        if before is not None:
            reader.names.sizes |= {reader.names.number(escape(path)): len(content) for path, content in before.items()}
            reader.names.whole = escape(f"{place}/")
        with lines.open(encoding="ascii", errors="backslashreplace") as text:
            # strace writes this behind a call that was under way when it left, of which it may not have told the arguments.
            complete = (line for line in text if "<detached ...>" not in line)
            table = table_in_time(reader.rows(unseen.between(complete) if unseen else complete))
        if unseen:
            _correct(reader.missed, unseen)
        lines_bytes = -(-lines.stat().st_size // PAGE) * PAGE if _is_on_storage(str(lines)) else 0
    cost = _cost(strace, reader.calls, _kept_bytes(table) if contents else 0)
    own_bytes = kernel_bytes - before_bytes - lines_bytes if pid is None and kernel_bytes is not None and before_bytes is not None else None
    facts: dict[str, Any] = {"seconds": seconds, "exit_code": code, "calls_seen": reader.calls, "cost_s": cost, "contents": contents}
    facts |= {"kernel_written_bytes": own_bytes, **_written_bytes(table, unseen.seen[MAPPED] if unseen else set())}
    files = table.filter(pc.equal(table["kind"], "file")) if extents else table.slice(0, 0)
    places = extents_of(path for path in pc.unique(files["path"].cast("string")).to_pylist() if path)
    return Recording(table, command, lines_of(reader.missed), facts, places)


def _written_bytes(table: pa.Table, mapped: set[str]) -> dict[str, int]:
    """Bytes that the kernel counts for writes, where it counts pages, and where it counts folios of several pages."""
    by_page, by_folio = dirtied_bytes(table, _is_on_storage, mapped)
    return {"written_bytes": by_page, "written_folio_bytes": by_folio}


def _kernel_bytes() -> int | None:
    """Bytes that this process and its children made dirty or wrote past the page cache, as the kernel counts; None where it does not."""
    try:
        counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(counters["write_bytes"])
    except (OSError, KeyError, ValueError):
        return None


@cache
def _memory_file_systems() -> tuple[str, ...]:
    """Where file systems are mounted that have no storage."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ()
    return tuple(f"{fields[1].rstrip('/')}/" for fields in mounts if fields[2] in _IN_MEMORY)


def _is_on_storage(path: str) -> bool:
    """Whether the kernel counts what is written to a file, named as strace does."""
    return not unescape(path).startswith(_memory_file_systems())


class Sources:
    """Files that the kernel copies from, looked at when a recording has ended: calls do not show the bytes, but files unchanged since do.

    `lines` are what strace wrote, and `since` is the begin of the recording, ns of the epoch.
    """

    def __init__(self, lines: Path, since: int) -> None:
        self.lines, self.since = lines, since

    def content(self, path: str, offset: int, length: int) -> bytes | None:
        """Bytes of a file, named as strace does; None where it has changed since the begin, or another may be there."""
        path = unescape(path)
        try:
            # with a folder that has a name of the renamed, the path may be that of another file
            if length > LONGEST_CONTENT or not os.path.isfile(path) or not self._renamed_files.isdisjoint(Path(path).parent.parts):
                return None
            with open(path, "rb") as file:
                file.seek(offset)
                content = file.read(length)
                changed = os.fstat(file.fileno()).st_ctime_ns
        except OSError:
            return None
        return content if len(content) == length and changed < self.since - _TICK else None

    @cached_property
    def _renamed_files(self) -> set[str]:
        with self.lines.open(encoding="ascii", errors="backslashreplace") as text:
            paths = [match[1] for line in text if " rename" in line for match in STRING.finditer(line)]
            return {os.path.basename(os.path.normpath(unescape(path_of(path)))) for path in paths}


def _strace() -> str:
    strace = shutil.which("strace")
    if strace is None:
        raise RefusedError("record: strace is not installed; on Debian and Ubuntu: sudo apt-get install strace")
    trial = subprocess.run([strace, "-qq", *OPTIONS, "-e", "trace=none", "-o", os.devnull, "true"], capture_output=True, text=True)
    if trial.returncode:
        raise RefusedError(f"record: strace may not watch programs here, or is older than 5.11: {_reason(trial.stderr, strace)}")
    return strace


def _reason(text: str, strace: str) -> str:
    return (text.strip().splitlines() or ["it gave no reason"])[0].removeprefix(f"{strace}: ")


def _correct(missed: dict[str, set[str]], unseen: UnseenWrites) -> None:
    """Name in `missed` only what neither strace nor `unseen` saw."""
    for what, seen in unseen.seen.items():
        if what in missed and not missed[what] - seen:
            del missed[what]
        elif what in missed:
            missed[what] -= seen
    for what, where in unseen.missed.items():
        missed.setdefault(what, set()).update(where)


def _watch(
    command: Sequence[str], folder: str, pid: int | None, errors: IO[str] | None, lines: Path, unseen: UnseenWrites | None
) -> tuple[int, ProcessState]:
    """Run strace with the terminal as it is; its exit code, and the state of the recorded process at the begin.

    An interruption, or a request to terminate, ends the recording of a process that was attached to.  A program gets it as well, of the
    terminal by itself, else from here; the recording ends with the program.
    """
    ends = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, signal.SIG_IGN) for each in ends]
    try:
        with standing(pid) if pid else nullcontext(state_of_own(folder)) as state:
            listener = notices.Listener() if unseen else None

            def prepare() -> None:
                for each in ends:
                    signal.signal(each, signal.SIG_DFL)
                if listener:
                    listener.install()

            process = subprocess.Popen(command, cwd=folder, stderr=errors, preexec_fn=prepare)
            for each in ends:
                signal.signal(each, lambda number, _: process.send_signal(number) if pid else hand_on(process.pid, lines, number))
            if pid:
                wait_attached(pid, process, state)
            if listener and unseen:
                if not listener.listen(unseen.take):
                    unseen.missed["io_uring and mapped files, as the kernel gives no notices"] = {"calls are recorded"}
                unseen.finish()
        code = process.wait()
    finally:
        for each, handler in zip(ends, before, strict=True):
            signal.signal(each, handler)
    if pid and -code in ends:
        code = 0
    return code if code >= 0 else 128 - code, state


def _cost(strace: str, calls: int, kept: int) -> float:
    """Seconds by which recording calls, and keeping bytes of their contents, made a program longer, by small ones with and without."""
    if shutil.which("dd") is None:
        raise FlashsimError("record: dd, which shows what recording a call costs, is not installed")
    copy = ["dd", "if=/dev/zero", f"of={os.devnull}"]
    small, large = [*copy, "bs=1", f"count={_TRIAL}"], [*copy, "bs=1M", f"count={_TRIAL_MIB}"]
    watch = [strace, *OPTIONS, "-qq", "--seccomp-bpf", "-e", "trace=read,write"]
    without = [*watch, "-s", "0", "-o", os.devnull, "--"]
    cost = max(0.0, _seconds([*without, *small]) - _seconds(small)) / (2 * _TRIAL) * calls
    if kept:
        with tempfile.NamedTemporaryFile(prefix="flashsim-record-") as lines:
            took = _seconds([*watch, "-s", str(LONGEST_CONTENT), "-o", lines.name, "--", *large]) - _seconds([*without, *large])
        cost += max(0.0, took) / (2 * _TRIAL_MIB * MIB) * kept
    return cost


def _seconds(command: Sequence[str]) -> float:
    begin = time.monotonic()
    subprocess.run(command, capture_output=True, check=False)
    return time.monotonic() - begin


def _kept_bytes(table: pa.Table) -> int:
    """Bytes that strace tells of reads and writes, if contents are recorded."""
    is_data = pc.is_in(table["call"].cast("string"), pa.array(READS + WRITES))
    moved = table.filter(pc.and_(is_data, pc.is_null(table["other"])))["result"]
    return int(pc.sum(pc.min_element_wise(pc.max_element_wise(moved, 0), LONGEST_CONTENT)).as_py() or 0)


#: The request, its flag that writes what is dirty first, and the layouts of its head and of an extent.
_FIEMAP, _SYNC = 0xC020660B, 1
_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQIIII")
#: Extents that are asked for at once, and flags of those that have no place: unknown, delayed, and inside of metadata.
_AT_ONCE, _PLACELESS, _LAST = 256, 0x2 | 0x4 | 0x200, 0x1

Extents = list[tuple[int, int, int]]


def extents_of(paths: Iterable[str]) -> dict[str, Extents]:
    """Extents of the files that still are, by path: byte of the file, byte of the device, and length.

    Files of other devices than the one on which most lie are left out, and so are those whose file system does not tell.
    """
    by_path, devices = dict[str, Extents](), dict[str, int]()
    for path in dict.fromkeys(paths):
        if Path(path).is_file() and (pieces := _extents(path)):
            by_path[path], devices[path] = pieces, os.stat(path).st_dev
    most = Counter(devices.values()).most_common(1)
    return {path: pieces for path, pieces in by_path.items() if devices[path] == most[0][0]}


def _extents(path: str) -> Extents:
    pieces, start, is_last = Extents(), 0, False
    try:
        with open(path, "rb") as file:
            while not is_last:
                data = bytearray(_HEAD.pack(start, (1 << 64) - 1 - start, _SYNC, 0, _AT_ONCE, 0) + bytes(_AT_ONCE * _EXTENT.size))
                fcntl.ioctl(file.fileno(), _FIEMAP, data)
                count = _HEAD.unpack_from(data)[3]
                for number in range(count):
                    logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(data, _HEAD.size + number * _EXTENT.size)
                    if not flags & _PLACELESS:
                        pieces.append((logical, physical, length))
                    start, is_last = logical + length, bool(flags & _LAST)
                is_last = is_last or not count
    except OSError:
        return []
    return pieces
