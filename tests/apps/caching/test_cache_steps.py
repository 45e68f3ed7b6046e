"""Policies stepped reference by reference: who is in which frame, and that it comes to what a simulation counts."""

from __future__ import annotations

import numpy as np
import pytest

import flashsim as fs
from flashsim.apps.caching.session import AGAIN, FIRST, HIT
from flashsim.core.errors import FlashsimError


def test_steps_come_to_what_a_simulation_counts() -> None:
    rng = np.random.default_rng(4)
    pages, writes = rng.zipf(1.3, 400) % 30, rng.random(400) < 0.3
    simulated = fs.cache((pages, writes), policy=["lru", "opt", "2q", "cflru", "random"], size=["50%", 7], seed=3)
    told = simulated.steps(references=400).summary()
    counts = simulated.summary().set_index(["policy", "pages"])
    for policy, steps in told.groupby("policy"):
        row = counts.loc[(policy, 7)]
        outcomes = steps["outcome"].value_counts()
        assert [outcomes.get(kind, 0) for kind in (HIT, FIRST, AGAIN)] == row[["hits", "first", "again"]].tolist()
        assert steps["left"].notna().sum() == row["evictions"] and steps["written_back"].sum() == row["write_backs"]
        assert steps["page"].tolist() == pages.tolist() and steps["write"].tolist() == writes.tolist()


def test_a_page_enters_where_one_left() -> None:
    told = fs.cache(([1, 2, 1, 3, 2], [0, 1, 0, 0, 0]), policy="fifo", size=2).steps()
    assert told.summary()["frames"].tolist() == ["1 -", "1 2*", "1 2*", "3 2*", "3 2*"]
    assert [step.left for step in told.result] == [None, None, None, 1, None]
    other = fs.cache([1, 2, 1, 3, 2], policy="fifo", size=2).steps("lru", references=4)
    assert other.summary()["frames"].tolist() == ["1 -", "1 2", "1 2", "1 3"]
    assert "lru: 1 hits of 4 references" in {axes.get_title("left") for axes in other.plot().figure.axes}


def test_what_cannot_be_stepped_is_told() -> None:
    told = fs.cache([1, 2, 3], policy="lru", size=2)
    with pytest.raises(FlashsimError, match="references: 0, but"):
        told.steps(references=0)
    with pytest.raises(FlashsimError, match="did you mean"):
        told.steps("lruu")
