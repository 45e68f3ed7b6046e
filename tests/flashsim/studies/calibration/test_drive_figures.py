"""Figures of drives from tables and from fio's files, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE
from flashsim.core.units import KIB
from flashsim.studies.calibration.drive_figures import DriveFigure, DriveLoad, read
from flashsim.studies.calibration.identification import hold_back
from tests.flashsim.conftest import Run

ROWS = [
    {"operation": "read", "size": "4KiB", "depth": 32, "figure": "iops", "value": "90e3"},
    {"operation": "read", "order": "sequential", "size": "128KiB", "depth": 4, "figure": "bandwidth", "value": "2.5GB/s"},
    {"operation": "write", "rate": 5000, "state": "steady", "used": 0.8, "figure": "p99", "value": "1.5ms"},
]
FIGURES = [
    DriveFigure(DriveLoad(READ, depth=32), "iops", 90_000),
    DriveFigure(DriveLoad(READ, 128 * KIB, random=False, depth=4), "bandwidth", 2.5e9),
    DriveFigure(DriveLoad(WRITE, state="steady", rate=5000.0, used=0.8), "p99", 1.5e6),
]


def test_a_table_is_the_same_as_csv_and_as_toml(tmp_path: Path) -> None:
    names = ["operation", "order", "size", "depth", "rate", "state", "used", "figure", "value"]
    lines = [",".join(str(row.get(name, "")) for name in names) for row in ROWS]
    (tmp_path / "figures.csv").write_text("\n".join([",".join(names), *lines]))
    tables = ["\n".join(f"{name} = {json.dumps(value)}" for name, value in row.items()) for row in ROWS]
    (tmp_path / "figures.toml").write_text("\n".join(f"[[figures]]\n{table}" for table in tables))
    assert read(tmp_path / "figures.csv") == read(tmp_path / "figures.toml") == FIGURES


def fio(*jobs: dict[str, Any]) -> str:
    """JSON as fio writes it."""
    return json.dumps({"fio version": "fio-3.33", "global options": {"bs": "4k", "iodepth": "8"}, "jobs": list(jobs)})


def job(operation: str, rw: str, iops: float, **options: str) -> dict[str, Any]:
    percentiles = {"50.000000": 80_000, "99.000000": 200_000}
    shown = {"total_ios": 1000, "io_bytes": 4_096_000, "iops": iops, "clat_ns": {"percentile": percentiles}}
    none = {"total_ios": 0, "io_bytes": 0, "iops": 0.0, "clat_ns": {}}
    return {"read": none, "write": none, "job options": {"rw": rw, **options}, operation: shown}


def test_jobs_of_fio_become_figures_and_their_logs_count_more(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    writes = job("write", "randwrite", 20e3, write_bw_log="w", numjobs="2")
    path.write_text(fio(job("read", "randread", 50e3), job("write", "randrw", 1.0), writes))
    load, later = DriveLoad(READ, depth=8), DriveLoad(WRITE, depth=16, state="steady")
    expected = {(load, "iops"): 50e3, (later, "iops"): 20e3}
    expected |= {(each, name): value for each in (load, later) for name, value in (("p50", 80e3), ("p99", 200e3))}
    assert {(each.load, each.name): each.value for each in read(path)} == expected
    (tmp_path / "w_bw.3.log").write_text("".join(f"{100 * row}, {80_000 if row < 5 else 40_000}, 1, 0, 0\n" for row in range(10)))
    assert {(each.load, each.name): each.value for each in read(path)} == expected | {(later, "iops"): 10e3}


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_figures_of_fio_itself(tmp_path: Path) -> None:
    words = "--name=r --rw=randread --bs=8k --iodepth=2 --size=1m --ioengine=psync --write_lat_log=r --output-format=json --output=out.json"
    subprocess.run(["fio", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    shown = json.loads((tmp_path / "out.json").read_text())["jobs"][0]["read"]
    figures = {each.name: each for each in read(tmp_path / "out.json")}
    assert figures["iops"].value == shown["iops"] and figures["iops"].load == DriveLoad(READ, 8 * KIB, depth=2)
    logged = np.loadtxt(tmp_path / "r_clat.1.log", delimiter=",", usecols=1)
    assert len(logged) == 128 and figures["p99"].value == np.percentile(logged[64:], 99)


def test_a_third_of_each_kind_is_kept_back() -> None:
    figures = [DriveFigure(DriveLoad(operation, depth=depth), "iops", 1.0) for operation in (READ, WRITE) for depth in range(1, 13)]
    kept = hold_back(figures, 1)
    assert sum(kept[:12]) == sum(kept[12:]) == 4
    assert kept != hold_back(figures, 2)


HEAD = "operation,depth,figure,value\n"
BAD = {
    "{}": "is JSON, but not of fio",
    '{"fio version": "3", "jobs": []}': "has no job of reads alone or writes alone",
    '{"fio version": "3", "jobs": [{"read": {}, "job options": {"rw": "read"}}]}': "a job of fio lacks 'total_ios'",
    '{"fio version"': "neither fio's JSON nor a table",
    "": "has none",
    HEAD: "has none",
    f"{HEAD}read,1,iops,9000\n": "figures: 1, but a third is kept back, and at least 6 are needed",
    f"{HEAD}read,1,p99,9000\n": "figure 1: value: '9000', but a number with a unit is needed",
    "operation,size,figure,value\nread,4096,iops,9000\n": "figure 1: size: '4096', but a number with a unit is needed",
    f"{HEAD}read,1,bandwidth,20MB\n": "'20MB', but bytes a second are needed",
    f"{HEAD}read,1,iops,many\n": "'many', but a number is needed",
    f"{HEAD}read,0,iops,9000\n": "depth: 0.0, but a whole number from 1 to 4096",
    f"{HEAD}erase,1,iops,9000\n": "operation: 'erase' is unknown",
    f"{HEAD}read,1,iops,-3\n": "it must be above 0",
    "operation,speed\nread,9\n": "column: 'speed' is unknown",
    "operation,figure\nread,iops\n": "value: missing",
}


@pytest.mark.parametrize("text", BAD)
def test_what_has_no_figures_is_refused_in_one_line(text: str, here: Path, flashsim: Run) -> None:
    Path("figures.csv").write_text(text)
    result = flashsim("device identify --from figures.csv --out mine.toml --json mine.json")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and BAD[text] in result.stderr, result.stderr
    assert [path.name for path in here.iterdir()] == ["figures.csv"]


def test_what_is_no_flash_drive_or_no_file_is_refused(here: Path, flashsim: Run) -> None:
    Path("figures.csv").write_text(HEAD + "".join(f"read,{depth},iops,9000\n" for depth in range(1, 7)))
    for line, message in (
        ("--from missing.csv --out mine.toml", "figures: cannot read missing.csv"),
        ("--from figures.csv --out mine.txt", "--out: mine.txt"),
        ("--from figures.csv --out mine.toml --preset toshiba-5400-320gb", "--preset: toshiba-5400-320gb is no flash drive"),
    ):
        result = flashsim(f"device identify {line}")
        assert result.exit_code == 2 and result.stderr.count("\n") == 1 and message in result.stderr, result.stderr
    assert [path.name for path in here.iterdir()] == ["figures.csv"]
