"""Real processes: interrupts leave nothing half-written, closed pipes are no error, and the module can be run."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import platformdirs
import pytest

from flashsim.experiments.runs import kept
from flashsim.experiments.runs.outputs import hold
from tests.processes import end, wait_until, without_progress
from tests.yardstick import seconds

ROOT = Path(__file__).parents[4]
LONG_JOIN = "join bnl --r do2009:customer@1 --s do2009:orders@1 --on c_custkey=o_custkey --device ocz-core-60gb --memory 512KiB --io page"


def start(line: str, folder: Path, program: Sequence[str] = ("-m", "flashsim"), out: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A command in its own process group, as a terminal would start it."""
    command = [sys.executable, *program, *line.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> int:
    """The exit code, once everything that it prints is read."""
    process.communicate(timeout=seconds(600))
    return process.returncode


def wait_for_partial_files(folder: Path, process: subprocess.Popen[str], count: int) -> None:
    assert wait_until(lambda: process.poll() is not None or len(list(folder.glob(".*.partial"))) >= count)
    assert process.poll() is None


def wait_for_library(name: str, process: subprocess.Popen[str]) -> None:
    assert wait_until(lambda: process.poll() is not None or name in Path(f"/proc/{process.pid}/maps").read_text())
    assert process.poll() is None


def cpu_seconds(group: int) -> float:
    """Processor time that the processes of a group have taken."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # just ended
            fields = path.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:13])) if int(fields[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_for_work(process: subprocess.Popen[str], more: float) -> None:
    until = cpu_seconds(process.pid) + more
    assert wait_until(lambda: process.poll() is not None or cpu_seconds(process.pid) >= until)
    assert process.poll() is None


def assert_interrupted(process: subprocess.Popen[str], errors: str) -> None:
    """One line, after those of progress that a slow machine or a first compilation may have printed."""
    kept = r"(, but finished runs are kept for next time \(\d+\))?"
    assert process.returncode == 130 and re.fullmatch(
        f"flashsim: interrupted; no results were written{kept}\n", without_progress(errors)
    ), errors


#: Commands, how many files and folders they write, and the signal that only the deep tier sends; workers are sent either.
INTERRUPTED = [
    (f"{LONG_JOIN} --out o.parquet --trace t.parquet --json j.json", 3, signal.SIGTERM),
    ("reproduce do2009 --jobs 2 --out r --json j.json", 2, None),
    ("cache simulate zipf:pages=100000,references=1e8 --policy lru --policy opt --out o.csv --plot p.svg --json j.json", 3, signal.SIGINT),
    ("pool run tpc-c:warehouses=20 --design dw,lc --jobs 2 --memory 200MB --ssd 1400MB --time 3h --json j.json --out-dir r", 2, None),
]


@pytest.mark.parametrize(
    "line, files, how",
    [
        pytest.param(line, files, how, marks=[pytest.mark.deep] * (how is rare))
        for line, files, rare in INTERRUPTED
        for how in (signal.SIGINT, signal.SIGTERM)
    ],
)
def test_an_interrupt_is_one_line_and_leaves_nothing(line: str, files: int, how: signal.Signals, tmp_path: Path) -> None:
    process = start(line, tmp_path)
    wait_for_partial_files(tmp_path, process, files)
    wait_for_work(process, 0.1)
    os.killpg(process.pid, how) if how is signal.SIGINT else process.send_signal(how)
    _, errors = process.communicate(timeout=seconds(120))
    assert_interrupted(process, errors)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_modules_load_is_one_line(tmp_path: Path) -> None:
    process = start(f"{LONG_JOIN} --out o.parquet", tmp_path)
    wait_for_library("_multiarray_umath", process)  # NumPy's, long before the last module
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=seconds(120))
    assert_interrupted(process, errors)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "code",
    [
        """
import flashsim.__main__ as start
def interrupted(name): exec("raise KeyboardInterrupt")
genuine = start.import_module
start.import_module = lambda name: genuine(name) if name.endswith("interrupts") else interrupted(name)
start.main()
""",
        """
import os, signal, sys
from flashsim.experiments.runs import interrupts
interrupts.heed()
try:
    exec("os.kill(os.getpid(), signal.SIGINT)")
except KeyboardInterrupt:
    interrupts.is_interrupted()
    sys.exit(130)
""",
        """
import atexit, os, signal, time
import flashsim.__main__ as start
genuine = start.import_module
def interrupted(name):
    if name.endswith("interrupts"):
        return genuine(name)
    atexit.register(time.sleep, 0.5)  # longer than an interrupt without effect is repeated
    os.kill(os.getpid(), signal.SIGINT)
start.import_module = interrupted
start.main()
""",
        """
import os, signal, time
import flashsim.__main__ as start
genuine = start.import_module
def terminated(name):
    if name.endswith("interrupts"):
        return genuine(name)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
start.import_module = terminated
start.main()
""",
        """
import os, signal
import flashsim.__main__ as start
genuine = start.import_module
def interrupted(name):
    if name.endswith("interrupts"):
        return genuine(name)
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("numpy.core failed to import")
start.import_module = interrupted
start.main()
""",
    ],
    ids=["loading", "working", "ending", "first thing", "another error"],
)
def test_an_interrupt_in_code_compiled_from_text_ends_with_the_same_status(code: str, tmp_path: Path) -> None:
    """Named tuples and data classes are made so: ``python -m`` would end by the signal, though the interrupt was handled."""
    (tmp_path / "interrupted.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "interrupted"]
    run = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    told = "" if "is_interrupted" in code else "flashsim: interrupted; no results were written\n"
    assert (run.returncode, run.stderr) == (130, told)


def test_an_interrupt_says_that_finished_runs_are_kept(tmp_path: Path) -> None:
    code = """
import typer.core
from flashsim.experiments.runs import kept
def interrupted(*args, **more):
    kept.keep({}, "0" * 32)
    raise KeyboardInterrupt
typer.core.TyperGroup.main = interrupted
from flashsim.__main__ import main
main()
"""
    environment = {**os.environ, "FLASHSIM_CACHE": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    told = "flashsim: interrupted; no results were written, but finished runs are kept for next time (1)\n"
    assert (run.returncode, run.stderr) == (130, told)


def test_an_interrupt_once_files_are_put_in_place_changes_nothing(tmp_path: Path) -> None:
    """Whether a file is moved or what the process had loaded is put away: all was done."""
    code = """
import os, signal, sys
from pathlib import Path
from flashsim.experiments.runs import interrupts
from flashsim.experiments.runs import outputs
interrupts.heed()
put = outputs._move
def interrupted(pending):
    for each in pending:
        os.kill(os.getpid(), signal.SIGINT)
        put([each])
    return []
outputs._move = interrupted
with outputs.Outputs(force=False) as written:
    for name in ("a", "b"):
        written.file("--out", Path(sys.argv[1], name)).write_text(name)
os.kill(os.getpid(), signal.SIGTERM)
print("ended", interrupts.is_interrupted())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "ended False\n", "")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "a", "b": "b"}


