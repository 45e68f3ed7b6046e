"""A drive from a data sheet shows the figures that it was asked for, and says of the rest that it is an estimate."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from flashsim.apps.calibration.data_sheet import DECIDES, DataSheet, new_drive
from flashsim.apps.calibration.nominal_figures import figures
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.rng import generator
from flashsim.core.units import GB, KIB, MB, MIB, SECONDS, TB
from flashsim.device import presets
from flashsim.ssd.parameters import SsdParameters
from tests.commands import Run

BASE, DISK = "micron-p300", "seagate-st3300655lc"


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
    own = {DECIDES[name] for name in shown} | {"capacity", "program", "read_submission"}  # the last if a read alone leaves time for it
    for name, source in again.sources.items():
        assert source.startswith(f"estimate: as {BASE}") or name in own, (name, source)
    assert "flash drives of the presets have" in again.sources["erase"]
    assert again.lifetime_erases == pytest.approx(500 * TB / (again.flash.unit_size * again.flash.slots_per_block), rel=0.01)


def test_what_cannot_be_made_is_refused_in_one_line(here: Path, flashsim: Run) -> None:
    with pytest.raises(RefusedError, match="wd-zn540-1tb is zoned"):
        new_drive("wd-zn540-1tb", "new", "", DataSheet({}))
    with pytest.raises(RefusedError, match="hp-97560 is an array, or has measured seeks"):
        new_drive("hp-97560", "new", "", DataSheet({}))
    with pytest.raises(RefusedError, match="micron-7450-pro-960gb has no energy figures, so idle and active power are both needed"):
        new_drive("micron-7450-pro-960gb", "new", "", DataSheet({}, loaded=1000))
    with pytest.raises(InvalidParameterError, match="active-power"):
        new_drive(BASE, "new", "", DataSheet({}, idle=2000, loaded=1000))
    lines = ["--out new.txt", *(f"--out new.toml {more}" for more in ("--read-mbps 0", "--capacity 5", "--overprovisioning 20"))]
    lines += [f"--out new.toml {more}" for more in ("--rpm 7200", "--tbw 5 --dwpd 1", "--warranty 5", "--slc-cache 1GB")]
    lines += [f"--out new.toml {more}" for more in ("--write-mbps-after 100", "--mapping-unit 64KiB")]
    for line in lines:
        result = flashsim(f"device new --preset {BASE} {line}")
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, line
    result = flashsim(f"device new --preset {DISK} --out new.toml --read-iops 100")
    assert result.exit_code == 2 and result.stderr == f"flashsim: --read-iops: {DISK} is a disk\n"
    result = flashsim(f"device new --preset {BASE} --out new.toml --read-iops 100 --read-latency 1us")
    assert result.exit_code == 2 and "they contradict each other" in result.stderr.splitlines()[-1]
    assert not list(here.iterdir())


def test_a_plain_copy_has_another_size_and_keeps_all_else(here: Path, flashsim: Run) -> None:
    result = flashsim(f"device new --preset {BASE} --out mine.toml --capacity 40GB --year 2025 --idle-power 0.5 --json mine.json")
    assert result.exit_code == 0, result.output
    document = tomllib.loads(Path("mine.toml").read_text())
    assert document["parameters"]["capacity"]["source"] == "data sheet" and document["energy"]["idle"]["value"] == "500mW"
    assert presets.load("mine.toml").product.year == 2025 and presets.load(BASE).product.year == 2010
    made, base = presets.load("mine.toml").flash, presets.load(BASE).flash
    assert made is not None and base is not None and made.read == base.read and made.capacity == 40_000 * MB


def controller(flash: SsdParameters) -> int:
    """The controller's part of a write, ns."""
    return flash.write_latency - flash.program


def test_spare_flash_decides_a_steady_state_beside_a_rate_of_writes_in_order() -> None:
    """A full drive writes slowly for what its garbage collection moves, and not for a slow controller."""
    base = presets.load(BASE).flash
    made = new_drive(BASE, "new", "", DataSheet({"sequential_write": 350 * MB, "steady_write_iops": 7000}))
    flash = made.preset.flash
    assert flash is not None and base is not None
    assert all(abs(each.difference or 0) < 0.03 for each in made.figures), made.figures
    assert flash.effective_overprovisioning < base.effective_overprovisioning and flash.program == base.program
    assert "steady state" in made.preset.sources["blocks_per_plane"] and controller(flash) == controller(base)


