"""Drives from tables of latencies under load: what factors do, and a planted drive that is identified again."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import flashsim as fs
from flashsim.apps.calibration import identification, load_fit
from flashsim.apps.calibration.data_sheet import document_of
from flashsim.apps.calibration.load_fit import FACTORS, Base, LoadFit, bases, capacity_of, factors_of, merge_saturated, play_drive
from flashsim.apps.calibration.validation.under_load import LOAD, MEASURES, LoadRow, read
from flashsim.core.errors import FlashsimError, InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.preset_files import as_toml
from flashsim.core.units import GIB, KIB
from flashsim.device import presets
from flashsim.experiments.runs.jobs import Settings

NAME = "sk-hynix-pe8110-960gb"


@pytest.mark.parametrize("name", bases())
def test_a_base_without_factors_is_the_preset_itself(name: str) -> None:
    flash = presets.load(name).flash
    assert flash is not None
    assert Base(name, flash.capacity, 1.0).flash({}) == flash
    assert set(factors_of(Base(name, flash.capacity, 1.0))) <= set(FACTORS)


def test_factors_multiply_what_they_name() -> None:
    whole = presets.load(NAME).flash
    assert whole is not None
    base = Base(NAME, whole.capacity, 1.0)
    slower = base.flash({"read": 2.0, "program": 1.5, "program step": 0.5})
    assert slower.read_pages == tuple(2 * each for each in whole.read_pages)
    assert slower.read_latency - slower.read == whole.read_latency - whole.read
    assert (slower.program, slower.program_step) == (round(1.5 * whole.program), whole.program_step // 2)
    assert base.flash({"read spread": 0.2}).read_pages[2] < whole.read_pages[2]
    assert base.flash({"spare share": 2.0}).effective_overprovisioning == pytest.approx(2 * whole.effective_overprovisioning, rel=0.01)


def test_another_capacity_has_as_many_dies_for_its_size_and_others_take_as_much_longer() -> None:
    whole = presets.load(NAME).flash
    assert whole is not None
    twice, more_dies = Base(NAME, 2 * whole.capacity, 1.0).flash({}), Base(NAME, whole.capacity, 2.0).flash({})
    assert (twice.pools, twice.program) == (2 * whole.pools, whole.program)
    assert (more_dies.pools, more_dies.program) == (2 * whole.pools, 2 * whole.program)
    for one in (twice, more_dies):
        assert one.effective_overprovisioning == pytest.approx(whole.effective_overprovisioning, rel=0.01)


def test_a_file_has_every_value_that_an_identified_drive_does_not_share_with_its_base(tmp_path: Path) -> None:
    """PE8110 has one queue, and no source for it: eight queues in turns must not be lost."""
    source = presets.load(NAME)
    drive = Base(NAME, source.capacity, 2.0, "turns").flash({"read": 1.3})
    sources = dict(source.sources) | identification._changes(source, drive)
    path = tmp_path / "drive.toml"
    path.write_text(as_toml(document_of(replace(source, parameters=drive, sources=sources)), []))
    assert presets.load(str(path)).parameters == drive


def row(rate: float, achieved: float, latency: float = 100.0, used: float = 10.0) -> LoadRow:
    return LoadRow("a drive", {**dict.fromkeys(MEASURES, latency), "used_gib": used, "background_per_s": rate, "probe_per_s": 10.0,
        "achieved_per_s": achieved})  # fmt: skip


def test_saturated_rows_are_one_under_the_lowest_of_their_loads() -> None:
    rows = merge_saturated([row(90, 100), row(190, 100, 40), row(290, 100, 90)])
    assert [each.values["background_per_s"] for each in rows] == [90, 190]
    assert rows[1].values["read_p50_us"] == pytest.approx(60) and rows[1].values["achieved_per_s"] == pytest.approx(100)
    assert capacity_of(rows) == 10 * GIB
    with pytest.raises(InvalidParameterError, match="all rows must have one"):
        capacity_of([row(90, 100), row(90, 100, used=20)])


def test_a_saturated_drive_is_as_fast_as_the_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a drive whose rate is 98 for the base's program, and does not fall quite as a program grows."""
    fit, tried = LoadFit([], 10 * GIB, Settings(jobs=1), None), list[float]()

    def play(points: list[tuple[Base, dict[str, float]]], *_: object) -> list[list[dict[str, float]]]:
        tried.extend(factors["program"] for _, factors in points)
        return [[{"achieved_per_s": 98 * factors["program"] ** -0.9}] for _, factors in points]

    monkeypatch.setattr(fit, "_play", play)
    base, rows = Base(NAME, 10 * GIB), [row(30, 40), row(190, 100), row(290, 100)]
    assert 98 * fit._with_rate(rows, base, {"program": 1.0})["program"] ** -0.9 == pytest.approx(100, rel=0.0005)
    assert 2 < len(tried) < 6
    assert fit._with_rate(rows[:1], base, {"program": 1.3}) == {"program": 1.3}


