"""``flashsim trace``: what files are, conversion, and replay on simulated devices."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from algorithms.files import parallel_scan
from algorithms.joins.base import BucketOptions, JoinParameters, plan
from flashsim.core.errors import CapacityError, FlashsimWarning, InvalidParameterError
from flashsim.core.outstanding import OutstandingLevel
from flashsim.core.request import FLUSH, READ, WRITE, Completions, make_requests
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.execution import cpu
from flashsim.execution.drivers import run_strands
from flashsim.execution.machine import Machine
from flashsim.execution.machine import load as load_files
from flashsim.execution.requests import Algorithm, Cpu
from flashsim.experiments.replaying.device_report import DeviceReport, recorded_report
from flashsim.experiments.replaying.simulated import ReplaySettings, replay
from flashsim.experiments.replaying.survey import survey
from flashsim.experiments.runs.joining import lay_out, open_pair
from flashsim.storage.rows import Tuples
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.operations.trace_events import check, load
from traces.file.recording import ParquetRecorder
from traces.file.schema import make_batch
from traces.format.base import load_writable, read_trace
from traces.summary.information import describe

#: Ten requests, a millisecond apart.
MQSIM = "".join(f"{number * 1_000_000} 0 {number * 64 % 256} 8 {number % 2}\n" for number in range(10))


def test_info_tells_the_format(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    result = flashsim("trace info a.txt --json a.json")
    assert result.exit_code == 0 and "format: mqsim" in result.stdout
    told = json.loads((here / "a.json").read_text())
    assert (told["format"], told["requests"], told["between"]["mean"]) == ("mqsim", 10, 1e6)


def test_info_draws(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    assert flashsim("trace info a.txt --out-dir shown").exit_code == 0
    assert {path.name for path in (here / "shown").iterdir()} == {
        *("report.html", "sizes.csv", "between.csv", "over_time.csv", "working_set.svg", "offsets.svg"),
        *("reuse.csv", "reuse.svg"),
    }
    windows = pd.read_csv(here / "shown" / "over_time.csv")
    assert windows["requests"].sum() == 10 and windows["footprint"].iloc[-1] == 4 * 4096
    (here / "untimed.csv").write_text("0,0,512,R,0\n")
    assert "forward" not in flashsim("trace info untimed.csv --out-dir more").stdout


@pytest.mark.parametrize("line", ["info a.txt --json i.json --out-dir shown", "convert a.txt b.parquet --to parquet"])
@with_each("content", ["", "what is this", MQSIM + "5 5 5\n", "1 0 0 8 7\n" + MQSIM, MQSIM + "-5 0 0 8 1\n", MQSIM + f"5 0 {2**53} 8 1\n"])
def test_bad_traces_are_one_line_and_leave_nothing(content: str, line: str, flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(content)
    result = flashsim(f"trace {line}")
    assert result.exit_code == 2 and result.stdout == ""
    assert "a.txt" in result.stderr and result.stderr.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["a.txt"]


def test_convert_there_and_back(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    assert flashsim("trace convert a.txt a.parquet --to parquet").exit_code == 0
    assert flashsim("trace convert a.parquet b.txt --to mqsim").exit_code == 0
    assert (here / "b.txt").read_text() == MQSIM
    assert "coarser" in flashsim("trace convert a.txt c.csv --to tencent").stdout
    refused = flashsim("trace convert a.txt b.txt --to mqsim")
    assert refused.exit_code == 2 or refused.exception
    assert flashsim("trace convert a.txt b.txt --to mqsim --force").exit_code == 0


def test_convert_counts_times_that_go_back_and_what_it_writes_keeps_the_others(flashsim: Run, here: Path) -> None:
    (here / "a.csv").write_text("time_us,offset,length,op\n100,0,512,R\n50,512,512,W\n200,1024,512,R\n60,2048,512,R\n")
    words = "requests that arrive before one that precedes them: 2, the first being request 1"
    kept = {"parquet": [100, 50, 200, 60], "spc": [100, 50, 200, 60], "fio-iolog": [100, 100, 200, 200]}
    for name, arrivals in kept.items():
        printed = flashsim(f"trace convert a.csv b.{name} --to {name}").stdout
        assert f"{words}{'; fio-iolog lets them arrive with that' * (name == 'fio-iolog')}\n" in printed
        assert [time for batch in read_trace(f"b.{name}") for time in batch.column("arrival").to_pylist()] == [
            1000 * each for each in arrivals
        ]
    refused = flashsim("trace convert a.csv b.msr --to msr")
    assert refused.exit_code == 2 and "msr holds no request that arrives before the first one, at 100000 ns" in refused.stderr
    assert not (here / "b.msr").exists()


@pytest.mark.parametrize("name", presets.names())
def test_replay_on_every_preset(name: str, flashsim: Run, test_data: Path) -> None:
    trace = test_data / "mqsim" / "tpcc-small.trace"
    options = "--wrap --pace asap --depth 4 --limit 300 --json r.json --out r.parquet --timeline t.json"
    result = flashsim(f"trace replay {trace} --device {name} {options}")
    assert result.exit_code == 0, result.output
    told = json.loads(Path("r.json").read_text())
    assert told["requests"] == 300 and told["duration"] > 0
    assert sum(batch.num_rows for batch in read_trace("r.parquet")) == 300
    assert len([event for event in check(load(Path("t.json")))["X"] if event["cat"] == "request"]) == 300


def test_a_replay_says_how_fast_and_of_how_many_devices_its_requests_are(flashsim: Run, here: Path) -> None:
    (here / "a.csv").write_text("time_us,device,offset,length,op\n" + "".join(f"{10 * each},{each},0,512,R\n" for each in range(5)))
    line = "trace replay a.csv --device ocz-core-60gb"
    assert "a.csv on ocz-core-60gb, at 3 times the trace's speed: " in flashsim(f"{line} --speed 3").stdout
    assert "the requests are of 2 of its devices;" in flashsim(f"{line} --limit 2").stdout
    for without_effect in ("--speed 3 --pace asap", "--depth 4"):
        result = flashsim(f"{line} {without_effect}")
        assert result.exit_code == 2 and result.output.startswith(f"flashsim: {without_effect.split()[0]}: ")


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_a_depth_counts_where_the_engine_cannot_keep_the_pace_of_the_trace(flashsim: Run, here: Path) -> None:
    """A join's requests wait for each other; fio replays them as fast as it goes, and so many at a time."""
    join = "join bnl --r do2009:customer@0.01 --s do2009:orders@0.01 --on c_custkey=o_custkey --device ocz-core-60gb --memory 256KiB"
    assert flashsim(f"{join} --trace bnl.parquet").exit_code == 0
    with (here / "disk.bin").open("wb") as file:
        file.truncate(64 << 20)
    result = flashsim("trace replay bnl.parquet --device ./disk.bin --engine fio --buffered --writes-as-reads --wrap --limit 20 --depth 4")
    assert result.exit_code == 0 and "as fast as it goes with 4 outstanding" in result.stdout, result.output


