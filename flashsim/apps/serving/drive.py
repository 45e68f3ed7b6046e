"""A drive with content under a real clock: takes the requests of NBD clients, and tells which are done once they are due.

Every request takes effect on the content whole, when it is taken and in that order, whoever sent it: a read that is taken after a write
sees it, acknowledged or not.  That is more than the protocol asks.  In the simulated drive WRITE_ZEROES is a trim where the drive has one
and the client allows a hole, or else a write; a trim that is forced to the media is followed by a flush.

With a time scale F, simulated time passes F times slower than real time, which is handed in: a request that arrives R real nanoseconds
after the start is submitted at R / F, and one that completes at S is due F * S after the start.  Between two calls the drive stands still,
so it never runs ahead of what may still arrive.  With F = 0 nothing is imposed: requests that come together are submitted together, at once
when all before them are done.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flashsim.apps.serving.content import Content
from flashsim.apps.serving.protocol import EIO, EPERM, OK, ClientRequest, CommandFlag, Export, NbdCommand, error_number, refusal
from flashsim.core.errors import InvalidParameterError, ReadOnlyDeviceError
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, REQUEST, TRIM, WRITE, Completions, Integers
from flashsim.core.units import NEVER
from flashsim.device.device import Device

_OPERATIONS = {NbdCommand.READ: READ, NbdCommand.WRITE: WRITE, NbdCommand.FLUSH: FLUSH, NbdCommand.TRIM: TRIM}


def check_scale(scale: float) -> None:
    """Refuse a time scale that is negative, infinite, or no number."""
    if not 0 <= scale < math.inf:
        raise InvalidParameterError("time scale", f"{scale:g}", "it must be a number and at least 0 (0: no latency is imposed)")


@dataclass(slots=True, eq=False)
class ServedRequest:
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

    The `device` is idle, and nobody else drives it meanwhile.  `scale` is real seconds a simulated second, 0 imposes no latency; `start` is
    the real clock, ns, which never goes back.
    """

    def __init__(self, device: Device, export: Export, content: Content, scale: float, start: int) -> None:
        check_scale(scale)
        self.export, self.content = export, content
        #: Requests that were answered with an error and never reached the simulated drive.
        self.refused = 0
        #: Why the drive takes no more writes, if that is so.
        self.read_only_because = ""
        self._device, self._start, self._origin = device, start, device.now
        self._scale = Fraction(scale)  # exact, so that what is due at a real time has completed by then
        self._count = 0
        self._arrived: list[ServedRequest] = []  # since the last step
        self._inside: dict[int, ServedRequest] = {}  # by the id of each request of the simulated drive that is not done
        self._next = NEVER

    @property
    def outstanding(self) -> int:
        return len(self._arrived) + len(self._inside)

    def take(self, request: ClientRequest, stream: int, received: int) -> ServedRequest:
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
        number = -1 if error else self._count
        served = ServedRequest(number, stream, request.cookie, operation, flags, request.offset, request.length, received, error, data)
        if error:
            self.refused += 1
        else:
            self._count += 1
            self._arrived.append(served)
        return served

    def _affect(self, request: ClientRequest) -> bytes:
        if request.command == NbdCommand.READ:
            return self.content.read(request.offset, request.length)
        if request.command == NbdCommand.WRITE:
            self.content.write(request.offset, request.data)
        elif request.command in (NbdCommand.TRIM, NbdCommand.WRITE_ZEROES):
            self.content.clear(request.offset, request.length)
        if request.command == NbdCommand.FLUSH or request.flags & CommandFlag.FUA:
            self.content.flush()
        return b""

    def step(self, now: int) -> list[ServedRequest]:
        """Submit what has come, and return what is done by now (real, ns), in the order in which the drive completed it."""
        if self._arrived:
            self._submit()
        elif now < self._next:
            return []
        # Without imposed latency, everything is done at once.
        requests = (
            self._finish_parts(self._advance(self._simulated_time(now), every=True)) if self._inside and self._scale else self.finish()
        )
        event = self._device.next_event if self._device.outstanding else NEVER
        self._next = NEVER if event >= NEVER else self._real(event)
        return requests

    def next(self) -> int:
        """Latest time of the next step (real, ns): now, if something has come; NEVER, if nothing is going on."""
        return 0 if self._arrived else self._next

    def finish(self) -> list[ServedRequest]:
        """Pending requests, after the simulated drive has served them in no real time."""
        if self._arrived:
            self._submit()
        parts = [self._advance()] if self._inside else []
        while self._device.outstanding:
            parts.append(self._advance())
        return self._finish_parts(np.concatenate(parts)) if parts else []

    def _submit(self) -> None:
        rows: list[tuple[int, ...]] = []
        owners: list[ServedRequest] = []
        for served in self._arrived:
            stream = served.stream % (1 << 15)
            rows.append((0, served.operation, 0, stream, served.flags, served.offset, served.length, served.number, -1, 0))
            owners.append(served)
            if served.operation == TRIM and served.flags:
                rows.append((0, FLUSH, 0, stream, 0, 0, 0, served.number, len(rows) - 1, 0))
                owners.append(served)
                served.parts = 2
        self._arrived.clear()
        at: int | Integers = self._device.now
        if self._scale:
            at = np.array([self._simulated_time(owner.received) for owner in owners], np.int64)
        ids = self._device.submit(np.array(rows, REQUEST), at)
        self._inside.update(zip(ids.tolist(), owners, strict=True))

    def _finish_parts(self, completions: Completions) -> list[ServedRequest]:
        finished = []
        for number, _, submitted, started, completed in completions.tolist():
            served = self._inside.pop(number)
            if served.submitted < 0:
                served.submitted, served.started = submitted, started
            served.completed, served.due = completed, self._real(completed) if self._scale else None
            served.parts -= 1
            if not served.parts:
                if served.operation == WRITE and self.read_only_because:
                    served.error = EIO  # perhaps it was still written
                finished.append(served)
        return finished

    def _simulated_time(self, real: int) -> int:
        """The drive's time by then, no fraction of a nanosecond early; not before what it has reached."""
        passed = (real - self._start) * self._scale.denominator // self._scale.numerator
        return max(self._device.now, self._origin + passed)

    def _real(self, simulated: int) -> int:
        """The first real nanosecond by which the drive has reached a time."""
        return self._start - (self._origin - simulated) * self._scale.numerator // self._scale.denominator

    def _advance(self, until: int = NEVER, *, every: bool = False) -> Completions:
        """Let simulated time pass; a drive that refuses writes from now on goes on with what else it has to do."""
        try:
            return self._device.advance(until, every=every)
        except ReadOnlyDeviceError as problem:
            self.read_only_because = str(problem)
            return self._device.advance(until, every=every)