def test_a_drive_that_cannot_be_shows_nothing() -> None:
    load = {"used_gib": 1.0, "background_per_s": 100.0, "probe_per_s": 100.0}
    assert play_drive(NAME, 64 * KIB, 1.0, "", {}, [load], 0.01, 0, {}) is None


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A preset file with the mechanisms of a drive of today, of few dies; it is the only base, and few factors are fitted."""
    whole = presets.load(NAME)
    assert whole.flash is not None
    capacity = whole.capacity // 16
    parameters = replace(whole.flash, channels=1, packages_per_channel=1, capacity=capacity, blocks_per_plane=674, write_buffer=768 * KIB)

    path = tmp_path / "small.toml"
    path.write_text(as_toml(document_of(replace(whole, name="small", parameters=parameters)), []))
    monkeypatch.setattr(identification, "bases", lambda: [str(path)])
    short = {"_PROGRAMS": (1.0,), "_DIES": (), "_COMPARED": 0.02, "_COARSE": (0.02, 3), "_FINE": (0.1, 4), "_ALL": (0.1, 1)}
    for name, value in short.items():
        monkeypatch.setattr(load_fit, name, value)
    monkeypatch.setattr(load_fit, "FACTORS", {name: FACTORS[name] for name in ("read", "program", "read submission")})
    return str(path)


@pytest.mark.deep
def test_a_planted_drive_is_identified_from_its_rows(small: str, tmp_path: Path) -> None:
    """Its pages take 1.4 times as long to read; every third row is kept back."""
    whole = presets.load(small)
    loads = [{"used_gib": whole.capacity / GIB, "background_per_s": float(rate), "probe_per_s": 2000.0} for rate in (500, 1000, 1500, 2000)]
    shown = play_drive(small, whole.capacity, 1.0, "", {"read": 1.4}, loads, 0.05, 1, {})
    assert shown is not None
    with (tmp_path / "load.csv").open("w") as file:
        table = csv.DictWriter(file, ["drive", *LOAD, *MEASURES])
        table.writeheader()
        table.writerows(
            {"drive": "planted", **load, **{name: values[name] for name in MEASURES}} for load, values in zip(loads, shown, strict=True)
        )
    outcome = fs.identify(tmp_path / "load.csv", jobs=1, seed=3)
    (pages,) = [each for each in outcome.result.estimates if each.name == "read"]
    assert pages.low <= 1.4 <= pages.high
    flash, planted = outcome.preset.flash, Base(small, whole.capacity).flash({"read": 1.4})
    assert flash is not None  # reads that rarely queue tell the sum of page and submission, and not either
    assert flash.read_pages[1] + flash.read_submission == pytest.approx(planted.read_pages[1] + planted.read_submission, rel=0.03)
    summary = outcome.summary()
    assert summary["kept"].sum() == len(MEASURES)
    reads = summary[summary["kind"].str.match("read p50|read p99 |rate")]
    assert (np.abs(reads["difference"]) < 0.1).all(), reads
    assert "identified (read: 1." in outcome.text() and "nine of ten within" in outcome.text()


def test_tables_that_cannot_be_fitted_are_refused_in_one_line(tmp_path: Path) -> None:
    table = [
        "drive,used_gib,background_per_s,probe_per_s,achieved_per_s,read_p50_us,read_p99_us,read_p99.9_us,write_p50_us,write_p99_us,write_p99.9_us"
    ]
    table += [f"{drive},894,{rate},10000,{rate + 10000},70,300,500,10,12,15" for drive in ("one", "two") for rate in (15000, 25000)]
    path = tmp_path / "load.csv"
    path.write_text("\n".join(table))
    assert len(read(path)) == 4
    wrong: list[tuple[dict[str, str], type[FlashsimError], str]] = [
        ({}, InvalidParameterError, "2 drives, but name one of them with drive"), ({"drive": "three"}, UnknownNameError, "three"),
        ({"drive": "one"}, InvalidParameterError, "at least 3 rows"),
    ]  # fmt: skip
    for given, kind, message in wrong:
        with pytest.raises(kind, match=message):
            fs.identify(path, **given)
    with pytest.raises(InvalidParameterError, match="stands alone"):
        fs.identify([path, path], drive="one")
    with pytest.raises(RefusedError, match="does not say what interrupts its programs"):
        identification.identify_under_load("micron-p300", "x", "", [row(90, 100)] * 3, None, Settings())
