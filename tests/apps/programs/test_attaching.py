"""A process that runs already is recorded: its writes are at their places, and what it did before is told where it matters."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.apps.programs.recorder import record
from flashsim.core.errors import RefusedError
from traces.calls.schema import DSYNC
from traces.calls.strace import OPTIONS

#: Writes until something watches it, and a thousand times more.
_PROGRAM = """
import mmap, os, time
memory = os.open("mapped", os.O_RDWR | os.O_CREAT)
os.ftruncate(memory, 4096)
kept = mmap.mmap(memory, 4096)
file = os.open("slow", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
os.dup2(file, 9)
left = 1000
print(flush=True)
for number in range(1_000_000):
    os.write((file, 9)[number % 2], b"%07d\\n" % number)
    time.sleep(0.0005)
    left -= "TracerPid:\\t0\\n" not in open("/proc/self/status").read()
    if not left:
        break
"""


def test_a_program_that_goes_on_writing_has_its_places(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, *OPTIONS, "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("strace may not watch programs here")
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        recording = record(pid=program.pid, contents=True)
    rows = [row for row in recording.table.to_pylist() if row["call"] == "write" and row["path"] == str(tmp_path / "slow")]
    whole = (tmp_path / "slow").read_bytes()
    assert rows and all(whole[row["offset"] :].startswith(row["content"]) and row["flags"] == DSYNC for row in rows)
    assert rows[-1]["offset"] == len(whole) - 8
    assert any("mmap" in line and "mapped" in line for line in recording.missed)


def test_a_file_that_is_no_program_is_refused() -> None:
    with pytest.raises(RefusedError, match="may not be executed"):
        record(["/etc/passwd"])
