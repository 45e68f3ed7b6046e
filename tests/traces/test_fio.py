"""The real fio replays what is exported, byte for byte; skipped where fio is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from traces.format.base import load_writable
from traces.schema import make_batch


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
@pytest.mark.parametrize("name", ["fio-iolog", "fio-iolog-v2"])
def test_fio_moves_the_bytes_that_were_recorded(name: str, tmp_path: Path) -> None:
    operation = np.arange(200) % 3 // 2
    length = 512 * (1 + np.arange(200) % 7)
    batch = make_batch({"operation": operation, "offset": np.arange(200) * 4096, "length": length, "arrival": np.arange(200) * 1000})
    load_writable(name).write(iter([batch]), tmp_path / "log")
    job = ["fio", "--name=replay", "--ioengine=null", f"--read_iolog={tmp_path / 'log'}", "--replay_no_stall=1", "--output-format=json"]
    done = subprocess.run(job, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    for kind, direction in enumerate(("read", "write")):
        assert told[direction]["io_bytes"] == int(length[operation == kind].sum())
        assert told[direction]["total_ios"] == int((operation == kind).sum())
