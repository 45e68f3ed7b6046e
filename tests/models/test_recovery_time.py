"""Time of recovery by formula is that of the simulation where devices take constant times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.restart.base import RESTARTS
from flashsim.experiments.crashing import single
from flashsim.experiments.crashing.histories import CrashHistory, drawn_history


@pytest.mark.parametrize("restart", RESTARTS.names())
def test_formula_and_simulation_agree(restart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stations = CrashHistory.stations
    monkeypatch.setattr(
        CrashHistory, "stations", lambda history: {purpose: replace(each, exponential=False) for purpose, each in stations(history).items()}
    )
    totals = [0, 0.0]
    for seed in range(6):
        crash = single.recover_crash(single.crash(drawn_history(seed, restart)))
        assert not crash.wrong
        for phase, (simulated, formula) in crash.phases.items():
            assert simulated == pytest.approx(formula), (seed, phase)
            totals = [totals[0] + simulated, totals[1] + formula]
    assert totals[0] > 0
