"""Drives with a history: those that share what they have in common are as if each had been loaded by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.request import WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import GIB, MIB
from flashsim.device.device import Device
from flashsim.experiments.runs.drives import states

#: A large drive is one of fewer blocks: all of its state is compared, and would have to lie in memory.
FEWER = {"nvme-tlc-1tb": {"blocks_per_plane": 20, "capacity": 10 * GIB, "slc_cache": GIB}}


@pytest.mark.parametrize("preset", ["ocz-core-60gb", "nvme-tlc-1tb", "toshiba-5400-320gb"])
@pytest.mark.parametrize("size", [MIB // 2, 64 * MIB + 6144])
def test_states_are_as_if_each_was_loaded_by_itself(preset: str, size: int) -> None:
    for drive in states({"drive": preset}, 3, 1)["drive"]:
        drive = replace(drive, changes=FEWER.get(preset, {}))
        device, alone = drive.device(size), Device(drive.load())
        alone.load(0, drive.start + size)
        if drive.overwrites:
            pages = generator(drive.seed, "overwrites").integers(0, size // 4096, drive.overwrites)
            alone.serve(make_requests(WRITE, drive.start + pages * 4096, 4096, serial=True))
        assert device.statistics() == alone.statistics() and device.now == alone.now
        assert len(device.arrays) == len(alone.arrays)
        assert all(np.array_equal(*pair) for pair in zip(device.arrays, alone.arrays, strict=True))
