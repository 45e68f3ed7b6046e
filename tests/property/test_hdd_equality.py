"""The hard disk's engine and specification agree to the nanosecond, however the work is cut into calls."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from flashsim.core.request import Completions
from flashsim.core.rng import generator
from flashsim.core.spans import Spans
from flashsim.core.units import SECONDS
from flashsim.device.block_layer import split
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import random_drive, random_workload
from tests.flashsim.hdd.deep_disks import deep_drive, serve_in_pieces


def assert_served_time_is_divided(spans: Spans, completions: Completions) -> None:
    """What commands waited for follows one after the other, one command after the other, and ends when requests complete."""
    assert (spans["end"] > spans["begin"]).all() and (spans["begin"][1:] >= spans["end"][:-1]).all()
    last = {int(request): int(end) for request, end in zip(spans["request"], spans["end"], strict=True)}
    assert all(last[int(one["id"])] == one["completed"] for one in completions if one["completed"] > one["started"])


def compare(seed: int) -> None:
    """One drive, one workload: in one go, in pieces, and up to a power cut after which work goes on.

    Every third drive is a simple one; the others have layouts, controllers, buffers and schedulers of all kinds.
    """
    drive = deep_drive(seed) if seed % 3 else random_drive(seed)
    requests, arrivals = random_workload(seed, drive.capacity, 40)
    maximum = 512 * int(generator(seed, "split").choice([1, 8, 256, 1024]))
    commands = split(requests, maximum)
    engine, specification = HddEngine(drive), HddSpecification(drive)
    completions, spans = [], []
    for model in (engine, specification):
        model.record_spans(True)
        model.submit(requests, commands, arrivals)
        completions.append(model.advance(every=True))
        spans.append(model.spans())
        model.record_spans(False)
    assert len(completions[0]) == len(requests)
    np.testing.assert_array_equal(*spans)
    assert_served_time_is_divided(spans[0], completions[0])
    np.testing.assert_array_equal(completions[0], completions[1])
    assert engine.now == specification.now
    for piecewise in (HddEngine(drive), HddSpecification(drive)):
        np.testing.assert_array_equal(serve_in_pieces(piecewise, requests, arrivals, maximum, seed), completions[0])
    for model in (engine, specification):
        model.advance(model.now + SECONDS)  # background work ends
    assert engine.statistics() == specification.statistics()

    end = int(completions[0]["completed"].max())
    at = int(generator(seed, "cut").integers(0, end + 1))
    engine, specification = HddEngine(drive), HddSpecification(drive)
    cuts = []
    for model in (engine, specification):
        model.submit(requests, commands, arrivals)
        cuts.append(model.power_cut(at))
        assert (model.now, model.outstanding) == (at, 0)
    for name in ("at", "lost", "vanished", "extents"):
        np.testing.assert_array_equal(getattr(cuts[0], name), getattr(cuts[1], name), err_msg=name)
    done = completions[0]["id"][completions[0]["completed"] <= at]
    assert set(cuts[0].lost.tolist()) == set(range(len(requests))) - set(done.tolist())
    assert set(cuts[0].vanished.tolist()) <= set(done.tolist())
    again = []
    for model in (engine, specification):
        model.submit(requests, commands, arrivals + at)
        again.append(model.advance(every=True))
    np.testing.assert_array_equal(again[0], again[1])


@pytest.mark.parametrize("block", range(6))
def test_engine_equals_specification(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        compare(seed)


@pytest.mark.deep
@pytest.mark.parametrize("block", range(30))
def test_engine_equals_specification_at_length(block: int) -> None:
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        compare(seed)


def test_engine_equals_specification_without_compiler() -> None:
    program = "from tests.property.test_hdd_equality import compare\nfor seed in range(100, 105): compare(seed)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    finished = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
