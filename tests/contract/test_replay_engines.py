"""Every replay engine moves exactly the bytes of a trace on a real file, and tells the times of every request."""

from __future__ import annotations

from pathlib import Path
from time import sleep

import numpy as np
import pytest

from flashsim.device.file import RealDevice
from flashsim.testing.contracts.replay import ReplayContract, replay_trace, trace
from tests.contract.members import each_of
from traces.replay.base import ENGINES, load_engine


@each_of(ENGINES)
class TestEngines(ReplayContract):
    """Every member."""


def test_our_own_submits_each_request_when_it_is_due(tmp_path: Path) -> None:
    arrival = 5_000_000_000 + np.arange(40) * 2_000_000
    _, done = replay_trace(load_engine("builtin"), tmp_path / "file", trace(40, kinds=2, arrival=arrival), "timed")
    due = np.arange(40) * 2_000_000
    assert (done["started"] >= due).all() and np.abs(done["submitted"] - due).max() < 10_000


def test_a_process_that_waits_for_its_turn_submits_no_request_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread may lose the processor wherever it reads a clock."""
    now = RealDevice.now

    def later(device: RealDevice) -> int:
        sleep(0.003)
        return now.__get__(device)  # type: ignore[no-any-return]

    monkeypatch.setattr(RealDevice, "now", property(later))
    arrival = np.arange(10) * 2_000_000
    _, done = replay_trace(load_engine("builtin"), tmp_path / "file", trace(10, kinds=2, arrival=arrival), "timed")
    assert (done["started"] >= arrival).all()
