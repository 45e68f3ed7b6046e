"""Spans of the engine: every hold of a part is told, and they account for its busy time."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.spans import COMMAND, ERASE, GC, MOVE
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.testing.flash_drives import random_drive, random_workload, served


@pytest.mark.parametrize("seed", range(5))
def test_spans_are_the_busy_time(seed: int) -> None:
    parameters = random_drive(seed)
    engine, silent = SsdEngine(parameters), SsdEngine(parameters)
    requests, at = random_workload(seed, parameters, 200)
    engine.record_spans(True)
    assert np.array_equal(served(engine, requests, at), served(silent, requests, at))
    spans, told = engine.spans(), engine.statistics()
    busy = [*told["die_busy_ns"], *told["channel_busy_ns"], told["link_busy_ns"], told["controller_busy_ns"]]
    length = spans["end"] - spans["begin"]
    assert np.array_equal(np.bincount(spans["server"], length, len(busy)).astype(int), busy)
    assert (length > 0).all() and (np.diff(spans["end"]) >= 0).all()
    for server in range(len(busy)):  # one hold at a time
        own = spans[spans["server"] == server]
        assert (own["begin"][1:] >= own["end"][:-1]).all()
    assert np.count_nonzero(spans["kind"] == COMMAND) == len(requests)
    assert set(spans["cause"][spans["kind"] == MOVE]) <= {GC, 4}
    assert np.count_nonzero(spans["kind"] == ERASE) >= told["flash_erases"] / parameters.planes_per_die
    assert len(engine.spans()) == len(silent.spans()) == 0


def test_a_long_run_loses_no_span() -> None:
    parameters = random_drive(2)
    engine = SsdEngine(parameters)
    engine.record_spans(True)
    for seed in range(20):
        requests, at = random_workload(seed, parameters, 2000)
        served(engine, requests, at + engine.now)
    spans, told = engine.spans(), engine.statistics()
    assert len(spans) > 100_000
    assert int((spans["end"] - spans["begin"])[spans["server"] < parameters.dies].sum()) == sum(told["die_busy_ns"])
