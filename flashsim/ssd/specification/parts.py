"""What the parts of the drive's event model share: the drive as they see it, commands, and the operations that dies carry out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import simpy

from flashsim.core.host_specification import HostRequest, SpecifiedHost
from flashsim.core.request import INTERNAL
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.shared import SharedServer, Steps, block_of, die_of_block
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash import PlannedOperation
from flashsim.ssd.state.flash_array import READ_PAGE
from flashsim.ssd.timing import SsdTiming


class DieOfParts(Protocol):
    """Die as commands and the cache see it."""

    number: int
    queue: deque[Operation]
    reads: deque[Operation]
    at_work: list[Operation]
    cached: list[Operation]
    suspended: list[Operation]

    def offer(self, operation: Operation) -> None:
        """An operation of the queue is ready."""


class DriveOfParts(Protocol):
    """Drive as its parts see it."""

    parameters: SsdParameters
    state: DriveState
    timing: SsdTiming
    env: simpy.Environment
    host: SpecifiedHost
    channels: list[SharedServer]
    pages_behind: int  # pages in the controller, of writes that go on where the last one ended

    @property
    def dies(self) -> Sequence[DieOfParts]:
        """Dies, by number."""

    def command_of(self, request: HostRequest) -> Command:
        """A command without operations, with the next number."""

    def add(self, command: Command, plan: list[PlannedOperation], sectors: int) -> list[Operation]:
        """Give planned operations their numbers and their places in the queues of dies."""

    def transfer_of(self, command: Command, kind: int, page: int, sectors: int, part: bool) -> Operation:
        """An operation of a command that needs no die; whether the command waits for it."""

    def transfer(self, operation: Operation) -> None:
        """An operation that needs no die is ready for the link."""

    def bytes_in(self, operation: Operation) -> Steps:
        """Move an operation's bytes from the host, or from a program inside, into the drive's memory."""

    def page_done(self, command: Command) -> None:
        """A page of a command is done; the command completes with its last."""

    def read_out(self, operation: Operation) -> None:
        """A page has left its die."""

    def changed(self, group: list[Operation], leave: Callable[[], None]) -> None:
        """Pages are programmed, or blocks erased: the die is free, and so may be what waited for them."""


@dataclass(eq=False)
class Command:
    """A command of a host request."""

    drive: DriveOfParts
    number: int
    request: HostRequest
    pages_left: int = 0
    through: bool = False  # it waits for the medium (`flashsim.ssd.state.write_buffer.needs_medium`)
    goes_on: bool = False  # where the last command of its operation ended
    slots: int = 0  # that it holds
    paced_units: int = 0  # mapping units of a write whose acknowledgement is paced
    gathered: int = 0  # its last pages in the write buffer, which are still to leave together
    operations: list[Operation] = field(default_factory=list)
    _on_its_way: bool = False

    @property
    def internal(self) -> bool:
        """True if it comes from a program inside the drive."""
        return bool(self.request.flags & INTERNAL)

    def first_on_link(self) -> bool:
        """True if none of the command's pages has had the host link before."""
        first, self._on_its_way = not self._on_its_way, True
        return first


@dataclass(eq=False)
class Operation:
    """A flash operation: its row of the plan, and what it waits for."""

    number: int
    command: Command
    kind: int
    place: int
    source: int
    logical: int
    write_id: int
    superseded: int
    cause: int
    sectors: int
    block: int = -1
    die: DieOfParts | None = None
    waits: int = 1
    followers: list[Operation] = field(default_factory=list)
    erases: list[Operation] = field(default_factory=list)  # erases that wait for it
    origin: Operation | None = None  # what programs the page that it reads, if that had not ended when it was admitted
    ended: bool = False
    part: bool = False  # whether its command waits for it
    is_behind: bool = False  # whether it is acknowledged before it is programmed
    needs_room: bool = False  # in the write buffer
    taken_by: Operation | None = None  # what took its page out of the write buffer before it came
    before: Operation | None = None  # the transfer before it to the same page of the write buffer
    arrived: int = 0  # write id of the newest content that came as a whole

    def wait_for(self, other: Operation) -> None:
        self.waits += 1
        other.followers.append(self)

    def satisfied(self) -> None:
        """One thing that it waited for has happened; with the last it is ready."""
        self.waits -= 1
        if self.waits == 0 and self.die:
            if self.kind == READ_PAGE:
                self._go_to_copy(self.command.drive)
            self.die.offer(self)
        elif self.waits == 0:
            self.command.drive.transfer(self)

    def readable(self) -> tuple[int, Operation | None]:
        """The flash page where what it reads stands now, and the host's program of that, if it has not ended.

        What is being moved is read where it was until its move has ended.
        """
        place, program = self.place, self.origin
        while program and not program.ended and program.source >= 0:
            place, program = program.source, program.origin
        return place, program if program and not program.ended else None

    def _go_to_copy(self, drive: DriveOfParts) -> None:
        """A read is ready: it goes to the page where its content stands now."""
        assert self.die
        self.place, _ = self.readable()
        self.block = int(block_of(drive.state.control, self.place))
        drive.state.pools.queued[self.die.number] -= 1
        self.die = drive.dies[die_of_block(drive.state.control, self.block)]
        drive.state.pools.queued[self.die.number] += 1

    def finish(self) -> None:
        for follower in self.followers:
            follower.satisfied()
