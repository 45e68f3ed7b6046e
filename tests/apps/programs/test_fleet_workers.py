"""Drives of a fleet are the same when workers are killed in the middle, and on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.units import MICROSECONDS
from flashsim.experiments.runs import jobs
from flashsim.experiments.runs.jobs import Job
from tests.apps.programs.test_advise import requests, small
from tests.processes import wait_until

__all__ = ["small"]

DRIVES = 16


def make_once_killed(folder: str, group: Sequence[Job]) -> list[tuple[Any, float]]:
    """Make runs, in a worker; the first worker of all leaves its number, and waits until it is killed."""
    with suppress(FileExistsError), Path(folder, "waiting").open("x") as file:
        file.write(f"{os.getpid()}\n")
        file.flush()
        time.sleep(10**6)
    return jobs._run_and_time_all(group)


def kill_in_the_middle(folder: Path) -> threading.Thread:
    """Kill the worker that waits, once others have results that are kept."""

    def kill() -> None:
        waiting, results = folder / "waiting", folder / "cache" / "results"
        if wait_until(lambda: waiting.is_file() and "\n" in waiting.read_text() and len(list(results.glob("*.json"))) >= 3, 200):
            os.kill(int(waiting.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def alone(trace: pd.DataFrame, device: str, drives: int) -> pd.DataFrame:
    return fs.fleet(trace, device=device, drives=drives, jobs=1, fresh=True).summary()


def test_a_worker_that_is_killed_changes_no_number(small: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = requests(1500, 150 * MICROSECONDS)
    thread = kill_in_the_middle(here)
    with monkeypatch.context() as patch, pytest.raises(FlashsimError, match="a worker process was killed"):
        patch.setattr(jobs, "_run_and_time_all", partial(make_once_killed, str(here)))
        fs.fleet(trace, device=small, drives=DRIVES, jobs=2)
    thread.join()
    again = fs.fleet(trace, device=small, drives=DRIVES, jobs=1)
    assert 3 <= again.result.recalled < DRIVES
    assert again.summary().to_csv() == alone(trace, small, DRIVES).to_csv()


@pytest.mark.deep
@pytest.mark.parametrize("killed", [False, True])
def test_a_cluster_makes_the_same_drives_whether_a_worker_is_killed_or_not(
    killed: bool, small: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    trace = requests(1500, 150 * MICROSECONDS)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        monkeypatch.context() as patch,
    ):
        if killed:
            thread = kill_in_the_middle(here)
            patch.setattr(jobs, "_run_and_time_all", partial(make_once_killed, str(here)))
        there = fs.fleet(trace, device=small, drives=DRIVES, cluster=cluster.scheduler_address)
    if killed:
        thread.join()
    assert (here / "waiting").exists() == killed
    assert there.summary().to_csv() == alone(trace, small, DRIVES).to_csv()
