"""Systems other than Linux, by taking away what they lack: one line, or simulation without real devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import without_progress
from tests.yardstick import seconds

ROOT = Path(__file__).parents[3]
JOIN = "join bnl --r do2009:customer@0.001 --s do2009:orders@0.001 --on c_custkey=o_custkey --memory 256KiB"
#: What Windows lacks, and macOS.
WITHOUT_POSIX = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None"
WITHOUT_LINUX = "import os, resource; del os.O_DIRECT, os.posix_fallocate, os.sched_getaffinity, resource.RUSAGE_THREAD"


def command(before: str, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = f"{before}\nimport sys; sys.argv = ['flashsim', *{line.split()!r}]\nfrom flashsim.__main__ import main\nmain()"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds(300))


def test_windows_is_refused_in_one_line(tmp_path: Path) -> None:
    result = command(WITHOUT_POSIX, "--version", tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("flashsim: flashsim runs on Linux") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("device", ["ocz-core-60gb", "./real.bin --allow-write"])
def test_macos_simulates_and_refuses_real_files_in_one_line(device: str, tmp_path: Path) -> None:
    result = command(WITHOUT_LINUX, f"{JOIN} --device {device}", tmp_path)
    if device.startswith("./real"):
        assert result.returncode == 2 and list(tmp_path.iterdir()) == []
        refusal = "flashsim: --device: real.bin is real, and real files and devices are read and written on Linux alone\n"
        assert without_progress(result.stderr) == refusal
    else:
        assert result.returncode == 0 and "result rows" in result.stdout


def test_macos_prices_no_cpu_by_real_files(tmp_path: Path) -> None:
    result = command(WITHOUT_LINUX, "device calibrate --cpu --time 100ms --out cpu.toml", tmp_path)
    assert result.returncode == 2 and list(tmp_path.iterdir()) == []
    assert result.stderr.splitlines()[-1] == "flashsim: --cpu: it times reads and writes past the page cache, which are made on Linux alone"
