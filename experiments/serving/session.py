"""Serves a drive until it is told to stop: sockets, signals, and a command that runs meanwhile."""

import asyncio
import contextlib
import gc
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

from experiments.serving.address import BACKLOG, Address
from experiments.serving.journal import Journal
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.core.units import SECONDS
from flashsim.device.device import Device
from flashsim.device.nbd.content import Content
from flashsim.device.nbd.drive import ServedDrive
from flashsim.device.nbd.messages import Export
from flashsim.device.nbd.server import Server, precise_event_loop
from flashsim.device.presets import Preset

#: Seconds that a command is given to end after SIGTERM.
_PATIENCE = 5


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
