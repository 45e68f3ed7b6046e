"""The method of uFLIP, and ``flashsim device bench`` on simulated drives and real files."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from flashsim.core.errors import CapacityError
from flashsim.core.units import GIB, KIB, MIB, MILLISECONDS, SECONDS, transfer_time
from flashsim.device.device import Device
from flashsim.experiments.bench.targets import SimulatedTarget, random_state
from flashsim.experiments.bench.uflip import ORDER, Method, names, run_all, start_up
from tests.cases import with_each
from tests.commands import Run
from traces.workload.base import FAMILY, WorkloadSpace

SMALL = WorkloadSpace(64 * MIB, count=64, quick=True)


def _measured(preset: str, only: str, method: Method | None = None) -> dict[tuple[str, int], Any]:
    target = SimulatedTarget(Device.open(preset), SMALL.size)
    _, _, runs = run_all(target, SMALL, method or Method(), [only])
    return {(run.pattern, run.value): run for run in cast(Any, runs.itertuples())}


def test_the_nine_micro_benchmarks_are_there() -> None:
    assert set(ORDER) <= set(FAMILY.names()) and len(ORDER) == 9
    assert names() == [*ORDER, *(name for name in FAMILY.names() if name not in ORDER)]
    assert names(["order", "granularity", "order"]) == ["granularity", "order"]


def test_response_times_are_latency_and_transfer() -> None:
    """One read of a page on an idle drive with one command at a time takes the preset's latency and its bytes over the link.

    One that goes on where the last one ended takes the latency of a continuation.
    """
    device = Device.open("ocz-core-60gb")
    drive = device.preset.parameters
    for (pattern, size), run in _measured("ocz-core-60gb", "granularity").items():
        if pattern in ("SR", "RR") and size <= drive.page_size:
            latency = drive.continuation_latency if pattern == "SR" else drive.read_latency
            expected = latency + transfer_time(size, drive.link_read_rate)
            assert run.minimum == run.maximum == expected
            assert run.mean == run.p99 == expected and run.deviation == 0
            assert run.bandwidth == pytest.approx(size * SECONDS / expected)


def test_pauses_stretch_a_run_and_leave_response_times() -> None:
    runs = _measured("ocz-core-60gb", "pause")
    short, long = (runs["SR", pause] for pause in sorted({pause for _, pause in runs})[::2])
    assert short.mean == long.mean
    assert 32 * KIB * SECONDS / long.bandwidth == pytest.approx(long.mean + long.value, rel=0.05)


def test_processes_share_a_drive_with_one_command_at_a_time() -> None:
    runs = _measured("ocz-core-60gb", "parallelism", Method(ignore=16))
    for degree in (4, 16):
        assert runs["RR", degree].mean == pytest.approx(degree * runs["RR", 1].mean, rel=0.1)


def test_the_state_writes_the_share_asked_for_and_disks_have_none() -> None:
    device = Device.open("ocz-core-60gb")
    target = SimulatedTarget(device, 64 * MIB)
    told = target.enforce_state(0.5, seed=1)
    written = device.statistics()["host_write_bytes"]
    assert 32 * MIB <= written < 33 * MIB and "50%" in told
    assert sum(int(requests["length"].sum()) for requests in random_state(64 * MIB, 32 * MIB, 4 * KIB, 1)) == written
    disk = SimulatedTarget(Device.open("toshiba-5400-320gb"), GIB)
    assert "none" in disk.enforce_state(0.5, seed=1) and disk.device.now == 0
    with pytest.raises(CapacityError):
        SimulatedTarget(device, device.capacity + 512)


def test_start_up_is_found() -> None:
    """A phase of cheap requests before oscillation between cheap and dear ones (figure 3 of the paper)."""
    dear = np.tile([100, 100, 100, 2100], 400)
    times = np.concatenate([np.full(300, 100), dear])
    assert 250 <= start_up(times) <= 310
    assert start_up(np.array([5])) == 0
    rising = np.arange(1, 1001)
    assert start_up(rising) <= 500


def test_a_given_start_up_is_left_out() -> None:
    runs = _measured("ocz-core-60gb", "order", Method(ignore=60))
    assert all(run.ignored == 60 and run.requests == 64 for run in runs.values())


def test_one_command_does_everything(here: Path, flashsim: Run) -> None:
    line = "device bench memoright-gt-32gb --quick --size 64MiB --count 32 --json bench.json --out out"
    result = flashsim(line)
    assert result.exit_code == 0, result.output
    told = json.loads((here / "bench.json").read_text())
    assert {run["benchmark"] for run in told["runs"]} >= set(ORDER)
    assert {figure["name"] for figure in told["figures"] if figure["cited"]} == {"sequential_read", "sequential_write", "read_access"}
    assert told["provenance"]["seed"] == 0 and "64 MiB" in told["state"]
    for name in ORDER:
        rows = list(csv.DictReader((here / "out" / f"{name}.csv").read_text().splitlines()))
        own = [run for run in told["runs"] if run["benchmark"] == name]
        assert [float(row["mean ms"]) for row in rows] == [pytest.approx(run["mean"] / MILLISECONDS) for run in own]
        picture = ET.fromstring((here / "out" / f"{name}.svg").read_text())
        assert picture.tag.endswith("svg")
        assert re.search(rf"^{name}$", result.stdout, re.MULTILINE)
    assert flashsim(line + " --force").stdout == result.stdout
    assert json.loads((here / "bench.json").read_text())["runs"] == told["runs"]


def test_a_real_file_is_only_read_unless_writing_is_allowed(here: Path, flashsim: Run) -> None:
    data = np.random.default_rng(1).integers(0, 256, 4 * MIB, np.uint8).tobytes()
    (here / "disk.bin").write_bytes(data)
    result = flashsim("device bench disk.bin --quick --count 8 --pause 1ms --json read.json")
    assert result.exit_code == 0, result.output
    runs = json.loads((here / "read.json").read_text())["runs"]
    assert runs and all("W" not in run["pattern"] and run["minimum"] > 0 for run in runs)
    refused = flashsim("device bench disk.bin --quick --count 8 --pause 1ms --allow-write")
    assert refused.exit_code == 2 and "--force" in refused.stderr
    assert (here / "disk.bin").read_bytes() == data
    allowed = flashsim("device bench disk.bin --quick --count 8 --pause 1ms --allow-write --force --size 4MiB --only mix")
    assert allowed.exit_code == 0, allowed.output
    assert "SR/SW" in allowed.stdout and (here / "disk.bin").read_bytes() != data


@with_each(
    ("line", "says"),
    [
        ("nope", "unknown"),
        ("./nope.bin", "cannot read"),
        (".", "neither"),
        ("./", "neither"),
        ("ocz-core-60gb --only nope", "unknown"),
        ("ocz-core-60gb --size 1KiB", "at least"),
        ("ocz-core-60gb --size 64", "unit"),
        ("ocz-core-60gb --size 1TB", "holds"),
        ("ocz-core-60gb --pause 5", "unit"),
        ("ocz-core-60gb --state 1.5", "from 0 to 1"),
        ("ocz-core-60gb --quick --ignore 256", "256 requests"),
        ("ocz-core-60gb --ignore -1", "at least 0"),
        ("ocz-core-60gb --count 0", "1"),
        ("ocz-core-60gb --quick --only order --seed -1", "seed"),
        ("./new.bin --size 1MiB --allow-write", "at least"),
    ],
)
def test_bad_input_is_one_line(line: str, says: str, here: Path, flashsim: Run) -> None:
    result = flashsim(f"device bench {line} --json out.json")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("flashsim: ") and result.stderr.count("\n") == 1
    assert says in result.stderr
    assert list(here.iterdir()) == []
