"""What models say of their next event: no request completes before it, and whoever steps from one to the next sees the same times."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.request import READ, Completions, make_requests
from flashsim.core.units import NEVER
from flashsim.device.striped import Striping
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing import disks
from flashsim.testing import flash_drives as drives
from tests.flashsim.hdd.deep_disks import array_of, deep_drive

SEEDS = range(8)


def stepped(model: DeviceModel) -> tuple[Completions, int]:
    """All completions, from event to event, and how many events there were."""
    parts, events = [], 0
    while model.outstanding:
        event = model.next_event
        assert model.now <= event < NEVER
        if event > model.now:
            assert len(model.advance(event - 1, every=True)) == 0
            assert model.now <= model.next_event <= event
        parts.append(model.advance(event, every=True))
        assert (parts[-1]["completed"] == event).all()
        events += 1
    return np.concatenate(parts), events


@pytest.mark.parametrize("kind", [SsdEngine, SsdSpecification])
def test_flash_drives(kind: type[SsdEngine | SsdSpecification]) -> None:
    for seed in SEEDS:
        parameters = drives.random_drive(seed)
        if parameters.endurance:  # would refuse writes in the middle
            continue
        requests, at = drives.random_workload(seed, parameters, 40)
        model, other = kind(parameters), kind(parameters)
        model.submit(requests, one_command_each(requests), at)
        found, events = stepped(model)
        assert np.array_equal(found, drives.serve_all(other, requests, at)), f"seed {seed}"
        assert events >= len(np.unique(found["completed"]))


@pytest.mark.parametrize("kind", [HddEngine, HddSpecification])
def test_disks(kind: type[HddEngine | HddSpecification]) -> None:
    for seed in SEEDS:
        parameters = disks.random_drive(seed)
        requests, at = disks.random_workload(seed, parameters.capacity, 40)
        model = kind(parameters)
        model.submit(requests, one_command_each(requests), at)
        found, _ = stepped(model)
        assert np.array_equal(found, disks.serve(kind(parameters), requests, at)), f"seed {seed}"


@pytest.mark.parametrize("kind", [HddEngine, HddSpecification])
def test_arrays_of_disks(kind: type[HddEngine | HddSpecification]) -> None:
    for seed in SEEDS:
        drive, striping = deep_drive(seed), Striping(drives=3, stripe=8 * disks.SECTOR)
        model = array_of(kind, drive, striping)
        requests, at = disks.random_workload(seed, model.capacity, 40)
        model.submit(requests, one_command_each(requests), at)
        found, _ = stepped(model)
        assert np.array_equal(found, disks.serve(array_of(kind, drive, striping), requests, at)), f"seed {seed}"


@pytest.mark.parametrize("kind", [HddEngine, HddSpecification])
def test_an_array_tells_of_every_drive(kind: type[HddEngine | HddSpecification]) -> None:
    drive, striping = disks.small_drive(), Striping(drives=2, stripe=8 * disks.SECTOR)
    model = array_of(kind, drive, striping)
    requests = make_requests(READ, 8 * disks.SECTOR, disks.SECTOR)  # on the second drive
    model.submit(requests, one_command_each(requests), 0)
    model.advance(0)
    completed = int(disks.serve(array_of(kind, drive, striping), requests)["completed"][0])
    assert model.outstanding == 1 and 0 < model.next_event <= completed


def test_nothing_happens_in_an_idle_drive() -> None:
    for model in (SsdEngine(drives.drive()), SsdSpecification(drives.drive()), HddEngine(disks.small_drive())):
        assert model.next_event == NEVER
