"""What a power cut takes from a hard disk, byte by byte; the law of all devices is tested in `tests.contract.test_power_cut`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.device.striped import Striping
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import SECTOR, random_drive, random_workload, serve, small_drive
from tests.flashsim.hdd.deep_disks import array_of, deep_drive


@pytest.mark.parametrize("seed", range(200, 230))
def test_what_vanishes_is_told_byte_by_byte_and_fits_into_the_buffer(seed: int) -> None:
    """Writes reach the media in order, so all that was acknowledged before a durable write, or before a flush, is durable too."""
    drive = deep_drive(seed) if seed % 2 else random_drive(seed)
    requests, arrivals = random_workload(seed, drive.capacity, 60)
    commands = one_command_each(requests)
    whole = HddEngine(drive)
    whole.submit(requests, commands, arrivals)
    completions = whole.advance(every=True)
    for at in generator(seed, "cuts").integers(0, completions["completed"].max() + 1, 20).tolist():
        engine = HddEngine(drive)
        engine.submit(requests, commands, arrivals)
        cut = engine.power_cut(at)
        done = completions[completions["completed"] <= at]["id"]
        operations, flags = requests["operation"][done], requests["flags"][done]
        vanished = cut.vanished.tolist()
        durable = np.flatnonzero((operations == FLUSH) | ((operations == WRITE) & (flags & FORCE_UNIT_ACCESS != 0)))
        if len(durable):
            assert not set(vanished) & set(done[: durable[-1] + 1].tolist())
        assert sorted(cut.extents.tolist()) == sorted([int(requests["offset"][i]), int(requests["length"][i])] for i in vanished)
        # One write may be partly on the media; it counts as lost as a whole.
        assert cut.extents[1:, 1].sum() <= drive.write_behind


@pytest.mark.parametrize("model", [HddEngine, HddSpecification])
def test_writes_vanish_until_they_are_destaged(model: type[HddEngine] | type[HddSpecification]) -> None:
    requests = make_requests(WRITE, np.array([0, 900]) * SECTOR, SECTOR)
    device = model(small_drive())
    device.submit(requests, one_command_each(requests), 0)
    last = int(device.advance(every=True)["completed"][-1])
    at_once = device.power_cut(last)
    assert at_once.vanished.tolist() == [1]
    assert at_once.extents.tolist() == [[900 * SECTOR, SECTOR]]
    assert at_once.lost.tolist() == []
    assert device.submit(requests, one_command_each(requests), last).tolist() == [2, 3]
    later = device.power_cut(last + SECONDS)
    assert (later.vanished.tolist(), later.extents.tolist(), later.lost.tolist()) == ([], [], [])


@pytest.mark.parametrize("seed", range(300, 312))
def test_bytes_that_vanish_from_an_array_are_those_of_writes_that_do(seed: int) -> None:
    drive, striping = dataclasses.replace(deep_drive(seed), write_behind=40 * SECTOR), Striping(drives=3, stripe=8 * SECTOR)
    requests, arrivals = random_workload(seed, striping.capacity(drive.capacity), 60)
    end = int(serve(array_of(HddEngine, drive, striping), requests, arrivals)["completed"].max())
    for at in generator(seed, "cuts").integers(0, end + 1, 10).tolist():
        engine = array_of(HddEngine, drive, striping)
        engine.submit(requests, one_command_each(requests), arrivals)
        cut = engine.power_cut(at)
        lost = {(int(requests["offset"][i]), int(requests["offset"][i] + requests["length"][i])) for i in cut.vanished.tolist()}
        for offset, length in cut.extents.tolist():
            for sector in range(offset, offset + length, SECTOR):
                assert any(first <= sector < end for first, end in lost)
