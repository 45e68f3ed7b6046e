"""Random reads of closed loops: a drive whose rates are known, files that are none, the command, and the measured rows of a drive."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from flashsim.apps.calibration.data_sheet import document_of
from flashsim.apps.calibration.validation.random_reads import MEASURES, play, read
from flashsim.core.errors import FlashsimError
from flashsim.core.preset_files import as_toml
from flashsim.device.scaling import small_drive
from tests.cases import with_each
from tests.commands import Run

GOOD = "engine,rw,bs,queue_depth,processes,iops,p50_us,p99_us\nspdk,randread,4kb,4,2,1000,90,200\nlibaio,randread,512,1,1,900,80,90\n"
DRIVE = "samsung-980-pro-1tb"


def test_rows_of_an_engine_are_read_with_sizes_as_fio_has_them(tmp_path: Path) -> None:
    path = tmp_path / "reads.csv"
    path.write_text(GOOD.replace("engine,", "note,engine,").replace("\nspdk", "\nwarm,spdk").replace("\nlib", "\n,lib"))
    rows = read(path)
    assert [(row.engine, row.length, row.queue_depth, row.processes) for row in rows] == [("spdk", 4096, 4, 2), ("libaio", 512, 1, 1)]
    assert [row.measured for row in read(path, "spdk")] == [{"iops": 1000, "p50_us": 90, "p99_us": 200}]


@with_each(
    ("content", "message"),
    [
        ("", "has no rows"),
        (GOOD.replace("p99_us", "p98_us"), "has no column p99_us"),
        (GOOD.replace("libaio,randread", "libaio,randwrite"), "row 2: rw 'randwrite' is not judged"),
        (GOOD.replace("512", "513"), "row 2: bs: '513'"),
        (GOOD.replace("4kb", "4gb"), "row 1: bs: '4gb'"),
        (GOOD.replace(",4,2,", ",0,2,"), "row 1: queue_depth: '0'"),
        (GOOD.replace(",4,2,", ",4,1.5,"), "row 1: processes: '1.5'"),
        (GOOD.replace(",4,2,", ",65536,2,"), "65,536 requests"),
        (GOOD.replace(",90,200", ",,200"), "row 1: p50_us: ''"),
        (GOOD.replace(",90,200", ",90,nan"), "row 1: p99_us: 'nan'"),
    ],
)
def test_files_that_are_none_are_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "reads.csv"
    path.write_text(content)
    with pytest.raises(FlashsimError, match=message) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_an_idle_drive_has_the_spread_of_its_pages_and_its_retries() -> None:
    """Two of three pages take 33 us and the third 45; one read in 2,000 takes 60 us more."""
    short, long = (play(DRIVE, 4096, 1, 1, core_time, 0.2, 0, {}) for core_time in (0, 10_000))
    assert short["p99_us"] - short["p50_us"] == pytest.approx(12)
    assert short["iops"] == pytest.approx(1e6 / (short["p50_us"] + 4 + 0.03), rel=0.002)
    assert long["p50_us"] == pytest.approx(short["p50_us"] + 10)


@pytest.mark.deep
def test_a_core_bounds_the_rate_of_its_process() -> None:
    """At 10 us a request one core serves 100,000 a second and three 300,000, however many are outstanding; and those wait for it."""
    for processes in (1, 3):
        shown = play(DRIVE, 4096, 32, processes, 10_000, 0.2, 0, {})
        assert shown["iops"] == pytest.approx(100_000 * processes, rel=0.02)
        assert shown["p50_us"] == pytest.approx(320, rel=0.05)


def test_the_command_judges_every_row_of_a_file(here: Path, flashsim: Run) -> None:
    (here / "small.toml").write_text(as_toml(document_of(small_drive("micron-p300", 64 << 20)), ["small"]))
    (here / "reads.csv").write_text(GOOD)
    result = flashsim("validate ssd --reads reads.csv --device small.toml --scale 0.02 --jobs 1 --json reads.json")
    assert result.exit_code == 0 and "libaio" in result.stdout
    document: dict[str, Any] = json.loads((here / "reads.json").read_text())
    assert [(row["bs"], row["queue_depth"], row["measure"]) for row in document["rows"]] == [
        (*loop, measure) for loop in (("4kb", 4), ("512", 1)) for measure in MEASURES
    ]
    assert all(row["simulated"] > 0 for row in document["rows"]) and len(document["errors"]) == 2 * len(MEASURES)
    for options, message in (
        ("", "--reads needs one preset"), ("--device a=small.toml", "--reads needs one preset"),
        ("--device dell-7200-500gb", "is not a flash drive"),
        ("--device small.toml --engine psync", "psync"), ("--device small.toml --claim tail", "--claim"),
        ("--device small.toml --under-load reads.csv", "--reads"), ("--device small.toml --core-time 5", "core"),
    ):  # fmt: skip
        result = flashsim(f"validate ssd --reads reads.csv {options}")
        assert result.exit_code == 2 and message in result.stderr and len(result.stderr.strip().splitlines()) == 1, options


@pytest.mark.parametrize("depth", [1, *(pytest.param(each, marks=pytest.mark.deep) for each in (4, 16, 64, 256))])
@pytest.mark.skipif("FLASHSIM_TEST_DATA" not in os.environ, reason="needs measured data")
def test_reads_of_the_980_pro_are_those_that_were_measured(depth: int) -> None:
    """With SPDK, without a kernel: rates within 5 %, medians 7 %, 99th percentiles 15 %; fitted to these rows."""
    rows = read(Path(os.environ["FLASHSIM_TEST_DATA"]) / "drives" / "samsung-980pro-reads.csv", "spdk")
    (row,) = (row for row in rows if row.queue_depth == depth)
    shown = play(DRIVE, row.length, depth, row.processes, 0, 1, 0, {})
    limits = {"iops": 0.05, "p50_us": 0.07, "p99_us": 0.15}
    assert {name: shown[name] / row.measured[name] - 1 for name in MEASURES} == {
        name: pytest.approx(0, abs=limit) for name, limit in limits.items()
    }
