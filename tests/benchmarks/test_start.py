"""Processor seconds that commands take to start, on what is compiled already: the least of a few, since others disturb."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.kernel import compiled

STARTS = 4
#: What a join imports of others, and how many times as long it may take: where that takes 0.65 s, the 1.3 s that it may take at least.
#: `pyarrow.compute`, without which no column is read, belongs to it: it takes a tenth of a second.
_OTHERS = "import numba, pandas, pyarrow.compute, pyarrow.parquet, typer, rich.console"
_TIMES = 2.0


def seconds(*words: str) -> float:
    """Processor time of a command, s, warm: its modules are kept compiled, whatever the tests' own environment says of that."""
    taken, environment = [], {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], env=environment, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


@pytest.mark.parametrize("words, most", [(["-m", "flashsim", "--version"], 0.4), (["-c", "import flashsim as fs"], 0.3)])
def test_what_needs_nothing_starts_at_once(words: list[str], most: float) -> None:
    assert seconds(*words) <= most


@pytest.mark.skipif(not compiled(), reason="needs compiled kernels")
def test_a_warm_join_of_two_small_files_takes_little(tmp_path: Path) -> None:
    for name, rows in (("r", 100), ("s", 500)):
        pq.write_table(pa.table({"k": [row % 100 for row in range(rows)], name: list(range(rows))}), tmp_path / f"{name}.parquet")
    words = ["--r", str(tmp_path / "r.parquet"), "--s", str(tmp_path / "s.parquet"), "--on", "k", "--memory", "64KiB"]
    assert seconds("-m", "flashsim", "join", "hybrid-hash", *words, "--device", "ocz-core-60gb") <= max(
        1.3, _TIMES * seconds("-c", _OTHERS)
    )
