"""What survives a power cut on a hard disk: all that was flushed or forced, and of the rest all but the last writes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.device.striping import Striping
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from tests.flashsim.hdd.drives import SECTOR, array_of, deep_drive, random_drive, random_workload, small_drive


@pytest.mark.parametrize("seed", range(200, 230))
def test_only_the_last_acknowledged_writes_vanish(seed: int) -> None:
    """Writes reach the media in order, so what vanishes is the tail of the acknowledged writes, back to the last one known durable."""
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
        writes = done[operations == WRITE]
        vanished = cut.vanished.tolist()
        assert sorted(writes[len(writes) - len(vanished) :].tolist()) == vanished
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


@pytest.mark.parametrize("model", [HddEngine, HddSpecification])
def test_a_drive_without_write_behind_loses_nothing_acknowledged(model: type[HddEngine] | type[HddSpecification]) -> None:
    requests = make_requests([WRITE, READ, WRITE], np.array([0, 5, 900]) * SECTOR, SECTOR, serial=True)
    for at in range(0, 12_000, 500):
        device = model(small_drive(write_behind=0))
        device.submit(requests, one_command_each(requests), 0)
        completed = device.advance(at, every=True)
        cut = device.power_cut(at)
        assert cut.vanished.tolist() == []
        assert sorted([*cut.lost.tolist(), *completed["id"].tolist()]) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(300, 312))
def test_on_an_array_a_flush_makes_all_durable_that_was_acknowledged_before(seed: int) -> None:
    drive, striping = dataclasses.replace(deep_drive(seed), write_behind=40 * SECTOR), Striping(drives=3, stripe=8 * SECTOR)
    requests, arrivals = random_workload(seed, striping.capacity(drive.capacity), 60)
    commands = one_command_each(requests)
    whole = array_of(HddEngine, drive, striping)
    whole.submit(requests, commands, arrivals)
    completions = whole.advance(every=True)
    for at in generator(seed, "cuts").integers(0, completions["completed"].max() + 1, 10).tolist():
        engine = array_of(HddEngine, drive, striping)
        engine.submit(requests, commands, arrivals)
        cut = engine.power_cut(at)
        done = completions[completions["completed"] <= at]
        flushes = done[requests["operation"][done["id"]] == FLUSH]
        if len(flushes):
            last = flushes[np.argmax(flushes["submitted"])]
            durable = done["id"][done["completed"] <= last["submitted"]]
            assert not set(cut.vanished.tolist()) & set(durable.tolist())
        lost = {(int(requests["offset"][i]), int(requests["offset"][i] + requests["length"][i])) for i in cut.vanished.tolist()}
        for offset, length in cut.extents.tolist():
            for sector in range(offset, offset + length, SECTOR):
                assert any(first <= sector < end for first, end in lost)
