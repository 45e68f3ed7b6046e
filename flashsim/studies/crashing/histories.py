"""Small histories of a database with an SSD, drawn so that everything that can come before something else does so in one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from algorithms.extensions.base import extension_design
from algorithms.replacement.base import replacement_policy
from algorithms.restart.base import restart_design
from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator
from flashsim.core.transactions import WRITES, Transactions, TransactionStream
from flashsim.device.station import StationParameters
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.system import DISK, LOG, SSD, PoolSystem
from flashsim.storage.log.recovery import Recovery

#: Designs of the pool's extension, and kinds of checkpoints, that histories are drawn of.
EXTENSIONS, CHECKPOINTS = ("dw", "lc"), ("sharp", "fuzzy", "indirect")
_PAGE, _CAPACITY = 512, 1 << 20

#: A transaction: pages, and whether each is written.
Transaction = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class _Stream:
    """Given transactions, once."""

    pages: int
    transactions: Sequence[Transaction]
    kinds = ("transaction",)

    def batches(self) -> Iterator[Transactions]:
        """One batch."""
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
    def is_harsh(self) -> bool:
        """True of every second seed: few pages and frames, and devices of which some are very slow beside the others."""
        return self.seed % 2 == 0

    @cached_property
    def pages(self) -> int:
        return int(generator(self.seed, "pages").integers(*((4, 13) if self.is_harsh else (6, 25))))

    @cached_property
    def frames(self) -> int:
        return int(generator(self.seed, "frames").integers(*((1, 7) if self.is_harsh else (2, 17))))

    @cached_property
    def image(self) -> int:
        """Bytes of the image of a page in a record, 0 for none."""
        system, logging = self.parts()
        return system.page_size if logging.images else 0

    def stations(self) -> dict[int, StationParameters]:
        """Devices by purpose: their times vary, and they may complete what came later sooner."""
        draw, stations = generator(self.seed, "devices"), {}
        for purpose in (DISK, SSD, LOG):
            bounds = (((0, 3), (8, 11))[int(draw.integers(2))] if self.is_harsh else (0, 10) for _ in range(2))
            read, write = (int(2 ** draw.uniform(*each)) for each in bounds)
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
            clients + 1 + int(draw.integers(0, 3 if self.is_harsh else 10)),
            replacement_policy(str(draw.choice(["lru", "fifo"]))),
            extension_design(self.extension),
            self.frames,
            clients,
            think=int(draw.choice([0, 0, 50])),
            page_size=_PAGE,
            expansion=1,
            fill=int(draw.choice([0, 95])),
            throttle=int(draw.choice([0, 0, 1, 2])),
            dirty_limit=int(draw.choice([0, 30, 60])),
            read_ahead=1,
            group=int(draw.choice([1, 4])),
            cleaners=int(draw.choice([1, 3])),
            checkpoint=int(2 ** draw.uniform(8, 13)),
            sharp=self.checkpoints == "sharp",
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
        return _Stream(self.pages, self.transactions[ended:])

    def devices(self) -> dict[int, tuple[list[StationSpecification], int]]:
        """Idle stations of each device, and their bytes, by purpose."""
        return {purpose: ([StationSpecification(each)], _CAPACITY) for purpose, each in self.stations().items()}

    def build(self, recovered: Recovery | None = None, ended: int = 0, **logged: Any) -> LoggedSpecification:
        """The system before its first event, or after a restart, with all transactions but the first ones; `logged` changes its log."""
        system, logging = self.parts()
        return LoggedSpecification(system, self.devices(), self.stream(ended), replace(logging, **logged), recovered)


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
    extension, kind = extension or EXTENSIONS[seed % 2], kind or CHECKPOINTS[seed // 2 % 3]
    pages = CrashHistory(seed, extension, restart, kind, ()).pages
    skew, share = draw.uniform(1, 3), draw.uniform(0.3, 0.9)
    transactions = tuple(
        tuple((int(pages * draw.random() ** skew), bool(draw.random() < share)) for _ in range(int(draw.integers(1, 5))))
        for _ in range(int(draw.integers(10, 50)))
    )
    return CrashHistory(seed, extension, restart, kind, transactions, tuple(without), tears or "page-images" in without)
