"""A drive with content: takes the requests of NBD clients, and tells which are done once they are due; its clock is handed in.

Every request takes effect on the content whole, when it is taken and in that order, whoever sent it: a read that is taken after a write
sees it, acknowledged or not.  That is more than the protocol asks.  In the simulated drive WRITE_ZEROES is a trim where the drive has one
and the client allows a hole, or else a write; a trim that is forced to the media is followed by a flush.
"""

from dataclasses import dataclass

import numpy as np

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, REQUEST, TRIM, WRITE, Completions
from flashsim.core.units import NEVER
from flashsim.device.device import Device
from flashsim.device.nbd.content import Content
from flashsim.device.nbd.messages import EIO, EPERM, OK, CommandFlag, Export, NbdCommand, Request, error_number, refusal
from flashsim.device.nbd.pacing import Pacer

_OPERATIONS = {NbdCommand.READ: READ, NbdCommand.WRITE: WRITE, NbdCommand.FLUSH: FLUSH, NbdCommand.TRIM: TRIM}


@dataclass(slots=True, eq=False)
class Served:
    """One request of a client and its life, times in ns: simulated ones by the drive's clock, and real ones.

    `number` counts the requests that the drive took; -1: refused.  `due` (real) is None where no latency is imposed, and `replied` (real)
    until the server has answered.
    """

    number: int
    stream: int
    cookie: int
    operation: int
    flags: int
    offset: int
    length: int
    received: int  # real
    error: int = OK
    data: bytes = b""
    parts: int = 1  # requests of the simulated drive that are not done
    submitted: int = -1
    started: int = -1
    completed: int = -1
    due: int | None = None
    replied: int | None = None


class ServedDrive:
    """One drive, its content, and requests on their way through it.

    Parameters
    ----------
    device
        Idle; nobody else drives it meanwhile.
    export
        How it is offered.
    content
        What it holds.
    scale
        Real seconds a simulated second; 0 imposes no latency.
    start
        The real clock, ns; it never goes back.

    Attributes
    ----------
    refused
        Requests that were answered with an error and never reached the simulated drive.
    """

    def __init__(self, device: Device, export: Export, content: Content, scale: float, start: int) -> None:
        self.export, self.content = export, content
        self.refused = 0
        self._pacer = Pacer(device, scale, start)
        self._device = device
        self._taken = 0
        self._arrived: list[Served] = []  # since the last step
        self._inside: dict[int, Served] = {}  # by the id of each request of the simulated drive that is not done
        self._next = NEVER

    @property
    def read_only_because(self) -> str:
        """Why the drive takes no more writes, if that is so."""
        return self._pacer.refusal

    @property
    def outstanding(self) -> int:
        return len(self._arrived) + len(self._inside)

    def take(self, request: Request, stream: int, received: int) -> Served:
        """Let a request have its effect and enter the drive, or be refused; `stream` says whose it is, `received` (real, ns) since when."""
        error, data = refusal(request, self.export), b""
        if not error and self.read_only_because and request.command in (NbdCommand.WRITE, NbdCommand.WRITE_ZEROES):
            error = EPERM
        if not error:
            try:
                data = self._affect(request)
            except OSError as problem:
                error = error_number(problem)
        operation = _OPERATIONS.get(request.command, WRITE)  # type: ignore[call-overload]
        if request.command == NbdCommand.WRITE_ZEROES and self.export.trim and not request.flags & CommandFlag.NO_HOLE:
            operation = TRIM
        flags = FORCE_UNIT_ACCESS if request.flags & CommandFlag.FUA else 0
        if error:
            self.refused += 1
            return Served(-1, stream, request.cookie, operation, flags, request.offset, request.length, received, error)
        served = Served(self._taken, stream, request.cookie, operation, flags, request.offset, request.length, received, data=data)
        self._taken += 1
        self._arrived.append(served)
        return served

    def _affect(self, request: Request) -> bytes:
        if request.command == NbdCommand.READ:
            return self.content.read(request.offset, request.length)
        if request.command == NbdCommand.WRITE:
            self.content.write(request.offset, request.data)
        elif request.command in (NbdCommand.TRIM, NbdCommand.WRITE_ZEROES):
            self.content.clear(request.offset, request.length)
        if request.command == NbdCommand.FLUSH or request.flags & CommandFlag.FUA:
            self.content.flush()
        return b""

    def step(self, now: int) -> list[Served]:
        """Submit what has come, and return what is done by now (real, ns), in the order in which the drive completed it."""
        if self._arrived:
            self._submit()
        elif now < self._next:
            return []
        done = self._done(self._pacer.collect(now)) if self._inside else []
        self._next = self._pacer.next()
        return done

    def next(self) -> int:
        """When to step again at the latest (real, ns), as things stand: now, if something has come; NEVER, if nothing is going on."""
        return 0 if self._arrived else self._next

    def finish(self) -> list[Served]:
        """What was not done, after the simulated drive has done it in no real time."""
        if self._arrived:
            self._submit()
        return self._done(self._pacer.finish()) if self._inside else []

    def _submit(self) -> None:
        rows: list[tuple[int, ...]] = []
        owners: list[Served] = []
        for served in self._arrived:
            stream = served.stream % (1 << 15)
            rows.append((0, served.operation, 0, stream, served.flags, served.offset, served.length, served.number, -1, 0))
            owners.append(served)
            if served.operation == TRIM and served.flags:
                rows.append((0, FLUSH, 0, stream, 0, 0, 0, served.number, len(rows) - 1, 0))
                owners.append(served)
                served.parts = 2
        self._arrived.clear()
        ids = self._pacer.submit(np.array(rows, REQUEST), [owner.received for owner in owners])
        self._inside.update(zip(ids.tolist(), owners, strict=True))

    def _done(self, completions: Completions) -> list[Served]:
        done = []
        for number, _, submitted, started, completed in completions.tolist():
            served = self._inside.pop(number)
            if served.submitted < 0:
                served.submitted, served.started = submitted, started
            served.completed, served.due = completed, self._pacer.due(completed)
            served.parts -= 1
            if not served.parts:
                if served.operation == WRITE and self.read_only_because:
                    served.error = EIO  # perhaps it was still written
                done.append(served)
        return done
