"""Real processes: interrupts leave nothing half-written, closed pipes are no error, and the module can be run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[3]
LONG_JOIN = "join bnl --r do2009:customer@1 --s do2009:orders@1 --on c_custkey=o_custkey --device ocz-core-60gb --memory 512KiB --io page"


def heed_interrupts() -> None:
    """What runs in a shell's background ignores interrupts, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(line: str, folder: Path) -> subprocess.Popen[str]:
    """A command in its own process group, as a terminal would start it."""
    command = [sys.executable, "-m", "flashsim", *line.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )


def ended(process: subprocess.Popen[str]) -> int:
    """The exit code, once everything that it prints is read."""
    process.communicate(timeout=600)
    return process.returncode


def wait_for_partial_files(folder: Path, process: subprocess.Popen[str], count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob(".*.partial"))) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "line, files",
    [(f"{LONG_JOIN} --out o.parquet --trace t.parquet --json j.json", 3), ("reproduce do2009 --jobs 2 --out r --json j.json", 2)],
)
def test_an_interrupt_is_one_line_and_leaves_nothing(line: str, files: int, how: signal.Signals, tmp_path: Path) -> None:
    process = start(line, tmp_path)
    wait_for_partial_files(tmp_path, process, files)
    time.sleep(1)  # into the work
    os.killpg(process.pid, how) if how is signal.SIGINT else process.send_signal(how)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "flashsim: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_stops_early_gets_no_complaint(tmp_path: Path) -> None:
    with start("device show ocz-core-60gb", tmp_path) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=120) == 1
        assert process.stderr.read() == ""


def test_an_interrupt_while_modules_load_is_one_line(tmp_path: Path) -> None:
    process = start(f"{LONG_JOIN} --out o.parquet", tmp_path)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "flashsim: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "code",
    [
        """
import flashsim.__main__ as start
def interrupted(name): exec("raise KeyboardInterrupt")
start.import_module = interrupted
start.main()
""",
        """
import os, signal, sys
from experiments.commands import interrupts
interrupts.heed()
try:
    exec("os.kill(os.getpid(), signal.SIGINT)")
except KeyboardInterrupt:
    interrupts.answered()
    sys.exit(130)
""",
    ],
    ids=["loading", "working"],
)
def test_an_interrupt_in_code_compiled_from_text_ends_with_the_same_status(code: str, tmp_path: Path) -> None:
    """Named tuples and data classes are made so: ``python -m`` would end by the signal, though the interrupt was handled."""
    (tmp_path / "interrupted.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    run = subprocess.run([sys.executable, "-m", "interrupted"], env=environment, preexec_fn=heed_interrupts)
    assert run.returncode == 130


def test_an_interrupt_once_files_are_put_in_place_changes_nothing(tmp_path: Path) -> None:
    """Whether a file is moved or what the process had loaded is put away: all was done."""
    code = """
import os, signal, sys
from pathlib import Path
from experiments.commands import interrupts
from experiments.commands import outputs
interrupts.heed()
put = outputs._move
def interrupted(partial, final):
    os.kill(os.getpid(), signal.SIGINT)
    put(partial, final)
outputs._move = interrupted
with outputs.Outputs(force=False) as written:
    for name in ("a", "b"):
        written.file("--out", Path(sys.argv[1], name)).write_text(name)
os.kill(os.getpid(), signal.SIGTERM)
print("ended", interrupts.answered())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, preexec_fn=heed_interrupts, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "ended False\n", "")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "a", "b": "b"}


def test_an_interrupt_without_effect_so_far_keeps_files_from_their_place(tmp_path: Path) -> None:
    """One that was swallowed, as in the middle of a compilation."""
    code = """
import os, signal, sys
from pathlib import Path
from experiments.commands import interrupts
from experiments.commands import outputs
interrupts.heed()
try:
    with outputs.Outputs(force=False) as written:
        partial = written.file("--out", Path(sys.argv[1], "a"))
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass
        partial.write_text("a")
except KeyboardInterrupt:
    print("interrupted", interrupts.answered())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, preexec_fn=heed_interrupts, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "interrupted True\n", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_reproduction_goes_on_after_an_interrupt_at_any_moment(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are those of an uninterrupted run, and no run that was finished is made again."""
    kernels = Path(os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")) / "kernels"
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernels").symlink_to(kernels)
    line = "reproduce do2009 --scale 0.01 --jobs 2 --json {0}.json"
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "whole"))
    begin = time.monotonic()
    assert ended(start(line.format("whole"), tmp_path)) == 0
    lasted = time.monotonic() - begin
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "broken"))
    process = start(line.format("broken"), tmp_path)
    time.sleep(random.Random(seed).uniform(0.1, 0.9) * lasted)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == 130 and not (tmp_path / "broken.json").exists()
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "broken" / "results").glob("*.json")}
    assert ended(start(line.format("broken"), tmp_path)) == 0
    assert {path: path.stat().st_mtime_ns for path in made} == made
    results = [
        {path.name: json.loads(path.read_text())["result"] for path in (tmp_path / name / "results").glob("*.json")}
        for name in ("whole", "broken")
    ]
    assert results[0] == results[1]
    whole, broken = (json.loads((tmp_path / f"{name}.json").read_text())["claims"] for name in ("whole", "broken"))
    assert whole == broken
