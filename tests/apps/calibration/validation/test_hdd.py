"""``flashsim validate hdd``: a closed loop is run as the measured drive ran it, and the distances are those of the definition."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from flashsim.apps.calibration.validation import closed_loop
from flashsim.apps.calibration.validation.closed_loop import PARTS, by_class, compare, headline
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.device import presets
from flashsim.device.device import Device
from tests.cases import with_each
from tests.commands import Run
from traces.file.schema import make_batch
from traces.format import disksim

DRIVE = "toshiba-5400-320gb"
MILLISECOND = 1_000_000


def measured_trace(path: Path, later: int = 0, count: int = 60) -> None:
    """What the drive itself shows when its requests come one by one, each response told as `later` ns longer."""
    draw = generator(1, "closed loop")
    operation, sectors = draw.integers(0, 2, count), draw.integers(1, 40, count)
    first, think = draw.integers(0, 400_000_000, count), draw.integers(0, 20_000, count) * 1000
    first[1::2] = (first + sectors)[:-1:2]  # every other one goes on from the one before
    device, now, response = Device.open(DRIVE), 0, np.zeros(count, np.int64)
    for row in range(count):
        request = make_requests(int(operation[row]), int(first[row]) * 512, int(sectors[row]) * 512)
        (done,) = device.serve(request, now)
        response[row] = done["completed"] - now
        now = int(done["completed"] + think[(row + 1) % count])
    arrival = np.concatenate([[0], np.cumsum(response + later + np.roll(think, -1))[:-1]])
    columns = {"operation": operation, "offset": first * 512, "length": sectors * 512, "tag": operation * 2 + np.arange(count) % 2}
    times = {"think": np.where(np.arange(count) > 0, think, 0), "arrival": arrival, "completed": arrival + response + later}
    disksim.write(iter([make_batch(columns | times | {"dependency": np.arange(-1, count - 1)})]), path)


def test_the_loop_waits_for_the_simulated_completion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drive held against itself differs in nothing, whatever it is said to have taken; batches end anywhere."""
    measured_trace(tmp_path / "same.trace")
    measured_trace(tmp_path / "later.trace", later=MILLISECOND)
    preset = presets.load(DRIVE)
    same = closed_loop.run(preset, tmp_path / "same.trace")
    assert np.array_equal(same.measured, same.simulated)
    monkeypatch.setattr(closed_loop, "BATCH", 7)
    later = closed_loop.run(preset, tmp_path / "later.trace", model="specification")
    assert np.array_equal(later.simulated, same.simulated)
    assert np.array_equal(later.measured, same.measured + MILLISECOND)
    for group in cast(Any, compare(later).itertuples()):
        assert group.demerit == pytest.approx(1.0)
        assert group.median_error == pytest.approx(1.0)
        assert group.measured_mean - group.simulated_mean == pytest.approx(1.0)
        assert all(measured - simulated == pytest.approx(1.0) for measured, simulated in group.percentiles.values())


def test_errors_of_reads_and_writes_do_not_cancel_by_class() -> None:
    """All reads are taken for a millisecond slower, all writes for one quicker, and the distributions of all are alike."""
    measured = np.array([10, 11, 20, 21, 30, 31]) * MILLISECOND
    operation = np.array([READ, WRITE] * 3, np.int8)
    simulated = measured + np.where(operation == READ, 1, -1) * MILLISECOND
    zero = np.zeros(6, np.int64)
    groups = compare(closed_loop.ClosedLoop(operation, zero, zero + 512, measured, simulated, zero))
    assert groups["demerit"].iloc[0] == 0 and groups["mean_error"].iloc[0] == 0
    assert by_class(groups) == {"demerit": pytest.approx(1.0), "mean_error": pytest.approx(1 / 20.5)}
    told = headline(groups)
    assert "reads 1.000 ms, mean +5.00 %; writes 1.000 ms, mean -4.76 %" in told and "1.000 ms, mean 4.88 % off" in told


