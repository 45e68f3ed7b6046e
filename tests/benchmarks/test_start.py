"""How long commands take to start on what is compiled already, by what Python takes to import what flashsim rests on (0.65 s)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.kernel import is_compiled
from tests.benchmarks.yardstick import times_the_imports

#: Import, preset and first request, in one process.
_FIRST_REQUEST = """
from flashsim.core.request import READ, make_requests
from flashsim.device.device import Device
Device.open("nvme-tlc-1tb").serve(make_requests([READ], 0, 4096))
"""


@pytest.mark.parametrize("words, most", [(["-m", "flashsim", "--version"], 0.6), (["-c", "import flashsim as fs"], 0.45)])
def test_what_needs_nothing_starts_at_once(words: list[str], most: float) -> None:
    assert times_the_imports(*words) <= most


@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_a_warm_start_takes_less_than_a_second() -> None:
    assert times_the_imports("-c", _FIRST_REQUEST) <= 1 / 0.65


@pytest.mark.skipif(not is_compiled(), reason="needs compiled kernels")
def test_a_warm_join_of_two_small_files_takes_little(tmp_path: Path) -> None:
    for name, rows in (("r", 100), ("s", 500)):
        pq.write_table(pa.table({"k": [row % 100 for row in range(rows)], name: list(range(rows))}), tmp_path / f"{name}.parquet")
    words = ["--r", str(tmp_path / "r.parquet"), "--s", str(tmp_path / "s.parquet"), "--on", "k", "--memory", "64KiB"]
    assert times_the_imports("-m", "flashsim", "join", "hybrid-hash", *words, "--device", "ocz-core-60gb") <= 2
