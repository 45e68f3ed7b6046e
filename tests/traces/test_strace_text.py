"""Text that people make with strace: held against recordings of the same programs, in all combinations of options, and small cases."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import flashsim as fs
from flashsim.command_line import app
from flashsim.core.errors import DamagedFileError, FlashsimWarning
from tests.cases import with_each
from traces.calls.descriptors import NAMELESS, UNKNOWN_FOLDER
from traces.calls.schema import READS, SYNCS, WRITES, Recording
from traces.format.base import load_format, read_trace, recognise
from traces.format.strace import recording_of

#: Opens, copies, shares and renames descriptors, and uses names that strace escapes.
FILES = r"""
import os, threading
f = os.open("a", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
os.pwrite(f, b"x\0001\n\"\\\xff" * 999, 8192); os.write(f, b"abc"); os.fsync(f); os.pread(f, 10, 0); os.lseek(f, 0, 0); os.read(f, 3)
def beside():
    h = os.dup(f); os.writev(h, [b"zz", b"zz"]); os.fdatasync(h); os.close(h)
thread = threading.Thread(target=beside); thread.start(); thread.join()
r, w = os.pipe()
if os.fork() == 0:
    os.write(f, b"child"); os.write(w, b"1"); os._exit(0)
os.wait(); os.read(r, 1); os.close(r); os.close(w); os.rename("a", "b"); os.write(f, b"renamed"); os.ftruncate(f, 100); os.close(f)
os.makedirs("sub/dir"); d = os.open("sub", os.O_RDONLY); g = os.open("dir/a->b<c>,(d\n\t) = \"7\"", os.O_CREAT | os.O_RDWR, dir_fd=d)
os.write(g, b'read(3) = 7 <unfinished ...>'); os.fsync(g); os.unlink("b"); os.chdir("sub")
k = os.open("other", os.O_CREAT | os.O_RDWR); os.write(k, b"1"); os.fchdir(d); os.close(k)
k = os.open("other", os.O_RDWR | os.O_APPEND); os.fstat(k); os.write(k, b"2"); os.pread(k, 1, 0)
"""
SQL = "create table t(a, b); insert into t values (1, 'x'); update t set b = 'y'; drop table t; vacuum"
PROGRAMS = {
    "files": [sys.executable, "-S", "-c", FILES],
    "sqlite": [sys.executable, "-S", "-c", f"import sqlite3; c = sqlite3.connect('shop.db'); c.executescript({SQL!r})"],
    "dd": ["dd", "if=/dev/zero", "of=out.bin", "bs=4k", "count=5", "conv=fsync"],
    "shell": ["/bin/sh", "-c", "for i in 1 2 3; do echo $i >> log; done; (cat log; echo 4) > copy; head -c 3 < copy > three; sync three"],
}
TIMES, OTHERS = ["", "-t", "-tt", "-ttt", "-r", "-r -tt", "--absolute-timestamps=unix,ns"], ["", "-T"]
PATHS = ["", "-y", "-yy"]
ALL = list(product(PATHS, TIMES, OTHERS))
#: Each kind of times once, with the other options in turn.
SOME = [(PATHS[number % 3], times, OTHERS[number % 2]) for number, times in enumerate(TIMES)]


def moved(table: pa.Table, folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Reads, writes and syncs of each file of a folder."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in table.to_pylist():
        path = (row["path"] or "").replace(UNKNOWN_FOLDER, str(folder))
        if row["call"] in (*READS, *WRITES, *SYNCS, "ftruncate") and row["file"] >= 0 and path.startswith(f"{folder}/"):
            found.setdefault(path, []).append((row["call"], row["offset"], row["length"], row["result"]))
    return {path: sorted(calls, key=str) for path, calls in found.items()}


def text_of(path: Path) -> Recording:
    with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
        return recording_of(lines, path)


def run(folder: Path, program: list[str], *options: str, out: Path | None = None) -> str:
    """The text that strace writes of a program in a folder of its own, into a file or to standard error."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = ["strace", *options, *(["-o", str(out)] if out else []), *program]
    return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr


def recorded(folder: Path, program: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[Any, ...]]]:
    folder.mkdir()
    monkeypatch.chdir(folder)
    fs.record(program, out="../recording.parquet")
    monkeypatch.chdir("..")
    return moved(Recording.read(Path("recording.parquet")).table, folder)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("cases", [SOME, pytest.param(ALL, marks=pytest.mark.deep)], ids=["some", "all"])
