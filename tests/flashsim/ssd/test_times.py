"""Times that can be worked out by hand, on both models."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.parameters import build
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, make_requests
from flashsim.core.units import KIB, transfer_time
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, drive, serve_all
from tests.cases import with_each

#: A drive of 2008: 128 KiB requests run at the speed of the host link, after the latency of a command.
OLD = build(
    SsdParameters,
    {
        "capacity": "64MiB", "page_size": "4KiB", "pages_per_block": 64, "blocks_per_plane": 40, "planes_per_die": 1, "dies_per_package": 1,
        "packages_per_channel": 2, "channels": 4, "read": "20us", "program": "200us", "erase": "1.5ms", "channel_rate": "40MB/s",
        "link_read_rate": "120MB/s", "link_write_rate": "80MB/s", "read_latency": "0.35ms", "write_latency": "0.35ms", "queue_depth": 1,
        "gc_reserve": 2,
    },
)  # fmt: skip
MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])


def durations(device: Model, operation: int, count: int, size: int) -> list[int]:
    requests = make_requests(operation, np.arange(count) * size, size, serial=True)
    completions = serve_all(device, requests, device.now)
    return (completions["completed"] - completions["submitted"]).tolist()


@MODELS
def test_one_page(model: type[Model]) -> None:
    """The data sheet's latency, and the page over the host link."""
    device = model(OLD)
    assert durations(device, WRITE, 3, 4096) == [350_000 + transfer_time(4096, 80e6)] * 3
    assert durations(device, READ, 3, 4096) == [350_000 + transfer_time(4096, 120e6)] * 3


@MODELS
def test_large_requests_run_at_the_speed_of_the_link(model: type[Model]) -> None:
    device = model(OLD)
    device.load(0, OLD.capacity)
    assert durations(device, READ, 8, 128 * KIB) == [350_000 + 32 * transfer_time(4096, 120e6)] * 8


@MODELS
def test_sequential_writes_run_at_the_speed_of_the_link(model: type[Model]) -> None:
    device = model(OLD)
    assert durations(device, WRITE, 8, 128 * KIB) == [350_000 + 32 * transfer_time(4096, 80e6)] * 8


@MODELS
def test_what_needs_no_flash(model: type[Model]) -> None:
    """Reads of what was never written cost overhead and link; trims and flushes the overhead alone."""
    device = model(drive(queue_depth=1))
    assert durations(device, READ, 2, PAGE) == [40 - 20 - 10 + 10] * 2
    assert durations(device, TRIM, 2, PAGE) == [60 - 40 - 10] * 2
    assert durations(device, FLUSH, 2, PAGE) == [60 - 40 - 10] * 2


@MODELS
def test_a_partial_write_fetches_the_old_page(model: type[Model]) -> None:
    """The fetch (cells 20, channel 10) runs beside the link transfer (5); then channel 10 and cells 40."""
    device = model(drive(queue_depth=1, channels=1, capacity=20 * PAGE))
    assert durations(device, WRITE, 1, PAGE // 2) == [10 + 5 + 10 + 40]
    assert durations(device, WRITE, 1, PAGE // 2) == [10 + 20 + 10 + 10 + 40]
    assert device.statistics()["read_modify_write_reads"] == 1


@MODELS
def test_dies_work_side_by_side_and_the_controller_does_not(model: type[Model]) -> None:
    """Two page reads at once, on two channels: the second waits only for the controller and not for the die."""
    device = model(drive())
    device.load(0, 3 * PAGE)
    completions = serve_all(device, make_requests(READ, [0, PAGE, 2 * PAGE], PAGE))
    # Controller 10 each.  Page 0: cells until 30, channel 40, link 50; page 1 ten later.  Page 2 shares the die of page 0, free at 40.
    assert completions["completed"].tolist() == [50, 60, 80]


@MODELS
def test_requests_overlap_on_their_way_to_the_drive(model: type[Model]) -> None:
    """Three reads at once are 500 ns on their way together, those in turn each; a request counts from when it was submitted."""
    device = model(drive(read_submission=500, write_submission=70))
    device.load(0, 3 * PAGE)
    completions = serve_all(device, make_requests(READ, [0, PAGE, 2 * PAGE], PAGE), 1000)
    assert completions["completed"].tolist() == [1550, 1560, 1580]  # 50, 60 and 80 without their way
    assert completions["submitted"].tolist() == [1000] * 3 and completions["started"].tolist() == [1500] * 3
    assert durations(device, READ, 3, PAGE) == [550] * 3
    assert durations(device, FLUSH, 2, PAGE) == [70 + 10] * 2


@MODELS
def test_what_comes_by_a_shorter_way_arrives_first(model: type[Model]) -> None:
    device = model(drive(read_submission=500, queue_depth=1))
    requests = make_requests([READ, FLUSH], 0, PAGE)
    assert serve_all(device, requests, 0)["id"].tolist() == [1, 0]


@MODELS
@with_each("count", [1, 2, 7])
def test_a_buffer_takes_writes_after_their_way_and_each_after_its_command_and_bytes(model: type[Model], count: int) -> None:
    """Way 70, controller 10, then a command's 30 before its pages of 10 each; the controller's work on the others overlaps with that."""
    device = model(drive(write_submission=70, link_write_command=30, write_buffer=64 * PAGE))
    completions = serve_all(device, make_requests(WRITE, 2 * PAGE * np.arange(count), 2 * PAGE))
    assert completions["completed"].tolist() == [70 + 10 + 50 * (number + 1) for number in range(count)]


@MODELS
def test_a_read_command_holds_the_link_before_its_first_page(model: type[Model]) -> None:
    device = model(drive(link_read_command=25, queue_depth=1))
    device.load(0, 2 * PAGE)
    assert durations(device, READ, 1, 2 * PAGE) == [40 + 25 + 2 * 10]  # the second page is there by then
