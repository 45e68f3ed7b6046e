"""Small histories of a database with an SSD, drawn so that everything that can come before something else does so in one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from algorithms.extensions.base import DESIGNS, extension_design
from algorithms.replacement.base import replacement_policy
from algorithms.restart.base import restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, WRITE
from flashsim.core.rng import generator
from flashsim.core.transactions import WRITES, Transactions, TransactionStream
from flashsim.device.station import StationParameters
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.system import DISK, LOG, SSD, PoolSystem
from flashsim.storage.log.recovery import Recovery

#: Designs of the pool's extension, and kinds of checkpoints, that histories are drawn of.
EXTENSIONS, CHECKPOINTS = tuple(DESIGNS.names()), ("sharp", "fuzzy", "indirect")
_PAGE, _CAPACITY = 512, 1 << 20


class _Bounds(NamedTuple):
    pages: tuple[int, int] = (6, 25)
    frames: tuple[int, int] = (2, 17)
    #: Pages of memory beside one a client.
    spare: tuple[int, int] = (0, 10)
    transactions: tuple[int, int] = (10, 50)
    #: Share of references that write.
    writes: tuple[float, float] = (0.3, 0.9)
    #: Nanoseconds between checkpoints, as powers of two.
    checkpoint: tuple[float, float] = (8, 13)


#: Of histories with an even seed, and of those with an odd one.  With an even one frames are few and soon replaced, their pages are read
#: again soon, and one kind of requests takes far longer than all others: writes of an SSD beside a fast disk, or another.
_BOUNDS = _Bounds(pages=(7, 17), frames=(1, 5), spare=(0, 2), transactions=(30, 80), writes=(0.3, 0.6), checkpoint=(6, 10)), _Bounds()
#: Of histories with an even seed whose pages leave the SSD when they are read: frames are many, and the log is slow, so that a page comes
#: back to another frame before the log says that it left the first one.
_MOVING = _Bounds(pages=(10, 17), frames=(8, 16), spare=(0, 2), transactions=(40, 90), writes=(0.05, 0.2), checkpoint=(10, 13))
#: Requests that may take far longer; the powers of two between which their nanoseconds are, those of all others, and those of any request
#: with an odd seed.
_SLOW = (SSD, WRITE), (SSD, WRITE), (SSD, READ), (DISK, WRITE), (DISK, READ), (LOG, WRITE)
_SLOWLY, _FAST, _ANY = (7, 10), (2, 5), (0, 10)

#: A transaction: pages, and whether each is written.
Transaction = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class _GivenTransactions:
    """Given transactions, once."""

    pages: int
    transactions: Sequence[Transaction]
    kinds = ("transaction",)

    def batches(self) -> Iterator[Transactions]:
        rows = [[page, 1, WRITES * writes] for transaction in self.transactions for page, writes in transaction]
        ends = np.cumsum([len(transaction) for transaction in self.transactions], dtype=np.int64)
        yield Transactions(np.array(rows, np.int64).reshape(-1, 3), ends, np.zeros(len(ends), np.int64))


@dataclass(frozen=True)
class CrashHistory:
    """A history: a system with its devices, which `seed` draws, and its transactions."""

    seed: int
    #: Design of the pool's extension, restart design, and kind of checkpoints, of `CHECKPOINTS`.
    extension: str
    restart: str
    checkpoints: str
    #: In the order in which clients begin them.
    transactions: tuple[Transaction, ...]
    #: Guards that are switched off.
    without: tuple[str, ...] = ()
    #: Whether crashes tear pages that are being written to disk.
    tears: bool = False

    @property
    def bounds(self) -> _Bounds:
        return _MOVING if self.moves else _BOUNDS[self.seed % 2]

    @property
    def moves(self) -> bool:
        """True if pages move from frame to frame, by way of memory."""
        return self.is_lopsided and self.extension == "exclusive"

    @property
    def is_lopsided(self) -> bool:
        """True if one kind of requests takes far longer than all others."""
        return self.seed % 2 == 0

    @cached_property
    def pages(self) -> int:
        return int(generator(self.seed, "pages").integers(*self.bounds.pages))

    @cached_property
    def frames(self) -> int:
        return int(generator(self.seed, "frames").integers(*self.bounds.frames))

    @cached_property
    def image(self) -> int:
        """Bytes of the image of a page in a record, 0 for none."""
        system, logging = self.parts()
        return system.page_size if logging.images else 0

    def stations(self) -> dict[int, StationParameters]:
        """Devices by purpose: their times vary, and they may complete what came later sooner."""
        draw, stations = generator(self.seed, "devices"), {}
        slow = (LOG, WRITE) if self.moves else _SLOW[int(draw.integers(len(_SLOW)))] if self.is_lopsided else None
        for purpose in (DISK, SSD, LOG):
            kinds = (_SLOWLY if (purpose, each) == slow else _FAST if slow else _ANY for each in (READ, WRITE))
            read, write = (int(2 ** draw.uniform(*each)) for each in kinds)
            servers, varies = int(draw.integers(1, 6)), bool(draw.integers(4))
            seed = (self.seed + purpose) % (1 << 63)  # the user's may have any size
            stations[purpose] = StationParameters(read, write, capacity=_CAPACITY, servers=servers, exponential=varies, seed=seed)
        return stations

    def parts(self) -> tuple[PoolSystem, Logging]:
        """The system, and its log and restart design."""
        draw = generator(self.seed, "system")
        clients = int(draw.integers(2, 5))
        system = PoolSystem(
            self.pages,
            clients + 1 + int(draw.integers(*self.bounds.spare)),
            replacement_policy(str(draw.choice(["lru", "fifo"]))),
            extension_design(self.extension),
            self.frames,
            clients=clients,
            think=int(draw.choice([0, 0, 50])),
            page_size=_PAGE,
            expansion=1,
            filling=int(draw.choice([0, 95])),
            throttle=int(draw.choice([0, 0, 1, 2])) * (not self.is_lopsided),
            dirty_limit=int(draw.choice([0, 30, 60])),
            read_ahead=1,
            group=int(draw.choice([1, 4])),
            cleaners=int(draw.choice([1, 3])),
            checkpoint=int(2 ** draw.uniform(*self.bounds.checkpoint)),
            fuzzy=self.checkpoints != "sharp",
            going_out=8 * self.is_lopsided,
        )
        logging = Logging(
            restart_design(self.restart),
            aborts=int(draw.choice([0, 15, 40])),
            indirect=int(2 ** draw.uniform(5, 9)) if self.checkpoints == "indirect" else 0,
            batch=int(draw.choice([1, 1, 3])),
            chunk=int(draw.integers(1, 6)),
            pause=int(2 ** draw.uniform(3, 11)),
            without=self.without,
            tears=self.tears,
        )
        return system, logging

    def stream(self, ended: int = 0) -> TransactionStream:
        """The transactions but for the first ones."""
        return _GivenTransactions(self.pages, self.transactions[ended:])

    def devices(self, log_size: int | None = None) -> dict[int, tuple[list[StationSpecification], int]]:
        """Idle stations of each device, and their bytes, by purpose."""
        sizes = {LOG: log_size or _CAPACITY}
        return {purpose: ([StationSpecification(each)], sizes.get(purpose, _CAPACITY)) for purpose, each in self.stations().items()}

    def build(self, recovered: Recovery | None = None, ended: int = 0, log_size: int | None = None, **logged: Any) -> LoggedSpecification:
        """The system before its first event, or after a restart, with all transactions but the first ones; `logged` changes its log."""
        system, logging = self.parts()
        return LoggedSpecification(system, self.devices(log_size), self.stream(ended), replace(logging, **logged), recovered)


def drawn_history(
    seed: int, restart: str, without: Sequence[str] = (), extension: str | None = None, kind: str | None = None, tears: bool = False
) -> CrashHistory:
    """A history of a restart design; extensions and kinds of checkpoints take turns unless one is given.

    Without the guard "page-images" the disk tears pages whatever `tears` says: otherwise there is nothing to guard against.

    Raises
    ------
    InvalidParameterError
        There is no such kind of checkpoints.
    """
    if kind is not None and kind not in CHECKPOINTS:
        raise InvalidParameterError("checkpoints", repr(kind), f"it must be one of {', '.join(CHECKPOINTS)}")
    draw = generator(seed, "transactions")
    extension, kind = extension or EXTENSIONS[seed // 2 % len(EXTENSIONS)], kind or CHECKPOINTS[seed // 2 % 3]
    empty = CrashHistory(seed, extension, restart, kind, ())
    pages, skew, share = empty.pages, draw.uniform(1, 3), draw.uniform(*empty.bounds.writes)
    transactions = tuple(
        tuple((int(pages * draw.random() ** skew), bool(draw.random() < share)) for _ in range(int(draw.integers(1, 5))))
        for _ in range(int(draw.integers(*empty.bounds.transactions)))
    )
    return CrashHistory(seed, extension, restart, kind, transactions, tuple(without), tears or "page-images" in without)
