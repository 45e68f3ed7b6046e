"""Serves a drive until it is told to stop: where it is reached, what it holds at first, signals, and a command that runs meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any
from urllib.parse import quote

from flashsim.core.errors import FlashsimError, InvalidParameterError, MissingFileError, RefusedError
from flashsim.core.protocols import Progress
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, make_requests
from flashsim.core.units import GIB, SECONDS, format_size
from flashsim.device.device import Device
from flashsim.device.nbd.content import Content, FileContent, MemoryContent
from flashsim.device.nbd.drive import ServedDrive
from flashsim.device.nbd.protocol import Export
from flashsim.device.nbd.server import Server, precise_event_loop
from flashsim.device.presets import Preset
from flashsim.studies.replaying import preconditioning
from flashsim.studies.serving.journal import Journal

#: The longest path of a socket (sun_path of unix(7), less its end).
_LONGEST = 107
#: Clients that may knock before one is let in; the event loop takes no more than 1,024 files, and lets so many in at once.
BACKLOG = 256
#: So much of a flash drive is written in order before it is served: 4 KiB flash pages take some 10 bytes of memory each.
_FILLED = 64 * GIB
#: Seconds that a command is given to end after SIGTERM.
_PATIENCE = 5


@dataclass(frozen=True)
class Address:
    """A bound socket and what clients call it; leaving the context closes it, and removes its file.

    `path` is None of a port.
    """

    socket: socket.socket
    uri: str
    path: Path | None = None

    def __enter__(self) -> Address:
        return self

    def __exit__(self, *problem: object) -> None:
        self.socket.close()
        if self.path:
            self.path.unlink(missing_ok=True)


def at_path(path: Path, force: bool) -> Address:
    """A socket in the file system."""
    path = Path(os.path.abspath(path))
    if len(os.fsencode(path)) > _LONGEST:
        raise InvalidParameterError("--socket", str(path), f"a socket's path takes at most {_LONGEST} bytes")
    if not path.parent.is_dir():
        raise MissingFileError(f"--socket: no folder {path.parent}")
    if os.path.lexists(path):
        _check_dead(path)
        if not force:
            raise RefusedError(f"--socket: {path} was left behind by a server that is gone; add --force to replace it")
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _listen_at(bound, path)
    except OSError as problem:
        bound.close()
        raise FlashsimError(f"--socket: cannot make {path}: {problem.strerror}") from problem
    return Address(bound, f"nbd+unix:///?socket={quote(str(path))}", path)


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
        raise RefusedError(f"--socket: {path} exists and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError as problem:
            raise RefusedError(f"--socket: {path} exists and may be in use: {problem.strerror or problem}") from problem
    raise RefusedError(f"--socket: {path} is in use by a server")


def at_port(port: int, host: str) -> Address:
    """A TCP port of this machine; 0 takes any that is free."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as problem:
        raise InvalidParameterError("--listen", host, f"it must be an address of this machine ({problem.strerror})") from problem
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen(BACKLOG)
    except OSError as problem:
        bound.close()
        if problem.errno == errno.EADDRINUSE:
            raise RefusedError(f"--port: {port} is in use") from problem
        if problem.errno == errno.EADDRNOTAVAIL:
            raise InvalidParameterError("--listen", host, "it must be an address of this machine") from problem
        raise FlashsimError(f"--port: cannot listen on {host}:{port}: {problem.strerror}") from problem
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    return Address(bound, f"nbd://{shown}:{bound.getsockname()[1]}")


def content_of(path: Path | None, device: Device, read_only: bool) -> MemoryContent | FileContent:
    """Content in a file, or else in at most half of the machine's memory."""
    if path:
        return FileContent(path, device.capacity // SECTOR * SECTOR, read_only)
    return MemoryContent(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def check(preset: Preset, empty: bool, precondition: str | None) -> None:
    """Refuse states that there are not, and two at once."""
    if empty and precondition:
        raise RefusedError("--empty: --precondition says in which state the drive begins; take one of them")
    if precondition:
        preconditioning.wanted(precondition, preset)


def bring_into(
    device: Device, content: MemoryContent | FileContent, empty: bool, precondition: str | None, progress: Progress | None
) -> str:
    """Write a flash drive in no time, as `check` has allowed; say what it then holds, or nothing of a disk."""
    if precondition:
        return preconditioning.bring_into(device, precondition, progress=progress)
    if device.kind != "ssd":
        return ""
    if empty:
        extents = list(content.extents()) if isinstance(content, FileContent) else []
        _load(device, extents, progress)
        return "empty but for what its content holds" if extents else "empty"
    filled = min(_FILLED, device.capacity // SECTOR * SECTOR)
    _load(device, [(0, filled)], progress)
    return f"written in order{'' if filled + SECTOR > device.capacity else f', the first {format_size(filled)} of it'}"


def _load(device: Device, extents: list[tuple[int, int]], progress: Progress | None) -> None:
    total, done = sum(length for _, length in extents), 0
    for offset, length in extents:
        begin, end = offset // SECTOR * SECTOR, -(-(offset + length) // SECTOR) * SECTOR
        for at in range(begin, end, GIB):
            device.load(at, min(GIB, end - at))
            done += min(GIB, end - at)
            if progress:
                progress(min(done, total), total, "filling")


@dataclass(frozen=True)
class Ended:
    """How serving went: real seconds, clients, those turned away since there were too many, connections that broke off, requests refused.

    `status` is the exit code of the command; None if there was none, or it was not let end.  `read_only_because` says why the drive took no
    more writes, if it came to that.
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


def serve(
    device: Device,
    content: Content,
    address: Address,
    journal: Journal,
    *,
    scale: float,
    read_only: bool,
    command: str | None,
    ready: Callable[[], None],
) -> Ended:
    """Serve until SIGINT, SIGTERM, or the end of a shell command that finds the address in its variable ``uri``.

    Parameters
    ----------
    scale
        Real seconds a simulated second; 0 imposes no latency.
    ready
        Called once clients can connect.
    """
    drive = ServedDrive(device, export_of(device.preset, device.capacity, read_only), content, scale, monotonic_ns())
    with asyncio.Runner(loop_factory=precise_event_loop) as runner, _restored_signals():
        return runner.run(_serve(drive, address, journal, command, ready))


async def _serve(drive: ServedDrive, address: Address, journal: Journal, command: str | None, ready: Callable[[], None]) -> Ended:
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
    status = await _until_told(stop, command, address.uri)
    seconds = (monotonic_ns() - began) / SECONDS
    listener.close()
    server.close()
    await asyncio.sleep(0)  # connections are closed
    if problems:
        raise problems[0]
    for served in drive.finish():
        journal.add(served)
    return Ended(seconds, server.clients, server.turned_away, server.broken, drive.refused, status, drive.read_only_because)


async def _until_told(stop: asyncio.Event, command: str | None, uri: str) -> int | None:
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
