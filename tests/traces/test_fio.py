"""The real fio replays what is exported, byte for byte; skipped where fio is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.operations.command_line import app
from tests.flashsim.conftest import SMALL_JOIN
from traces.file.conversion import convert
from traces.file.schema import make_batch
from traces.format.base import load_writable, read_trace
from traces.summary.information import describe

pytestmark = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
VERSIONS = ["fio-iolog", "fio-iolog-v2"]


def run_fio(log: Path, *options: str) -> dict[str, Any]:
    """What fio tells of a replay."""
    job = ["fio", "--name=replay", f"--read_iolog={log}", "--replay_no_stall=1", "--output-format=json", *options]
    done = subprocess.run(job, cwd=log.parent, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    assert told["error"] == 0
    return told


@pytest.fixture(scope="module")
def join_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What hybrid hash read and wrote on a simulated drive."""
    path = tmp_path_factory.mktemp("join") / "join.parquet"
    line = SMALL_JOIN.replace("bnl", "hybrid-hash").replace("256KiB", "64KiB")
    result = CliRunner().invoke(app, [*line.split(), "--trace", str(path)])
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.parametrize("engine", ["null", "psync"])
@pytest.mark.parametrize("name", VERSIONS)
def test_fio_moves_exactly_the_bytes_of_a_join(name: str, engine: str, join_trace: Path, tmp_path: Path) -> None:
    recorded = describe(join_trace)
    assert recorded["operations"]["read"]["bytes"] > 0 and recorded["operations"]["write"]["bytes"] > 0
    convert(join_trace, tmp_path / "log", name)
    file = tmp_path / "file"  # of as many bytes as the join reached
    reach = max(int((np.asarray(batch["offset"]) + np.asarray(batch["length"])).max()) for batch in read_trace(join_trace))
    with file.open("wb") as made:
        made.truncate(reach)
    told = run_fio(tmp_path / "log", f"--ioengine={engine}", f"--replay_redirect={file}")
    for direction in ("read", "write"):
        assert told[direction]["io_bytes"] == recorded["operations"][direction]["bytes"]
        assert told[direction]["total_ios"] == recorded["operations"][direction]["requests"]
    assert file.stat().st_size == reach


@pytest.mark.parametrize("name", VERSIONS)
def test_fio_reads_writes_and_syncs_several_devices(name: str, tmp_path: Path) -> None:
    """Without trims: fio 3.33 itself does not replay those ("bad ddir: 2")."""
    operation = np.array([READ, WRITE, FLUSH, READ, WRITE])[np.arange(200) % 5]
    length = np.where(operation == FLUSH, 0, 512 * (1 + np.arange(200) % 7))
    columns = {"operation": operation, "offset": np.arange(200) * 4096, "length": length, "device": np.arange(200) % 2}
    load_writable(name).write(iter([make_batch(columns | {"arrival": np.arange(200) * 1000})]), tmp_path / "log")
    told = run_fio(tmp_path / "log", "--ioengine=null")
    for kind, direction in ((READ, "read"), (WRITE, "write")):
        assert told[direction]["io_bytes"] == int(length[operation == kind].sum())
        assert told[direction]["total_ios"] == int((operation == kind).sum())
    assert told["sync"]["total_ios"] == 40


@pytest.mark.parametrize("name", VERSIONS)
def test_what_fio_writes_is_read(name: str, tmp_path: Path) -> None:
    """Fio's own log of a run of its own; fio 3.33 writes version 3."""
    log = tmp_path / "log"
    job = ["--ioengine=null", "--rw=randrw", "--bs=4k-16k", "--size=1m", "--io_size=2m", f"--write_iolog={log}", "--filename=/dev/null"]
    done = subprocess.run(["fio", "--name=made", *job, "--output-format=json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    again = tmp_path / "again"
    convert(log, again, name)
    for path in (log, again):
        found = describe(path)
        for direction in ("read", "write"):
            assert found["operations"][direction]["bytes"] == told[direction]["io_bytes"]
            assert found["operations"][direction]["requests"] == told[direction]["total_ios"]
