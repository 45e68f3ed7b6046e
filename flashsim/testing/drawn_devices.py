"""Devices of all kinds, drawn for tests of loops that drive several."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.model import CompiledModel, DeviceModel
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing import disks
from flashsim.testing import flash_drives as flash


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