@with_each("name", PROGRAMS)
def test_text_with_any_options_tells_what_a_recording_tells(
    name: str, cases: list[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, program, text = tmp_path / name, PROGRAMS[name], tmp_path / "text"
    wanted = recorded(folder, program, monkeypatch)
    assert sum(map(len, wanted.values())) > 5
    for paths, times, others in cases:
        run(folder, program, "-f", *paths.split(), *times.split(), *others.split(), out=text)
        found = text_of(text)
        assert moved(found.table, folder) == wanted, (paths, times, others)
        assert recognise(text) == "strace"
        said = "\n".join(found.missed)
        assert "closed descriptors" not in said and "without its number" not in said and "end of the text" not in said
        assert ("how long calls took" in said) == (times != "" and not others), (said, times)
        assert "descriptors that no call here opened" not in said or not paths
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlashsimWarning)
            arrivals = [row for batch in read_trace(text, "strace:memory=64MiB") for row in batch.column("arrival").to_pylist()]
        assert len(arrivals) > 3 and all((each is None) == (times == "") for each in arrivals)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@with_each("name", ["files", "shell"])
def test_text_of_a_terminal_has_numbers_while_there_are_several(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, program = tmp_path / name, PROGRAMS[name]
    wanted = recorded(folder, program, monkeypatch)
    for options in ("-f", "-f -q", "-f -y -tt", "-f -r -T"):
        (tmp_path / "text").write_text(run(folder, program, *options.split()))
        found = text_of(tmp_path / "text")
        assert moved(found.table, folder) == wanted, options
        assert "without its number" not in "\n".join(found.missed)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_file_of_each_process_is_read_alone_and_they_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, program = tmp_path / "files", PROGRAMS["files"]
    wanted = recorded(folder, program, monkeypatch)
    run(folder, program, "-ff", "-ttt", out=tmp_path / "text")
    parts = sorted(tmp_path.glob("text.*"), key=lambda path: int(path.suffix[1:]))
    assert len(parts) == 3
    assert "descriptor 3 of process 0" in "\n".join(text_of(parts[2]).missed) and NAMELESS in "\n".join(text_of(parts[2]).missed)
    alone = sum(map(len, moved(text_of(parts[0]).table, folder).values()))
    assert 0 < alone < sum(map(len, wanted.values()))
    (tmp_path / "all").write_bytes(b"".join(part.read_bytes() for part in parts))
    with pytest.raises(DamagedFileError, match="all, line .*strace-log-merge joins files"):
        text_of(tmp_path / "all")
    if shutil.which("strace-log-merge"):
        joined = subprocess.run(["strace-log-merge", str(tmp_path / "text")], capture_output=True, check=True)
        (tmp_path / "all").write_bytes(joined.stdout)
        assert moved(text_of(tmp_path / "all").table, folder) == wanted


def rows(*lines: str) -> list[tuple[Any, ...]]:
    table = recording_of([f"{line}\n" for line in lines], Path("text")).table
    return [(row["call"], row["path"], row["offset"], row["result"], row["time"]) for row in table.to_pylist()]


def missed(*lines: str) -> str:
    return "\n".join(recording_of([f"{line}\n" for line in lines], Path("text")).missed)


def test_calls_of_threads_that_go_on_are_put_together() -> None:
    found = rows(
        '10 1.000001 openat(AT_FDCWD, "/a", O_RDWR) = 3',
        "10 1.000002 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack_size=0x7000}, 88 <unfinished ...>",
        "11 1.000003 read(3,  <unfinished ...>",
        "10 1.000004 <... clone3 resumed>) = 11",
        "10 1.000005 close(3 <unfinished ...>",
        '11 1.000006 <... read resumed>"a) = 5"..., 100) = 100',
        '11 1.000007 openat(AT_FDCWD, "/b", O_RDWR) = 3',
        "10 1.000008 <... close resumed>) = 0",
        '11 1.000009 write(3, "", 7) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)',
        "11 1.000010 --- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---",
        '11 1.000011 write(3, "", 7) = 7',
        '11 1.000012 pwrite64(3, "", 7, 0) = -1 ENOSPC (No space left on device)',
        "11 1.000013 restart_syscall(<... resuming interrupted read ...>) = 0",
        "11 1.000014 fsync(3 <unfinished ...>",
    )
    assert [row[:4] for row in found if row[0] not in ("openat", "clone3")] == [
        ("read", "/a", 0, 100),
        ("write", "/b", 0, None),
        ("write", "/b", 0, 7),
        ("pwrite64", "/b", 0, -1),
        ("fsync", "/b", None, None),
    ]


def test_times_go_on_behind_midnight_and_stand_where_the_clock_is_set_back() -> None:
    lines = ['23:59:59 openat(AT_FDCWD, "/a", O_RDWR) = 3', '00:00:01 write(3, "", 1) = 1', '05:00:00 write(3, "", 1) = 1']
    assert [row[4] for row in rows(*lines)] == [0, 2 * 10**9, (5 * 3600 + 1) * 10**9]
    lines += ['04:30:00 write(3, "", 1) = 1', '04:30:01 write(3, "", 1) = 1']
    assert [row[4] // 10**9 for row in rows(*lines)][2:] == [18001, 18001, 18002] and "clock was set back: 04:30:00" in missed(*lines)
    assert [row[4] for row in rows('     0.000000 creat("/a", 0) = 3', '     0.000002 write(3, "", 1) = 1')] == [0, 2000]


def test_without_times_there_are_no_arrivals(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text('creat("/a", 0644) = 3\nwrite(3, "a", 1) = 1\nfsync(3) = 0\npread64(3, "a", 1, 0) = 1\n+++ exited with 0 +++\n')
    found = pa.Table.from_batches(list(read_trace(path)))
    assert found.num_rows > 3 and set(found["arrival"].to_pylist()) == {None} and set(found["think"].to_pylist()) == {0}
    assert found.schema.field("arrival").nullable and found["dependency"].to_pylist()[1] == 0


def test_what_is_not_known_is_said() -> None:
    said = missed(
        'creat("x", 0644) = 4', 'read(3, "a", 9) = 9', 'write(4, "a", 9) = 9', 'openat(5, "y", O_RDONLY) = 4', "+++ exited with 0 +++"
    )
    assert said.count("\n") == 2 and "(unknown" not in said
    for what in ("opened (strace -y names them): descriptor 3 of", "closed descriptors: process 0", "begins in (strace -y names it): x, y"):
        assert what in said
    told = (
        '1 creat("x", 0) = 3</d/x>',
        '1 write(3</d/x>, "", 2) = 2',
        "1 dup2(9<TCP:[1.2.3.4:5->6.7.8.9:1]>, 4) = 4<TCP:[1.2.3.4:5->6.7.8.9:1]>",
    )
    assert [row[:4] for row in rows(*told, '1 write(4<TCP:[1.2.3.4:5->6.7.8.9:1]>, "x", 3) = 3')] == [
        ("creat", "/d/x", None, 3), ("write", "/d/x", 0, 2), ("write", "TCP:[1.2.3.4:5->6.7.8.9:1]", None, 3)
    ]  # fmt: skip
    assert "end of the text: 1 of them" in missed(*told)


def test_what_programs_print_into_a_line_is_passed_over() -> None:
    assert [row[:4] for row in rows('creat("/a", 0) = 3', 'write(2, "a\\nb", 3a', 'b) = 3', 'write(3, "", 1) = 1')] == [
        ("creat", "/a", None, 3), ("write", "", None, 3), ("write", "/a", 0, 1)
    ]  # fmt: skip


GOOD = '1 creat("/a", 0644) = 3\n1 write(3, "a", 1) = 1\n'


@with_each(
    ("text", "why"),
    [
        (GOOD + "1 fsync(3", "line 3: it is cut short: '1 fsync"),
        (GOOD + "1 fsync(3) = 0", "line 3: it is cut short"),
        (GOOD + "1 fsync(3\n1 fsync(3) = 0\n", "line 3: it is cut short"),
        (GOOD + '1 write(2, "a", 1\n', "line 3: the call that it belongs to is cut short"),
        (GOOD + "1 00:00:01 fsync(3) = 0\n", "line 3: its time is of another kind"),
        (GOOD + "what is this?\n", "line 3: it is not a line of strace, whose lines option -o"),
        (GOOD + '1 write(3, "", 99999999999999999999) = 1\n', "line 3: it has numbers that no call has"),
        (GOOD + "1 fsync() = 0\n", "line 3: it is not a call that can be read"),
        ("1 getpid() = 1\n1 +++ exited with 0 +++\n", "has no request, read as strace"),
    ],
)
def test_damage_is_refused_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(text)
    with pytest.raises(DamagedFileError) as problem, warnings.catch_warnings():
        warnings.simplefilter("ignore", FlashsimWarning)
        list(read_trace(tmp_path / "text", "strace"))
    assert why in str(problem.value) and "\n" not in str(problem.value)


def test_options_are_those_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(GOOD)
    with pytest.warns(FlashsimWarning, match="end of the text"):
        some, most = (
            sum(batch.num_rows for batch in load_format(f"strace:journal={each}").read(tmp_path / "text")) for each in ("no", "yes")
        )
    assert some == 1 < most
    (tmp_path / "text").write_text(GOOD + "1 fsync(3")
    result = CliRunner().invoke(app, ["trace", "info", str(tmp_path / "text")])
    assert result.exit_code == 2 and "line 3: it is cut short" in result.output and "Traceback" not in result.output
