"""Devices of all kinds, and systems of a memory pool, its SSD, log and clients, drawn for tests of what drives several devices."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from algorithms.extensions.base import DESIGNS, extension_design
from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.model import CompiledModel, DeviceModel
from flashsim.core.rng import generator
from flashsim.core.transactions import CREATES, SCANS, WRITES, Transactions
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.system import CPU, DISK, LOG, SSD, PoolSystem
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing import disks
from flashsim.testing import flash_drives as flash

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
            marks = draw.choice([0, 0, WRITES, CREATES, SCANS], count, p=[0.4, 0.15, 0.3, 0.05, 0.1])
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
