"""A log that takes no time changes nothing: the same requests at the same nanoseconds as without one; and what a log needs is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from algorithms.restart.base import restart_design
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.units import NEVER
from flashsim.device.station.specification import StationSpecification
from flashsim.execution.pooled.logged import LoggedSpecification
from flashsim.execution.pooled.logging_design import Logging
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.execution.pooled.system import DISK, LOG, SSD
from flashsim.studies.crashing.histories import CHECKPOINTS, EXTENSIONS, drawn_history


def devices(history: Any) -> dict[int, Any]:
    """Its disk and its SSD, and no device for a log."""
    stations = history.stations()
    return {purpose: ([StationSpecification(stations[purpose])], stations[purpose].capacity) for purpose in (DISK, SSD)}


@pytest.mark.parametrize("seed", range(24))
def test_a_log_that_takes_no_time_changes_no_request(seed: int) -> None:
    history = drawn_history(seed, "none", (), EXTENSIONS[seed % 2], CHECKPOINTS[seed // 2 % 2])
    drawn = history.build()
    system, stream = drawn.system, drawn.stream
    plain = PoolSpecification(system, devices(history), stream)
    logged = LoggedSpecification(system, devices(history), stream, Logging(restart_design("none")))
    until = 0
    for _ in range(3000):
        if plain.env.peek() == NEVER:
            break
        plain.env.step()
        until = int(plain.env.now)
    plain.env.run(until + 1)
    logged.env.run(until + 1)
    assert logged.devices.requests == plain.devices.requests and logged.devices.completed == plain.devices.completed
    assert logged.counts == plain.counts and len(plain.devices.requests) > 5


def test_an_ssd_without_room_for_its_table_is_refused() -> None:
    history = drawn_history(4, "mmr")
    drawn = history.build()
    stations = history.stations()
    small = drawn.system.ssd * drawn.system.page_size
    few = {purpose: ([StationSpecification(replace(stations[purpose], capacity=small))], small) for purpose in (DISK, SSD)}
    with pytest.raises(InvalidParameterError, match="frames and their table need"):
        LoggedSpecification(drawn.system, few, drawn.stream, Logging(restart_design("mmr")))


def test_a_log_too_small_for_its_checkpoints_is_refused() -> None:
    """The size that the message names does, and a byte less does not, where times do not depend on places on the log's device."""
    history = drawn_history(17, "none")
    drawn = history.build()
    station = replace(history.stations()[LOG], exponential=False)

    def run(room: int, checkpoint: int) -> None:
        few = devices(history) | {LOG: ([StationSpecification(station)], room)}
        system = replace(drawn.system, checkpoint=checkpoint)
        LoggedSpecification(system, few, history.stream(), Logging(restart_design("none"))).env.run(1 << 20)

    told = r"log: (\d+) B, but records that recovery may need take (\d+) B in this run; checkpoint more often"
    for checkpoint in (1 << 40, 1 << 9):
        with pytest.raises(FlashsimError, match=told) as refused:
            run(2048, checkpoint)
        match = re.fullmatch(told, str(refused.value))
        assert match
        least = int(match[2])
        run(least, checkpoint)
        with pytest.raises(FlashsimError, match=f"take {least} B"):
            run(least - 1, checkpoint)
