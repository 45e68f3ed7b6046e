"""Why requests of a replay took their time: parts sum to latencies, and the sentence names what was planted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.rng import generator


def trace(count: int, apart: float, reads: float = 0.6, length: int = 4096) -> pd.DataFrame:
    """Requests at drawn times, so many ns apart on average, at drawn places of 200 MiB."""
    draw = generator(5, "trace", count)
    operations = np.where(draw.random(count) < reads, "read", "write")
    arrival = np.cumsum(draw.exponential(apart, count)).astype(np.int64)
    offsets = draw.integers(0, 200 * 2**20 // length, count) * length
    return pd.DataFrame({"operation": operations, "offset": offsets, "length": length, "arrival": arrival})


@pytest.mark.parametrize("device", ["intel-x25e-64gb", "toshiba-5400-320gb"])
def test_parts_of_requests_sum_to_their_latencies(device: str) -> None:
    requests = trace(400, 20e6 if device.startswith("toshiba") else 3e5)
    result = fs.replay(requests, device, pace="timed", why=True)
    why, latencies = result.why(), result.runs[0].requests.groupby("operation", observed=True)["latency_us"]
    for phase in why.as_dict()["phases"]:
        assert phase["io"] == round(latencies.sum()[phase["phase"]] * 1000) == sum(phase["parts"].values())
        steps = phase["steps"]
        assert steps.pop("run") == phase["io"] == sum(steps.values())
    means = why.summary().set_index(["phase", "step"])["seconds"]
    assert means["read", "run"] == pytest.approx(latencies.mean()["read"] / 1e6)
    assert "why" in result.as_dict() and why.result.runs.runs <= 2 * len(why.result.runs.mechanisms) + 2


@pytest.mark.deep
def test_a_drive_in_its_steady_state_is_slow_by_garbage_collection() -> None:
    why = fs.replay(trace(20_000, 6e5), "intel-x25e-64gb", pace="timed", precondition="steady", why=True).why()
    assert "requests wait for garbage collection" in why.title


def test_many_reads_at_once_wait_for_dies() -> None:
    result = fs.replay(trace(300, 1.0, reads=1.0), "intel-x25e-64gb", pace="asap", depth=16, why=True)
    assert result.why().mechanisms()["alone_s"].iloc[0] > 0


def test_a_replay_without_why_says_how_to_have_it() -> None:
    result = fs.replay(trace(5, 1e6), "intel-x25e-64gb", pace="timed")
    with pytest.raises(FlashsimError, match="why=True"):
        result.why()


def test_a_disk_that_is_overloaded_is_slow_by_its_queue() -> None:
    """The seeks are shorter than the mean; requests 8 ms apart come faster than the disk serves them."""
    why = fs.replay(trace(300, 8e6, reads=1.0), "toshiba-5400-320gb", pace="timed", why=True).why()
    assert "requests wait for one another" in why.title
    steps = dict(why.result.total_steps())
    assert steps["requests at the same time"] > 0.5 * steps["run"]


def test_two_replays_are_compared_if_their_requests_are_the_same() -> None:
    slow, fast = (fs.replay(trace(300, 3e5), device, pace="timed", why=True) for device in ("intel-x25e-64gb", "micron-p300"))
    assert " times as fast as " in fs.why(slow, fast).title
    other = fs.replay(trace(300, 3e5, length=8192), "micron-p300", pace="timed", why=True)
    with pytest.raises(FlashsimError, match="both the requests and the devices differ"):
        fs.why(slow, other)
    with pytest.raises(FlashsimError, match="a number from 0 to 0"):
        slow.why(1)
