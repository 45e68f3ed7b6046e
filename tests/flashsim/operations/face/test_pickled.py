"""Results and drives can be pickled and copied, and a drive is used by one thread at a time."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import flashsim as fs
from flashsim.core.errors import RefusedError

ROOT = Path(__file__).parents[4]
R = pd.DataFrame({"k": [1, 2, 3], "a": ["x", "y", "z"]})
TRACE = pd.DataFrame({"operation": ["read", "write"], "offset": [0, 65536], "length": 4096})
MAKE: dict[str, Callable[[], Any]] = {
    "join": lambda: fs.join(R, R, on="k", device="ocz-core-60gb", memory="64KiB"),
    "replay": lambda: fs.replay(TRACE, "ocz-core-60gb", pauses=True),
    "drive": lambda: fs.drive("intel-x25e-64gb", state="new").write(random="64KiB"),
    "smart": lambda: fs.smart("SELECT k FROM t", table={"t": R}, device="samsung-smart-400gb"),
    "cache": lambda: fs.cache([1, 2, 3, 1], policy="lru", size=2),
}
COPIES: list[Callable[[Any], Any]] = [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy, copy.copy]


@pytest.mark.parametrize("kind", MAKE)
def test_copies_of_results_say_the_same(kind: str) -> None:
    result = MAKE[kind]()
    frames = [name for name in ("summary", "requests", "timeline", "rows") if hasattr(result, name)]
    expected, shown = {name: getattr(result, name)() for name in frames}, repr(result)
    copies = [make(result) for make in COPIES]
    del result
    gc.collect()  # files that belong to it are gone
    for each in copies:
        assert repr(each) == shown
        for name, table in expected.items():
            assert_frame_equal(getattr(each, name)(), table)


@pytest.mark.deep
def test_another_process_reads_a_result_by_a_join_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from algorithms.joins.bnl import FORMULA, allocate, join\n")
    result = fs.join(R, R, on="k", device="ocz-core-60gb", memory="64KiB", algorithm=str(tmp_path / "mine.py"))
    (tmp_path / "result").write_bytes(pickle.dumps(result))
    code = f"import pickle; print(len(pickle.load(open({str(tmp_path / 'result')!r}, 'rb')).rows()))"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == "3\n"


@pytest.mark.deep
def test_a_drive_is_pickled_as_what_makes_it() -> None:
    drive = fs.drive("intel-x25e-64gb", state="new")
    again = pickle.loads(pickle.dumps(drive))
    assert (again.preset, again.state, again.seed) == (drive.preset, drive.state, drive.seed)
    drive.write(random="64KiB")
    assert again.device.now == 0 < drive.device.now == copy.copy(drive).device.now == drive.copy().device.now
    with pytest.raises(RefusedError, match="has been used since it was made"):
        pickle.dumps(drive)


def test_threads_take_turns() -> None:
    """Each write has the drive to itself: as much is written as if one thread had done it all."""
    drive = fs.drive("intel-x25e-64gb", state="new")
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(lambda seed: drive.write(random="64KiB", seed=seed), range(8)))
    assert [run.summary()["requests"].tolist() for run in runs] == [[16]] * 8
    assert drive.device.statistics()["host_write_bytes"] == 8 * 64 * 1024
