"""Impossible drives, commands and loads are refused, each with one line that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.host import one_command_each
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.ssd.engine import SsdEngine
from flashsim.ssd.specification import SsdSpecification
from tests.flashsim.ssd.drives import PAGE, Model, drive, served

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": 48 * PAGE}, "capacity: .* one page must stay free"),
        ({"page_size": 1000}, "page_size: 1000, but it must be a multiple of 512"),
        ({"gc_reserve": 1}, "gc_reserve: 1, but it must be at least 2"),
        ({"gc_reserve": 8}, "gc_reserve: 8, but a plane has 8 blocks"),
        ({"read_latency": 30}, "read_latency: 30 ns, but the chip and its channel already take 30 ns"),
        ({"write_latency": 50}, "write_latency: 50 ns, but the chip and its channel already take 50 ns"),
        ({"queue_depth": 0}, "queue_depth: 0"),
    ],
)
def test_impossible_drives(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SsdEngine(drive(**changes))


@MODELS
@pytest.mark.parametrize(
    ("operation", "offset", "length", "message"),
    [
        (READ, 40 * PAGE - 512, 1024, "the drive ends at 81920 B"),
        (WRITE, 100, 512, "multiples of 512"),
        (WRITE, 0, 0, "at least 512 B"),
        (7, 0, 512, "operation: 7"),
    ],
)
def test_impossible_commands(model: type[Model], operation: int, offset: int, length: int, message: str) -> None:
    device = model(drive())
    requests = make_requests(operation, offset, length)
    with pytest.raises(InvalidParameterError, match=message):
        device.submit(requests, one_command_each(requests), 0)
    assert device.outstanding == 0


@MODELS
def test_loading(model: type[Model]) -> None:
    device = model(drive())
    with pytest.raises(InvalidParameterError, match="the drive ends at"):
        device.load(PAGE, 40 * PAGE)
    device.load(0, 40 * PAGE)
    assert device.now == 0
    assert device.statistics()["flash_programs"] == 0
    assert [device.version(page) for page in range(40)] == list(range(1, 41))
    requests = make_requests(READ, 0, PAGE)
    device.submit(requests, one_command_each(requests), 0)
    with pytest.raises(RefusedError, match="1 requests are outstanding"):
        device.load(0, PAGE)


def test_the_operation_table_grows() -> None:
    """A command that needs more rows than the table has at first."""
    parameters = drive(capacity=4000 * PAGE, blocks_per_plane=600, queue_depth=64)
    requests = make_requests([WRITE, READ, WRITE], 0, 4000 * PAGE)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(served(engine, requests), served(specification, requests))
