"""A flash drive from a data sheet shows the figures that it was asked for, and says of the rest that it is an estimate."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from flashsim.apps.calibration.data_sheet import DECIDES, DataSheet, new_drive
from flashsim.apps.calibration.nominal_figures import figures
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.rng import generator
from flashsim.core.units import GB, MB, TB
from flashsim.device import presets
from tests.commands import Run

BASE = "micron-p300"


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_met_and_the_file_says_where_each_value_comes_from(seed: int, tmp_path: Path) -> None:
    """Figures of a drive as drawn, each up to a quarter from the base drive's."""
    names = ["sequential_read", "sequential_write", "random_read_iops", "random_read"]
    draw = generator(seed, "data sheet")
    shown = {each.name: round(each.measured * draw.uniform(0.8, 1.25)) for each in figures(presets.load(BASE), names)}
    made = new_drive(BASE, "drawn", "As drawn", DataSheet(shown, capacity=60 * GB, written=500 * TB))
    assert all(abs(each.difference or 0) < 0.02 for each in made.figures), made.figures
    (tmp_path / "drawn.toml").write_text(made.text())
    again = presets.load(str(tmp_path / "drawn.toml"))
    assert again.parameters == made.preset.parameters and again.cited == made.preset.cited and again.energy == made.preset.energy
    assert again.capacity == 60 * GB
    assert again.flash is not None and presets.load(BASE).flash is not None
    base = presets.load(BASE).flash
    assert base is not None and again.flash.effective_overprovisioning == pytest.approx(base.effective_overprovisioning, abs=0.01)
    own = {DECIDES[name] for name in shown} | {"capacity", "program"}
    for name, source in again.sources.items():
        assert source.startswith(f"estimate: as {BASE}") or name in own, (name, source)
    assert "flash drives of the presets have" in again.sources["erase"]
    assert again.lifetime_erases == pytest.approx(2 * 500 * TB / (again.flash.unit_size * again.flash.slots_per_block), rel=0.01)


def test_what_cannot_be_made_is_refused_in_one_line(here: Path, flashsim: Run) -> None:
    with pytest.raises(RefusedError, match="toshiba-5400-320gb is no flash drive"):
        new_drive("toshiba-5400-320gb", "new", "", DataSheet({}))
    with pytest.raises(InvalidParameterError, match="active-power"):
        new_drive(BASE, "new", "", DataSheet({}, idle=2000, loaded=1000))
    for line in ("--out new.txt", "--out new.toml --read-mbps 0", "--out new.toml --capacity 5", "--out new.toml --overprovisioning 20"):
        result = flashsim(f"device new --preset {BASE} {line}")
        assert result.exit_code == 2 and result.stderr.count("\n") == 1
    result = flashsim(f"device new --preset {BASE} --out new.toml --read-iops 100 --read-latency 1us")
    assert result.exit_code == 2 and "they contradict each other" in result.stderr.splitlines()[-1]
    assert not list(here.iterdir())


def test_a_plain_copy_has_another_size_and_keeps_all_else(here: Path, flashsim: Run) -> None:
    result = flashsim(f"device new --preset {BASE} --out mine.toml --capacity 40GB --idle-power 0.5 --json mine.json")
    assert result.exit_code == 0, result.output
    document = tomllib.loads(Path("mine.toml").read_text())
    assert document["parameters"]["capacity"]["source"] == "data sheet" and document["energy"]["idle"]["value"] == "500mW"
    made, base = presets.load("mine.toml").flash, presets.load(BASE).flash
    assert made is not None and base is not None and made.read == base.read and made.capacity == 40_000 * MB