def test_a_program_decides_a_steady_state_where_the_spare_flash_is_given() -> None:
    base = presets.load(BASE).flash
    made = new_drive(BASE, "new", "", DataSheet({"steady_write_iops": 6000}, overprovisioning=0.3))
    flash = made.preset.flash
    assert flash is not None and base is not None and abs(made.figures[0].difference or 0) < 0.03
    assert flash.effective_overprovisioning == pytest.approx(0.3, abs=0.01) and flash.program > base.program
    assert made.preset.sources["program"] == "what the data sheet's steady write iops leaves" and controller(flash) == controller(base)


def test_a_drive_with_an_slc_cache_and_pages_of_several_times(tmp_path: Path) -> None:
    shown = {"sequential_write": 2 * GB, "sequential_write_full": GB, "random_read": 60_000}
    made = new_drive("nvme-tlc-1tb", "new", "", DataSheet(shown, capacity=500 * GB, slc_cache=20 * GB))
    assert all(abs(each.difference or 0) < 0.03 for each in made.figures), made.figures
    (tmp_path / "new.toml").write_text(made.text())
    flash, base = presets.load(str(tmp_path / "new.toml")).flash, presets.load("nvme-tlc-1tb").flash
    assert flash == made.preset.flash and flash is not None and base is not None and flash.slc_cache == 20 * GB
    ratios = [new / old for new, old in zip((flash.read, *flash.read_pages), (base.read, *base.read_pages), strict=True)]
    assert max(ratios) == pytest.approx(min(ratios), rel=0.001) and min(ratios) > 1.1
    without = new_drive("nvme-tlc-1tb", "new", "", DataSheet({}, slc_cache=0)).preset
    assert without.flash is not None and not without.flash.slc_cache and "slc_program" not in without.sources


def test_dies_and_channels_are_as_many_and_as_fast_as_figures_ask_for() -> None:
    """Rates of a drive of today from one of 2018 with four channels, which came out 31 to 38 % low."""
    shown = {"sequential_read": 7 * GB, "sequential_write": 5 * GB, "random_read_iops": 800_000}
    made = new_drive("nvme-qlc-2tb", "new", "", DataSheet(shown, mapping_unit=16 * KIB))
    flash, base = made.preset.flash, presets.load("nvme-qlc-2tb").flash
    assert flash is not None and base is not None and flash.unit_size == 16 * KIB
    assert all(abs(each.difference or 0) < 0.03 for each in made.figures), made.figures
    assert flash.channels == base.channels and flash.channel_rate > base.channel_rate and flash.dies > base.dies
    assert flash.effective_overprovisioning == pytest.approx(base.effective_overprovisioning, abs=0.01)
    for name in ("channel_rate", "packages_per_channel"):
        assert made.preset.sources[name].startswith("estimate: the least with which the data sheet's")


def test_endurance_and_watts_of_a_drive_that_had_none(here: Path, flashsim: Run) -> None:
    result = flashsim("device new --preset samsung-980-pro-1tb --out new.toml --dwpd 1 --warranty 3 --idle-power 2 --active-power 9")
    assert result.exit_code == 0, result.output
    made = presets.load("new.toml")
    flash, energy = made.flash, made.energy
    assert flash is not None and energy is not None and (energy.idle, energy.loaded) == (2000, 9000)
    whole = flash.good_blocks * flash.pools * flash.slots_per_block * flash.unit_size
    assert made.cited.block_erases == round(3 * 365 * made.capacity / whole)
    read = flash.link_read_rate / flash.page_size * energy.page_read + flash.link_read_rate * energy.channel_byte
    assert energy.idle + energy.controller + read / SECONDS == pytest.approx(energy.loaded, rel=0.001)
    assert all(made.energy_sources[name].startswith("estimate") for name in ("page_read", "page_program", "controller"))


def test_a_disk_shows_its_rate_its_seek_and_its_revolutions(here: Path, flashsim: Run) -> None:
    line = f"device new --preset {DISK} --out new.toml --capacity 18TB --rpm 7200 --read-mbps 270 --seek 8.5ms --cache 512MiB"
    result = flashsim(f"{line} --heads 18 --json new.json")
    assert result.exit_code == 0, result.output
    made = presets.load("new.toml")
    disk, base = made.disk, presets.load(DISK).disk
    assert disk is not None and base is not None and made.capacity == 18 * TB and disk.rotation == 8_333_333 and disk.heads == 18
    for each in figures(made, ["mean_seek", "rotational_latency", "sequential_read"]):
        assert abs(each.difference or 0) < 0.03, each
    assert disk.seek_full / disk.seek_average == pytest.approx(base.seek_full / base.seek_average, rel=0.001)
    ratio = disk.zones[-1][1] / disk.zones[0][1]
    assert (
        ratio == pytest.approx(base.zones[-1][1] / base.zones[0][1], rel=0.01) and disk.write_behind + disk.segments * 4 * MIB == 512 * MIB
    )
    assert not {"bus_read", "bus_write"} & made.sources.keys()
