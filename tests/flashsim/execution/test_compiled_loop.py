"""The compiled loop and its specification agree event by event on drawn systems, and it refuses what no device can serve."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import pytest
from numba import types

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.kernel import kernel_of
from flashsim.core.records import VECTOR
from flashsim.core.request import READ, Integers
from flashsim.core.rng import generator
from flashsim.core.state_table import State, state_of
from flashsim.core.units import MICROSECONDS, MILLISECONDS, NEVER
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution.closed_clients import ClosedClients
from flashsim.execution.compiled_loop import ACT, CompiledLoop, HostSide, Striped, issue
from flashsim.testing.pools import drawn_device
from tests.cases import with_each
from tests.flashsim.execution.clients_specification import SpecifiedSystem

COMPLETIONS = 150


def agree(seed: int) -> None:
    draw = generator(seed, "system")
    devices = [drawn_device(draw, seed * 10 + number) for number in range(int(draw.integers(1, 4)))]
    page = 512 * int(draw.integers(1, 4))
    stripes, pages = [], []
    for engines, _, stripe in devices:  # whole pages, at least one
        capacity = engines[0].capacity
        stripes.append(min(max(page, stripe // page * page), capacity // page * page))
        pages.append(len(engines) * (capacity // stripes[-1]) * (stripes[-1] // page))
    clients = ClosedClients(
        int(draw.integers(1, 20)), int(draw.choice([0, 1, 50, 3000])), bool(draw.integers(2)), page, float(draw.choice([0, 0.3, 1])), seed
    )
    loop = CompiledLoop(
        [Striped(engines, stripe) for stripe, (engines, _, _) in zip(stripes, devices, strict=True)], clients.side(pages), COMPLETIONS
    )
    loop.run(completions=COMPLETIONS)
    expected = SpecifiedSystem([models for _, models, _ in devices], stripes, clients, pages).run(COMPLETIONS)
    assert np.array_equal(loop.log_rows, expected), f"seed {seed}"


@pytest.mark.parametrize("seed", range(12))
def test_loop_and_specification_agree_on_drawn_systems(seed: int) -> None:
    agree(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(12, 512))
def test_loop_and_specification_agree_on_many_drawn_systems(seed: int) -> None:
    agree(seed)


def stations(*servers: int) -> list[StationEngine]:
    mean = 100 * MICROSECONDS
    return [StationEngine(StationParameters(mean, mean, servers=count, exponential=True, seed=seed)) for seed, count in enumerate(servers)]


def test_it_stops_and_goes_on_anywhere() -> None:
    clients = ClosedClients(7, 20 * MICROSECONDS, True, seed=3)
    whole, stepped = (CompiledLoop(stations(1, 3), clients.side([1000, 50]), 400) for _ in range(2))
    whole.run(completions=400)
    for until in range(0, 10 * MILLISECONDS, MILLISECONDS // 3):
        stepped.run(until)
        assert stepped.now <= until
    stepped.run(completions=400)
    assert np.array_equal(whole.log_rows, stepped.log_rows) and len(whole.log_rows) == 400


def test_long_work_keeps_the_tables_of_its_engines_small() -> None:
    (engine,) = stations(2)
    loop = CompiledLoop([engine], ClosedClients(40).side([1000]))
    loop.run(completions=50_000)
    assert loop.completions >= 50_000
    assert len(engine.host.tables.requests) < 1000


def test_clients_get_what_mean_value_analysis_says() -> None:
    """A closed network of two stations with one server each, equal exponential service, and think time (Reiser and Lavenberg, 1980)."""
    service, think, clients = 100 * MICROSECONDS, 300 * MICROSECONDS, 6
    queue, throughput = 0.0, 0.0
    for population in range(1, clients + 1):
        response = service * (1 + queue)
        throughput = population / (think + response)
        queue = throughput / 2 * response
    rates = []
    for seed in range(8):
        loop = CompiledLoop(stations(1, 1), ClosedClients(clients, think, True, seed=seed).side([1000, 1000]))
        loop.run(completions=20_000)
        rates.append(loop.completions / loop.now)
    assert abs(np.mean(rates) - throughput) < 4 * np.std(rates, ddof=1) / np.sqrt(len(rates))


_WANTED = types.Tuple((VECTOR,))
_wanted_of = state_of(_WANTED)


@kernel_of(ACT)
def _issue_what_the_state_says(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    wanted = _wanted_of(state)[0]
    for _ in range(wanted[0] if device < 0 else 0):
        issue(outbox, wanted[1], wanted[2], wanted[3], wanted[4], 0)
    return NEVER


def issue_once(wanted: Sequence[int]) -> CompiledLoop:
    """A loop of one station of 1 MiB with a host side that issues so many requests: device, operation, offset and length."""
    station = StationEngine(StationParameters(1, 1, capacity=1 << 20))
    return CompiledLoop([station], HostSide(_issue_what_the_state_says, (np.array(wanted, np.int64),), _WANTED, 0, 2, 4096))


@with_each(
    "wanted",
    [(1, 1, READ, 0, 512), (1, -1, READ, 0, 512), (1, 0, 9, 0, 512), (1, 0, READ, 1 << 20, 512), (1, 0, READ, -512, 512),
     (1, 0, READ, 7, 512), (1, 0, READ, 0, 0), (1, 0, READ, 0, 8192), (1, 0, READ, 0, 100)],
)  # fmt: skip
def test_requests_that_no_device_serves_are_refused(wanted: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameterError, match="request"):
        issue_once(wanted).run()


def test_more_requests_than_was_said_are_refused() -> None:
    loop = issue_once((2, 0, READ, 0, 512))
    loop.run()
    assert loop.completions == 2
    with pytest.raises(FlashsimError, match="it issued 3 requests at once, but said at most 2"):
        issue_once((3, 0, READ, 0, 512)).run()


def test_devices_must_be_idle_and_stripes_whole() -> None:
    side = ClosedClients(1).side([10])
    with pytest.raises(InvalidParameterError, match="devices"):
        CompiledLoop([], side)
    with pytest.raises(InvalidParameterError, match="stripe"):
        CompiledLoop([Striped(stations(1, 1), 100)], side)


def test_a_copy_goes_on_by_itself() -> None:
    loop = CompiledLoop(stations(1, 2), ClosedClients(4, 50).side([8, 8]), log=200)
    loop.run(completions=100)
    copy = deepcopy(loop)
    copy.run(completions=200)
    assert loop.completions == 100
    loop.run(completions=200)
    assert np.array_equal(copy.log_rows, loop.log_rows)


def test_drives_must_be_some_and_different() -> None:
    (one,) = stations(1)
    for devices in ([one, one], [Striped([one, one], 512)], [Striped([], 512)], []):
        with pytest.raises(InvalidParameterError, match="devices"):
            CompiledLoop(devices, ClosedClients(4).side([8, 8]))
