"""A system of pools and its SimPy specification ask their devices for the same, at the same nanosecond, and count the same."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.units import NEVER
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.testing.pools import Drawn, drawn_system

REQUESTS, EVENTS = 400, 20_000


def check(seed: int) -> None:
    """Both do the same until so many requests were made, or so many events happened: a pool that holds all pages asks for few."""
    system, engines, specified = drawn_system(seed)
    stream = Drawn(system.pages, seed)
    specification = PoolSpecification(system, specified, stream)
    env, devices = specification.env, specification.devices
    for _ in range(EVENTS):
        if len(devices.requests) >= REQUESTS or env.peek() == NEVER:
            break
        env.step()
    until = int(env.now)
    env.run(until + 1)
    run = PoolRun(system, engines, stream, intervals=50, request_rows=1 << 16)
    run.run(until)
    asked = run.requests
    assert [row[:5] for row in asked.tolist()] == devices.requests, seed
    assert asked.cause.tolist() == devices.causes, seed
    completed = {number: when for when, device, number in devices.completed if device != len(specified) - 1}  # the processor's are not told
    others = asked.device_number != len(specified) - 1
    assert asked.completed[others].tolist() == [completed.get(number, -1) for number in np.flatnonzero(others).tolist()], seed
    counted = {name: count for name, count in run.counts.items() if not name.startswith("ssd_") or "read" in name or "write" in name}
    assert counted == {name: specification.counts[name] for name in counted}, seed
    assert list(run.by_kind.values()) == [specification.by_kind[kind] for kind in range(3)], seed
    assert list(run.end_times.values()) == [specification.ended.get(kind, 0) for kind in range(3)], seed


@pytest.mark.parametrize("seeds", range(8))
def test_both_agree_on_drawn_systems(seeds: int) -> None:
    for seed in range(3 * seeds, 3 * seeds + 3):
        check(seed)


@pytest.mark.deep
@pytest.mark.parametrize("hundred", range(10))
def test_both_agree_on_a_thousand_drawn_systems(hundred: int) -> None:
    for seed in range(24 + 100 * hundred, 124 + 100 * hundred):
        check(seed)
