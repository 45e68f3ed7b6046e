"""``flashsim trace replay`` on real files: reads are harmless, writes need permission, and what cannot be served is refused in one line."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flashsim as fs
from flashsim.core.request import COMPLETION, READ, WRITE
from flashsim.device import access
from flashsim.experiments.replaying.real import Lateness
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.experiments.runs.test_interrupts import ROOT, start
from tests.processes import without_progress
from tests.yardstick import seconds
from traces.file.schema import column, make_batch
from traces.format.base import load_writable, read_trace

SIZE = 1 << 20
BLOCK = 4096
NEEDS_FIO = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")

Kept = Callable[[], None]


def write_trace(path: Path, **columns: Any) -> None:
    """A trace of blocks."""
    count = len(next(iter(columns.values())))
    load_writable("parquet").write(
        iter([make_batch({"offset": np.arange(count) * BLOCK, "length": np.full(count, BLOCK)} | columns)]), path
    )


def rows(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """What a trace says of its requests."""
    batches = list(read_trace(path))
    return {name: np.concatenate([column(batch, name) for batch in batches]) for name in ("operation", "offset", "length")}


@pytest.fixture
def disk(here: Path) -> Kept:
    """A file `disk` of random bytes beside traces `reads` and `mixed`; calling it asserts that nothing changed and nothing was added."""
    content = np.random.default_rng(1).bytes(SIZE)
    (here / "disk").write_bytes(content)
    write_trace(here / "reads", operation=np.full(20, READ), arrival=np.arange(20) * 1000)
    write_trace(here / "mixed", operation=np.arange(20) % 2)
    before = sorted(path.name for path in here.iterdir())

    def kept() -> None:
        assert (here / "disk").read_bytes() == content
        assert sorted(path.name for path in here.iterdir()) == before

    return kept


def refused(result: Any, *words: str) -> None:
    """One line, exit code 2."""
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("flashsim: ")
    assert all(word in result.stderr for word in words), result.stderr


def test_a_real_replay_reports_and_changes_nothing(flashsim: Run, here: Path, disk: Kept) -> None:
    assert flashsim("trace replay reads --device ./disk --pace asap --depth 4").exit_code == 0
    disk()
    result = flashsim("trace replay reads --device ./disk --json r.json --out r.parquet --out-dir shown")
    assert result.exit_code == 0 and "at the trace's times" in result.stdout
    told = json.loads((here / "r.json").read_text())
    assert (told["requests"], told["bytes"], told["moved"], told["widened"], told["holes"]) == (20, 20 * BLOCK, 0, 0, 0)
    assert told["lateness"]["requests"] == 20 and list(told["runs"]) == ["disk"]
    reads = told["runs"]["disk"]["operations"]["read"]
    assert reads["requests"] == 20
    assert np.array_equal(rows(here / "r.parquet")["offset"], np.arange(20) * BLOCK)
    names = {path.name for path in (here / "shown").iterdir()}
    assert names >= {"report.html", "comparison.csv"} and "comparison_read.svg" not in names  # beside nothing
    assert "latency.svg" in names or reads["p50"] == reads["p99"]  # where all are as late there is nothing to show


def test_writes_are_refused_by_name_or_read_instead(flashsim: Run, here: Path, disk: Kept) -> None:
    result = flashsim("trace replay mixed --device ./disk --json r.json")
    refused(result, "request 1 is a write of 4 KiB at byte 4096", "--allow-write", "--writes-as-reads")
    disk()
    assert flashsim("trace replay mixed --device ./disk --writes-as-reads --out r.parquet").exit_code == 0
    assert (rows(here / "r.parquet")["operation"] == READ).all()
    (here / "r.parquet").unlink()
    disk()


def test_a_file_is_written_to_if_it_may_be_replaced(flashsim: Run, here: Path, disk: Kept) -> None:
    refused(flashsim("trace replay mixed --device ./disk --allow-write"), "--force")
    disk()
    before = np.fromfile(here / "disk", np.uint8).reshape(-1, BLOCK)
    assert flashsim("trace replay mixed --device ./disk --allow-write --force").exit_code == 0
    after = np.fromfile(here / "disk", np.uint8).reshape(-1, BLOCK)
    assert np.flatnonzero((before != after).any(axis=1)).tolist() == list(range(1, 20, 2))


def test_a_file_that_is_made_is_filled_and_removed(flashsim: Run, disk: Kept) -> None:
    result = flashsim("trace replay mixed --device ./made --allow-write")
    assert result.exit_code == 0 and "never written" not in result.stdout
    disk()


def test_holes_are_told(flashsim: Run, here: Path, disk: Kept) -> None:
    with (here / "sparse").open("wb") as file:
        file.truncate(SIZE)
    result = flashsim("trace replay reads --device ./sparse")
    assert result.exit_code == 0 and "80 KiB of sparse were never written" in result.stdout


def test_what_lies_beyond_the_end_is_refused_or_wrapped_around(flashsim: Run, here: Path, disk: Kept) -> None:
    write_trace(here / "reads", offset=np.array([0, SIZE - BLOCK, SIZE, 5 * SIZE + 3 * BLOCK]), length=np.full(4, 2 * BLOCK))
    refused(flashsim("trace replay reads --device ./disk"), "reaches to", "--wrap")
    result = flashsim("trace replay reads --device ./disk --wrap --out r.parquet")
    assert result.exit_code == 0 and "3 of 4 requests" in result.stdout
    assert rows(here / "r.parquet")["offset"].tolist() == [0, SIZE - 2 * BLOCK, 0, 3 * BLOCK]
    write_trace(here / "huge", offset=np.array([0]), length=np.array([2 * SIZE]))
    refused(flashsim("trace replay huge --device ./disk --wrap"), "request 0 is a read of 2 MiB", "holds 1 MiB")


def test_requests_that_are_no_whole_blocks_are_refused_or_widened(flashsim: Run, here: Path, disk: Kept) -> None:
    write_trace(here / "reads", offset=np.array([0, 3, BLOCK - 1]), length=np.array([BLOCK, 2, 2]))
    refused(flashsim("trace replay reads --device ./disk"), "request 1 is a read of 2 B at byte 3", "--widen")
    result = flashsim("trace replay reads --device ./disk --widen --out r.parquet")
    assert result.exit_code == 0 and "2 of 3 requests were widened" in result.stdout
    found = rows(here / "r.parquet")
    assert (found["offset"] <= [0, 3, BLOCK - 1]).all() and (found["offset"] + found["length"] >= [BLOCK, 5, BLOCK + 1]).all()
    assert (found["offset"] % 512 == 0).all() and (found["length"] % 512 == 0).all() and found["length"][1] <= BLOCK


BAD: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "times go back": ({"arrival": [0, 5, 4]}, "--pace timed", ["request 2", "arrives before"]),
    "no times": ({"arrival": [0, None, 4]}, "--pace timed", ["does not say when"]),
    "waits for a later one": ({"dependency": [-1, 2, -1]}, "", ["request 1", "its dependency is 2"]),
    "waits for itself": ({"dependency": [-1, 1, -1]}, "", ["request 1", "its dependency is 1"]),
    "trims": ({"operation": [0, 2, 0]}, "--allow-write --force", ["request 1 is a trim"]),
    "unknown pace": ({}, "--pace slow", ["pace: slow", "asap and timed and think"]),
    "no depth": ({}, "--depth 0", ["depth: 0"]),
    "too deep": ({}, "--depth 100000", ["outstanding level: 100000", "the kernel's limit"]),
    "unknown engine": ({}, "--engine fioo", ["did you mean fio?"]),
    "unknown preset": ({}, "--against ocz-core", ["did you mean ocz-core-60gb"]),
    "nothing": ({}, "--limit 0", ["limit: 0"]),
    "timeline": ({}, "--timeline t.json", ["--timeline", "not a preset"]),
    "precondition": ({}, "--precondition steady", ["--precondition", "not a preset"]),
    "its own output": ({}, "--out disk", ["also what --device names"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_and_options_are_refused(name: str, flashsim: Run, here: Path, disk: Kept) -> None:
    columns, options, words = BAD[name]
    write_trace(here / "reads", offset=np.arange(3) * BLOCK, length=np.full(3, BLOCK), **columns)
    refused(flashsim(f"trace replay reads --device ./disk {options} --json r.json"), *words)
    disk()


@with_each(
    "line, words",
    [
        ("replay reads --device ./none", ["cannot read none"]),
        ("replay reads --device ./no/folder", ["cannot read no/folder"]),
        ("replay reads --device ./no/folder --allow-write", ["no folder no"]),
        ("replay reads --device ./", ["neither a file nor a block device"]),
        ("replay reads --device /dev/null", ["neither a file nor a block device"]),
        ("replay none --device ./disk", ["none"]),
        ("replay disk --device ./disk", ["disk", "known are"]),
        ("replay cut --device ./disk", ["cut"]),
        ("replay reads --device ocz-core-60gb --allow-write", ["--allow-write", "is a preset"]),
        ("replay reads --device ocz-core-60gb --engine fio", ["--engine", "is a preset"]),
        ("replay reads --device ./disk --engine fio --pace think", ["asap and timed only"]),
    ],
)
def test_bad_places_are_refused(line: str, words: list[str], flashsim: Run, here: Path, disk: Kept) -> None:
    (here / "cut").write_bytes((here / "reads").read_bytes()[:-10])
    refused(flashsim(f"trace {line} --json r.json"), *words)
    (here / "cut").unlink()
    disk()


def test_without_fio_its_engine_is_refused(flashsim: Run, disk: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    refused(flashsim("trace replay reads --device ./disk --engine fio --out r.parquet"), "fio is not installed", "--engine builtin")
    disk()


@NEEDS_FIO
def test_what_fio_says_when_it_fails_is_told(flashsim: Run, here: Path, disk: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bin").mkdir()
    (here / "bin" / "fio").write_text("#!/bin/sh\necho 'fio: the drive is on fire' >&2\nexit 1\n")
    (here / "bin" / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}:{os.environ['PATH']}")
    refused(flashsim("trace replay reads --device ./disk --engine fio --out r.parquet"), "the drive is on fire")
    shutil.rmtree(here / "bin")
    disk()


def test_no_direct_io_is_refused_unless_the_page_cache_will_do(
    flashsim: Run, here: Path, disk: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without O_DIRECT answers as Linux does: it makes the file, and refuses to open it."""
    plain = os.open

    def without(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        if flags & os.O_DIRECT and Path(path).parent == Path():
            if flags & os.O_CREAT:
                os.close(plain(path, flags & ~os.O_DIRECT, mode, **more))
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return plain(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", without)
    refused(flashsim("trace replay reads --device ./disk"), "O_DIRECT", "--buffered")
    refused(flashsim("trace replay mixed --device ./made --allow-write"), "O_DIRECT", "--buffered")
    disk()
    result = flashsim("trace replay reads --device ./disk --buffered")
    assert result.exit_code == 0 and "threads, through the page cache" in result.stdout
    assert flashsim("trace replay mixed --device ./made --allow-write --buffered").exit_code == 0
    disk()


#: Replays as root, so that everything is imported from wherever root may read, and then each line as a user who owns nothing.
AS_A_STRANGER = """
import json, os, sys
from typer.testing import CliRunner
from flashsim.command_line import app
lines = json.loads(sys.argv[1])
assert CliRunner().invoke(app, lines[0].split()).exit_code == 0
os.setgroups([]), os.setgid(65534), os.setuid(65534)
results = [CliRunner().invoke(app, line.split(), prog_name="flashsim") for line in lines]
print(json.dumps([[result.exit_code, result.stderr] for result in results]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user's part")
def test_without_permission_nothing_happens() -> None:
    folder = Path(tempfile.mkdtemp())  # those of other tests are closed to other users
    folder.chmod(0o755)
    try:
        write_trace(folder / "reads", operation=np.full(20, READ))
        write_trace(folder / "writes", operation=np.full(20, WRITE))
        for name, mode in (("secret", 0o600), ("public", 0o644)):
            (folder / name).write_bytes(bytes(SIZE))
            (folder / name).chmod(mode)
        places = ["reads --device ./secret", "writes --device ./public --allow-write --force", "writes --device ./made --allow-write"]
        lines = json.dumps([f"trace replay {place}" for place in places])
        command = [sys.executable, "-c", AS_A_STRANGER, lines]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        told = [[2, f"flashsim: --device: cannot open {name}: Permission denied\n"] for name in ("secret", "public", "made")]
        assert json.loads(done.stdout) == told
        assert (folder / "public").read_bytes() == (folder / "secret").read_bytes() == bytes(SIZE)
        assert len(list(folder.iterdir())) == 4
    finally:
        shutil.rmtree(folder)


def test_a_file_that_is_swapped_to_is_never_written(flashsim: Run, here: Path, disk: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_swaps", lambda: [str(here / "disk")])
    refused(flashsim("trace replay mixed --device ./disk --allow-write --force"), "in use for swapping", "never written")
    assert flashsim("trace replay reads --device ./disk").exit_code == 0
    disk()


def test_demerits_are_of_operations_that_were_recorded_and_replayed(here: Path, disk: Kept) -> None:
    times = np.arange(4) * 10**6
    write_trace(here / "timed", operation=[READ, WRITE, READ, WRITE], arrival=times, completed=times + 10**5)
    demerits = fs.replay("timed", "./disk", writes_as_reads=True).demerits()
    assert demerits["operation"].tolist() == ["read", "all"] and (demerits["demerit_us"] > 0).all()
    (here / "timed").unlink()
    disk()


@NEEDS_FIO
def test_both_engines_move_the_bytes_of_a_join_that_ran_on_a_real_file(flashsim: Run, here: Path) -> None:
    join = "join grace-hash --r do2009:customer@0.01 --s do2009:orders@0.01 --on c_custkey=o_custkey --device ./disk --memory 400KiB"
    assert flashsim(f"{join} --allow-write --trace join.parquet").exit_code == 0
    recorded = rows(here / "join.parquet")
    for engine in ("builtin", "fio"):
        line = f"trace replay join.parquet --device ./disk --allow-write --engine {engine} --pace asap --depth 4 --json {engine}.json"
        result = flashsim(line)
        assert result.exit_code == 0, result.output
        told = json.loads((here / f"{engine}.json").read_text())
        for name, kind in (("read", READ), ("write", WRITE)):
            assert told["operations"][name]["requests"] == int((recorded["operation"] == kind).sum()) > 0
            assert told["operations"][name]["bytes"] == int(recorded["length"][recorded["operation"] == kind].sum())
        assert list(told["runs"]) == ["disk", "recorded"]
        assert told["runs"]["recorded"]["operations"]["read"]["demerit"] > 0
    assert not (here / "disk").exists()


def test_lateness_counts_what_was_noticeably_late() -> None:
    done = np.zeros(4, COMPLETION)
    done["submitted"], done["started"] = 1000, [1000, 50_000, 201_000, 401_000]
    late = Lateness()
    late.add(make_batch({"offset": [0] * 4}), done)
    assert late.as_dict() == {"requests": 4, "late": 2, "mean": 300_000, "max": 400_000}
    assert (
        str(late) == "timing was not kept up: 2 of 4 requests were submitted more than 100 us late, by 300 us on average and 400 us at most"
    )


SIGN_OF_A_WAIT = """
from flashsim.__main__ import main
from traces.replay import builtin
genuine = builtin.wait_until
def wait_until(queue, batch, moment):
    if not batch.outstanding:
        print("waiting", flush=True)
    return genuine(queue, batch, moment)
builtin.wait_until = wait_until
main()
"""


def test_an_interrupt_ends_what_is_outstanding(tmp_path: Path) -> None:
    """A replay that lasts for an hour; the file that was made for it goes as well."""
    write_trace(tmp_path / "slow", operation=np.full(2, WRITE), arrival=np.array([0, 3600 * 10**9]))
    process = start("trace replay slow --device ./made --allow-write --out o.parquet", tmp_path, ("-c", SIGN_OF_A_WAIT))
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"  # the first request has completed
    assert (tmp_path / "made").exists()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=seconds(60))
    assert (process.returncode, without_progress(errors)) == (130, "flashsim: interrupted; no results were written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["slow"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/shm")
def test_memory_files_work_with_or_without_direct_io(flashsim: Run, here: Path, disk: Kept) -> None:
    """Whether tmpfs does direct I/O depends on the kernel; the answer is a report, or one line that says what to do."""
    target = Path("/dev/shm") / f"flashsim-{os.getpid()}"
    try:
        target.write_bytes(bytes(SIZE))
    except OSError as problem:
        pytest.skip(f"/dev/shm: {problem.strerror}")
    try:
        result = flashsim(f"trace replay reads --device {target}")
        if result.exit_code:
            refused(result, "--buffered")
        assert flashsim(f"trace replay reads --device {target} --buffered").exit_code == 0
    finally:
        target.unlink()
