"""What the parts of the drive's event model share: commands, and the operations that dies carry out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from flashsim.core.host_specification import HostRequest
from flashsim.core.request import INTERNAL
from flashsim.ssd.specification.shared import block_of, die_of_block
from flashsim.ssd.state.flash_array import READ_PAGE

#: The drive as its parts see it, and a die as operations do: `flashsim.ssd.specification.drive` and `dies`, which build on this module.
DriveOfParts: TypeAlias = Any
DieOfOperations: TypeAlias = Any


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
    die: DieOfOperations = None
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

    def end_wait(self) -> None:
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
            follower.end_wait()
