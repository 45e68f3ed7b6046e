"""Drives under load: the arithmetic of errors and null models by hand, files that are none, and the command on a small drive."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs
from flashsim.apps.calibration.data_sheet import document_of
from flashsim.apps.calibration.validation import under_load
from flashsim.apps.calibration.validation.under_load import MEASURES, LoadRow, judge_rows, presets_of, read
from flashsim.core.errors import FlashsimError, RefusedError, UnknownNameError
from flashsim.core.preset_files import as_toml
from flashsim.device.scaling import small_drive
from tests.cases import with_each
from tests.commands import Run

COLUMNS = ("drive", "used_gib", "background_per_s", "probe_per_s", *MEASURES)


def row(drive: str, background: float, achieved: float, latency: float = 100.0, used: float = 0.06) -> LoadRow:
    measured = {"achieved_per_s": achieved} | dict.fromkeys(MEASURES[1:], latency)
    return LoadRow(drive, {"used_gib": used, "background_per_s": background, "probe_per_s": 1000.0} | measured)


def shown(achieved: float, latency: float) -> dict[str, float]:
    return {"achieved_per_s": achieved} | dict.fromkeys(MEASURES[1:], latency)


def table(*rows: LoadRow) -> str:
    lines = [",".join([each.drive, *(f"{each.values[name]:g}" for name in COLUMNS[1:])]) for each in rows]
    return "\n".join([",".join(COLUMNS), *lines]) + "\n"


def test_errors_are_means_of_logarithms_and_the_null_is_the_best_constant() -> None:
    """Rows of 100, 200 and 800 us, simulated twice too long, exactly and half as long: the median's constant is 1, 2 and 4 times off."""
    rows = [row("a", rate, rate + 1000, latency) for rate, latency in ((1000, 100), (2000, 200), (3000, 800))]
    cells = judge_rows(rows, [shown(2000, 200), shown(3000, 200), shown(4000, 400)])
    result = under_load.UnderLoad("file", cells, [])
    errors = {each["measure"]: each for each in result.drives()}
    assert errors["achieved_per_s"]["factor"] == 1.0
    assert errors["read_p99_us"]["factor"] == pytest.approx(2 ** (2 / 3))
    assert errors["read_p99_us"]["null_factor"] == pytest.approx(8 ** (1 / 3))
    assert [cell["null"] for cell in cells if cell["measure"] == "write_p50_us"] == pytest.approx([200] * 3)
    constants = [math.exp(sum(abs(math.log(each / constant)) for each in (100, 200, 800)) / 3) for constant in range(50, 1000)]
    assert errors["read_p99_us"]["null_factor"] == pytest.approx(min(constants))


def test_saturated_rows_of_a_drive_are_one_their_median() -> None:
    """Below 98 % of what background and probe offer; each drive has a plateau of its own, and the row before it stays apart."""
    rows = [
        row("a", 1000, 1960, 10),
        row("a", 2000, 2900, 20),
        row("b", 9000, 5000, 70),
        row("a", 4000, 3000, 30),
        row("a", 8000, 3100, 70),
    ]
    cells = judge_rows(rows, [shown(1, each) for each in (10, 21, 70, 33, 66)])
    reads = [
        (cell["drive"], cell["background_per_s"], cell["measured"], cell["simulated"]) for cell in cells if cell["measure"] == "read_p50_us"
    ]
    assert reads == [("a", 1000, 10, 10), ("a", 4000, 30, 33), ("b", 9000, 70, 70)]
    assert len(cells) == 3 * len(MEASURES)
    null = next(cell["null"] for cell in cells if cell["drive"] == "a" and cell["measure"] == "read_p50_us")
    assert null == pytest.approx(math.sqrt(10 * 30))  # of two rows every number between is as good


def test_drives_are_found_by_the_words_of_their_names_or_named() -> None:
    drives = [
        "SK Hynix PE8110 960 GB",
        "Solidigm D7-P5520 1.92 TB",
        "Micron 7450 PRO 960 GB",
        "Micron 7450 MAX 800 GB",
        "Kioxia CM7-R 3.84 TB",
    ]
    assert list(presets_of(drives, {}).values()) == [
        "sk-hynix-pe8110-960gb", "solidigm-p5520-1.92tb", "micron-7450-pro-960gb", "micron-7450-max-800gb", "kioxia-cm7-r-3.84tb",
    ]  # fmt: skip
    assert presets_of(["Micron 7450 PRO 960 GB", "mine"], {"mine": "micron-p300"})["mine"] == "micron-p300"
    with pytest.raises(RefusedError, match="--device 'Micron 7450 PRO 1.92 TB'=PRESET"):
        presets_of(["Micron 7450 PRO 1.92 TB"], {})
    with pytest.raises(UnknownNameError, match="theirs"):
        presets_of(["mine"], {"theirs": "micron-p300"})


