"""AIOMicrobench: sets of requests handed over at once, on simulated drives and real files, and figure 2 of Shin et al. (2016)."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import GIB, KIB, MIB
from flashsim.device.aio import kernel_room
from flashsim.device.device import Device
from flashsim.device.file import RealDevice
from flashsim.experiments.bench.aio import Grid, run_all
from flashsim.experiments.bench.aio_report import at_levels, reaching
from flashsim.experiments.bench.targets import RealTarget, SimulatedTarget, Target
from flashsim.experiments.bench.uflip import Method
from tests.commands import Run


def bandwidths(preset: str, sizes: tuple[int, ...], levels: tuple[int, ...]) -> pd.DataFrame:
    """Of writes to a GiB."""
    return run_all(SimulatedTarget(Device.open(preset), GIB), Grid(sizes, levels), Method(share=0), ["write"])[2]


@pytest.mark.parametrize(
    ("preset", "shares", "gain"),
    [
        ("iodrive-slc-160gb", {4: 0.98, 8: 0.99, 32: 1, 64: 1}, 11.6),
        ("micron-p300", {4: 0.52, 8: 0.69, 32: 0.92, 64: 0.97}, 4.4),
        ("ocz-vertex-3", {4: 0.64, 8: 0.997, 32: 1, 64: 1}, 4.8),
    ],
)
def test_figure_2_has_the_published_shape(preset: str, shares: dict[int, float], gain: float) -> None:
    """Full rate at all sizes on the ioDrive, from 64 KiB on on the P300, not at 4 on the Vertex 3; with 1 MiB alone on all."""
    found = pd.concat([bandwidths(preset, (4 * KIB, 8 * KIB, 32 * KIB, 64 * KIB), (1, 512)), bandwidths(preset, (MIB,), (1, 64))])
    at = at_levels(found)
    most = at.max().max()
    assert {size: at.loc[size * KIB, 512] / most for size in shares} == pytest.approx(shares, abs=0.015)
    full = {"iodrive-slc-160gb": 4 * KIB, "micron-p300": 64 * KIB, "ocz-vertex-3": 8 * KIB}[preset]
    assert reaching(found, 512) == full and reaching(found, 1) == MIB
    assert most / at.loc[4 * KIB, 1] == pytest.approx(gain, rel=0.03)


def targets(here: Path) -> list[Target]:
    real = RealDevice(here / "disk.bin", 4 * MIB, allow_write=True)
    return [SimulatedTarget(Device.open("micron-p300"), 64 * MIB), RealTarget(real, 4 * MIB)]


@pytest.mark.parametrize("kind", [0, 1])
def test_a_set_begins_when_the_one_before_is_done(kind: int, here: Path) -> None:
    target = targets(here)[kind]
    for operation, size in product((WRITE, READ), (1, 4)):
        requests = make_requests(operation, np.random.default_rng(1).integers(0, 1000, 24) * 4 * KIB, 4 * KIB)
        done = target.together(requests, size, 0)
        sets = [done[begin : begin + size] for begin in range(0, 24, size)]
        for one, following in pairwise(sets):
            assert following["submitted"].min() >= one["completed"].max()
        if kind == 0:
            assert all(len(set(one["submitted"].tolist())) == 1 for one in sets)


def test_a_run_is_long_enough_for_its_sets_its_requests_and_the_buffer() -> None:
    grid = Grid(count=100)
    assert grid.requests(4 * KIB, 1, 0) == 100
    assert grid.requests(4 * KIB, 64, 0) == 8 * 64
    assert grid.requests(4 * KIB, 3, MIB) == 2049  # 8 MiB in sets of three


def test_one_command_does_everything(here: Path, flashsim: Run) -> None:
    line = "device bench ocz-core-60gb --set aio --sizes 4KiB,32KiB --levels 4,1 --count 16 --size 64MiB --json aio.json --out out"
    result = flashsim(line)
    assert result.exit_code == 0, result.output
    told = json.loads((here / "aio.json").read_text())
    assert told["set"] == "aio" and not told["figures"]
    places = [(run["benchmark"], int(run["pattern"]), run["value"]) for run in told["runs"]]
    assert places == list(product(["read", "write"], [1, 4], [4 * KIB, 32 * KIB]))
    for name in ("read", "write"):
        rows = list(csv.DictReader((here / "out" / f"{name}.csv").read_text().splitlines()))
        shown = {(int(size), row["I/O size"]): float(row[size]) for row in rows for size in ("1", "4")}
        own = [run for run in told["runs"] if run["benchmark"] == name]
        assert sorted(shown.values()) == pytest.approx(sorted(run["bandwidth"] / 1e6 for run in own))
        assert ET.fromstring((here / "out" / f"{name}.svg").read_text()).tag.endswith("svg")
    assert flashsim(line + " --force").stdout == result.stdout


def test_from_python() -> None:
    told = fs.bench("ocz-core-60gb", "read", set="aio", sizes=["4KiB", "8KiB"], levels=2, count=8, size="16MiB")
    assert told.summary()[["pattern", "value"]].to_numpy().tolist() == [["2", 4096], ["2", 8192]]
    assert told.plot() is not None


def test_a_real_file_is_only_read_unless_writing_is_allowed(here: Path, flashsim: Run) -> None:
    data = np.random.default_rng(1).integers(0, 256, MIB, np.uint8).tobytes()
    (here / "disk.bin").write_bytes(data)
    line = "device bench disk.bin --set aio --sizes 4KiB --levels 1,8 --count 8 --json aio.json --force"
    assert flashsim(line).exit_code == 0
    assert {run["benchmark"] for run in json.loads((here / "aio.json").read_text())["runs"]} == {"read"}
    assert (here / "disk.bin").read_bytes() == data
    assert flashsim(line + " --allow-write --size 1MiB --only write").exit_code == 0
    assert (here / "disk.bin").read_bytes() != data


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("micron-p300 --set aoi", "did you mean aio"),
        ("micron-p300 --set aio --only order", "unknown"),
        ("micron-p300 --set aio --sizes 5KB", "multiple of 512"),
        ("micron-p300 --set aio --sizes 4", "unit"),
        ("micron-p300 --set aio --sizes 1GiB", "up to 64 MiB"),
        ("micron-p300 --set aio --levels 0,1", "at least 1"),
        ("micron-p300 --set aio --levels 1x", "whole numbers"),
        ("micron-p300 --set aio --size 64KiB", "a request of 1 MiB"),
        ("micron-p300 --levels 4", "only aio"),
        ("./new.bin --set aio --allow-write --levels 1000000000", "the kernel's limit"),
    ],
)
def test_bad_input_is_one_line(line: str, says: str, here: Path, flashsim: Run) -> None:
    if "kernel" in says and kernel_room() >= 10**9:
        pytest.skip("this kernel has no such limit")
    result = flashsim(f"device bench {line} --json out.json")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("flashsim: ") and result.stderr.count("\n") == 1
    assert says in result.stderr
    assert list(here.iterdir()) == []
