"""What standard output does not take: files that options name are there, one line says why, and the exit code says so."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flashsim.core.errors import UNPRINTED
from tests.processes import wait_until

ROOT = Path(__file__).parents[3]
REASONS = {"left": "Broken pipe", "full": "No space left on device", "closed": "it is closed"}


@contextmanager
def useless(kind: str) -> Iterator[int]:
    """A descriptor whose reader has left, or that is full."""
    if kind == "left":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    yield writer
    os.close(writer)


def start(words: list[str], kind: str, folder: Path, stream: int = 1, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard output, or standard error, is of no use."""
    command = [sys.executable, "-m", "flashsim", *words]
    rest = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(ROOT)} | environment, "text": True}
    if kind == "closed":
        command = ["sh", "-c", f'"$0" "$@" {stream}>&-', *command]
        return subprocess.run(command, capture_output=True, **rest)  # type: ignore[call-overload,no-any-return]
    with useless(kind) as descriptor:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {("stdout", "stderr")[stream - 1]: descriptor}
        return subprocess.run(command, **streams, **rest)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("kind", ["left", *(pytest.param(kind, marks=pytest.mark.deep) for kind in ("full", "closed"))])
def test_files_are_written_before_anything_is_printed(kind: str, tmp_path: Path) -> None:
    ended = start(["lab", "list", "--json", "labs.json"], kind, tmp_path)
    assert ended.stderr == f"flashsim: standard output: {REASONS[kind]}; what --json named is written\n"
    assert ended.returncode == UNPRINTED and json.loads((tmp_path / "labs.json").read_text())["rows"]


@pytest.mark.parametrize("kind", REASONS)
def test_help_that_nobody_reads_is_no_traceback(kind: str, tmp_path: Path) -> None:
    ended = start(["--version"], kind, tmp_path)
    assert (ended.returncode, ended.stderr) == (UNPRINTED, f"flashsim: standard output: {REASONS[kind]}\n")


@pytest.mark.parametrize("kind", REASONS)
def test_messages_that_nobody_reads_change_nothing(kind: str, tmp_path: Path) -> None:
    ended = start(["lab", "lits"], kind, tmp_path, stream=2)
    assert (ended.returncode, ended.stdout) == (2, "")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize(("code", "expected"), [(0, UNPRINTED), pytest.param(3, 3, marks=pytest.mark.deep)])
def test_a_recording_of_a_program_that_has_ended_is_not_lost(code: int, expected: int, tmp_path: Path) -> None:
    """The exit code stays the program's, as far as that says anything."""
    words = ["record", "--out", "out.parquet", "--json", "out.json", "--", "sh", "-c", f"exit {code}"]
    ended = start(words, "left", tmp_path)
    assert ended.returncode == expected and "standard output: Broken pipe; what --out and --json named is written\n" in ended.stderr
    assert {"out.parquet", "out.json"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.deep
def test_a_server_goes_on_where_nobody_reads_its_address(tmp_path: Path) -> None:
    words = ["device", "serve", "ocz-core-60gb", "--socket", "drive.sock", "--empty", "--run", "true", "--trace", "asked.parquet"]
    ended = start(words, "left", tmp_path)
    assert ended.returncode == UNPRINTED and "what --trace named is written" in ended.stderr and (tmp_path / "asked.parquet").exists()


@pytest.mark.parametrize("encoding, shown", [("ascii", "h?llo?"), ("latin-1", "h\xe9llo?"), ("utf-8", "h\xe9llo\u20ac")])
def test_names_that_the_encoding_lacks(encoding: str, shown: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding}
    code = "import flashsim.core.standard_streams as s; s.guard(); print('h\\xe9llo\\u20ac')"
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert ended.stdout.decode(encoding) == f"{shown}\n"


def test_a_stream_that_does_not_block_takes_all_in_the_end(tmp_path: Path) -> None:
    """As a pipe that somebody else has made so, and that is read slowly."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    code = "import flashsim.core.standard_streams as s; s.guard(); print('x' * 1_000_000)"
    with subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=writer, cwd=tmp_path) as process:
        os.close(writer)
        with open(reader, "rb") as stream:
            assert len(stream.read()) == 1_000_001
    assert process.returncode == 0


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_waits_for_its_reader_is_ended_by_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "flashsim", "device", "show", "nvme-tlc-1tb", "--json", "a.json"]
    with subprocess.Popen(words, env=environment, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        os.close(writer)
        assert process.stderr and wait_until((tmp_path / "a.json").exists)
        while select.select([reader], [], [], 0)[0] == []:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.stderr.read() == b""
    os.close(reader)
    assert process.returncode == -number and json.loads((tmp_path / "a.json").read_text())