GOOD = table(row("a", 1000, 2000))


@with_each(("content", "message"), [
    ("", "has no rows"), (",".join(COLUMNS) + "\n", "has no rows"), ("# a note\n1,2,3\n", "has no column drive"),
    (GOOD.replace("read_p99.9_us", "p999"), "has no column read_p99.9_us"), (GOOD.rpartition(",")[0], "row 1: write_p99.9_us"),
    (GOOD.replace(",2000,", ",nan,"), "row 1: achieved_per_s"), (GOOD.replace(",2000,", ",0,"), "row 1: achieved_per_s"),
    (GOOD.replace(",2000,", ",many,"), "row 1: achieved_per_s"), (GOOD.replace("\na,", "\n,"), "row 1: drive"),
    (GOOD.replace("\na,", '\n"a,'), "is not a table"), ("PAR1\0\0", "has no rows"), ('{"rows": []}\n[]\n', "has no column drive"),
])  # fmt: skip
def test_files_that_are_none_are_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "load.csv"
    path.write_text(content)
    with pytest.raises(FlashsimError, match=message) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_further_columns_and_a_load_of_the_probe_alone_are_read(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("﻿" + GOOD.replace("drive,", "note,drive,").replace("\na,", "\nwarm,a,").replace(",1000,", ",0,", 1), encoding="utf-8")
    (only,) = read(path)
    assert only.drive == "a" and only.values["background_per_s"] == 0 and not only.is_saturated


@pytest.fixture
def small(here: Path) -> str:
    """The file of a preset that is fast to play."""
    (here / "small.toml").write_text(as_toml(document_of(small_drive("micron-p300", 64 << 20)), ["small"]))
    return "small.toml"


def test_the_command_judges_every_row_of_a_file(here: Path, flashsim: Run, small: str) -> None:
    (here / "load.csv").write_text(table(row("mine", 1000, 2000), row("mine", 900_000, 50_000), row("mine", 800_000, 60_000)))
    result = flashsim(f"validate ssd --under-load load.csv --device mine={small} --scale 0.02 --jobs 1 --json load.json")
    assert result.exit_code == 0 and "mine" in result.stdout and "median of drives" in result.stdout
    document: dict[str, Any] = json.loads((here / "load.json").read_text())
    assert [(each["background_per_s"], each["measure"]) for each in document["rows"]] == [
        (rate, measure) for rate in (1000, 800_000) for measure in MEASURES
    ]
    assert {*document["rows"][0]} == {"drive", "background_per_s", "measure", "simulated", "measured", "null"}
    assert {*document["drives"][0]} == {"drive", "measure", "factor", "null_factor"} and len(document["drives"]) == len(MEASURES)
    assert [each["background_per_s"] for each in document["samples"]] == [1000, 900_000, 800_000]
    assert all(each["reads"] >= 400 and each["writes"] >= 400 for each in document["samples"])
    low = {each["measure"]: each["simulated"] for each in document["rows"][: len(MEASURES)]}
    assert low["achieved_per_s"] == pytest.approx(2000, rel=0.2) and low["read_p50_us"] <= low["read_p99_us"] <= low["read_p99.9_us"]


@pytest.mark.deep
def test_reads_behind_a_percentile_are_counted_where_a_slow_probe_gives_few(here: Path, flashsim: Run, small: str) -> None:
    """Ten a second for 300 s at most, of which half read: 1,500 where 20,000 are wanted."""
    quick, slow = table(row("mine", 1000, 2000)), table(row("mine", 0, 10)).replace(",1000,", ",10,").splitlines()[1]
    (here / "load.csv").write_text(f"{quick}{slow}\n")
    result = flashsim(f"validate ssd --under-load load.csv --device mine={small} --jobs 1 --json load.json")
    fast, few = json.loads((here / "load.json").read_text())["samples"]
    assert min(fast["reads"], fast["writes"]) >= 20_000 and 1400 <= few["reads"] <= 1600
    words = " ".join(result.stdout.split())
    assert f"simulated of {few['reads']:,} reads and {few['writes']:,} writes of the probe (fewest: mine at 0)" in words


def test_presets_are_named_by_a_mapping_in_python(here: Path, small: str) -> None:
    (here / "load.csv").write_text(table(row("mine", 1000, 2000)))
    by_text, by_mapping = (fs.validate(under_load="load.csv", device=each, scale=0.02) for each in (f"mine={small}", {"mine": small}))
    assert by_text.as_dict() == by_mapping.as_dict()
    for wrong in ({"mine": 3}, {"": small}, {"mine": ""}, {}):
        with pytest.raises(FlashsimError, match="device: "):
            fs.validate(under_load="load.csv", device=wrong)


@pytest.mark.deep
def test_rows_of_one_rate_have_a_line_each(here: Path, flashsim: Run, small: str) -> None:
    """Whether another share of the drive was in use, or a row stands twice."""
    (here / "load.csv").write_text(table(*(row("mine", 1000, 2000, used=used) for used in (0.06, 0.03, 0.03))))
    result = flashsim(f"validate ssd --under-load load.csv --device mine={small} --scale 0.02 --jobs 1")
    lines = [line for line in result.stdout.splitlines() if line.startswith("mine") and "2,000" in line]
    assert result.exit_code == 0 and len(lines) == 3 and lines[1] == lines[2]


def test_a_load_that_the_preset_cannot_hold_is_refused(here: Path, flashsim: Run, small: str) -> None:
    for used, rate, message in ((0.5, 1000, "holds 0.1 GiB"), (1e-9, 1000, "holds 0.1 GiB"), (0.06, 1e-30, "at least 0.1 can be played")):
        (here / "load.csv").write_text(table(row("mine", rate, 2000, used=used)))
        result = flashsim(f"validate ssd --under-load load.csv --device mine={small}")
        assert result.exit_code == 2 and message in result.stderr and len(result.stderr.strip().splitlines()) == 1, message


def test_the_command_refuses_what_it_cannot_judge(here: Path, flashsim: Run, small: str) -> None:
    (here / "load.csv").write_text(table(row("mine", 1000, 2000)))
    for options, message in (
        ("", "--device 'mine'=PRESET"), ("--device mine", "NAME=PRESET is needed"), (f"--device other={small}", "other"),
        ("--device mine=dell-7200-500gb", "is not a flash drive"), ("--device mine=none", "none"),
        (f"--device mine={small} --device mine=micron-p300", "mine of --device: given twice"),
        (f"--device mine={small} --claim tail", "--claim"), (f"--device mine={small} --scale 0.001", "scale"),
    ):  # fmt: skip
        result = flashsim(f"validate ssd --under-load load.csv {options}")
        assert result.exit_code == 2 and message in result.stderr and len(result.stderr.strip().splitlines()) == 1, options
    assert flashsim("validate ssd --under-load nothing.csv").exit_code == flashsim(f"validate ssd --device mine={small}").exit_code == 2


@pytest.mark.deep
@pytest.mark.parametrize(
    "drive, rate", [("SK Hynix PE8110 960 GB", 35_000), ("Solidigm D7-P5520 1.92 TB", 55_000), ("Kioxia CM7-R 3.84 TB", 115_000)]
)
@pytest.mark.skipif("FLASHSIM_TEST_DATA" not in os.environ, reason="needs measured data")
def test_reads_beside_writes_are_those_that_were_measured(drive: str, rate: int) -> None:
    """Of some rows below saturation, to which presets were fitted (others, on the page, are less near): within 10, 12 and 25 %."""
    rows = read(Path(os.environ["FLASHSIM_TEST_DATA"]) / "drives" / "ssdiq-under-load.csv")
    (measured,) = (row for row in rows if row.drive == drive and row.values["background_per_s"] == rate)
    shown = under_load.play(presets_of([drive], {})[drive], measured.values, 1, 0, {})
    for name, limit in (("p50", 0.10), ("p99", 0.12), ("p99.9", 0.25)):
        assert abs(math.log(shown[f"read_{name}_us"] / measured.values[f"read_{name}_us"])) <= math.log(1 + limit), name


@pytest.mark.deep
@pytest.mark.parametrize("drive", ["SK Hynix PE8110 960 GB", "Solidigm D7-P5520 1.92 TB"])
@pytest.mark.skipif("FLASHSIM_TEST_DATA" not in os.environ, reason="needs measured data")
def test_saturated_drives_wait_as_those_that_were_measured(drive: str) -> None:
    """The rate within 3 %, percentiles within 35 %: with whole victims and no command slots some were six times as long.

    The 99.9th percentile of the P5520's writes is within 40 %: it was within 35 % while reads could pass a waiting program any number of
    times (decision 7), so that no program ended beside reads that left no gap, and is 27 % short since.
    """
    rows = read(Path(os.environ["FLASHSIM_TEST_DATA"]) / "drives" / "ssdiq-under-load.csv")
    measured = next(row for row in rows if row.drive == drive and row.is_saturated)
    shown = under_load.play(presets_of([drive], {})[drive], measured.values, 1, 0, {})
    for name in MEASURES:
        limit = 1.03 if name == "achieved_per_s" else 1.4 if (drive[:8], name) == ("Solidigm", "write_p99.9_us") else 1.35
        assert abs(math.log(shown[name] / measured.values[name])) <= math.log(limit), name
