"""What the front door answers: the rows of pandas, the costs of the command, and runs that are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from tests.commands import SMALL_JOIN, Run

DEVICES = ["toshiba-5400-320gb", "ocz-core-60gb"]


@pytest.fixture
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(7)
    r = pd.DataFrame({"key": random.permutation(900), "name": [f"name {number}" for number in range(900)]})
    s = pd.DataFrame({"other": random.integers(0, 1200, 4000).astype(float), "name": random.random(4000)})
    s.loc[::50, "other"] = np.nan
    return r, s


@pytest.mark.parametrize(
    "algorithm, page_format, partition",
    [("bnl", "sqlite", None), ("sort-merge", "pax", None), ("grace-hash", "sqlite", "n-hash"), ("hybrid-hash", "pax", None)],
)
def test_rows_are_those_of_pandas(
    algorithm: str, page_format: str, partition: str | None, tables: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    r, s = tables
    told = fs.join(r, s, "key=other", algorithm=algorithm, device=DEVICES, memory="64KiB", page_format=page_format, partition=partition)
    assert told.provenance["parameters"]["page_format"] == page_format
    assert told.provenance["parameters"]["partition"] == partition
    expected = r.merge(s.dropna(), left_on="key", right_on="other", suffixes=("", "_s")).drop(columns="other")
    order = ["key", "name_s"]
    pd.testing.assert_frame_equal(
        told.rows().sort_values(order, ignore_index=True), expected.sort_values(order, ignore_index=True), check_dtype=False
    )
    assert set(told.summary()["rows"]) == {len(expected)}
    sums = told.phases().groupby("device", sort=False)[["requests", "pages", "io_s", "total_s"]].sum()
    assert np.allclose(sums, told.summary().set_index("device")[sums.columns])
    counted = told.against_formula().set_index("phase").loc["total"]
    assert (counted["pages"] == told.summary()["pages"].to_numpy()).all()


def test_a_join_costs_what_the_command_says(flashsim: Run, here: Path) -> None:
    assert flashsim(f"{SMALL_JOIN} --json told.json --trace told.parquet").exit_code == 0
    machine = json.loads((here / "told.json").read_text())["machines"][0]
    relations: dict[str, Any] = {"r": "do2009:customer@0.01", "s": "do2009:orders@0.01", "on": "c_custkey=o_custkey"}
    ours = fs.join(**relations, algorithm="bnl", device="ocz-core-60gb", memory="256KiB").against_formula()
    joined = fs.join(**relations, algorithm="bnl", device="ocz-core-60gb", memory="256KiB").outstanding()
    assert joined["outstanding"].tolist() == machine["outstanding"]["levels"] == [0, 1]
    assert joined["share"].tolist() == machine["outstanding"]["shares"]
    told = pd.DataFrame(machine["comparison"])
    for name, theirs in {"requests": "requests", "io_s": "io", "formula_io_s": "formula_io", "total_s": "total"}.items():
        if name in ours:
            assert ours[name].tolist() == told[theirs].tolist()


def test_a_replay_shows_what_the_command_says(flashsim: Run, here: Path) -> None:
    assert flashsim(f"{SMALL_JOIN} --trace told.parquet").exit_code == 0
    assert flashsim("trace replay told.parquet --device ocz-core-60gb --json replayed.json").exit_code == 0
    theirs = json.loads((here / "replayed.json").read_text())
    ours = fs.replay("told.parquet", "ocz-core-60gb")
    for row in ours.summary().itertuples():
        latency = theirs["operations"][row.operation]
        assert row.requests == latency["requests"] and row.p99_us == latency["latency_p99"] / 1000
    assert ours.outstanding()[["outstanding", "share"]].to_dict("list") == {
        "outstanding": theirs["outstanding"]["levels"],
        "share": theirs["outstanding"]["shares"],
    }
    assert len(ours.requests()) == theirs["requests"] == ours.timeline()["requests"].sum()


def test_a_drive_goes_on_and_what_takes_it_leaves_it_alone() -> None:
    drive = fs.drive("intel-x25e-64gb")
    assert drive._repr_html_().startswith("<p>Drive intel-x25e-64gb: ")
    assert "below 1: pages are still in the write buffer" in drive.copy().write(random="1MiB").title
    one, other = (drive.copy().write(random="1MiB", seed=3).requests() for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    fs.join({"k": [1, 2]}, {"k": [2, 3]}, "k", device=[drive, "ocz-core-60gb"], memory="64KiB")
    fs.replay(pd.DataFrame({"operation": ["write"], "offset": [0], "length": [4096]}), drive)
    assert drive.device.now == 0
    before = drive.write(random="1MiB").requests()["time_s"].max()
    assert drive.read(sequential="64KiB").requests()["time_s"].min() >= before
    assert drive.write(random="64KiB").summary()["requests"].tolist() == [16]


def test_a_steady_drive_amplifies_from_its_first_write() -> None:
    """The share of the collection is there at once, and changes little: the drive need not be brought there first."""
    run = fs.drive("mtron-msd-sata3025-16gb", state="steady").write(random="48MiB", depth=4)
    told = run.write_amplification().set_index("cause")["write_amplification"]
    assert told["gc"] > 0.2 and told["total"] == pytest.approx(told["host"] + told["gc"], rel=1e-6)
    parts = run.timeline()["write_amplification"]
    assert parts.iloc[len(parts) // 2 :].mean() == pytest.approx(parts.iloc[: len(parts) // 2].mean(), rel=0.25)


def test_every_flash_preset_is_steady_without_a_second_argument() -> None:
    """Also one that merges log blocks, where nearly every random write costs a merge of a whole block and its own page."""
    drive = fs.drive("ocz-core-60gb", state="steady")
    assert drive.device.preset.flash
    pages = drive.device.preset.flash.pages_per_block
    told = drive.write(random="4MiB").write_amplification().set_index("cause")["write_amplification"]
    assert "steady" in drive.preparation and 0.9 * pages < told["total"] <= 1.1 * (pages + 1)


def test_a_sweep_makes_only_what_is_new(here: Path, monkeypatch: pytest.MonkeyPatch, tables: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    monkeypatch.setattr("flashsim.experiments.runs.kept.place", lambda kind, name: here / kind / name)
    r, s = tables
    r.to_parquet("r.parquet")
    swept: dict[str, Any] = {"r": "r.parquet", "s": s, "on": "key=other", "device": "ocz-core-60gb", "jobs": 1}
    first = fs.sweep(fs.join, **swept, algorithm=["bnl", "grace-hash"], memory=["8KiB", "64KiB"])
    assert "0 of them kept" in first.title and "2 were refused" in first.title
    assert first.summary()["problem"].notna().tolist() == [True, False, True, False]
    second = fs.sweep(fs.join, **swept, algorithm=["bnl", "grace-hash", "hybrid-hash"], memory=["8KiB", "64KiB"])
    assert "4 of them kept" in second.title
    pd.testing.assert_frame_equal(second.summary().iloc[:4], first.summary())
    alone = fs.join(r, s, "key=other", device="ocz-core-60gb", memory="64KiB", algorithm="grace-hash")
    assert first["io_s"].iloc[3] == alone.summary()["io_s"].iloc[0]
    r.iloc[:500].to_parquet("r.parquet")
    changed = fs.sweep(fs.join, **swept, algorithm=["bnl", "grace-hash"], memory=["64KiB"])
    assert "0 of them kept" in changed.title and changed["rows"].iloc[0] < first["rows"].iloc[1]


def test_everything_draws_and_shows_itself(here: Path) -> None:
    trace = pd.DataFrame({"operation": ["write", "read"] * 20, "offset": np.arange(40) * 4096, "length": 4096})
    for told in (
        fs.replay(trace, ["intel-x25e-64gb", "toshiba-5400-320gb"]),
        fs.join({"k": [1, 2]}, {"k": [2, 3]}, "k", device=DEVICES, memory="64KiB"),
        fs.sweep(fs.replay, trace=trace, device=["ocz-core-60gb"], depth=[1, 2], jobs=1),
        fs.trace(trace),
    ):
        assert told.plot("picture.svg", force=True)._repr_svg_().startswith("<svg") and (here / "picture.svg").stat().st_size
        assert told.title in repr(told) and "<table" in told._repr_html_() and "flashsim" in told.provenance


def test_a_replay_on_a_real_file(here: Path) -> None:
    trace = pd.DataFrame({"operation": ["write", "read"], "offset": [0, 0], "length": 4096})
    told = fs.replay(trace, ["./disk.bin", "ocz-core-60gb"], allow_write=True)
    assert told.summary()["device"].tolist() == ["disk.bin"] * 2 + ["ocz-core-60gb"] * 2
    assert not (here / "disk.bin").exists() and (told.timeline()["requests"] >= 0).all()
