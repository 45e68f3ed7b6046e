"""The queueing station: engine and specification agree, any split into calls gives the same times, and waits are those of theory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.model import DeviceModel
from flashsim.core.parameters import build
from flashsim.core.request import READ, TRIM, Completions, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import MICROSECONDS, NEVER
from flashsim.device.block_layer import split
from flashsim.device.device import Device
from flashsim.device.presets import Preset, from_document
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.device.station.specification import StationSpecification
from flashsim.ssd.precondition import Precondition
from tests.cases import with_each

KINDS = (StationEngine, StationSpecification)


def random_station(seed: int) -> StationParameters:
    """Short times, so that much falls on one nanosecond."""
    draws = generator(seed, "station")
    read, write = draws.integers(1, 8, 2).tolist()
    rate = int(draws.choice([0, 10**12]))
    return StationParameters(read, write, servers=int(draws.integers(1, 5)), rate=rate, exponential=bool(draws.integers(2)), seed=seed)


def random_work(seed: int, count: int) -> tuple[Requests, np.ndarray]:
    """Requests and arrival times."""
    draws = generator(seed, "work")
    requests = make_requests(draws.integers(READ, TRIM + 1, count), draws.integers(0, 64, count) * 512, draws.integers(1, 9, count) * 512)
    waits = draws.random(count) < 0.3
    requests["dependency"] = np.where(waits, draws.integers(-1, np.maximum(np.arange(count), 0), endpoint=False), -1)
    requests["think"] = draws.integers(0, 6, count)
    requests["tag"] = draws.integers(0, 100, count)
    return requests, draws.integers(0, 4 * count, count)


def run(model: DeviceModel, seed: int, cut: int = NEVER) -> list[Completions]:
    """All that completes, in steps of drawn lengths, and after a power cut another piece of work."""
    draws, parts = generator(seed, "steps"), []
    for number in range(2):
        requests, arrivals = random_work(seed + number, 60)
        model.submit(requests, split(requests, 2048), model.now + arrivals)
        while model.outstanding:
            assert model.now <= model.next_event < NEVER
            if model.now > cut:
                lost = model.power_cut(model.now + int(draws.integers(5))).lost
                parts.append(np.sort(lost))
                break
            step = draws.integers(3)
            until = model.now + int(draws.integers(1, 20)) if step else NEVER
            parts.append(model.advance(until, every=step == 2, wait=int(draws.integers(1, 4))))
    return [*parts, np.array([model.now])]


@with_each("seed", range(30))
def test_engine_and_specification_agree(seed: int) -> None:
    parameters, cut = random_station(seed), NEVER if seed % 2 else 50
    engine, specification = (kind(parameters) for kind in KINDS)
    for mine, theirs in zip(run(engine, seed, cut), run(specification, seed, cut), strict=True):
        assert np.array_equal(mine, theirs)
    assert engine.statistics() == specification.statistics()


@pytest.mark.parametrize("kind", KINDS)
def test_any_split_into_calls_gives_the_same_times(kind: type[StationEngine | StationSpecification]) -> None:
    parameters = random_station(3)
    requests, arrivals = random_work(3, 60)
    whole, stepped = kind(parameters), kind(parameters)
    for model in (whole, stepped):
        model.submit(requests, one_command_each(requests), arrivals)
    parts = []
    while stepped.outstanding:
        parts.append(stepped.advance(stepped.next_event, every=True))
    assert np.array_equal(np.concatenate(parts), whole.advance(every=True))


@pytest.mark.parametrize(("servers", "exponential"), [(1, True), (3, True), (1, False)])
def test_waits_are_those_of_theory(servers: int, exponential: bool) -> None:
    """Poisson arrivals at 0.7 of what the servers can do: M/M/1, M/M/3 (Erlang's C formula) and M/D/1 (Pollaczek and Khinchine)."""
    service, load, count = 100 * MICROSECONDS, 0.7, 40_000
    means = []
    for seed in range(8):
        gaps = generator(seed, "arrivals", servers).exponential(service / (load * servers), count)
        parameters = StationParameters(service, service, servers=servers, exponential=exponential, seed=seed)
        device = Device(Preset("station", "station", "", parameters, {}))
        completions = device.serve(make_requests(READ, np.arange(count) * 512, 512), np.cumsum(gaps).astype(np.int64))
        means.append(np.mean(completions["started"] - completions["submitted"]))
    offered = load * servers
    last = offered**servers / math.factorial(servers) / (1 - load)
    queued = last / (sum(offered**number / math.factorial(number) for number in range(servers)) + last)
    expected = queued * service / (servers * (1 - load)) / (1 if exponential else 2)
    assert abs(np.mean(means) - expected) < 4 * np.std(means, ddof=1) / math.sqrt(len(means))


def test_a_preset_may_be_a_station() -> None:
    values = {name: {"value": value, "source": "a test"} for name, value in {"read": "5us", "write": "9us", "rate": "1GB/s"}.items()}
    device = Device(from_document({"kind": "station", "parameters": values}, Path("servers.toml")))
    assert (device.kind, device.capacity) == ("station", 1 << 40)
    done = device.serve(make_requests(READ, 0, 4096))
    assert done["completed"][0] == 5 * MICROSECONDS + 4096
    assert device.statistics() == {"reads": 1, "writes": 0, "busy_time": 9096}
    assert not device.record_spans() and device.block_map() is None
    with pytest.raises(RefusedError, match="is not a flash drive"):
        device.precondition(Precondition())


@pytest.mark.parametrize("name", ["read", "write", "servers"])
def test_impossible_parameters_are_refused(name: str) -> None:
    values = {"read": 1, "write": 1, "servers": 1, name: 0}
    with pytest.raises(InvalidParameterError, match=name):
        build(StationParameters, values)
