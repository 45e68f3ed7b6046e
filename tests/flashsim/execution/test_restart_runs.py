"""A system of pools that is shut down or crashes, recovers and runs on: what is warm, what takes time, and when the peak is back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashsim.apps.papers.do2012.restarts import RestartRun
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import HOURS
from flashsim.operations.face.restart import RestartOutcome, Restarts
from flashsim.pools.restart import CRASH, SHUTDOWN, PeakToPeak, run_restart
from flashsim.pools.setup import PoolResult, PoolSetup


def restart(design: str, ends: str, policy: str = "dw") -> PeakToPeak:
    setup = replace(RestartRun("TPC-C", policy, design).setup(), scale=0.002, time=HOURS)
    return PeakToPeak.of(run_restart(setup.as_dict(), ends, 20))


def test_a_shutdown_leaves_nothing_to_do_and_the_ssd_warm() -> None:
    cold, warm = restart("none", SHUTDOWN), restart("lvr", SHUTDOWN)
    assert cold.shutdown > 60 and warm.shutdown > 60
    assert (cold.warm, warm.warm > 0.9) == (0.0, True)
    for each in (cold, warm):
        assert each.work["redo_reads"] == each.work["records_redone"] == each.work["frames_verified"] == 0
    first = slice(0, 10)
    assert warm.after.rate("ssd_reads", first) > 5 * cold.after.rate("ssd_reads", first)
    assert warm.after.rate("transactions", first) > cold.after.rate("transactions", first)


def test_a_crash_is_followed_by_redo_and_verification() -> None:
    verified, logged = restart("lvr", CRASH, "lc"), restart("lrr", CRASH, "lc")
    assert verified.shutdown == logged.shutdown == 0.0
    assert verified.work["frames_verified"] > 0 == logged.work["frames_verified"]
    assert verified.phases["load"] > 10 * logged.phases["load"]
    for each in (verified, logged):
        assert each.warm > 0.7 and each.work["redo_reads"] > 0 and each.phases["redo"] > 0
        assert each.log_bytes >= 100 * each.records > 0
    assert verified.recovery == pytest.approx(sum(verified.phases.values()))


def test_the_peak_is_back_with_the_first_mean_that_is_near_it() -> None:
    rest = PoolResult({"transactions": np.array([10, 10, 10, 10])}, 10**9, 1)
    after = PoolResult({"transactions": np.array([0, 4, 9, 11, 10, 2])}, 10**9, 1)
    one = PeakToPeak(rest, after, 0.0, {}, 0.0, 0.0, 0.0, {}, scale=0.5)
    assert one.peak(4) == 10.0
    assert one.ramp_up(10.0, 0.95, 2) == 8.0  # the third and fourth of six, and times are those of the whole system
    assert one.ramp_up(10.0, 2.0, 2) == float("inf")


def test_a_timeline_has_the_parts_of_the_interval_and_the_throughput() -> None:
    before = PoolResult({"transactions": np.array([10, 10])}, 10**9, 1)
    after = PoolResult({"transactions": np.array([0, 10, 10])}, 10**9, 1)
    one = PeakToPeak(before, after, 4.0, {"load": 1.0, "analysis": 0.0, "redo": 3.0, "undo": 0.0}, 0.0, 0.0, 0.0, {}, scale=0.5)
    assert (one.frame(2)["minutes"] * 60).tolist() == pytest.approx([-3, -1, 0, 8, 9, 11, 13])
    assert one.frame(2)["transactions/s"].tolist() == [10, 10, 0, 0, 0, 10, 10]
    events = one.trace(10.0, 0.95, 1)["traceEvents"]
    parts = [(event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert parts == [("shutdown", 4e6, 4e6), ("load", 8e6, 1e6), ("redo", 9e6, 3e6), ("ramp-up", 12e6, 4e6)]
    assert [event["args"]["rate"] for event in events if event["ph"] == "C"] == [10, 10, 0, 0, 0, 10, 10]


def test_timelines_of_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    rest = PoolResult({"transactions": np.array([10, 10])}, 10**9, 1)
    run = PeakToPeak(rest, rest, 0.0, {"load": 1.0}, 0.0, 0.0, 0.0, {}, scale=1.0)
    outcome = RestartOutcome(Restarts(CRASH, 2 * 10**9, {("dw", "lvr"): run, ("lc", "mmr"): run}), provenance={})
    outcome.FILES[-1].write(outcome, tmp_path / "timeline.json", tmp_path / "timeline.json")
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {1: "dw with lvr", 2: "lc with mmr"}
    assert [(event["pid"], event["ts"]) for event in events if event["name"] == "load"] == [(1, 2e6), (2, 2e6)]


def test_a_pool_without_an_ssd_restarts() -> None:
    run = run_restart(replace(RestartRun("TPC-C", "dw", "lvr").setup(), design="none", scale=0.002, time=HOURS // 4).as_dict(), CRASH, 2)
    assert run["warm"] == 0.0 and run["records"] > 0


def test_a_restart_needs_a_design() -> None:
    setup = replace(PoolSetup("tpc-c:warehouses=2000", "dw", scale=0.002), time=HOURS)
    with pytest.raises(InvalidParameterError, match="restart: none, but a log of records needs a restart design"):
        run_restart(setup.as_dict(), CRASH, 1)
