"""The block layer: every byte of a request goes into exactly one command, in order, and no command is too large."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import FLUSH, READ, SECTOR, make_requests
from flashsim.device.block_layer import check, split
from tests.cases import with_each

extents = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 900)), min_size=1, max_size=10)


@given(extents, st.integers(1, 300))
def test_commands_cover_each_request_once_and_in_order(extents: list[tuple[int, int]], maximum: int) -> None:
    requests = make_requests(READ, [offset * SECTOR for offset, _ in extents], [length * SECTOR for _, length in extents])
    commands = split(requests, maximum * SECTOR)
    assert commands["length"].max() <= maximum * SECTOR
    assert (np.diff(commands["request"]) >= 0).all()
    for row, request in enumerate(requests):
        mine = commands[commands["request"] == row]
        assert mine["offset"][0] == request["offset"]
        assert (mine["offset"][1:] == mine["offset"][:-1] + mine["length"][:-1]).all()
        assert mine["length"].sum() == request["length"]
        assert (mine["length"][:-1] == maximum * SECTOR).all()


def test_a_flush_is_one_command() -> None:
    assert len(split(make_requests(FLUSH, [0, 0], 0))) == 2


@with_each(
    ("offset", "length", "error"),
    [
        (100, 512, InvalidParameterError),
        (512, 100, InvalidParameterError),
        (0, 0, InvalidParameterError),
        (0, 4096, CapacityError),
        (2048, 512, CapacityError),
        (-512, 512, CapacityError),
    ],
)
def test_impossible_requests_are_refused(offset: int, length: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        check(make_requests(READ, offset, length), 2048, "a drive")


def test_possible_requests_pass() -> None:
    assert check(make_requests(READ, [0, 1536], [2048, 512]), 2048, "a drive") is None
