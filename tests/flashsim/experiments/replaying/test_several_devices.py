"""Requests of a system of pools are recorded and replayed on a file a device, and what both took is compared by device."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import flashsim as fs
from flashsim.core.request import Integers
from flashsim.core.units import MB, SECONDS
from flashsim.experiments.designs.session import PoolStudy, execute
from flashsim.pools import PoolOptions
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.experiments.replaying.test_real_replay import refused
from traces.file.recording import CausedRequests
from traces.file.schema import open_trace, provenance_of

ON = "--device disk=./disk.bin --device ssd=./ssd.bin --device log=./log.bin"


def asked(**others: Any) -> PoolStudy:
    """A small system with a disk, an SSD and a log."""
    switches = PoolOptions(clients=8, read_ahead=8, log_bytes=200, partitions=2, dirty_limit=20, think=1_000_000)
    whole: dict[str, Any] = {
        "workload": "zipf:pages=2000,write-share=0.5,each=5",
        "designs": ["lc"],
        "memory": 2 * MB,
        "ssd": 8 * MB,
        "time": 2 * SECONDS,
        "devices": {"disk": "rates", "ssd": "rates", "log": "rates:read=5000,write=5000"},
        "options": switches,
    }
    return PoolStudy(**(whole | others))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The requests of that system's devices."""
    path = tmp_path_factory.mktemp("recorded") / "pool.parquet"
    execute(asked(), trace=path)
    return path


def test_the_requests_of_each_device_are_recorded(recorded: Path) -> None:
    table = pq.read_table(recorded)
    done = execute(asked()).runs[0]
    told = {name: int(values.sum()) for name, values in done.counts.items()}
    device, operation = (table.column(name).to_numpy() for name in ("device", "operation"))
    assert np.array_equal(np.unique(device), [0, 1, 2])
    for number, kind, count in [
        (0, 0, told["disk_reads"]),
        (0, 1, told["disk_writes"]),
        (1, 0, told["ssd_reads"] + told["cleaner_reads"]),
        (1, 1, told["ssd_writes"]),
        (2, 1, told["log_writes"]),
    ]:
        assert ((device == number) & (operation == kind)).sum() == count > 0
    assert provenance_of(open_trace(recorded).schema_arrow)["parameters"]["designs"] == ["lc"]


def test_each_device_is_replayed_on_its_file_and_waits_for_the_others(flashsim: Run, here: Path, recorded: Path) -> None:
    result = flashsim(f"trace replay {recorded} {ON} --allow-write --out again.parquet --json told.json --out-dir shown")
    assert result.exit_code == 0, result.output
    then, now = pq.read_table(recorded), pq.read_table(here / "again.parquet")
    for name in ("device", "operation", "offset", "length", "dependency", "think", "label"):
        assert now.column(name).to_pylist() == then.column(name).to_pylist()
    dependency, think, device, started, completed = (
        now.column(name).to_numpy() for name in ("dependency", "think", "device", "started", "completed")
    )
    waits = dependency >= 0
    assert (started[waits] >= completed[dependency[waits]] + think[waits]).all()
    assert (device[waits] != device[dependency[waits]]).any()
    told = json.loads((here / "told.json").read_text())
    assert list(told["devices"]) == ["disk", "ssd", "log"]
    for number, report in enumerate(told["devices"].values()):
        assert report["requests"] == (device == number).sum()
        of_all = report["runs"]["recorded"]["operations"]["all"]
        # the last ones were outstanding at the end
        assert of_all["demerit"] > 0 and 0 <= report["requests"] - of_all["requests"] < 100
        assert (here / "shown" / list(told["devices"])[number] / "report.html").exists()
    assert "demerit" in result.stdout and not list(here.glob("*.bin"))  # files that were made are removed


def test_from_python(here: Path, recorded: Path) -> None:
    shutil.copy(recorded, "pool.parquet")
    told = fs.replay("pool.parquet", {"disk": "./disk.bin", "ssd": Path("ssd.bin"), "2": "./log.bin"}, allow_write=True, limit=300)
    assert [run.device for run in told.runs] == ["disk", "ssd", "log"] and len(told.requests()) == 300
    demerits = told.demerits().set_index(["device", "operation"])
    assert (demerits["demerit_us"] > 0).all() and set(demerits.index.get_level_values("device")) == {"disk", "ssd", "log"}
    assert not list(here.glob("*.bin"))


@with_each(
    ("options", "words"),
    [
        (ON.replace("log=", "lgo="), ["lgo", "did you mean log"]),
        ("--device disk=./disk.bin --device ssd=./ssd.bin", ["nothing for log", "log=PATH"]),
        ("--device disk=./disk.bin --device ./ssd.bin", ["./ssd.bin", "NAME=PATH"]),
        (f"{ON} --device disk=./other.bin", ["disk has disk.bin already"]),
        (f"{ON} --device 0=./other.bin", ["device 0 is disk, and has disk.bin already"]),
        ("--device disk=./disk.bin --device ssd=./disk.bin --device log=./log.bin", ["ssd=", "disk has that file"]),
        (f"{ON} --engine fio --pace asap", ["fio"]),
        (f"{ON} --against ocz-core-60gb", ["--against"]),
        (f"{ON} --empty", ["--empty"]),
        (ON.replace("./log.bin", "./mine.bin"), ["mine.bin", "--force"]),
    ],
)
def test_what_is_wrong_is_refused_in_a_line(options: str, words: list[str], flashsim: Run, here: Path, recorded: Path) -> None:
    (here / "mine.bin").write_bytes(bytes(2 << 20))
    refused(flashsim(f"trace replay {recorded} {options} --allow-write --json told.json"), *words)
    assert [path.name for path in here.iterdir()] == ["mine.bin"]


def test_without_leave_nothing_is_written(flashsim: Run, here: Path, recorded: Path) -> None:
    refused(flashsim(f"trace replay {recorded} {ON}"), "--allow-write")
    assert not list(here.iterdir())


def test_one_device_is_told_of_and_converted(flashsim: Run, here: Path, recorded: Path) -> None:
    assert flashsim(f"trace info {recorded} --json told.json").exit_code == 0
    assert json.loads((here / "told.json").read_text())["devices"] == 3
    result = flashsim(f"trace convert {recorded} ssd.spc --to spc --device-number 1")
    assert result.exit_code == 0, result.output
    assert len((here / "ssd.spc").read_text().splitlines()) == (pq.read_table(recorded).column("device").to_numpy() == 1).sum()


def test_one_run_is_recorded_whole_or_not_at_all(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = "pool run zipf:pages=2000,each=5 --memory 4MiB --clients 4 --ssd 8MiB --read-ahead 8 --time 1s"
    refused(flashsim(f"{small} --design none,lc --trace t.parquet"), "trace: 2 runs, but")

    def interrupt(self: CausedRequests, first: int, rows: Integers) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CausedRequests, "take", interrupt)
        execute(asked(), trace=here / "t.parquet")
    assert not list(here.iterdir())
    told = fs.pool("zipf:pages=2000,each=5", design="lc", memory="4MiB", ssd="8MiB", clients=4, time="1s", trace=here / "t.parquet")
    assert len(fs.trace("t.parquet").requests()) >= told.summary()["ssd_writes"][0] > 0
