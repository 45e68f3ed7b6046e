"""The engine and the specification of the SSD agree to the nanosecond, however the work is cut into calls."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import Integers, Requests
from flashsim.core.rng import generator
from flashsim.core.spans import SPAN
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import Model, check_invariants, drive, random_drive, random_workload, serve_all, with_pace, with_steps
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.tiers import seeds
from tests.yardstick import seconds


def assert_same_state(one: Model, other: Model) -> None:
    """Map, blocks, spare areas and statistics agree; these first, as they look for the extremes of wear where nobody has them any more."""
    np.testing.assert_equal(one.statistics(), other.statistics())
    for name in ("control", "pools", "blocks", "mapping", "pages", "spare", "trimmed", "own"):
        assert np.array_equal(getattr(one.state, name), getattr(other.state, name)), name


def assert_alike(seed: int, parameters: SsdParameters, requests: Requests, at: Integers) -> None:
    """Both models of a drive that is loaded in part serve a workload alike, and are in the same state afterwards.

    Every second record what their parts did, which is the same too: transfers of the others have no event where nothing follows.
    """
    loaded = int(generator(seed, "load").integers(0, parameters.logical_pages + 1)) * parameters.unit_size
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    for model in (engine, specification):
        model.load(0, loaded)
        model.record_spans(seed % 2 == 1)
    ours, theirs = serve_all(engine, requests, at), serve_all(specification, requests, at)
    assert np.array_equal(ours, theirs), f"seed {seed}"
    spans = [np.sort(model.spans(), order=SPAN.names) for model in (engine, specification)]
    assert np.array_equal(*spans), f"seed {seed}"
    assert len(spans[0]) > 0 or seed % 2 == 0
    assert len(ours) == len(requests)
    assert_same_state(engine, specification)
    check_invariants(engine)


def assert_models_agree(seed: int, count: int = 50, ftl: str = "page") -> None:
    """One random drive and workload, on a drive that is loaded in part."""
    parameters = drive_for(ftl, random_drive(seed))
    requests, at = random_workload(seed, parameters, count)
    assert_alike(seed, parameters, requests, at)


def assert_models_agree_in_turn(seeds: range, count: int) -> None:
    """Cases of all kinds of drives, one after the other."""
    for seed in seeds:
        assert_models_agree(seed, count, KINDS[seed % len(KINDS)])


@pytest.mark.parametrize("block", seeds(0, 4, deep=6))
def test_models_agree(block: int) -> None:
    assert_models_agree_in_turn(range(12 * block, 12 * block + 12), 50)


@pytest.mark.deep
@pytest.mark.parametrize("block", range(100))
def test_models_agree_at_length(block: int) -> None:
    assert_models_agree_in_turn(range(1000 + 20 * block, 1020 + 20 * block), 200)


@pytest.mark.parametrize("block", seeds(0, 1, deep=33))
def test_models_agree_where_reads_interrupt(block: int) -> None:
    """A thousand drives of all kinds whose reads come between the steps of programs and erases, and go to where pages were."""
    for seed in range(20_000 + 30 * block, 20_030 + 30 * block):
        parameters = drive_for(KINDS[seed % len(KINDS)], with_steps(seed, random_drive(seed)))
        assert_alike(seed, parameters, *random_workload(seed, parameters, 60))


def test_models_agree_as_plain_python() -> None:
    """The same kernels, interpreted."""
    program = "from tests.property.test_ssd_equality import assert_models_agree\nfor seed in range(500, 520): assert_models_agree(seed, 30)"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True, timeout=seconds(200))


@pytest.mark.parametrize("model", [SsdEngine, pytest.param(SsdSpecification, marks=pytest.mark.deep)])
@pytest.mark.parametrize("seed", seeds(0, 2, deep=13))
def test_any_split_gives_the_same_times(model: type[Model], seed: int) -> None:
    parameters = with_pace(seed, random_drive(seed))
    requests, at = random_workload(seed, parameters, 60)
    requests["dependency"] = -1
    order = np.argsort(at, kind="stable")
    requests, at = requests[order], at[order]
    requests["tag"] = np.arange(len(requests))
    whole = serve_all(model(parameters), requests, at)
    device, random, parts, sent = model(parameters), generator(seed, "split"), [], 0
    while sent < len(requests) or device.outstanding:
        until = device.now + 10 * int(random.integers(0, 60))
        due = int(np.searchsorted(at, until, side="right"))
        if due > sent:
            device.submit(requests[sent:due], one_command_each(requests[sent:due]), at[sent:due])
            sent = due
        every = bool(random.random() < 0.5)
        while device.now < until:
            parts.append(device.advance(until, every=every))
        parts.append(device.advance(until))
    assert np.array_equal(np.concatenate(parts), whole)


def test_a_step_stops_at_the_first_completion_or_at_its_end() -> None:
    parameters = drive()  # nothing is left to do after the last completion
    requests, at = random_workload(3, parameters, 40)
    times = serve_all(SsdEngine(parameters), requests, at)["completed"]
    for model in (SsdEngine(parameters), SsdSpecification(parameters)):
        model.submit(requests, one_command_each(requests), at)
        assert len(model.advance(int(times[0]) - 1)) == 0
        assert model.now == times[0] - 1
        for time in times:
            step = model.advance()
            assert step["completed"].tolist() == [time]
            assert model.now == time
        assert len(model.advance()) == 0
        assert model.now == times[-1]
        model.advance(int(times[-1]) + 5)
        assert model.now == times[-1] + 5
