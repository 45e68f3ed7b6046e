"""Too little memory, and disks and limits that are full: one line that says what, and quickly."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.errors import CapacityError
from flashsim.core.processes import free_memory
from flashsim.core.units import GIB, MIB
from flashsim.storage.source import base, parquet
from flashsim.storage.source.base import open_source
from tests.flashsim.experiments.runs.test_interrupts import ROOT
from tests.processes import without_progress
from tests.yardstick import seconds


def run(line: str, folder: Path, limit: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Run a command under a limit."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "flashsim", *line.split()]
    return subprocess.run(command, cwd=folder, env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=seconds(120))


@pytest.mark.parametrize("size", [200 * MIB, 400 * MIB, 500 * MIB, 600 * MIB])
def test_less_memory_than_the_libraries_take_is_told_before_they_are_loaded(size: int, tmp_path: Path) -> None:
    done = run("device show ocz-core-60gb", tmp_path, lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"flashsim: memory: {size >> 20} MiB of address space (ulimit -v)") and done.stderr.count("\n") == 1


def test_what_is_asked_for_suffices(tmp_path: Path) -> None:
    done = run("device show ocz-core-60gb", tmp_path, lambda: resource.setrlimit(resource.RLIMIT_AS, (768 * MIB, 768 * MIB)))
    assert (done.returncode, without_progress(done.stderr)) == (0, "")


def test_a_file_that_grows_beyond_a_limit_is_named(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, 16 << 10))

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "1"}
    code = (
        "import sys, numpy, pyarrow as pa, pyarrow.parquet as pq\n"
        "from pathlib import Path\nfrom flashsim.experiments.runs.outputs import Outputs\nfrom flashsim.core.errors import FlashsimError\n"
        "try:\n    with Outputs(False) as outputs:\n"
        "        table = pa.table({'a': numpy.random.default_rng(1).random(100_000)})\n"
        "        pq.write_table(table, outputs.file('--out', Path('rows.parquet')))\n"
        "except FlashsimError as problem:\n    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=seconds(120)
    )
    assert done.stdout == f"--out {tmp_path / 'rows.parquet'}: File too large\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_memory_holds_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, path = 1_000_000, tmp_path / "long.parquet"
    pq.write_table(pa.table({"k": pa.array([7]).take(pa.array([0] * rows)), "t": pa.array(["x"]).take(pa.array([0] * rows))}), path)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(base, "free_memory", lambda: 39 * rows)
    monkeypatch.setattr(parquet.pq.ParquetFile, "read", lambda file: pytest.fail("it was read"))
    with pytest.raises(CapacityError, match=r"long.parquet: 1,000,000 rows of at least 16 B take some 40 MB of memory"):
        open_source(str(path))
    monkeypatch.undo()
    assert open_source(str(path)).rows == rows


def test_free_memory_is_no_more_than_the_machine_s_and_the_limit() -> None:
    free = free_memory()
    assert free is not None and 0 < free < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    code = "from flashsim.core.processes import free_memory; print(free_memory())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (GIB // 2, GIB // 2)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= GIB // 2
