"""The nearest prices of CPU work: no other list of prices comes nearer to what table 3 implies, and how near that is."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.apps.papers.do2009 import cpu_fit
from flashsim.apps.papers.do2009.cpu_fit import RUNS, Run, committed_work
from flashsim.apps.papers.do2009.slides import error_bound, implied_times
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.execution.requests import Work


def implied_seconds(without: str = "") -> dict[Run, float]:
    """From the formula's I/O seconds on the HDD."""
    every = implied_times({run: cpu_fit.hdd_seconds(*run) for run in RUNS if run[0] != without})
    return {run: cpu for run, (_, cpu) in every.items()}


def test_no_prices_come_nearer_than_30_percent_and_14_without_grace_hash() -> None:
    assert error_bound(implied_seconds()).error == pytest.approx(0.299, abs=0.001)
    assert error_bound(implied_seconds("grace-hash")).error == pytest.approx(0.136, abs=0.001)


@pytest.mark.parametrize("without", ["", "grace-hash"])
def test_the_bound_is_met_and_other_prices_are_farther(without: str) -> None:
    seconds = implied_seconds(without)
    best = error_bound(seconds)
    assert max(abs(best.seconds[run] / seconds[run] - 1) for run in seconds) == pytest.approx(best.error)
    assert min(best.prices.values()) >= 0
    work = np.array([[committed_work()[0][run].get(kind, 0) for kind in Work] for run in seconds]) / SECONDS
    random, published = generator(1, "prices"), np.array(list(seconds.values()))
    nearest = np.array([best.prices[kind] for kind in Work])
    for _ in range(1000):
        errors = work @ (nearest * random.uniform(0.8, 1.2, len(Work)) + random.exponential(20, len(Work))) / published - 1
        assert abs(errors).max() >= best.error


def test_times_that_follow_from_prices_are_met() -> None:
    prices = dict(zip(Work, range(100, 900, 100), strict=True))
    seconds = {run: sum(prices[kind] * committed_work()[0][run].get(kind, 0) for kind in Work) / SECONDS for run in RUNS}
    assert error_bound(seconds).error == pytest.approx(0, abs=1e-9)
    assert error_bound({run: value / 10 for run, value in seconds.items()}, scale=0.1).error == pytest.approx(0, abs=1e-9)


@pytest.mark.deep
def test_prices_fitted_without_a_join_explain_the_others_better() -> None:
    cells = [cell for cell in cpu_fit.cells() if "grace-hash" not in cell.name and "hybrid" in cell.name]
    models = cpu_fit.prices(), cpu_fit.prices(without=("grace-hash",))
    assert dict(models[0].prices()) == dict(cpu_fit.fit_preset()[0].prices())
    errors = [
        max(abs(cell.value(np.array([model.user[kind] for kind in Work])) / cell.published - 1) for cell in cells) for model in models
    ]
    assert errors[1] < errors[0]
