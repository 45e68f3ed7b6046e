"""``flashsim record``: every byte that a program reads and writes, held against what the kernel counted, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import flashsim as fs
from flashsim.apps.programs import recorder
from flashsim.apps.programs.images import snapshot
from flashsim.apps.programs.recorder import extents_of
from flashsim.apps.programs.volatile_files import VolatileFiles
from flashsim.core.errors import FlashsimWarning
from flashsim.core.request import FLUSH, WRITE
from tests import postgresql_server
from tests.cases import with_each
from tests.flashsim.experiments.runs.test_interrupts import start
from tests.processes import wait_until
from tests.yardstick import seconds
from traces.calls.coverage import dirtied_bytes
from traces.calls.schema import DIRECT, READS, SYNCS, WRITES, Recording, table_of
from traces.format.base import read_trace
from traces.format.perf_trace import recording_of

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")

#: Runs a program and leaves what the kernel counted for it; what the kernel reads to begin a program counts as read, and is no call.
COUNTED = """
import subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
with open("/proc/self/io") as counts:
    text = counts.read()
with open("counts", "w") as file:
    file.write(text)
"""
MANY = (
    "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) "
    "insert into t select i, hex(randomblob(40)) from n; create index x on t(b); delete from t where a % 3 = 0; vacuum"
)
SQLITE = f"import sqlite3; c = sqlite3.connect('shop.db'); c.executescript({MANY!r})"
DUCKDB = "import duckdb; c = duckdb.connect('d.db'); c.sql('create table t as select range a from range(100000)'); c.sql('checkpoint')"
FIO = "fio --name=a --filename=f.bin --size=1M --rw=randrw --bs=4k --ioengine=psync --fsync=16"
#: A server begins, pgbench fills it at scale 1 and runs, and the server ends; the folder of the programs is the script's name.
PGBENCH = """
set -e
exec >/dev/null 2>&1
PATH=$0:$PATH
postgres -D data -c listen_addresses= -c unix_socket_directories=$PWD -c autovacuum=off &
until pg_isready -q -h $PWD; do sleep 0.1; done
pgbench -q -h $PWD -U postgres -i -s 1 postgres
pgbench -h $PWD -U postgres -c 2 -t 100 postgres
kill -INT $!
wait
"""


def go_on_when_watched(process: subprocess.Popen[str], over: threading.Event) -> None:
    """Let a program go on once strace watches it, or nobody will any more."""
    status = Path("/proc", str(process.pid), "status")
    while not over.is_set() and "TracerPid:\t0\n" in status.read_text():
        over.wait(0.01)
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def recording(flashsim: Any, program: list[str], *options: str) -> pd.DataFrame:
    line = ["record", "--out", "run.parquet", *options, "--", *program]
    result = flashsim(line)
    assert result.exit_code == 0, result.output
    frame: pd.DataFrame = Recording.read(Path("run.parquet")).table.to_pandas()
    return frame


PROGRAMS = {"sqlite": [sys.executable, "-c", SQLITE], "duckdb": [sys.executable, "-c", DUCKDB], "fio": FIO.split()}


def assert_all_bytes_are_there(calls: pd.DataFrame, counts: str) -> None:
    """Writes are those that the kernel counted (``/proc/PID/io``), and so are reads, but for what the kernel reads to begin a program."""
    before = calls[calls["time"] < calls.loc[calls["path"].astype(str).str.fullmatch(r"/proc/(self|\d+)/io"), "time"].min()]
    moved = before["result"].clip(lower=0).fillna(0)
    kernel = {name: int(count) for name, count in (line.split(": ") for line in counts.splitlines())}
    assert moved[before["call"].isin(WRITES)].sum() == kernel["wchar"] > 0
    begun = (before["path"] == "/etc/ld.so.cache").sum()
    read = moved[before["call"].isin(READS)].sum()
    assert 0 <= kernel["rchar"] - read <= 2048 * begun and read > 1000


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_byte_is_there_that_the_kernel_counted(flashsim: Any, here: Path, name: str) -> None:
    if not shutil.which(PROGRAMS[name][0]):
        pytest.skip(f"{name} is not installed")
    calls = recording(flashsim, [sys.executable, "-c", COUNTED, *PROGRAMS[name]])
    assert_all_bytes_are_there(calls, Path("counts").read_text())


def files_of(recording: Recording, folder: Path, before: dict[str, bytes]) -> dict[str, bytes]:
    """Files and folders below a folder as the calls of a recording leave them."""
    names = {path: number for number, path in enumerate(before)}
    files = VolatileFiles(names, {names[path]: content for path, content in before.items()})
    for number, row in enumerate(recording.table.to_pylist()):
        files.apply(number, row)
    return {path: content for path, content in files.image(files.everything()).items() if path.startswith(f"{folder}/")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_contents_make_the_files_again(here: Path, name: str) -> None:
    if not shutil.which(PROGRAMS[name][0]):
        pytest.skip(f"{name} is not installed")
    recording = recorder.record(PROGRAMS[name], contents=True, folder=here, before={})
    assert files_of(recording, here, {}) == snapshot(here) != {} and not recording.missed


def test_bytes_are_appended_to_files_that_are_known(here: Path) -> None:
    Path("old").write_text("apples")
    before = snapshot(here)
    recording = recorder.record(
        ["sh", "-c", "echo pears >> old; echo plums >> new; mv old other"], contents=True, folder=here, before=before
    )
    assert not recording.missed
    assert files_of(recording, here, before) == snapshot(here) == {f"{here}/new": b"plums\n", f"{here}/other": b"applespears\n"}


@pytest.mark.deep
@pytest.mark.skipif(not postgresql_server.programs(), reason="PostgreSQL's programs are not installed")
def test_a_server_under_pgbench_is_there_with_every_byte_and_file() -> None:
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as place:
        folder = Path(place)
        cluster = postgresql_server.Cluster(folder, True, "--wal-segsize=1")
        before = snapshot(folder)
        load = [*cluster.as_owner, "sh", "-c", PGBENCH, str(postgresql_server.programs())]
        recording = recorder.record([sys.executable, "-c", COUNTED, *load], contents=True, folder=folder, before=before)
        assert recording.facts["exit_code"] == 0 and not recording.missed
        calls = recording.table.to_pandas()
        assert_all_bytes_are_there(calls, (folder / "counts").read_text())
        assert calls["call"].isin(SYNCS).sum() > 200 and calls["process"].nunique() > 10
        assert files_of(recording, folder, before) == snapshot(folder)


def test_the_exit_code_is_the_program_s_and_files_are_counted(flashsim: Any, here: Path) -> None:
    result = flashsim(["record", "--out", "run.parquet", "--json", "run.json", "--", "sh", "-c", "echo pears > shop; exit 7"])
    told = json.loads((here / "run.json").read_text())
    (shop,) = [row for row in told["files"] if row["path"] == f"{here}/shop"]
    assert result.exit_code == told["exit_code"] == 7 and (shop["writes"], shop["bytes_written"]) == (1, 6)
    killed = flashsim(["record", "--out", "run.parquet", "--force", "--", "sh", "-c", "kill -TERM $$"])
    assert killed.exit_code == 128 + signal.SIGTERM


def test_a_process_that_runs_is_attached_to(flashsim: Any, here: Path) -> None:
    program = "import sys, os\nf = os.open('log', os.O_CREAT | os.O_RDWR)\nos.write(f, b'12345')\nprint('ready', flush=True)\n"
    program += "sys.stdin.readline()\nos.write(f, b'678')\n"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
        over = threading.Event()
        threading.Thread(target=go_on_when_watched, args=(process, over)).start()
        result = flashsim(["record", "--out", "run.parquet", "--pid", str(process.pid)])
        over.set()
    assert result.exit_code == 0, result.output
    calls = Recording.read(Path("run.parquet")).table.to_pandas()
    (write,) = calls[calls["path"] == f"{here}/log"].to_dict("records")
    assert (write["call"], write["offset"], write["result"]) == ("write", 5, 3)


@pytest.fixture
def busy(here: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes to a file without an end."""
    program = "import os, time\nfile = os.open('log', os.O_CREAT | os.O_WRONLY)\nwhile os.write(file, b'1'):\n    time.sleep(0.01)\n"
    with subprocess.Popen([sys.executable, "-c", program], cwd=here) as process:
        yield process
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["as a terminal does", "to flashsim alone"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_recording_which_is_kept_and_the_process_goes_on(
    busy: subprocess.Popen[bytes], here: Path, send: Callable[[int, int], None], how: signal.Signals
) -> None:
    process = start(f"record --out run.parquet --pid {busy.pid}", here)
    assert wait_until(lambda: "TracerPid:\t0\n" not in Path(f"/proc/{busy.pid}/status").read_text())
    size = (here / "log").stat().st_size
    assert wait_until(lambda: (here / "log").stat().st_size > size + 5)
    send(process.pid, how)
    output, errors = process.communicate(timeout=seconds(60))
    assert process.returncode == 0 and "calls recorded" in output and "interrupted" not in errors
    assert Recording.read(here / "run.parquet").table.num_rows >= 5


def test_the_time_of_a_program_is_measured() -> None:
    assert recorder._seconds(["sleep", "0.05"]) >= 0.05


def test_the_cost_that_is_told_has_that_of_contents(flashsim: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which a program takes 1 s, being watched 2 s more, and each MB that strace writes another."""

    def seconds(command: list[str]) -> float:
        measured(command)
        return 1 if command[0] == "dd" else 3 + Path(command[command.index("-o") + 1]).stat().st_size / 1e6

    measured = recorder._seconds
    monkeypatch.setattr(recorder, "_seconds", seconds)
    costs = []
    for options in ([], ["--contents"]):
        line = ["record", "--out", "run.parquet", "--force", *options, "--", "dd", "if=/dev/zero", "of=big", "bs=1M", "count=2"]
        assert ("and contents kept" in flashsim(line).stdout) == bool(options)
        facts = Recording.read(here / "run.parquet").facts
        costs.append(facts["cost_s"] - 2 / 4000 * facts["calls_seen"])  # 2,000 reads and writes were watched
    assert costs[0] == pytest.approx(0, abs=1e-9) and 4 < costs[1] < 40  # a byte is written as one to ten; the program's are 4 MiB


#: The command, which gives strace the time that the machine needs to tell of a signal.
RECORD = f"""
from flashsim.__main__ import main
from flashsim.apps.programs import attaching
attaching._LATE = {seconds(0.1)}
main()
"""
#: Counts signals until a while after the first.
PATIENT = f"""
import signal, sys, time
got = []
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda number, _: got.append(number))
open("begun", "w").close()
while not got:
    time.sleep(0.01)
time.sleep({seconds(0.5)})
sys.exit(len(got))
"""
LONG = 'import time; open("begun", "w"); time.sleep(600)'


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["as a terminal does", "to flashsim alone"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("program", "code"), [(f"exec {sys.executable} -c '{PATIENT}'", 1), (f"{sys.executable} -c '{LONG}'; true", None)])
def test_a_signal_comes_to_the_program_once_and_the_recording_is_kept(
    here: Path, send: Callable[[int, int], None], how: signal.Signals, program: str, code: int | None
) -> None:
    (here / "program").write_text(program)
    process = start("record --out run.parquet -- sh program", here, ("-c", RECORD))
    assert wait_until((here / "begun").exists)
    send(process.pid, how)
    output, errors = process.communicate(timeout=seconds(60))
    assert process.returncode == (code or 128 + how) and "calls recorded" in output and "interrupted" not in errors
    assert Recording.read(here / "run.parquet").facts["exit_code"] == process.returncode


def test_a_process_that_another_strace_watches_is_refused_in_a_line(
    flashsim: Any, busy: subprocess.Popen[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(["strace", "-q", "-o", os.devnull, "-p", str(busy.pid)]) as other:
        assert wait_until(lambda: f"TracerPid:\t{other.pid}\n" in Path(f"/proc/{busy.pid}/status").read_text())
        result = flashsim(["record", "--out", "run.parquet", "--pid", str(busy.pid)])
        other.terminate()
    assert result.exit_code == 2 and "not permitted" in result.stderr and len(result.stderr.splitlines()) == 1
    assert not capfd.readouterr().err


@with_each(
    ("line", "told"),
    [
        (["--", "no-such-program"], "no program 'no-such-program'"),
        ([], "a command behind --, or --pid"),
        (["--pid", "4194303"], "there is no such process"),
        (["--pid", "0"], "it must be at least 1"),
    ],
)
def test_bad_input_is_refused_in_a_line(flashsim: Any, here: Path, line: list[str], told: str) -> None:
    result = flashsim(["record", "--out", "run.parquet", *line])
    assert result.exit_code == 2 and told in result.stderr and len(result.stderr.splitlines()) == 1, result.output
    assert not list(here.iterdir())


def test_without_strace_a_line_says_how_to_get_it(flashsim: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here))
    result = flashsim(["record", "--out", "run.parquet", "--", "true"])
    assert result.exit_code == 2 and "apt-get install strace" in result.stderr


def test_extents_say_where_the_files_lie(here: Path) -> None:
    if not extents_of([__file__]):
        pytest.skip("the file system does not tell where files lie")
    program = "import os\nfile = open('shop', 'wb')\nfile.write(bytes(300000))\nfile.flush()\nos.fsync(file.fileno())"
    fs.record(["python3", "-c", program], out="run.parquet", extents=True)
    recording = Recording.read(Path("run.parquet"))
    pieces = recording.extents[str(here / "shop")]
    assert pieces == [list(each) for each in extents_of([str(here / "shop")])[str(here / "shop")]]
    assert sum(length for _, _, length in pieces) >= 300000
    requests = [row for batch in read_trace("run.parquet", "calls:journal=no") for row in batch.to_pylist()]
    written = {(row["offset"], row["length"]) for row in requests if row["label"] == str(here / "shop") and row["operation"] == WRITE}
    assert sum(length for _, length in written) == -(-300000 // 4096) * 4096
    assert all(any(place <= offset < place + length for _, place, length in pieces) for offset, _ in written)


def test_requests_of_programs_that_run_one_after_another_wait_for_each_other(here: Path) -> None:
    loop = "for name in a b c; do dd if=/dev/zero of=$name bs=4k count=4 conv=fsync 2>/dev/null; done"
    fs.record(["sh", "-c", loop], out="run.parquet")
    requests = [row for batch in read_trace("run.parquet", "calls:journal=no,warm=yes") for row in batch.to_pylist()]
    assert [row["operation"] for row in requests] == [WRITE, FLUSH] * 3 and [row["dependency"] for row in requests] == [*range(-1, 5)]


#: Opens, writes and reads at places and where it is, copies a descriptor in a thread, and forks.  What is begun waits until the call that
#: began it has returned: perf tells calls in the order of their ends.
FILES = """
import os, threading
f = os.open("a", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
os.pwrite(f, b"x" * 4096, 8192); os.write(f, b"abc"); os.fsync(f); os.pread(f, 10, 0); os.lseek(f, 0, 0); os.read(f, 3)
go = threading.Event()
def beside():
    go.wait()
    h = os.dup(f); os.writev(h, [b"zz", b"zz"]); os.fdatasync(h); os.close(h)
thread = threading.Thread(target=beside); thread.start(); go.set(); thread.join()
if os.fork() == 0:
    while not os.path.exists("go"): pass
    os.write(f, b"child"); os._exit(0)
os.mkdir("go"); os.wait(); os.rmdir("go"); os.ftruncate(f, 100); os.close(f); os.rename("a", "b")
"""


def test_the_text_of_perf_tells_the_same_reads_writes_and_syncs(here: Path) -> None:
    program = [sys.executable, "-S", "-c", FILES]
    if not shutil.which("perf") or subprocess.run(["perf", "trace", "-o", "perf.txt", "--", *program], capture_output=True).returncode:
        pytest.skip("perf trace may not be used here")
    fs.record(program, out="strace.parquet")
    wanted = Recording.read(Path("strace.parquet"))
    got = recording_of(Path("perf.txt").read_text(encoding="utf-8").splitlines(), Path("perf.txt"))
    names = (*READS, *WRITES, *SYNCS, "ftruncate")
    rows = [
        [
            (row["call"], row["offset"], row["length"], row["result"])
            for row in each.table.to_pylist()
            if row["call"] in names and row["file"] >= 0
        ]
        for each in (wanted, got)
    ]
    own = [every[[call for call, *_ in every].index("pwrite64") :] for every in rows]  # perf takes files of imports for their successors
    assert len(own[0]) == len(own[1]) == 9
    for one, other in zip(*own, strict=True):  # perf may take a descriptor for another file, whose size is not known: then that is said
        is_unplaced = other == (one[0], None, *one[2:]) and any("where in its file" in line for line in got.missed)
        assert one == other or is_unplaced
    assert any("rename" in line for line in got.missed)
    with warnings.catch_warnings(record=True) as warned:  # of files that a program of the system opened before, too, now and then
        warnings.simplefilter("always")
        assert sum(batch.num_rows for batch in read_trace(Path("perf.txt"))) > 3
    assert any(each.category is FlashsimWarning and "rename" in str(each.message) for each in warned)


_MAPPED = "import mmap; f = open('m', 'w+b'); f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 0); m[:] = bytes(1 << 20); m.flush()"


@pytest.mark.parametrize(
    ("words", "least", "most"),
    [
        (["dd", "if=/dev/zero", "of=a", "bs=64k", "count=40"], 0.95, 1),
        (["dd", "if=/dev/zero", "of=a", "bs=4k", "count=400", "oflag=dsync"], 0.9, 1),
        (["python3", "-c", "import os; f = os.open('a', 66); [(os.pwrite(f, b'x' * 9, 8192), os.fsync(f)) for _ in range(400)]"], 0.9, 1),
        (["python3", "-c", _MAPPED], 0, 0.1),
    ],
)
def test_a_recording_says_which_share_of_the_kernel_s_writes_it_explains(words: list[str], least: float, most: float, here: Path) -> None:
    """Pages that a sync has cleaned count again, as the kernel counts them; writes through mapped memory are in no call.

    Each writes a hundred times what the kernel adds for directories and inodes (six pages at most so far).
    """
    share = fs.record(words, out="run.parquet").seen_share
    if share is None:
        pytest.skip("the kernel counts no writes here, or files lie in memory")
    assert least <= share <= most


def test_writes_that_make_pages_dirty_are_counted_as_the_kernel_does() -> None:
    common = {"process": 1, "thread": 1, "kind": "file", "duration": 10, "flags": 0, "file": 0, "path": "/a"}
    calls = [("pwrite64", 0, 4097), ("pwrite64", 4096, 1), ("fsync", None, 0), ("pwrite64", 8191, 2), ("sync_file_range", 4096, 0)]
    calls += [("pwrite64", 4096, 8192), ("sync", None, 0), ("pwrite64", 0, 1)]
    rows = [
        common | {"time": number, "call": call, "offset": offset, "length": result or 4096, "result": result}
        for number, (call, offset, result) in enumerate(calls)
    ]
    rows += [common | {"time": 40 * 10**9, "call": "pwrite64", "offset": 0, "length": 1, "result": 1}]
    rows += [common | {"time": 41 * 10**9, "call": "pwrite64", "offset": 512, "length": 512, "result": 512, "flags": DIRECT}]
    # 2 pages; 2 after the sync; 1 that was written back; 1 after a sync of all; 1 that was dirty for long; 512 bytes past the cache
    assert dirtied_bytes(table_of(rows))[0] == (2 + 2 + 1 + 1 + 1) * 4096 + 512
    assert dirtied_bytes(table_of(rows), lambda path: path != "/a") == (0, 0)


def test_a_page_makes_its_whole_folio_dirty() -> None:
    common = {"process": 1, "thread": 1, "kind": "file", "duration": 10, "flags": 0, "file": 0, "path": "/a", "length": 1}
    # pages 0 and 1 in one folio; page 0 again; pages 3, 4 to 7, 8 in folios of 1, 4 and 1; page 6 again
    calls = [
        ("pwrite64", 0, 8192),
        ("fsync", None, 0),
        ("pwrite64", 0, 1),
        ("pwrite64", 3 * 4096, 6 * 4096),
        ("fsync", None, 0),
        ("pwrite64", 6 * 4096, 1),
    ]
    rows = [common | {"time": at, "call": call, "offset": offset, "result": result} for at, (call, offset, result) in enumerate(calls)]
    assert dirtied_bytes(table_of(rows)) == ((2 + 1 + 6 + 1) * 4096, (2 + 2 + 6 + 4) * 4096)
    assert dirtied_bytes(table_of(rows), mapped=["/a"])[1] == (2 + 2 + 6 + 1) * 4096
