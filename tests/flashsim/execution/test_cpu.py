"""CPU prices: every kind of work has one and a source, times follow from them, and bad files are refused."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimWarning, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.device import presets, scaling
from flashsim.device.product import Product
from flashsim.execution import cpu
from flashsim.execution.requests import Work
from tests.cases import with_each

PRESET = Path(cpu.__file__).parent / "cpu_presets" / "pentium-d-2009.toml"


def test_times_are_prices_times_counts() -> None:
    model = cpu.CpuModel("mine", dict.fromkeys(Work, 2.0) | {Work.PAGE: 100.0}, {"hdd": 10.0, "ssd": 30.0}, {"hdd": 0.5, "ssd": 0.25}, {})
    assert model.user_time({Work.HASH: 5, Work.PAGE: 3}) == 2 * 5 + 100 * 3
    lengths, commands = np.array([4096, 262_144]), np.array([1, 2])
    assert model.kernel_times("hdd", lengths, commands).tolist() == [10 + 2048, 20 + 131_072]
    assert model.kernel_times("ssd", lengths, commands).tolist() == [30 + 1024, 60 + 65_536]


def test_work_of_any_name_is_priced_by_default_and_at_other_places() -> None:
    model = cpu.CpuModel("mine", {"hash": 2.0, "default": 7.0}, {}, {}, {}, {"host": 2, "device": 4}, {"device": {"hash": 9.0}})
    assert model.user_time({"digest": 3, Work.HASH: 1}) == 3 * 7 + 2
    assert model.user_time({"hash": 3}, "device") == 27
    with pytest.raises(InvalidParameterError, match="^work: 'digest', but CPU preset mine has no price for it at device, and no default$"):
        model.user_time({"digest": 1}, "device")
    with pytest.raises(InvalidParameterError, match="^place: 'attic', but CPU preset mine has host, device$"):
        model.user_time({"hash": 1}, "attic")


def test_cores_and_places_stand_in_the_preset(tmp_path: Path) -> None:
    text = PRESET.read_text() + '\n[places.device]\nscan = { nanoseconds = 40, source = "guessed" }\n'
    path = tmp_path / "smart.toml"
    path.write_text(text.replace("cores = { host = 2 }", "cores = { host = 2, device = 3 }"))
    model = cpu.load(str(path))
    assert model.cores == {"host": 2, "device": 3} and model.places == {"device": {"scan": 40.0}}
    assert model.sources["places.device.scan"] == "guessed"
    path.write_text(model.as_toml())
    assert cpu.load(str(path)) == model


@pytest.mark.parametrize("name", cpu.names())
def test_a_preset_written_and_read_again_is_the_same(name: str, tmp_path: Path) -> None:
    model = cpu.load(name)
    (tmp_path / f"{name}.toml").write_text(model.as_toml(['As "measured".']), encoding="utf-8")
    assert cpu.load(str(tmp_path / f"{name}.toml")) == model


def test_every_price_has_a_source() -> None:
    for name in cpu.names():
        model = cpu.load(name)
        assert set(model.user) == {*Work, cpu.DEFAULT}
        assert all(model.sources.values())


@with_each(
    ("old", "new", "error"),
    [
        ("[user]", "[users]", DamagedFileError),
        ("probe = ", "prove = ", DamagedFileError),
        ("probe = { nanoseconds = ", "probe = { nanoseconds = -", DamagedFileError),
        ("probe = { nanoseconds = ", "probe = { nanoseconds = nan, was = ", DamagedFileError),
        ("probe = { nanoseconds = ", "probe = { nanoseconds = 'much', was = ", DamagedFileError),
        ("probe = { nanoseconds = ", "probe = { seconds = ", DamagedFileError),
        ("page = ", "# page = ", DamagedFileError),
        ("cores = { host = 2 }", "cores = { host = 0 }", DamagedFileError),
        ("cores = { host = 2 }", "cores = { attic = 2 }", DamagedFileError),
        ("year = 2009", "year = '2009'", DamagedFileError),
        ("year = 2009", "year = -1", DamagedFileError),
        ("[kernel.ssd]", "[kernel.tape]", DamagedFileError),
        ("[user]", "[user", DamagedFileError),
    ],
)
def test_damaged_presets_are_refused(tmp_path: Path, old: str, new: str, error: type[Exception]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PRESET.read_text().replace(old, new))
    with pytest.raises(error, match="mine.toml"):
        cpu.load(str(path))


def test_unknown_presets_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean pentium-d-2009"):
        cpu.load("pentium-d-2008")
    with pytest.raises(MissingFileError):
        cpu.load("nowhere.toml")


def _device(year: int) -> presets.Preset:
    return replace(presets.load("ocz-core-60gb"), name="mine", product=Product(year=year))


def test_by_year_is_the_nearest_and_of_two_the_newer() -> None:
    years = {name: cpu.load(name).year for name in cpu.names()}
    assert all(years.values())
    for year in range(1985, 2035):
        chosen = cpu.choose(cpu.BY_YEAR, _device(year))
        assert (abs(years[chosen or ""] - year), -years[chosen or ""]) == min((abs(each - year), -each) for each in years.values())
    newest = max(years, key=lambda name: years[name])
    assert cpu.choose(cpu.BY_YEAR, _device(0)) == cpu.choose(cpu.BY_YEAR, None) == newest
    assert [cpu.choose(name, _device(2022)) for name in (None, "mine.toml")] == [None, "mine.toml"]


def test_drives_of_the_papers_keep_the_cpu_of_2009_and_parts_that_of_the_whole() -> None:
    for name in ("toshiba-5400-320gb", "ocz-core-60gb", "intel-x25e-64gb", "mtron-msd-sata3025-16gb", "micron-p300", "samsung-sas-400gb"):
        assert cpu.choose(cpu.BY_YEAR, presets.load(name)) == "pentium-d-2009"
    for name in ("samsung-980-pro-1tb", "sas-10k-146gb"):
        whole = presets.load(name)
        assert cpu.choose(cpu.BY_YEAR, scaling.part_of(whole, 10)) == cpu.choose(cpu.BY_YEAR, whole)


def test_a_cpu_and_a_device_ten_years_apart_are_told() -> None:
    with pytest.warns(
        FlashsimWarning, match="^cpu: pentium-d-2009 is of 2009, but mine of 2020: CPU times are those of a machine 11 years older$"
    ):
        cpu.warn_of_years("pentium-d-2009", _device(2020))
    with pytest.warns(
        FlashsimWarning, match="^cpu: pentium-d-2009 is of 2009, but mine of 1999: CPU times are those of a machine 10 years newer$"
    ):
        cpu.warn_of_years(cpu.BY_YEAR, _device(1999))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, year in ((None, 1991), (cpu.BY_YEAR, 2020), ("pentium-d-2009", 2018), ("pentium-d-2009", 0)):
            cpu.warn_of_years(name, _device(year))
