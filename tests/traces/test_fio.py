"""The real fio replays what is exported, byte for byte; skipped where fio is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from flashsim.command_line import app
from flashsim.core.request import FLUSH, READ, WRITE
from tests.commands import SMALL_JOIN
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


#: What a request may be later in fio than another of its log, ms, on a busy machine, and how often to look again.
_LATE = 45
_ATTEMPTS = 5
#: When the first requests of version 2 begin, ms after fio's start: all its jobs run by then.
_FIRST = 700


def drawn_log(rng: np.random.Generator, version: int) -> tuple[str, Any]:
    """An I/O log of reads, writes and syncs of two files, and its requests: action, offset, length and time (us)."""
    files = ["/a", "/b/c"]
    begin = int(rng.integers(1, 900)) if version == 3 else 0
    stamp = f"{begin} " * (version == 3)
    lines = [f"fio version {version} iolog", *(f"{stamp}{file} {action}" for file in files for action in ("add", "open"))]
    requests, now = list[tuple[str, int, int, int]](), 0
    for _ in range(int(rng.integers(2, 7))):
        file, action = rng.choice(files), rng.choice(["read", "write", "sync", "datasync"], p=[0.5, 0.3, 0.1, 0.1])
        # in version 3 fio counts a wait from the last read or write, whatever time a sync between has
        wait = int(rng.choice([0, 0, 60, 120, 180])) * (version == 2 or "sync" not in action)
        offset, length = (0, 0) if "sync" in action else (int(rng.integers(0, 99)) * 4096, int(rng.integers(1, 9)) * 512)
        now = wait * 1000 + now if wait or requests else 0
        if version == 3:
            lines.append(f"{begin + now} {file} {action} {offset} {length}")
        else:
            lines += [f"{file} wait {_FIRST + now // 1000} 0"] * bool(wait or not requests) + [f"{file} wait 7 0"] * bool(
                rng.random() < 0.2
            )
            lines.append(f"{file} {action} {offset} {length}")
        requests.append((action, offset, length, now))
    return "\n".join([*lines, *(f"{begin + now} {file} close" if version == 3 else f"{file} close" for file in files)]) + "\n", requests


def replayed_by_fio(logs: list[Path], folder: Path) -> list[list[tuple[int, int, int, int]]]:
    """What fio moves by each log, all at once: ms, direction, offset and length of each read and write."""
    jobs = [f"--name=j{number} --read_iolog={log} --write_lat_log=j{number} --log_offset=1" for number, log in enumerate(logs)]
    subprocess.run(["fio", "--ioengine=null", "--thread", *" ".join(jobs).split()], cwd=folder, capture_output=True, check=True)
    moved = list[list[tuple[int, int, int, int]]]()
    for number in range(len(logs)):
        rows = np.loadtxt(folder / f"j{number}_lat.{number + 1}.log", delimiter=",", dtype=np.int64, ndmin=2)
        moved.append([(int(row[0]), int(row[2]), int(row[4]), int(row[3])) for row in rows])
    return moved


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("first", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(10, 300, 10))])
def test_drawn_logs_move_the_same_and_wait_as_long_in_fio(version: int, first: int, tmp_path: Path) -> None:
    """What is read of a log is what fio makes of it, when it does, and so is the log that is written of that again."""
    name = VERSIONS[version == 2]
    logs, wanted = list[Path](), list[list[tuple[int, int, int, int]]]()
    for seed in range(first, first + 10):
        text, requests = drawn_log(np.random.default_rng([version, seed]), version)
        (tmp_path / f"{seed}.log").write_text(text)
        found = pa.Table.from_batches(list(read_trace(tmp_path / f"{seed}.log")))
        kinds = {"read": READ, "write": WRITE, "sync": FLUSH, "datasync": FLUSH}
        times = [time // 1000 - _FIRST * 1000 * (version == 2) for time in found.column("arrival").to_pylist()]
        rows = zip(*(found.column(column).to_pylist() for column in ("operation", "offset", "length")), times, strict=True)
        assert list(rows) == [(kinds[action], *numbers) for action, *numbers in requests]
        convert(tmp_path / f"{seed}.log", tmp_path / f"{seed}.again", name)
        moves = [(time, kinds[action], offset, length) for action, offset, length, time in requests if "sync" not in action]
        if moves:
            logs += [tmp_path / f"{seed}.log", tmp_path / f"{seed}.again"]
            wanted += [[(time // 1000, *what) for time, *what in moves]] * 2
    for _ in range(_ATTEMPTS):  # a busy machine is late
        moved = replayed_by_fio(logs, tmp_path)
        assert [[what for _, *what in each] for each in moved] == [[what for _, *what in each] for each in wanted]
        late = [[ours[0] - time for ours, (time, *_) in zip(each, those, strict=True)] for each, those in zip(moved, wanted, strict=True)]
        latest = max(max(each) - min(each) for each in late)
        if latest <= _LATE:
            return
    pytest.fail(f"fio moves a request {latest} ms later than another that is read as of the same time")


@pytest.mark.parametrize(
    ("times", "arrivals"),
    [([1, 1, 2000, 1000, 3000], [0, 1999, 1999, 3999]), ([0, 0, 500, 900], [0, 0, 400]), ([1, 500, 1, 1000], [499, 499, 1498])],
)
def test_a_line_of_version_3_waits_from_the_line_before_unless_its_time_is_earlier_or_that_one_0(
    times: list[int], arrivals: list[int], tmp_path: Path
) -> None:
    lines = [
        f"{time} /f {action}" for time, action in zip(times, ["add", *[f"read {4096 * number} 4096" for number in range(9)]], strict=False)
    ]
    (tmp_path / "log").write_text("\n".join(["fio version 3 iolog", *lines, ""]))
    found = pa.Table.from_batches(list(read_trace(tmp_path / "log"))).column("arrival").to_pylist()
    assert found == [1000 * each for each in arrivals]


def test_fio_waits_as_long_where_times_go_back(tmp_path: Path) -> None:
    """A fifth of a second, back, and again a fifth: fio waits twice, as what is read of the log does."""
    times = [1, 1, 1, 200_000, 1, 200_000]
    actions = ["add", "open", *(f"read {4096 * number} 4096" for number in range(4))]
    lines = [f"{time} /f {action}" for time, action in zip(times, actions, strict=True)]
    (tmp_path / "log").write_text("\n".join(["fio version 3 iolog", *lines, ""]))
    arrivals = pa.Table.from_batches(list(read_trace(tmp_path / "log"))).column("arrival").to_pylist()
    assert [round(each / 1e8) for each in arrivals] == [0, 2, 2, 4]
    assert run_fio(tmp_path / "log", "--ioengine=null", "--replay_no_stall=0")["read"]["runtime"] >= 399
