"""Cost to a drive of requests that are handed over at once: the wait once a call, and the time of each command.

A command that is alone waits its latency, holds the link for a while, and moves its bytes.  Of commands that are in the drive together,
one follows another after the longest of

- what the controller spends on a command by itself (the P300's and the Vertex 3's 15 us),
- its time on the link, with what it holds the link for besides its bytes,
- its whole time over the number of commands that the drive takes at once.

So a psync of n commands takes its latency once, and n such beats; before, its requests are on their way to the drive, all at the same time.
Where the first is the longest, command costs are *overlapped* with the transfer; what the link is held for is *added* to it.
"""

import math
from dataclasses import dataclass

from flashsim.core.errors import check_least
from models.ssd_drive import COMMAND


@dataclass(frozen=True)
class Direction:
    """Reading, or writing; milliseconds."""

    latency_ms: float  #: Of a command that is alone in the drive, without its time on the link.
    byte_ms: float  #: Of the link, or of the chips where all of them together are slower.
    serial_ms: float = 0.0  #: Part of the latency in which a command is alone with the controller.
    held_ms: float = 0.0  #: Of the link, besides the bytes.
    depth: int = 1  #: Commands in the drive at once.
    command: int = COMMAND  #: Bytes of the largest.
    #: What requests that are handed over at once are on their way to the drive for; what a host computes is not in it.
    call_ms: float = 0.0
    #: Bytes of the largest command that has another latency where it goes on from the last one, and that latency.
    going_on: int = 0
    going_on_ms: float = 0.0

    def __post_init__(self) -> None:
        check_least(0, **{name: value for name, value in vars(self).items() if name.endswith("_ms")})
        check_least(1, depth=self.depth, command=self.command)

    def alone(self, size: float) -> float:
        """A command of `size` bytes, which goes on from the last one."""
        return (self.going_on_ms if size <= self.going_on else self.latency_ms) + self.held_ms + size * self.byte_ms

    def beat(self, size: float) -> float:
        """After how long another command follows one of `size` bytes."""
        return max(self.serial_ms, self.held_ms + size * self.byte_ms, self.alone(size) / self.depth)

    def commands(self, size: float) -> float:
        """Commands of a request of `size` bytes."""
        return math.ceil(size / self.command)

    def busy(self, size: float) -> float:
        """The beats of a request of `size` bytes."""
        whole, rest = divmod(size, self.command)
        return whole * self.beat(self.command) + (self.beat(rest) if rest else 0.0)

    def waiting(self, size: float) -> float:
        """Wait of a call besides beats: its first command passes through all of the drive."""
        first = min(size, self.command)
        return self.call_ms + self.alone(first) - self.beat(first)

    def milliseconds(self, calls: float, requests: float, size: float) -> float:
        """Calls that hand over requests of `size` bytes, `requests` in all.

        Micron's P300, writes of 4 KiB: 37 us a call, and 13.6 us a command added to the transfer; alone, and 340 at once.

        >>> p300 = Direction(latency_ms=0, byte_ms=3.72e-3 / 1024, held_ms=0.0136, depth=32, call_ms=0.037)
        >>> round(1000 * p300.milliseconds(1, 1, 4096), 1), round(1000 * p300.milliseconds(1, 340, 4096) / 340, 1)
        (65.5, 28.6)
        """
        return calls * self.waiting(size) + requests * self.busy(size)


@dataclass(frozen=True)
class Processor:
    """Core time of a partition phase: milliseconds a tuple, a call, a command and a byte."""

    tuple_ms: float = 0.0
    call_ms: float = 0.0
    command_ms: float = 0.0
    byte_ms: float = 0.0


@dataclass(frozen=True)
class ParallelDrive:
    """A drive as this model sees it."""

    read: Direction
    write: Direction
    turn_ms: float = 0.0  #: What a read that follows a write waits for chips that still program.
    buffer: int = 0  #: Bytes of its write buffer.
    #: What all chips together take to program a byte that is in the buffer, and to read one.
    program_ms: float = 0.0
    sense_ms: float = 0.0
    busy_ms: float = 0.0  #: What a read waits on the average while chips program what is in the buffer, where it interrupts them.
