"""Drives of a fleet are the same when workers are killed in the middle, and on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.units import MICROSECONDS
from tests.flashsim.operations.test_advise import requests, small

__all__ = ["small"]

#: Enough that some are still to be made when a worker is killed.
DRIVES = 16


def workers() -> list[int]:
    """Processes that this one started for runs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            words = (folder / "cmdline").read_text()
        except OSError:  # just ended
            continue
        if int(parent) == os.getpid() and "popen_loky" in words:
            found.append(int(folder.name))
    return found


def kill_in_the_middle(results: Path, pids: Callable[[], Iterable[int]], kills: list[int]) -> threading.Thread:
    """Kill a worker as soon as some results are kept."""

    def wait() -> None:
        deadline = time.monotonic() + 200
        while len(list(results.glob("*.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        for pid in [*pids()][:1]:
            os.kill(pid, signal.SIGKILL)
            kills.append(pid)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def alone(trace: pd.DataFrame, device: str, drives: int) -> pd.DataFrame:
    return fs.fleet(trace, device=device, drives=drives, jobs=1, fresh=True).summary()


def test_a_worker_that_is_killed_changes_no_number(small: str, here: Path) -> None:
    trace, kills = requests(1500, 150 * MICROSECONDS), list[int]()
    thread = kill_in_the_middle(here / "cache" / "results", workers, kills)
    with pytest.raises(FlashsimError, match="a worker process was killed"):
        fs.fleet(trace, device=small, drives=DRIVES, jobs=2)
    thread.join()
    assert len(kills) == 1
    again = fs.fleet(trace, device=small, drives=DRIVES, jobs=1)
    assert 3 <= again.result.recalled < DRIVES
    assert again.summary().to_csv() == alone(trace, small, DRIVES).to_csv()


@pytest.mark.deep
@pytest.mark.parametrize("killed", [False, True])
def test_a_cluster_makes_the_same_drives_whether_a_worker_is_killed_or_not(killed: bool, small: str, here: Path) -> None:
    distributed = pytest.importorskip("distributed")
    trace, kills = requests(1500, 150 * MICROSECONDS), list[int]()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        if killed:
            pids = [each.pid for each in cluster.workers.values()]
            thread = kill_in_the_middle(here / "cache" / "results", lambda: pids, kills)
        there = fs.fleet(trace, device=small, drives=DRIVES, cluster=cluster.scheduler_address)
    if killed:
        thread.join()
    assert len(kills) == killed
    assert there.summary().to_csv() == alone(trace, small, DRIVES).to_csv()
