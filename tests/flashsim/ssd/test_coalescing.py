"""A coalescing write buffer on both models: parts of a flash page wait there until commands have written all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import RefusedError
from flashsim.core.request import FLUSH, READ, WRITE, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, drive, serve_all

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
HALF = PAGE // 2
#: One die: the controller takes 10, half a page over the link 5, a page over the channel 10, out of the cells 20, into them 40.
COALESCING: dict[str, Any] = {
    "channels": 1,
    "capacity": 20 * PAGE,
    "queue_depth": 1,
    "write_buffer": 2 * PAGE,
    "write_buffer_mode": "coalescing",
}


def loaded(model: type[Model], **changes: Any) -> Model:
    device = model(drive(**{**COALESCING, **changes}))
    device.load(0, 10 * PAGE)
    return device


def numbers(device: Model) -> tuple[int, int]:
    """Flash pages programmed, and read for a write of a part of them."""
    statistics = device.statistics()
    return statistics["flash_programs"], statistics["read_modify_write_reads"]


@MODELS
def test_two_halves_are_programmed_once(model: type[Model]) -> None:
    """Each is acknowledged after 15, when it has crossed the link; without the buffer each is a read-modify-write."""
    halves = make_requests(WRITE, np.arange(4) * HALF, HALF, serial=True)
    device, plain = loaded(model), loaded(model, write_buffer=0)
    assert np.diff(serve_all(device, halves)["completed"], prepend=0).tolist() == [15, 15, 15, 15]
    serve_all(plain, halves)
    assert (numbers(device), numbers(plain)) == ((2, 0), (4, 4))


@MODELS
def test_a_whole_page_is_as_without_the_buffer(model: type[Model]) -> None:
    """Of a write of one and a half pages the page is programmed before it is acknowledged, and its other half waits."""
    device, plain = loaded(model), loaded(model, write_buffer=0)
    whole = make_requests(WRITE, np.arange(4) * PAGE, PAGE, serial=True)
    assert np.array_equal(serve_all(device, whole), serve_all(plain, whole))
    longer = make_requests(WRITE, [4 * PAGE, 5 * PAGE + HALF], [PAGE + HALF, HALF], serial=True)
    times = serve_all(device, longer, device.now)
    # 10 controller, 10 and 5 link, 10 channel and 40 cells from 20 on; then as two halves
    assert (times["completed"] - times["submitted"]).tolist() == [70, 15]
    assert numbers(device) == (6, 0)


@MODELS
def test_a_half_without_its_other_half_is_completed_from_flash(model: type[Model]) -> None:
    """The half of another page, a read of the rest, or a flush makes it leave; a write of the whole page drops it."""
    for operation, offset, length, programs, reads in (
        (WRITE, 4 * PAGE, HALF, 1, 1),
        (READ, 0, PAGE, 1, 1),
        (FLUSH, 0, 0, 1, 1),
        (READ, 0, HALF, 0, 0),
        (WRITE, 0, PAGE, 1, 0),
    ):
        device = loaded(model)
        serve_all(device, make_requests([WRITE, operation], [0, offset], [HALF, length], serial=True))
        assert numbers(device) == (programs, reads), (operation, offset, length)


@MODELS
def test_halves_go_on_where_the_last_one_ended(model: type[Model]) -> None:
    device = loaded(model, continuation_latency=20, continuation_limit=PAGE)
    times = serve_all(device, make_requests(WRITE, np.arange(8) * HALF, HALF, serial=True))
    assert np.diff(times["completed"], prepend=0).tolist()[:3] == [15, 25, 25]
    assert (numbers(device), device.statistics()["continued_writes"]) == ((4, 0), 7)


def test_parts_of_pages_are_not_protected() -> None:
    with pytest.raises(RefusedError, match="power_protected: not supported with a coalescing write_buffer"):
        drive(**COALESCING, power_protected=True)