def test_the_command_prints_and_writes_what_it_compared(here: Path, flashsim: Run) -> None:
    measured_trace(here / "later.trace", later=MILLISECOND // 2)
    result = flashsim(f"validate hdd --drive {DRIVE} --trace later.trace --json v.json --out-dir shown")
    assert result.exit_code == 0, result.output
    assert "demerit 0.500 ms" in result.stdout
    told = json.loads((here / "v.json").read_text())
    assert (told["demerit_ms"], told["by_class"]["demerit"]) == (pytest.approx(0.5), pytest.approx(0.5))
    groups = told["groups"]
    assert list(groups)[:3] == ["all", "reads", "writes"]
    assert groups["reads"]["requests"] + groups["writes"]["requests"] == groups["all"]["requests"] == 60
    assert {"reads: hit", "reads: miss", "writes: doub", "writes: trip"} <= set(groups)
    assert sum(groups[name]["requests"] for name in groups if ":" in name) == 60
    assert set(groups["all"]["percentiles_ms"]) == {"p50", "p90", "p95", "p99", "p99.9"}
    assert {path.name for path in (here / "shown").iterdir()} == {
        "report.html", "response_times.svg", "summary.csv", "percentiles.csv", "requests.csv",
    }  # fmt: skip
    with (here / "shown" / "requests.csv").open() as file:
        rows = list(csv.DictReader(file))
    mean = np.mean([float(row["measured_us"]) - float(row["simulated_us"]) for row in rows])
    assert len(rows) == 60 and mean == pytest.approx(500)


def test_parts_of_the_model_are_left_out_one_at_a_time(here: Path, flashsim: Run) -> None:
    """A drive held against itself is perfect, and without a part that it has it is not."""
    measured_trace(here / "same.trace")
    result = flashsim(f"validate hdd --drive {DRIVE} --trace same.trace --ablate --json v.json")
    assert result.exit_code == 0, result.output
    found = json.loads((here / "v.json").read_text())["ablation_demerit_ms"]
    assert found.pop("whole model") == {"all": 0.0, "reads": 0.0, "writes": 0.0}
    assert {"zones: one mean density", "skews", "seeks 5 % too long", "read-ahead", "fast write"} <= found.keys() <= PARTS.keys()
    assert "bus" not in found  # the drive has a link alone
    assert all(found[part]["all"] > 0 for part in ("zones: one mean density", "seeks 5 % too long", "fast write"))
    assert all(f"\n{part} " in result.stdout for part in found)


@with_each(
    ("line", "says"),
    [
        ("--drive ocz-core-60gb --trace good.trace", "not a hard disk"),
        ("--drive toshiba-5400-320bg --trace good.trace", "did you mean"),
        (f"--drive {DRIVE} --trace missing.trace", "missing.trace"),
        (f"--drive {DRIVE} --trace far.trace", "it reaches to"),
        (f"--drive {DRIVE} --trace cut.trace", "cut.trace"),
        (f"--drive {DRIVE} --trace open.spc", "not recorded"),
        (f"--drive {DRIVE} --trace empty.trace", "empty.trace"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(line: str, says: str, here: Path, flashsim: Run) -> None:
    measured_trace(here / "good.trace", count=5)
    good = (here / "good.trace").read_text()
    (here / "far.trace").write_text(good + "R Hit 999999999999 1 1000 0\n")
    (here / "cut.trace").write_text(good + "R Hit 77\n")
    (here / "open.spc").write_text("0,20,8192,W,0.5\n0,20,8192,R,0.6\n")
    (here / "empty.trace").write_text("")
    before = sorted(here.rglob("*"))
    result = flashsim(f"validate hdd {line} --json v.json --out-dir shown")
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and says in result.stderr
    assert sorted(here.rglob("*")) == before


def test_a_trace_that_is_no_chain_of_reads_and_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a chain"):
        list(closed_loop._check(iter([make_batch(_timed({"dependency": [-1, -1]}))])))
    with pytest.raises(ValueError, match="trim or flush"):
        list(closed_loop._check(iter([make_batch(_timed({"dependency": [-1, 0], "operation": [WRITE, 3]}))])))


def _timed(columns: dict[str, list[int]]) -> dict[str, list[int]]:
    return {"offset": [0, 512], "length": [512, 512], "arrival": [0, 9], "completed": [5, 10]} | columns
