"""Why of fetches, of queries on smart drives, and of loads on several drives; and Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.mechanisms import DeviceMechanism
from flashsim.core.rng import generator
from flashsim.experiments.why.counterfactuals import Counterfactuals, Ideals


def check_sums(document: dict[str, Any]) -> None:
    for phase in document["phases"]:
        steps = dict(phase["steps"])
        run = steps.pop("run")
        assert sum(phase["parts"].values()) == phase["io"] and phase["io"] + phase["user"] + phase["kernel"] == phase["elapsed"]
        assert abs(sum(steps.values()) - run) <= len(steps)


@pytest.mark.parametrize("device", ["toshiba-5400-320gb", "samsung-980-pro-1tb"])
def test_fetches_on_a_device(device: str) -> None:
    result = fs.fetch("join:pages=64,selectivity=0.1", frames=8, planner="overlap", device=device, why=True)
    why = result.why("overlap")
    check_sums(why.as_dict())
    row = result.summary().iloc[0]
    steps = dict(why.result.total_steps())
    assert steps["requests counted differently"] == pytest.approx(steps["formula"] * (row["fetches"] / row["bound"] - 1))
    assert result.as_dict()["why"]["overlap"]["sentence"] in why.title
    with pytest.raises(FlashsimError, match="plan them with one"):
        fs.fetch("join:pages=64,selectivity=0.1", frames=8, planner="overlap").why("overlap")


@pytest.mark.parametrize(("where", "cause"), [("host", "the host works on rows"), ("drive", "the drive's cores work on rows")])
def test_a_query_in_each_place(where: str, cause: str) -> None:
    numbers = {"a": list(range(40_000)), "b": [value % 7 for value in range(40_000)]}
    result = fs.smart("SELECT b, sum(a) AS s FROM t GROUP BY b", table={"t": numbers}, device="samsung-smart-400gb", where=where)
    why = result.why(exact=True)
    check_sums(why.as_dict())
    assert cause in why.title
    assert why.as_dict()["phases"][0]["elapsed"] == pytest.approx(
        1e9 * (result.as_dict()["seconds"] + result.as_dict()["build_seconds"]), abs=2
    )
    assert why.mechanisms()["shapley_s"].notna().sum() >= 1


def test_a_load_on_several_drives() -> None:
    draw = generator(3, "load")
    offsets, arrival = draw.integers(0, 5000, 300) * 4096, np.cumsum(draw.exponential(2e7, 300)).astype(np.int64)
    trace = pd.DataFrame({"operation": "read", "offset": offsets, "length": 4096, "arrival": arrival})
    result = fs.advise(trace, device="intel-x25e-64gb,toshiba-5400-320gb", bound="p99=90ms", state="sequential", repeats=1, why=True)
    assert set(result.as_dict()["why"]) == {"intel-x25e-64gb", "toshiba-5400-320gb"}
    for place in range(2):
        check_sums(result.why(place).as_dict())
    assert sum("Why: " in str(part) for part in result.printout()) == 2


def test_shapley_values_share_an_interaction_evenly() -> None:
    """Three mechanisms of which two cost 60 ns only together: each has half of it."""
    alone = {"a": 100, "b": 30, "c": 5}

    def evaluate(ideals: list[Ideals]) -> list[Any]:
        named = [{each.name for each in ideal} for ideal in ideals]
        return [np.array([1000 - sum(alone[each] for each in names) - 60 * ({"a", "b"} <= names)]) for names in named]

    runs = Counterfactuals([DeviceMechanism(name, name, name) for name in alone], np.array([1000]), evaluate, exact=True)
    values = {each.mechanism.name: each.shapley for each in runs.worths}
    assert values == pytest.approx({"a": 130, "b": 60, "c": 5}) and runs.runs <= 2 * 3 + 2 + 16