def test_replay_reports_and_writes(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    result = flashsim("trace replay a.txt --device ocz-core-60gb --out-dir shown --out r.parquet")
    assert result.exit_code == 0 and "at the trace's times" in result.stdout
    assert set(pd.read_csv(here / "shown" / "operations.csv")["operation"]) == {"read", "write"}
    assert "<svg" in (here / "shown" / "report.html").read_text() and not (here / "shown" / "latency.svg").exists()  # of 10 requests


@with_each("line", ["--device /dev/null", "--device nowhere", "--device ocz-core-60gb --pace slow", "--device ocz-core-60gb --limit 0"])
def test_replay_refuses(line: str, flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    result = flashsim(f"trace replay a.txt --json r.json {line}")
    assert result.exit_code != 0
    assert [path.name for path in here.iterdir()] == ["a.txt"]


def _written(path: Path, **columns: object) -> Path:
    load_writable("parquet").write(iter([make_batch(columns)]), path)
    return path


def test_timed_and_thinking_replays_equal_the_device_alone(tmp_path: Path) -> None:
    offset, length = np.arange(50) * 7 % 40 * 4096, np.full(50, 4096)
    requests = make_requests(np.where(np.arange(50) % 3 == 0, WRITE, READ), offset, length)
    columns = {"operation": requests["operation"], "offset": offset, "length": length}
    at = np.arange(50) * 100_000
    requests_serial = make_requests(requests["operation"], offset, length, serial=True, think=500)
    for pace, expected, more in (
        ("timed", Device.open("ocz-core-60gb").serve(requests, at), {"arrival": at + 7}),
        ("think", Device.open("ocz-core-60gb").serve(requests_serial), {"dependency": np.arange(-1, 49), "think": np.full(50, 500)}),
        ("asap", Device.open("ocz-core-60gb").serve(make_requests(requests["operation"], offset, length, serial=True)), {}),
    ):
        path = _written(tmp_path / pace, **columns, **more)
        seen = []
        what = survey(path)
        assert what.pace() == pace
        replay(path, Device.open("ocz-core-60gb"), ReplaySettings(pace), what, lambda _, done, seen=seen: seen.append(done.copy()))
        found = np.concatenate(seen)
        for part in ("submitted", "started", "completed"):
            assert np.array_equal(found[part][1:], expected[part][1:]), (pace, part)


@pytest.mark.parametrize(("drive", "prices"), [("intel-x25e-64gb", "pentium-d-2009"), ("toshiba-5400-320gb", None)])
def test_a_replay_of_strands_keeps_what_overlapped(drive: str, prices: str | None, flashsim: Run, here: Path) -> None:
    """On the same drive every request comes, starts and completes when it did.

    A replay begins with its first request, which on a disk must have come when this one did: at 0, before any work.
    """

    def digest(tuples: Tuples) -> Algorithm:
        yield Cpu({"digest": len(tuples)})

    customers, _ = open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey")
    file = lay_out(customers, 4096)
    with ParquetRecorder(here / "strands.parquet") as recorder:
        machine = Machine([Device.open(drive)], cpu.load(prices) if prices else None, recorder)
        run_strands(parallel_scan(file, digest, 1, 4), [file], machine)
    assert flashsim(f"trace replay strands.parquet --device {drive} --pace think --out again.parquet").exit_code == 0
    recorded_report, again = (pq.read_table(here / name) for name in ("strands.parquet", "again.parquet"))
    begin = recorded_report["arrival"][0].as_py()
    for column in ("arrival", "started", "completed"):
        assert np.array_equal(recorded_report[column].to_numpy() - begin, again[column].to_numpy())


@pytest.mark.parametrize(("drive", "join"), [("ocz-vertex-3", "grace-hash"), ("intel-x25e-64gb", "hybrid-hash")])
def test_a_join_of_strands_keeps_its_times(drive: str, join: str, here: Path) -> None:
    """To the nanosecond, on a device that holds what the join's did before."""
    files = tuple(lay_out(each, 4096) for each in open_pair("do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey"))
    with ParquetRecorder(here / "strands.parquet") as recorder:
        algorithm = plan(join, files[0], files[1], JoinParameters(80, options=BucketOptions("para-hash", strands=8)))
        run = run_strands(algorithm, files, Machine([Device.open(drive)], cpu.load("pentium-d-2009").on_cores(4), recorder))
    found: list[Completions] = []
    device = Device.open(drive)
    load_files(files, [Machine([device])], "packed")
    replay(here / "strands.parquet", device, ReplaySettings("think"), survey(here / "strands.parquet"), lambda _, done: found.append(done))
    again, recorded_report = np.concatenate(found), pq.read_table(here / "strands.parquet")
    begin = recorded_report["arrival"][0].as_py() - again["submitted"][0]
    for column, name in (("arrival", "submitted"), ("started", "started"), ("completed", "completed")):
        assert np.array_equal(recorded_report[column].to_numpy() - begin, again[name])
    level = OutstandingLevel()
    level.add(again["submitted"], again["completed"])
    assert np.array_equal(level.times(), run.outstanding.times())
    assert level.as_dict()["mean"] > 2  # type: ignore[index]


def test_a_real_file_has_the_requests_of_several_strands_at_once(here: Path, flashsim: Run) -> None:
    line = "join grace-hash --r do2009:customer@0.02 --s do2009:orders@0.02 --on c_custkey=o_custkey --memory 1MiB --cpu none"
    assert flashsim(f"{line} --device intel-x25e-64gb --partition para-hash --strands 8 --trace strands.parquet").exit_code == 0
    told = flashsim("trace replay strands.parquet --device ./disk.img --allow-write --pace think --out again.parquet")
    if "does not do direct I/O" in told.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert told.exit_code == 0, told.output
    levels = []
    for name in ("strands.parquet", "again.parquet"):
        level, times = OutstandingLevel(), pq.read_table(here / name)
        level.add(times["started"].to_numpy(), times["completed"].to_numpy())
        spent = level.times()
        levels.append(spent @ np.arange(len(spent)) / spent[1:].sum())  # while any is outstanding
    assert levels[0] > 6
    assert levels[1] > 3


def test_what_lies_beyond_the_device_is_refused_or_wrapped(tmp_path: Path) -> None:
    device = Device.open("ocz-core-60gb")
    path = _written(tmp_path / "far", offset=[0, device.capacity + 4096], length=[512, 512])
    report = DeviceReport()
    with pytest.raises(CapacityError, match="--wrap"):
        replay(path, device, ReplaySettings("asap"), survey(path), report.add)
    assert replay(path, device, ReplaySettings("asap", scale_offsets=True), survey(path), report.add) == 1
    assert report.as_dict(device.statistics())["requests"] == 2


def test_what_is_no_whole_sectors_is_widened_with_a_word_and_a_flush_lies_nowhere(tmp_path: Path) -> None:
    """What `trace info` accepts is replayed: 100 bytes that reach over two sectors move both."""
    device = Device.open("ocz-core-60gb")
    rows = {"operation": [WRITE, READ, WRITE, FLUSH], "offset": [500, 1024, 1000, 2 * device.capacity], "length": [100, 512, 1, 0]}
    path, seen = _written(tmp_path / "odd", **rows), list[Completions]()
    describe(path)
    with pytest.warns(FlashsimWarning, match="trace: 2 requests were widened to whole sectors of 512 B"):
        replay(path, device, ReplaySettings("asap"), survey(path), lambda batch, done: seen.append(done.copy()))
    assert sum(len(each) for each in seen) == 4 and device.statistics()["host_write_bytes"] == 1024 + 512


def test_what_is_read_in_many_places_is_loaded_in_larger_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offset = np.random.default_rng(1).integers(0, 1 << 25, 3000) * 4096
    path = _written(tmp_path / "wide", offset=offset, length=np.full(3000, 4096))
    fine = survey(path).read
    monkeypatch.setattr("flashsim.experiments.replaying.survey._MOST_PLACES", 500)
    coarse = survey(path).read
    assert len(coarse) <= 500 < len(fine) and (np.diff(coarse.reshape(-1)) > 0).all()
    place = np.searchsorted(coarse[:, 0], offset, side="right") - 1
    assert (coarse[place, 0] <= offset).all() and (offset + 4096 <= coarse[place, 1]).all()


def test_a_pace_that_the_trace_does_not_know_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path / "untimed", offset=[0], length=[512])
    with pytest.raises(InvalidParameterError, match="pace: timed"):
        replay(path, Device.open("ocz-core-60gb"), ReplaySettings("timed"), survey(path), DeviceReport().add)
    with pytest.raises(InvalidParameterError, match="depth"):
        ReplaySettings("asap", depth=0)


#: Ten seconds of eight requests each, of two volumes, with times in whole seconds.
TENCENT = "".join(f"{1538323200 + number // 8},{number * 64},8,{number % 2},{number % 2}\n" for number in range(80))


def test_a_format_is_named_and_a_wrong_guess_overridden(flashsim: Run, here: Path) -> None:
    (here / "whole.txt").write_text("".join(f"{number * 700} 0 {number * 64} 8 1\n" for number in range(11)))
    refused = flashsim("trace info whole.txt")
    assert refused.exit_code == 2 and "it could be disksim-ascii or mqsim; name it with --format" in refused.stderr
    for name, duration in (("disksim-ascii", 7 * 10**9), ("mqsim", 7000)):
        assert flashsim(f"trace info whole.txt --format {name} --json i.json --force").exit_code == 0
        assert json.loads((here / "i.json").read_text())["duration"] == duration
        assert flashsim(f"trace convert whole.txt w.parquet --format {name} --to parquet --force").exit_code == 0
        assert pq.read_table(here / "w.parquet")["arrival"].to_pylist()[-1] == duration
    assert flashsim("trace replay whole.txt --device ocz-core-60gb --format mqsim --limit 3").exit_code == 0


def test_a_format_of_ones_own_and_named_columns(flashsim: Run, here: Path) -> None:
    (here / "mine.py").write_text(
        "from traces.file.schema import make_batch\n"
        "TITLE = 'mine'\n"
        "def recognise(path):\n    return False\n"
        "def read(path):\n    numbers = [int(line) for line in path.read_text().split()]\n"
        "    yield make_batch({'offset': [512 * number for number in numbers], 'length': [512] * len(numbers)})\n"
    )
    (here / "a.txt").write_text("1\n2\n3\n")
    result = flashsim("trace info a.txt --format mine.py")
    assert result.exit_code == 0 and "mine.py" in result.stdout and "1.5 KiB" in result.stdout
    (here / "b.csv").write_text("Stamp,Where,Count\n1,8,1\n3,16,2\n")
    columns = "time=Stamp:s,offset=Where:sectors,length=Count:4KiB"
    result = flashsim(f"trace info b.csv --columns {columns}")
    assert result.exit_code == 0 and "not in the file" in result.stdout and "12 KiB" in result.stdout
    for line in ("--format mqsim --columns a=b", "--columns a=b", "--format nosuch", "--format none.py"):
        refused = flashsim(f"trace info b.csv {line}")
        assert refused.exit_code == 2 and refused.stdout == ""


def test_a_part_of_a_trace_is_told_converted_and_replayed(flashsim: Run, here: Path) -> None:
    (here / "a.csv").write_text(TENCENT)
    part = "--device-number 1 --start 2s --window 3s"
    assert flashsim(f"trace info a.csv {part} --json i.json").exit_code == 0
    told = json.loads((here / "i.json").read_text())
    assert (told["requests"], told["devices"], told["duration"]) == (12, 1, 2 * 10**9)
    assert flashsim(f"trace convert a.csv c.parquet --to parquet {part} --speed 4").exit_code == 0
    assert np.ptp(pq.read_table(here / "c.parquet")["arrival"].to_numpy()) == 5 * 10**8
    result = flashsim(f"trace replay a.csv --device ocz-core-60gb {part} --speed 4 --out r.parquet --json r.json")
    assert result.exit_code == 0 and "devices" not in result.stdout
    assert np.ptp(pq.read_table(here / "r.parquet")["arrival"].to_numpy()) == 5 * 10**8
    given = json.loads((here / "r.json").read_text())["provenance"]
    assert given["parameters"]["start"] == "2s"


def test_a_part_of_a_trace_is_replayed_on_a_real_file(flashsim: Run, here: Path) -> None:
    (here / "a.csv").write_text(TENCENT)
    (here / "disk").write_bytes(bytes(1 << 20))
    part = "--device-number 1 --start 2s --window 3s --speed 100 --widen --wrap --writes-as-reads"
    result = flashsim(f"trace replay a.csv --device ./disk {part} --out r.parquet")
    assert result.exit_code == 0 and "times are told in steps of 10 ms" in result.stderr
    replayed = pq.read_table(here / "r.parquet")
    assert replayed.num_rows == 12 and set(replayed["device"].to_pylist()) == {1}
    assert np.ptp(replayed["arrival"].to_numpy()) < 10**9


def test_bursts_and_unknown_operations_are_warned_of_once(flashsim: Run, here: Path) -> None:
    (here / "a.csv").write_text(TENCENT)
    replayed = flashsim("trace replay a.csv --device ocz-core-60gb")
    assert replayed.exit_code == 0
    assert replayed.stderr == (
        "flashsim: warning: trace: times are told in steps of 1 s: 70 of 80 requests arrive with the one before; "
        "--pace asap replays without times\n"
    )
    assert "steps" not in flashsim("trace replay a.csv --device ocz-core-60gb --pace asap").stderr
    assert "--device-number" in replayed.stdout
    assert flashsim("trace convert a.csv o.bin --to oracle-general").exit_code == 0
    told = flashsim("trace info o.bin")
    assert "not in the file" in told.stdout and "share of bytes read" in told.stdout and "100.0 %" not in told.stdout
    assert flashsim("trace replay o.bin --device ocz-core-60gb --pace asap").stderr.count("operations are not in the file") == 1


def test_a_capture_that_is_cut_short_is_refused_or_told_once(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    for line in ("a.bin --to blktrace", "b.txt --to blkparse"):
        assert flashsim(f"trace convert a.txt {line}").exit_code == 0
    (here / "cut.bin").write_bytes((here / "a.bin").read_bytes()[:-5])
    (here / "cut.txt").write_bytes((here / "b.txt").read_bytes()[:-12])
    for line in ("info cut.{}", "convert cut.{} b.parquet --to parquet", "replay cut.{} --device ocz-core-60gb"):
        result = flashsim(f"trace {line.format('bin')}")
        assert result.exit_code == 2 and not (here / "b.parquet").exists()
        assert "cut.bin is cut short in record 9 at byte 432: 43 bytes are left over" in result.stderr
        told = flashsim(f"trace {line.format('txt')}")
        assert told.exit_code == 0 and told.stderr.count("cut short in line 10") == 1
        (here / "b.parquet").unlink(missing_ok=True)


def test_unknown_latencies_are_not_compared_with(flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text(MQSIM)
    told = flashsim("trace convert a.txt m.csv --to msr")
    assert told.exit_code == 0 and "completed is not known of all requests: msr holds a ResponseTime of -1 there" in told.stdout
    assert flashsim("trace info m.csv --json m.json").exit_code == 0
    assert all("latency" not in operation for operation in json.loads((here / "m.json").read_text())["operations"].values())
    assert recorded_report(here / "m.csv") is None


#: Messages of the files that are refused, by the command.
REFUSED = {
    "trace info {}/ioda-bytes.trace": "it could be disksim-ascii or csv",
    "trace info {}/msr-unsorted.csv": "msr-unsorted.csv, line 2: Timestamp is before that of the first line",
    "trace info {}/zero-length.iolog": "zero-length.iolog, line 4: it moves no byte",
    "trace convert {}/zero-length.iolog out.csv --to spc": "zero-length.iolog, line 4: it moves no byte",
    "trace replay {}/zero-length.iolog --device intel-x25e-64gb": "zero-length.iolog, line 4: it moves no byte",
    "cache simulate {}/four-columns-no-arc.tr": "it could be arc or csv",
}


@with_each("line", REFUSED)
def test_what_is_refused_is_refused_alike_in_one_line(line: str, test_data: Path, here: Path, flashsim: Run) -> None:
    result = flashsim(line.format(test_data / "cases"))
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and REFUSED[line] in result.stderr, result.stderr
    assert not list(here.iterdir())
