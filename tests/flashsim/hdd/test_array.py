"""Striped drives: which one holds what, and how much faster many are than one."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.device.block_layer import split as split_by_size
from flashsim.hdd.engine import HddEngine
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.specification import HddSpecification
from flashsim.hdd.striping import merge, split
from tests.flashsim.hdd.drives import SECTOR, random_workload, serve, small_drive


def array(drives: int, stripe: int = 8, **changes: object) -> HddParameters:
    return small_drive(drives=drives, stripe=stripe * SECTOR, **changes)


@pytest.mark.parametrize(("drives", "stripe"), [(2, 1), (2, 8), (3, 5), (18, 3)])
def test_every_byte_goes_to_the_drive_of_its_stripe_and_back(drives: int, stripe: int) -> None:
    parameters = array(drives, stripe)
    draw = generator(drives, "striping")
    sectors = parameters.total_capacity // SECTOR
    for _ in range(200):
        first = int(draw.integers(sectors))
        count = int(draw.integers(1, min(200, sectors - first) + 1))
        requests = make_requests(READ, first * SECTOR, count * SECTOR)
        commands = split(requests, one_command_each(requests), parameters)
        held = {
            (sector // stripe % drives, sector // stripe // drives * stripe + sector % stripe) for sector in range(first, first + count)
        }
        size = parameters.capacity // SECTOR
        addresses = (commands["offset"] // SECTOR).tolist(), (commands["length"] // SECTOR).tolist()
        runs = [(address // size, address % size, length) for address, length in zip(*addresses, strict=True)]
        assert {(drive, start + step) for drive, start, length in runs for step in range(length)} == held
        assert len({drive for drive, _, _ in runs}) == len(runs) and sum(length for _, _, length in runs) == count
        extents = np.stack([commands["offset"], commands["length"]], axis=1)
        assert merge(extents, parameters).tolist() == [[first * SECTOR, count * SECTOR]]


def test_flushes_and_trims_go_to_all_drives() -> None:
    for operation in (FLUSH, TRIM):
        requests = make_requests(operation, 0, 0 if operation == FLUSH else 4096)
        commands = split(requests, one_command_each(requests), array(3))
        assert commands["offset"].tolist() == [0, 2**19, 2**20] and commands["length"].tolist() == [0, 0, 0]


def test_the_host_sees_whole_stripes_of_all_drives() -> None:
    assert HddEngine(array(18)).capacity == 18 * 2**19
    assert HddSpecification(array(3, stripe=100)).capacity == 3 * (2**19 // 51200) * 51200


def test_independent_drives_share_a_backlog() -> None:
    """Random reads that all wait from the start: the drive with the most work decides, and that is a little more than its share."""
    share, ends = generator(4, "backlog").random(1800), {}
    for drives in (1, 18):
        sectors = (share * array(drives, stripe=1).total_capacity // SECTOR).astype(np.int64)
        requests = make_requests(READ, sectors * SECTOR, SECTOR)
        ends[drives] = int(serve(HddEngine(array(drives, stripe=1)), requests)["completed"].max())
    busiest = np.bincount(sectors % 18).max() / 1800
    assert ends[18] / ends[1] == pytest.approx(busiest, rel=0.1)


@pytest.mark.parametrize("operation", [READ, WRITE])
def test_a_stream_runs_at_the_rate_of_all_drives(operation: int) -> None:
    """Requests of a stripe on each of four drives, one after the other: a link of its own carries each stripe."""
    requests = make_requests(operation, np.arange(40) * 32 * SECTOR, 32 * SECTOR, serial=True)
    ends = [serve(HddEngine(array(drives, capacity=0)), requests)["completed"] for drives in (1, 4)]
    assert np.diff(ends[0]).mean() / np.diff(ends[1]).mean() > 3
    assert np.diff(ends[1])[5:].min() >= 100 + 8 * 200


@pytest.mark.parametrize("drives", [8, 18])
def test_arrays_of_the_thesis(drives: int) -> None:
    """Engine and specification agree, and every request is served once."""
    parameters = array(drives, scheduler="sptf", queue_depth=4)
    requests, arrivals = random_workload(drives, parameters, 200)
    commands = split_by_size(requests, 64 * SECTOR)
    found = []
    for model in (HddEngine, HddSpecification):
        device = model(parameters)
        device.submit(requests, commands, arrivals)
        found.append(device.advance(every=True))
    np.testing.assert_array_equal(found[0], found[1])
    assert sorted(found[0]["id"].tolist()) == list(range(200))
