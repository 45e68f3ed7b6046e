"""``flashsim device calibrate`` and ``flashsim validate joins`` on files, and what they refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flashsim.core.units import MIB
from flashsim.device import presets
from tests.commands import Run

JOINS = "validate joins --path ./joins.bin --device ocz-core-60gb --scale 0.01 --memory 256KiB --engine builtin"

STRANDS = JOINS.replace(" --engine builtin", " --algorithm grace-hash --partition para-hash --strands 4 --allow-write --repeats 1")


def file_of(path: Path, size: int) -> Path:
    """A file that was written from begin to end."""
    path.write_bytes(os.urandom(MIB) * (size // MIB))
    return path


def test_a_simulated_drive_is_calibrated(flashsim: Run, here: Path) -> None:
    result = flashsim("device calibrate seagate-barracuda-7200.12 --time 30s --out mine.toml --json mine.json")
    assert result.exit_code == 0, result.output
    assert "rotating: 7,200/min" in result.stdout
    assert "held out" in result.stdout
    told = json.loads((here / "mine.json").read_text(encoding="utf-8"))
    assert told["kind"] == "hdd"
    assert told["errors"]["held_out"]["median"] < 0.1
    assert presets.load("mine.toml").parameters.capacity == told["size"]
    assert flashsim("device show mine.toml").exit_code == 0
    assert sorted(os.listdir(here)) == ["mine.json", "mine.toml"]


REFUSED = {
    "device calibrate ./missing.bin --out new.toml": "missing.bin",
    "device calibrate ./small.bin --out new.toml": "a calibration needs 64 MiB",
    "device calibrate ./holes.bin --out new.toml": "was not written",
    "device calibrate ./folder --out new.toml": "neither a file nor a block device",
    "device calibrate ./written.bin --out new.txt": "ends in .toml",
    "device calibrate ./written.bin --out old.toml": "--force",
    "device calibrate ./written.bin --allow-write --out new.toml": "--force",
    "device calibrate ./written.bin --size 128MiB --out new.toml": "128 MiB are needed",
    "device calibrate ./written.bin --time 1 --out new.toml": "--time",
    "device calibrate ./written.bin --time 1ns --out new.toml": "--time",
    "device calibrate ocz-core-60bg --out new.toml": "did you mean ocz-core-60gb",
    "device calibrate ocz-core-60gb --size 1TB --out new.toml": "holds",
    JOINS: "--allow-write",
    JOINS.replace("./joins.bin", "./written.bin") + " --allow-write": "--force",
    JOINS.replace("./joins.bin", "./nowhere/joins.bin") + " --allow-write": "no folder",
    JOINS.replace("./joins.bin", "ocz-core-60gb") + " --allow-write": "--path: ocz-core-60gb is a preset",
    JOINS.replace("256KiB", "16KiB") + " --allow-write": "memory",
    JOINS.replace("ocz-core-60gb", "ocz-core-60bg") + " --allow-write": "did you mean",
    JOINS.replace("0.01", "0") + " --allow-write": "--scale",
    f"{STRANDS} --engine fio": "engine: fio does not keep requests of grace-hash that overlap; take builtin",
    f"{STRANDS} --engine builtin --strands 40": "strands: 40, but each needs a page to read and one for each of",
}


@pytest.mark.parametrize("line", REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_one_line_and_leaves_nothing(line: str, flashsim: Run, here: Path) -> None:
    file_of(here / "small.bin", MIB)
    file_of(here / "written.bin", 64 * MIB)
    with (here / "holes.bin").open("wb") as file:
        file.truncate(64 * MIB)
    (here / "folder").mkdir()
    (here / "old.toml").write_text("kept", encoding="utf-8")
    before = sorted(os.listdir(here))
    result = flashsim(line)
    assert result.exit_code == 2, result.output
    assert REFUSED[line] in result.stderr and result.stderr.count("\n") == 1
    assert sorted(os.listdir(here)) == before
    assert (here / "old.toml").read_text(encoding="utf-8") == "kept"


def test_a_file_system_without_direct_io_is_refused(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return opened(path, flags, mode)  # type: ignore[arg-type]

    file_of(here / "written.bin", 64 * MIB)
    opened = os.open
    monkeypatch.setattr("flashsim.device.file.os.open", refuse)
    result = flashsim("device calibrate ./written.bin --out new.toml")
    assert result.exit_code == 2
    assert "O_DIRECT" in result.stderr


def test_an_interrupt_leaves_nothing(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flashsim.apps.calibration.session.measure", interrupted)
    result = flashsim("device calibrate ./disk.bin --allow-write --size 64MiB --out new.toml")
    assert result.exit_code == 130
    assert os.listdir(here) == []


def test_joins_are_held_against_a_real_file(flashsim: Run, here: Path) -> None:
    result = flashsim(f"{JOINS} --partition n-hash --allow-write --repeats 2 --json joins.json --out-dir shown")
    assert result.exit_code == 0, result.output
    told = json.loads((here / "joins.json").read_text(encoding="utf-8"))
    assert told["provenance"]["parameters"]["partition"] == "n-hash"
    assert [one["algorithm"] for one in told["joins"]] == ["bnl", "sort-merge", "grace-hash", "hybrid-hash"]
    for one in told["joins"]:
        assert one["replayed_bytes"] == {"builtin": one["bytes"]}
        for column in ("formula", "simulated", "executed", "replayed by builtin"):
            *phases, total = one["seconds"][column]
            assert len(phases) + 1 == len(one["phases"])
            assert total == pytest.approx(sum(phases))
            assert all(time > 0 for time in phases)
    assert "<svg" in (here / "shown" / "report.html").read_text(encoding="utf-8")
    assert sorted(os.listdir(here / "shown")) == ["joins.csv", "joins.svg", "noise.csv", "report.html"]
    assert sorted(os.listdir(here)) == ["joins.json", "shown"]


def test_the_requests_of_strands_overlap_in_all_witnesses(flashsim: Run, here: Path) -> None:
    """What counts is the time in which any request was under way: less than their times together."""
    result = flashsim(f"{STRANDS} --json j.json")
    if "does not do direct I/O" in result.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert result.exit_code == 0, result.output
    told = json.loads((here / "j.json").read_text(encoding="utf-8"))["joins"][0]
    assert told["phases"] == ["partition", "join", "total"]
    assert set(told["seconds"]) == {"formula", "simulated", "executed", "replayed by builtin"} and told["seconds"]["formula"] is None
    assert all(0 < seconds < told["wall_less_cpu"][0] for seconds in told["seconds"]["executed"])
    assert sorted(path.name for path in here.iterdir()) == ["j.json"]
