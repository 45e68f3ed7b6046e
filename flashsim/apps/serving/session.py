"""Serves a drive until a signal, or a command that runs meanwhile, ends it: its address, its content at first, and a journal of requests.

The journal counts requests in the drive's own time and in real time, and records them as a trace.
"""

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from flashsim.apps.serving.content import Content, FileContent
from flashsim.apps.serving.drive import ServedDrive, ServedRequest
from flashsim.apps.serving.protocol import Export
from flashsim.apps.serving.server import Server, precise_event_loop
from flashsim.core.errors import FORCE, FlashsimError, InvalidParameterError, MissingFileError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import COMPLETION, FLUSH, OPERATIONS, READ, SECTOR, TRIM, WRITE, make_requests
from flashsim.core.units import GIB, SECONDS, format_size
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.presentation.tables import SPREAD_HEADS, Table, durations, same, spread
from flashsim.experiments.replaying import preconditioning
from flashsim.experiments.replaying.device_report import DeviceReport
from traces.file.recording import ParquetWriter
from traces.file.schema import make_batch
from traces.summary.histogram import Histogram

#: A reply is late if it leaves more than this share of the request's time after it was due.
LATE = 0.1

#: Few enough requests at a time that no client waits for their accounts.
_AT_ONCE = 256
#: The longest path of a socket (sun_path of unix(7), less its end).
_LONGEST = 107
#: Clients that may knock before one is let in; the event loop takes no more than 1,024 files, and lets so many in at once.
BACKLOG = 256
#: Bytes of a flash drive that are written in order before it is served: 4 KiB flash pages take some 10 bytes of memory each.
_FILLED = 64 * GIB
#: Seconds that a command is given to end after SIGTERM.
_PATIENCE = 5


class Address(NamedTuple):
    """A bound socket and how clients call it; `path` is None of a port."""

    socket: socket.socket
    uri: str
    path: Path | None = None


@contextlib.contextmanager
def at_path(path: Path, force: bool) -> Iterator[Address]:
    """A socket in the file system, removed in the end."""
    path = Path(os.path.abspath(path))
    if len(os.fsencode(path)) > _LONGEST:
        raise InvalidParameterError("socket", str(path), f"a socket's path takes at most {_LONGEST} bytes")
    if not path.parent.is_dir():
        raise MissingFileError(f"socket: no folder {path.parent}")
    if os.path.lexists(path):
        _check_dead(path)
        if not force:
            raise RefusedError(f"socket: {path} was left behind by a server that has ended; add " + FORCE + " to replace it")
        path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        try:
            _listen_at(bound, path)
        except OSError as problem:
            raise FlashsimError(f"socket: cannot make {path}: {problem.strerror}") from problem
        try:
            yield Address(bound, f"nbd+unix:///?socket={quote(str(path))}", path)
        finally:
            path.unlink(missing_ok=True)


