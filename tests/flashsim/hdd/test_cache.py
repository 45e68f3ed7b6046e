"""What the two segments are for: sequential synchronous pages cost their transfer, and a revolution without."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE, make_requests
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import SECTOR, serve, small_drive
from tests.cases import with_each

Model = type[HddEngine] | type[HddSpecification]
MODELS = pytest.mark.parametrize("model", [HddEngine, HddSpecification])


@MODELS
@with_each("operation", [READ, WRITE])
def test_sequential_sectors_cost_their_transfer(model: Model, operation: int) -> None:
    """Overhead 100 ns and 200 ns on the link each, once the stream runs."""
    completed = serve(model(small_drive()), make_requests(operation, np.arange(300) * SECTOR, SECTOR, serial=True))["completed"]
    np.testing.assert_array_equal(np.diff(completed[1:]), 300)


@MODELS
@with_each("operation", [READ, WRITE])
def test_without_segments_they_cost_a_revolution(model: Model, operation: int) -> None:
    """The next sector has just passed: its slot, a hundred nanoseconds, comes after one revolution more."""
    drive = small_drive(read_ahead=0, write_behind=0)
    completed = serve(model(drive), make_requests(operation, np.arange(20) * SECTOR, SECTOR, serial=True))["completed"]
    np.testing.assert_array_equal(np.diff(completed), drive.rotation + 100)


@MODELS
def test_forced_writes_and_flushes_wait_for_the_media(model: Model) -> None:
    plain = make_requests(WRITE, 30 * 20 * SECTOR, SECTOR)
    forced = plain.copy()
    forced["flags"] = FORCE_UNIT_ACCESS
    flushed = np.concatenate([plain, make_requests(FLUSH, 0, 0)])
    assert serve(model(small_drive()), plain)["completed"][0] == 300
    from_media = int(serve(model(small_drive()), forced)["completed"][0])
    assert from_media > 400  # a seek of some cylinders alone
    assert serve(model(small_drive()), flushed)["completed"].tolist() == [300, from_media]
    assert serve(model(small_drive(write_behind=0)), plain)["completed"][0] == from_media


@MODELS
def test_buffered_reads_survive_a_write_elsewhere_but_not_one_over_them(model: Model) -> None:
    """After a pause the segment holds what follows the first read."""
    hits = []
    for written in (500, 2):
        device = model(small_drive())
        requests = make_requests([READ, WRITE, READ], np.array([0, written, 1]) * SECTOR, np.array([1, 1, 4]) * SECTOR)
        serve(device, requests[:1])
        device.advance(100_000)
        serve(device, requests[1:], 100_000)
        hits.append(device.statistics()["read_hits"])
    assert hits == [1, 0]


@MODELS
def test_a_read_of_unwritten_data_waits_for_them(model: Model) -> None:
    device = model(small_drive())
    requests = make_requests([WRITE, READ], 900 * SECTOR, SECTOR)
    forced = requests[:1].copy()
    forced["flags"] = FORCE_UNIT_ACCESS
    on_media = int(serve(model(small_drive()), forced)["completed"][0])
    assert serve(device, requests)["completed"][1] > on_media


@MODELS
def test_a_full_segment_holds_the_next_write_back(model: Model) -> None:
    """With room for one command each write waits until the one before is on the media; with more room none does."""
    requests = make_requests(WRITE, np.arange(4) * 4 * SECTOR, 4 * SECTOR, serial=True)
    small = serve(model(small_drive(write_behind=4 * SECTOR)), requests)["completed"]
    large = serve(model(small_drive()), requests)["completed"]
    np.testing.assert_array_equal(np.diff(large), 900)
    assert small[0] == large[0]
    assert (np.diff(small) > 900).all()


@MODELS
def test_trim_costs_only_the_overhead(model: Model) -> None:
    assert serve(model(small_drive()), make_requests(TRIM, 0, 64 * SECTOR))["completed"].tolist() == [100]


@MODELS
def test_requests_larger_than_any_segment_are_served(model: Model) -> None:
    drive = small_drive()
    for operation in (READ, WRITE):
        requests = make_requests(operation, 0, drive.capacity)
        device = model(drive)
        device.submit(requests, one_command_each(requests), 0)
        assert device.advance()["completed"][0] > drive.sectors * 200
