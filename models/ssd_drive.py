"""A drive as the detailed cost model of joins sees it: times of requests by direction, and what merges on flash add."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from flashsim.core.errors import InvalidParameterError, check_least

COMMAND = 128 * 1024  #: Bytes of the largest command of Linux kernels around 2009 (``max_sectors_kb`` = 128).


class Amplification(Protocol):
    """Flash pages programmed over pages written."""

    def __call__(self, streams: int, piece: int) -> float: ...


@dataclass(frozen=True)
class PageMapped:
    """A drive that maps single pages: where writes go does not matter."""

    #: 1 as long as there are blocks without valid pages, which a join's temporaries leave behind; of a drive in its steady state the
    #: `models.write_amplification` of how much room it has.
    factor: float = 1.0

    def __call__(self, streams: int, piece: int) -> float:
        return self.factor


@dataclass(frozen=True)
class LogBlocks:
    """A drive that maps whole blocks and merges log blocks (BAST), full of data that is overwritten.

    As long as every stream keeps its log block, each is filled in order and takes the place of the data block: nothing is copied.  Where
    pieces run over the ends of blocks, the log just filled stays in use beside the next one, and a stream needs two.  With more streams
    the log of a stream is gone when its next piece comes.  Of a block that takes several pieces, the first leaves a log block that takes
    in the pages behind it (a partial merge), and each later one costs a full merge of the whole block.
    """

    logs: int  #: Log blocks in use at once.
    block_pages: int  #: Pages of a block, or of a superblock striped over all planes.

    def __call__(self, streams: int, piece: int) -> float:
        if piece % self.block_pages == 0:
            return 1.0
        needed = streams if streams == 1 or self.block_pages % piece == 0 else 2 * streams
        if needed <= self.logs:
            return 1.0
        return _merge(piece, self.block_pages)


@cache
def _merge(piece: int, block: int) -> float:
    period = math.lcm(piece, block)
    ends = [end for end in range(piece, period + 1, piece) if end % block]
    first = {end // block: end % block for end in reversed(ends)}
    return 1 + (block * len(ends) + sum(block - end for end in first.values())) / period


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a request in one direction: once, for each of its commands, for each page, and once if it has several commands."""

    start_ms: float
    command_ms: float
    page_ms: float
    several_ms: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (0 if name != "page_ms" else 1e-12) <= value < math.inf:
                raise InvalidParameterError(name, value, f"it must be {'above' if name == 'page_ms' else 'at least'} 0")

    @classmethod
    def of_queue(cls, latency_ms: float, page_ms: float, pages: float, depth: int = 1) -> Timing:
        """Commands of `pages` pages that wait a latency each, while up to `depth` of them are in the drive.

        One command follows another after max(c t, (l + c t) / depth): at depth 1 the whole latency, and at a depth that hides it, none.

        >>> one, many = Timing.of_queue(0.35, 0.1, 16), Timing.of_queue(0.35, 0.1, 16, depth=32)
        >>> (one.start_ms, one.command_ms), (many.start_ms, many.command_ms)
        ((0.0, 0.35), (0.35, 0.0))
        """
        transfer = page_ms * pages
        command = min(latency_ms, max(0.0, (latency_ms + transfer) / depth - transfer)) if depth > 1 else latency_ms
        return cls(latency_ms - command, command, page_ms)

    def after(self, submission_ms: float, held_ms: float) -> Timing:
        """Timing where requests are on their way for a while first, and each command holds the link for a while besides its pages."""
        return replace(self, start_ms=self.start_ms + submission_ms, command_ms=self.command_ms + held_ms)


@dataclass(frozen=True)
class Rounds:
    """Wait of a command that writes where the previous one ended, until that place comes round again."""

    rotation_ms: float = 0.0  #: Of the platter; 0: there is none to wait for.
    #: When the drive has a command's pages: after so much, and so much for each of them.
    ready_ms: float = 0.0
    page_ms: float = 0.0

    def __post_init__(self) -> None:
        check_least(0, **vars(self))

    def __call__(self, pages: int) -> float:
        return -(self.ready_ms + pages * self.page_ms) % self.rotation_ms if pages and self.rotation_ms else 0.0


@dataclass(frozen=True)
class DriveModel:
    """A device as this model sees it."""

    page_size: int  #: Bytes of a database page.
    #: What requests take.
    read: Timing
    write: Timing
    command: int = COMMAND  #: Bytes of the largest command.
    move_ms: float = 0.0  #: What a change of position takes: the seek and the rotational latency of a disk.
    turn_ms: float = 0.0  #: What a read that follows a write waits for chips that still program.
    #: What a page written hides of the move to it: a disk that writes behind moves while the link still sends, if the media are faster.
    behind_ms: float = 0.0
    #: What commands that write where the last one ended wait for the platter.
    rounds: Rounds = field(default_factory=Rounds)
    amplification: Amplification = field(default_factory=PageMapped)  #: What writes cost inside the drive.

    def __post_init__(self) -> None:
        check_least(1, page_size=self.page_size, command=self.command)
        check_least(0, move_ms=self.move_ms, turn_ms=self.turn_ms, behind_ms=self.behind_ms)

    @property
    def command_pages(self) -> int:
        return max(1, self.command // self.page_size)

    def commands(self, pages: int) -> int:
        return -(-pages * self.page_size // self.command)

    def rounds_ms(self, pages: int) -> float:
        """Wait for the platter, in all of its commands, of a request that writes where the last one ended."""
        whole, rest = divmod(pages, self.command_pages)
        return whole * self.rounds(self.command_pages) + self.rounds(rest)