def _listen_at(bound: socket.socket, path: Path) -> None:
    """Listen under another name before the path is there, so that whoever finds it is let in."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        short = f".{os.getpid()}"
        bound.bind(f"/proc/self/fd/{folder}/{short}" if len(os.fsencode(path.with_name(short))) > _LONGEST else str(path.with_name(short)))
        try:
            bound.listen(BACKLOG)
            os.link(short, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.unlink(short, dir_fd=folder)
    finally:
        os.close(folder)


def _check_dead(path: Path) -> None:
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise RefusedError(f"socket: {path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError as problem:
            raise RefusedError(f"socket: {path} exists and may be in use: {problem.strerror or problem}") from problem
    raise RefusedError(f"socket: {path} is in use by a server")


@contextlib.contextmanager
def at_port(port: int, host: str) -> Iterator[Address]:
    """A TCP port of this machine; 0 takes any that is free."""
    unknown = "it must be an address of this machine"
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as problem:
        raise InvalidParameterError("listen", host, f"{unknown} ({problem.strerror})") from problem
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
            bound.listen(BACKLOG)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                raise RefusedError(f"port: {port} is in use") from problem
            if problem.errno == errno.EADDRNOTAVAIL:
                raise InvalidParameterError("listen", host, unknown) from problem
            raise FlashsimError(f"port: cannot listen on {host}:{port}: {problem.strerror}") from problem
        name = f"[{host}]" if family == socket.AF_INET6 else host
        yield Address(bound, f"nbd://{name}:{bound.getsockname()[1]}")


def bring_into(device: Device, content: Content, empty: bool, precondition: str | None, progress: Progress | None) -> str:
    """Write a flash drive in no time; return its state in words, empty for a disk."""
    if precondition:
        return preconditioning.bring_into(device, precondition, progress=progress)
    if device.kind != "ssd":
        return ""
    if empty:
        extents = list(content.extents()) if isinstance(content, FileContent) else []
        _load(device, extents, progress)
        return "empty but for what its content holds" if extents else "empty"
    size = min(_FILLED, device.capacity // SECTOR * SECTOR)
    _load(device, [(0, size)], progress)
    return f"written in order{'' if size + SECTOR > device.capacity else f', the first {format_size(size)} of it'}"


def _load(device: Device, extents: list[tuple[int, int]], progress: Progress | None) -> None:
    total, filled = sum(length for _, length in extents), 0
    for offset, length in extents:
        begin, end = offset // SECTOR * SECTOR, -(-(offset + length) // SECTOR) * SECTOR
        for at in range(begin, end, GIB):
            device.load(at, min(GIB, end - at))
            filled += min(GIB, end - at)
            if progress:
                progress(min(filled, total), total, "filling")


class SessionJournal:
    """Collects requests in constant memory; percentiles are within 0.2 %.

    A `trace` gets arrival, start and completion in the drive's time, and as `tag` the real nanoseconds from a request's coming to its reply
    (-1: never answered).
    """

    def __init__(self, preset: Preset, trace: ParquetWriter | None = None) -> None:
        #: Requests so far, without a gap in their numbers; replies that left late (`LATE`); and requests whose client had gone, or that
        #: were outstanding in the end.
        self.requests = self.late = self.unanswered = 0
        self._report = DeviceReport(preset)
        self._took = [Histogram() for _ in OPERATIONS]  # from coming to reply, real
        self._behind = [Histogram() for _ in OPERATIONS]  # from when the reply was due, real
        self._ahead: dict[int, ServedRequest] = {}  # those that await one before them
        self._rows: list[ServedRequest] = []
        self._trace = trace
        self._writer = ThreadPoolExecutor(1)  # compressing a part of a trace takes longer than a client may wait
        self._problem: FlashsimError | None = None

    def add(self, request: ServedRequest) -> None:
        """Take a request that has been answered; once all have come, their numbers are those of arrival, without gaps."""
        self._ahead[request.number] = request
        while self.requests in self._ahead:
            self._rows.append(self._ahead.pop(self.requests))
            self.requests += 1
        if len(self._rows) >= _AT_ONCE:
            self._account()

    def close(self) -> None:
        """Account for the last requests and wait for the trace."""
        self._account()
        self._writer.shutdown()
        if self._problem:
            raise self._problem

    def _account(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        columns: dict[str, Any] = {
            name: np.array([getattr(row, name) for row in rows]) for name in ("operation", "flags", "offset", "length", "number")
        }
        completions = np.array([(row.number, 0, row.submitted, row.started, row.completed) for row in rows], COMPLETION)
        replies, due = (
            np.array([-1 if time is None else time for time in times]) for times in zip(*((r.replied, r.due) for r in rows), strict=True)
        )
        took = np.where(replies < 0, -1, replies - np.array([row.received for row in rows]))
        columns |= {"stream": np.array([row.stream % (1 << 15) for row in rows]), "tag": took}
        columns |= {"arrival": completions["submitted"], "started": completions["started"], "completed": completions["completed"]}
        batch = make_batch(columns, rows[0].number, pa.array([f"client {row.stream}" for row in rows]).dictionary_encode())
        self._report.add(batch, completions)
        is_answered, behind, operation = replies >= 0, np.maximum(replies - due, 0), columns["operation"]
        has_due_time = is_answered & (due >= 0)
        self.unanswered += int((~is_answered).sum())
        self.late += int((has_due_time & (behind > LATE * (took - behind))).sum())
        for kind in np.unique(operation).tolist():
            self._took[kind].add(took[is_answered & (operation == kind)])
            self._behind[kind].add(behind[has_due_time & (operation == kind)])
        if self._trace:
            self._writer.submit(self._record, batch)

    def _record(self, batch: pa.RecordBatch) -> None:
        if self._trace and not self._problem:
            try:
                self._trace.write(batch)
            except FlashsimError as problem:
                self._problem = problem

    def as_dict(self, statistics: dict[str, Any]) -> dict[str, Any]:
        """All figures, JSON-ready, times in ns: ``drive`` in simulated time (see `DeviceReport`); ``real`` by operation."""
        real = {
            name: {"latency": spread(took), "after_due": spread(behind) if behind.count else None}
            for name, took, behind in zip(OPERATIONS, self._took, self._behind, strict=True)
            if took.count
        }
        return {"late": self.late, "unanswered": self.unanswered, "real": real, "drive": self._report.as_dict(statistics)}

    def tables(self, statistics: dict[str, Any]) -> list[Table]:
        if not self.requests:
            return []
        rows = [
            {"operation": name, "real time": part} | durations(spread(times))
            for name, took, behind in zip(OPERATIONS, self._took, self._behind, strict=True)
            for part, times in (("latency", took), ("after due", behind))
            if times.count
        ]
        return [Table.of(rows, same("operation", "real time", *SPREAD_HEADS)), *self._report.tables(statistics).values()]


@dataclass(frozen=True)
class ServingReport:
    """Real seconds of serving, clients, those turned away since there were too many, connections that broke off, and requests refused.

    `status` is the exit code of the command, None if there was none or it was not let end; `read_only_because` why the drive took no more
    writes, if it came to that.
    """

    seconds: float
    clients: int
    turned_away: int
    broken: int
    refused: int
    status: int | None
    read_only_because: str


def export_of(preset: Preset, capacity: int, read_only: bool) -> Export:
    disk, block = preset.kind == "hdd", preset.sector_size
    return Export(preset.name, preset.title, capacity // block * block, read_only, rotational=disk, trim=not disk, block=block)


def warm_up(preset: Preset) -> None:
    """Compile or load what serves requests, on a drive of its own, so that the first client does not wait for it."""
    device = Device(preset)
    size = export_of(preset, device.capacity, read_only=False).block
    device.serve(make_requests([WRITE, READ, TRIM, FLUSH], 0, [size, size, size, 0], serial=True))
    device.submit(make_requests(READ, 0, size), device.now)
    device.advance(device.next_event, every=True)


def serve(drive: ServedDrive, address: Address, journal: SessionJournal, command: str | None, ready: Callable[[], None]) -> ServingReport:
    """Serve until SIGINT, SIGTERM, or the end of a shell command that finds the address in its variable ``uri``.

    `ready` is called once clients can connect.
    """
    with asyncio.Runner(loop_factory=precise_event_loop) as runner, _restored_signals():
        return runner.run(_serve(drive, address, journal, command, ready))


async def _serve(
    drive: ServedDrive, address: Address, journal: SessionJournal, command: str | None, ready: Callable[[], None]
) -> ServingReport:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    problems: list[BaseException] = []

    def fail(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if problem and not isinstance(problem, OSError):  # a connection's errors are its own
            problems.append(problem)
            stop.set()

    loop.set_exception_handler(fail)
    server = Server(drive, journal.add)
    make = loop.create_unix_server if address.path else loop.create_server
    listener = await make(server.connect, sock=address.socket, backlog=BACKLOG)
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(RuntimeError, ValueError):  # not the main thread
            loop.add_signal_handler(number, stop.set)
    gc.collect()
    gc.freeze()  # what was loaded stays, and need not be looked through again while clients wait
    began = monotonic_ns()
    ready()
    status = await _until_stop(stop, command, address.uri)
    seconds = (monotonic_ns() - began) / SECONDS
    listener.close()
    server.close()
    await asyncio.sleep(0)  # connections are closed
    if problems:
        raise problems[0]
    for request in drive.finish():
        journal.add(request)
    return ServingReport(seconds, server.clients, server.turned_away, server.broken, drive.refused, status, drive.read_only_because)


async def _until_stop(stop: asyncio.Event, command: str | None, uri: str) -> int | None:
    stopping = asyncio.ensure_future(stop.wait())
    if not command:
        await stopping
        return None
    process = await asyncio.create_subprocess_shell(command, env={**os.environ, "uri": uri})
    ending = asyncio.ensure_future(process.wait())
    await asyncio.wait((stopping, ending), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if ending.done():
        status = ending.result()
        return status if status >= 0 else 128 - status  # as shells do
    process.terminate()
    await asyncio.wait((ending,), timeout=_PATIENCE)
    if not ending.done():
        process.kill()
        await ending
    return None


@contextlib.contextmanager
def _restored_signals() -> Iterator[None]:
    """Handlers as they were: an event loop that has handled a signal leaves the system's default behind."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            with contextlib.suppress(ValueError, TypeError):
                signal.signal(number, handler)
