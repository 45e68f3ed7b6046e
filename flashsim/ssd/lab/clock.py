"""The lab's drive in time: the event model of `flashsim.ssd.specification`, one event at a time, each told in a line.

>>> drive = SteppedDrive()
>>> drive.write(5)
>>> print(drive.step())
0 ns: request 0 arrives; planned: program block 0 page 0: logical page 5 (host); controller begins
>>> print(drive.step())
10 us: controller is done; link begins
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flashsim.core.host_queue import one_command_each
from flashsim.core.host_specification import ARRIVALS, OPERATIONS
from flashsim.core.request import READ, TRIM, WRITE, Completions, make_requests
from flashsim.core.units import format_duration
from flashsim.ssd.lab.drive import LAB_PAGES, lab_parameters, operation_line, picture
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.drive_state import DriveState


class SteppedDrive:
    """A small drive in virtual time that stops at every event; its parameters are those of `flashsim.ssd.lab.drive.LabDrive`."""

    def __init__(self, pages: int = LAB_PAGES, **changes: Any) -> None:
        self.parameters = lab_parameters(pages, **changes)
        self.model = SsdSpecification(self.parameters)

    @classmethod
    def in_state(cls, state: DriveState) -> SteppedDrive:
        """A drive that begins with the flash and the map of another, and changes them."""
        drive = cls.__new__(cls)
        drive.parameters, drive.model = state.parameters, SsdSpecification(state.parameters, state)
        return drive

    @property
    def state(self) -> DriveState:
        return self.model.state

    def __str__(self) -> str:
        return picture(self.state)

    def write(self, page: int, count: int = 1, at: int | None = None) -> None:
        """Submit a write of logical pages that arrives at a time, ns (now, if none is given)."""
        self._submit(WRITE, page, count, at)

    def read(self, page: int, count: int = 1, at: int | None = None) -> None:
        self._submit(READ, page, count, at)

    def trim(self, page: int, count: int = 1, at: int | None = None) -> None:
        self._submit(TRIM, page, count, at)

    def _submit(self, operation: int, page: int, count: int, at: int | None) -> None:
        size = self.parameters.unit_size
        requests = make_requests(operation, page * size, count * size)
        self.model.submit(requests, one_command_each(requests), self.model.now if at is None else at)

    def step(self) -> str:
        """Let one event happen, with all that follows from it without delay; say in a line what changed, or nothing if none is due."""
        environment = self.model.env
        if not environment._queue:
            return ""
        before = _Glimpse(self.model)
        primary = environment._queue[0][1]
        environment.step()
        while environment._queue and environment._queue[0][0] == environment.now and environment._queue[0][1] < ARRIVALS:
            environment.step()
        changes = [f"request {primary - ARRIVALS} arrives"] if ARRIVALS <= primary < OPERATIONS else []
        changes += _Glimpse(self.model).since(before)
        return f"{format_duration(self.model.now)}: {'; '.join(changes) or 'the next step of the same operation begins'}"

    def steps(self) -> Iterator[str]:
        """A line an event until nothing is due any more."""
        while line := self.step():
            yield line

    def completions(self) -> Completions:
        """Requests that completed since the last call, dtype COMPLETION."""
        return self.model.advance(self.model.now)


class _Glimpse:
    def __init__(self, model: SsdSpecification) -> None:
        self.pages_per_block = model.parameters.slots_per_block
        self.shared = {f"channel {number}": channel.users[:1] for number, channel in enumerate(model.channels)}
        self.shared |= {"link": model.link.users[:1], "controller": model.controller.users[:1]}
        self.at_work = [list(die.at_work) for die in model.dies]
        self.suspended = [list(die.suspended) for die in model.dies]
        self.waiting = [[*die.queue, *die.reads] for die in model.dies]
        self.completed = [request.id for request in model.host.completed]

    def since(self, before: _Glimpse) -> list[str]:
        ends = [f"{name} is done" for name, users in before.shared.items() if users and users != self.shared[name]]
        begins = [f"{name} begins" for name, users in self.shared.items() if users and users != before.shared[name]]
        numbers = {operation.number for rows in (before.waiting, before.at_work, before.suspended) for row in rows for operation in row}
        fresh = [row for rows in (self.waiting, self.at_work) for operations in rows for row in operations if row.number not in numbers]
        for die, (then, now) in enumerate(zip(before.at_work, self.at_work, strict=True)):
            ongoing = (*now, *self.suspended[die])
            ends += [f"die {die} has done: {self._line(operation)}" for operation in then if operation not in ongoing]
            ends += [f"die {die} is interrupted" for _ in self.suspended[die][:1] if not before.suspended[die]]
            begins += [f"die {die} begins: {self._line(operation)}" for operation in now if operation not in then]
        ends += [f"request {request} is complete" for request in self.completed if request not in before.completed]
        planned = sorted({operation.number: operation for operation in fresh}.items())
        ends += [f"planned: {', '.join(self._line(operation) for _, operation in planned)}"] if planned else []
        return ends + begins

    def _line(self, operation: Any) -> str:
        line = operation_line(self.pages_per_block, operation.kind, operation.place, operation.source, operation.logical, operation.cause)
        return " ".join(line.split())
