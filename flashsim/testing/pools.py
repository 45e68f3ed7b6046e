"""A replacement policy in both of its forms, and systems of a memory pool, its SSD, log, clients and devices of all kinds, drawn."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba import types

from algorithms.extensions.base import DESIGNS, extension_design
from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core import replacement, transactions
from flashsim.core.kernel import kernel_of
from flashsim.core.model import CompiledModel, DeviceModel
from flashsim.core.policies import Policies
from flashsim.core.records import VECTOR
from flashsim.core.replacement import FIRST_PAGE, NEVER_AGAIN, PoolState, ReplacementPolicy
from flashsim.core.rng import generator
from flashsim.core.transactions import CREATES, SCANS, Transactions
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.system import CPU, DISK, LOG, SSD, PoolSystem
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.storage.pool.reference import PlainPool, breach, refer
from flashsim.testing import disks
from flashsim.testing import flash_drives as flash


@kernel_of(types.int64(replacement.POOL, VECTOR, types.int64, types.int64))
def _refer(pool: PoolState, policy: Policies, page: int, write: int) -> int:
    return refer(pool, policy, page, write)


@kernel_of(types.void(replacement.POOL, VECTOR, types.int64))
def _forget(pool: PoolState, policy: Policies, page: int) -> None:
    replacement.of_page(policy[replacement.FORGET])(pool, page)


class Kernels:
    """The compiled form, over arrays."""

    def __init__(self, policy: ReplacementPolicy, frames: int, pages: int = 64, seed: int = 0) -> None:
        assert policy.kernels is not None
        self.policy, self.state = policy, policy.state(frames, pages, seed)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        self.state.numbers[replacement.NEXT_USE], self.state.numbers[replacement.WRITTEN_AGAIN] = next_use & NEVER_AGAIN, next_use < 0
        outcome = int(_refer(self.state, self.policy.kernels, page, write))
        if outcome < 0:
            raise breach(self.policy.name, outcome, int(self.state.numbers[replacement.NOW]))
        return outcome

    def pin(self, page: int, held: bool) -> None:
        self.state.pages[page, replacement.FLAGS] &= ~replacement.PINNED
        self.state.pages[page, replacement.FLAGS] |= replacement.PINNED * held

    def clean(self, page: int) -> None:
        self.state.pages[page, replacement.FLAGS] &= ~replacement.DIRTY

    def drop(self, page: int) -> None:
        self.state.pages[page, replacement.FLAGS] &= ~(replacement.RESIDENT | replacement.DIRTY)
        self.state.numbers[replacement.USED] -= 1
        _forget(self.state, self.policy.kernels, page)

    def held_pages(self) -> set[int]:
        return set(np.flatnonzero(self.state.pages[:, replacement.FLAGS] & replacement.RESIDENT).tolist())


class PlainForm:
    """The plain form, over a dictionary."""

    def __init__(self, policy: ReplacementPolicy, frames: int, seed: int = 0) -> None:
        self.pool = PlainPool(policy, frames, seed)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        return self.pool.refer(page, write, next_use)

    def pin(self, page: int, held: bool) -> None:
        (self.pool.pins.add if held else self.pool.pins.discard)(page)

    def clean(self, page: int) -> None:
        self.pool.resident[page] = False

    def drop(self, page: int) -> None:
        self.pool.drop(page)

    def held_pages(self) -> set[int]:
        return set(self.pool.resident)


def forms(policy: ReplacementPolicy, frames: int) -> list[Kernels | PlainForm]:
    pools: list[Kernels | PlainForm] = [] if policy.kernels is None else [Kernels(policy, frames)]
    return pools if policy.plain is None else [*pools, PlainForm(policy, frames)]


def next_uses(pages: Sequence[int], writes: Sequence[bool]) -> list[int]:
    """The number of the reference that asks for each page next, plus `WRITES` where that or a later one writes it; the first is 1."""
    last: dict[int, int] = {}
    uses = []
    for now in range(len(pages), 0, -1):
        page, write = pages[now - 1], writes[now - 1]
        uses.append(later := last.get(page, NEVER_AGAIN))
        last[page] = now + replacement.WRITES if write or later < 0 else now
    return uses[::-1]


def pages_of_letters(text: str) -> list[int]:
    """Pages that are written as letters, in capitals or not."""
    return [FIRST_PAGE + ord(letter) - ord("a") for letter in text.lower()]


PAGE = 512
#: Policies of both forms that do not know the future, and designs with parameters.
POLICIES = [name for name in REPLACEMENT.names() if not REPLACEMENT.load(name).FUTURE]
VARIANTS = {"tac": ["tac", "tac:extent=3,aging=50,lost=40", "tac:extent=1,random=7,sequential=2"]}


class Drawn:
    """Transactions of all kinds of references."""

    kinds = ("one", "another", "a third")

    def __init__(self, pages: int, seed: int) -> None:
        self.pages, self.seed = pages, seed

    def batches(self) -> Iterator[Transactions]:
        """Batches of the same sizes every time, and then none."""
        draw = generator(self.seed, "transactions")
        for _ in range(int(draw.integers(1, 200))):
            lengths = draw.integers(1, 12, int(draw.integers(20, 2000)))
            count = int(lengths.sum())
            first = (self.pages * draw.random(count) ** 2).astype(np.int64)
            marks = draw.choice([0, 0, transactions.WRITES, CREATES, SCANS], count, p=[0.4, 0.15, 0.3, 0.05, 0.1])
            pages = np.where(marks == SCANS, np.minimum(draw.integers(1, 30, count), self.pages - first), 1)
            yield Transactions(np.stack([first, pages, marks], 1), np.cumsum(lengths), draw.integers(0, 3, len(lengths)))


def drawn_system(seed: int, design: str = "") -> tuple[PoolSystem, dict[int, Any], dict[int, Any]]:
    """A system, of one design perhaps, and its devices as engines and as specifications."""
    draw = generator(seed, "system")
    engines: dict[int, Any] = {}
    specified: dict[int, Any] = {}
    drawn = str(draw.choice(DESIGNS.names()))
    design = design or drawn
    uses = [DISK, CPU] + [SSD] * (design != "none") + [LOG] * int(draw.integers(2))
    capacity, stripes = {}, {}
    for number, purpose in enumerate(sorted(uses)):
        drives, models, stripe = drawn_device(draw, seed + 100_000 * number)
        while purpose == LOG and len(drives) > 1:
            drives, models, stripe = drawn_device(draw, seed + 100_000 * number)
        engines[purpose] = Striped(drives, stripe) if len(drives) > 1 else drives[0]
        specified[purpose] = models, stripe
        capacity[purpose], stripes[purpose] = sum(drive.capacity // stripe * stripe for drive in drives), stripe
    pages = min(capacity[DISK] // PAGE, int(draw.integers(40, 400)))
    clients, expansion, read_ahead = draw.integers(1, 6, 3).tolist()
    group, cleaners, partitions = draw.integers(1, 33), draw.integers(1, 6), draw.integers(1, 4)
    log_bytes = int(draw.choice([20, 150])) * (LOG in uses)
    switches = generator(seed, "switches")
    system = PoolSystem(
        pages, clients * max(expansion, read_ahead) + 1 + int(draw.integers(0, 60)),
        replacement_policy(str(switches.choice(POLICIES))), extension_design(str(switches.choice(VARIANTS.get(design, [design])))),
        min(capacity.get(SSD, 0) // PAGE, int(draw.integers(8, pages))) if design != "none" else 0, PAGE, stripes[DISK] // PAGE, 1000,
        clients=clients, think=(think := int(draw.choice([0, 0, 7, 1000]))), expansion=expansion, filling=int(draw.choice([0, 50, 95])),
        throttle=int(draw.choice([0, 2, 5, 100])), dirty_limit=int(draw.choice([0, 1, 20, 90])), read_ahead=read_ahead, group=int(group),
        cleaners=int(cleaners * switches.integers(2)), going_out=int(draw.choice([0, 1, 4])), partitions=int(partitions),
        checkpoint=int(draw.choice([0, 5000, 1_000_000])), fuzzy=not draw.integers(2), log_bytes=log_bytes,
        work=int(not think or switches.integers(2)), random_only=bool(switches.random() < 0.8),
        expansion_until=("memory", "ssd")[draw.integers(2)], trimming=bool(switches.random() < 0.7),
    )  # fmt: skip
    return system, engines, specified


def drawn_device(draw: np.random.Generator, seed: int) -> tuple[list[CompiledModel], list[DeviceModel], int]:
    """Engines and specifications of a device's drives, and its stripe; a single drive's is all of it."""
    kind, drives = draw.integers(3), int(draw.choice([1, 1, 2, 3]))
    if kind == 0:
        read, write = draw.integers(1, 50, 2).tolist()
        station = StationParameters(
            read, write, capacity=1 << 16, servers=int(draw.integers(1, 4)), exponential=bool(draw.integers(2)), seed=seed
        )
        pairs: list[Any] = [(StationEngine(station), StationSpecification(station)) for _ in range(drives)]
    elif kind == 1:
        disk = disks.random_drive(seed)
        pairs = [(HddEngine(disk), HddSpecification(disk)) for _ in range(drives)]
    else:
        ssd = flash.random_drive(seed)
        while ssd.endurance:  # would refuse writes in the midst
            seed += 1000
            ssd = flash.random_drive(seed)
        pairs = [(SsdEngine(ssd), SsdSpecification(ssd)) for _ in range(drives)]
    capacity = pairs[0][0].capacity
    stripe = capacity if drives == 1 else 512 * min(int(draw.integers(1, 9)), capacity // 512)
    return [engine for engine, _ in pairs], [specification for _, specification in pairs], stripe