def test_an_interrupt_without_effect_so_far_keeps_files_from_their_place(tmp_path: Path) -> None:
    """One that was swallowed, as in the middle of a compilation."""
    code = """
import os, signal, sys
from pathlib import Path
from flashsim.experiments.runs import interrupts
from flashsim.experiments.runs import outputs
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
    print("interrupted", interrupts.is_interrupted())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "interrupted True\n", "")
    assert not list(tmp_path.iterdir())


#: Interrupts its own process group, as a terminal does, once so many results are kept.
INTERRUPTED_BY_ITSELF = """
import os, signal
from flashsim.__main__ import main
from flashsim.experiments.runs import kept
genuine, left = kept.keep, [None] * {results}
def keep(*arguments):
    genuine(*arguments)
    left.pop()
    if not left:
        os.killpg(0, signal.SIGINT)
kept.keep = keep
main()
"""
WRITES = """
import sys, time
from pathlib import Path
from flashsim.experiments.runs.outputs import Outputs
with Outputs(force=True) as outputs:
    outputs.file("--json", Path("a.json")).write_text("half")
    (outputs.folder("--out", Path("folder")) / "b").write_text("half")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def writing(folder: Path) -> subprocess.Popen[str]:
    """A process that has begun to write a file and a folder."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=pipe, stdout=pipe, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    return process


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_others_write_is_not(tmp_path: Path) -> None:
    killed, other = writing(tmp_path), writing(tmp_path)
    killed.kill()
    ended(killed)
    theirs = sorted(tmp_path.glob(f".*.{other.pid}.partial"))
    assert len(theirs) == 2 and len(list(tmp_path.glob(f".*.{killed.pid}.partial"))) == 2
    far = tmp_path / ".a.json.{killed.pid + 1}.partial"  # of another machine, where that process runs and holds it
    far.write_text("theirs")
    held = hold(far)
    last = writing(tmp_path)
    mine = sorted(tmp_path.glob(f".*.{last.pid}.partial"))
    assert sorted(tmp_path.iterdir()) == sorted([*theirs, *mine, far])
    os.close(held)
    for process in (other, last):
        process.communicate("go on\n")
        assert process.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [far.name, "a.json", "folder"]


def test_a_result_left_half_kept_is_removed_when_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".one.json.4194305.partial").write_text("{")  # no process has a number above 2**22
    kept.keep({"a": 1}, "one")
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["one.json"] and kept.recall("one") == {"a": 1}


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from flashsim.experiments.runs.jobs import each
def work(number):
    Path(f"begun-{{os.getpid()}}").touch()
    time.sleep({2 * seconds(60)})
for _ in each(work, range(2), 2):
    pass
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert wait_until(lambda: process.poll() is not None or len(list(tmp_path.iterdir())) == 2)
    process.kill()
    process.wait()
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.iterdir()]
    assert len(workers) == 2 and end(workers)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_a_reproduction_goes_on_after_an_interrupt_at_any_moment(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are those of an uninterrupted run, and no run that was finished is made again."""
    kernels = Path(os.environ.get("FLASHSIM_CACHE") or platformdirs.user_cache_dir("flashsim")) / "kernels"
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernels").symlink_to(kernels)
    line = "reproduce do2009 --scale 0.01 --jobs 2 --json {0}.json"
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "whole"))
    assert ended(start(line.format("whole"), tmp_path)) == 0
    runs = len(list((tmp_path / "whole" / "results").glob("*.json")))
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "broken"))
    program = INTERRUPTED_BY_ITSELF.format(results=random.Random(seed).randint(1, runs - 1))
    assert ended(start(line.format("broken"), tmp_path, ("-c", program))) == 130 and not (tmp_path / "broken.json").exists()
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
