"""Presets: every value has a source, drives show the figures they were built from, and bad files are refused in one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.parameters import describe
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import KIB, TB
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.engines import MODELS
from flashsim.device.product import origin_of
from tests.cases import with_each

OCZ = Path(presets.__file__).parent / "presets" / "ocz-core-60gb.toml"


@with_each("name", presets.names(zoned=True))
def test_every_value_has_a_source(name: str) -> None:
    preset = presets.load(name)
    assert preset.name == name
    assert preset.title
    assert all(preset.sources.values())
    assert preset.cited.as_dict().keys() == preset.cited_sources.keys() and all(preset.cited_sources.values())
    energies = [name for name, _, _ in describe(preset.energy)] if preset.energy else []
    assert energies == list(preset.energy_sources) and all(preset.energy_sources.values())
    told = {parameter for parameter, _, _ in describe(preset.parameters)}
    assert set(preset.sources) <= told


@with_each("name", presets.names(zoned=True))
def test_every_drive_has_a_year_cells_and_an_origin(name: str) -> None:
    preset = presets.load(name)
    assert 1990 <= preset.product.year <= 2026 and preset.product_sources["year"] and all(preset.product_sources.values())
    assert preset.cells in (("SLC", "MLC", "TLC", "QLC") if preset.flash else ("LMR", "PMR", "SMR"))
    if preset.flash and preset.flash.cell != "none":
        assert preset.cells == preset.flash.cell.upper() and "cells" not in preset.product_sources, "it would be said twice"
    assert preset.origin in ("identified", "fitted", "sourced", "estimated")


#: Bytes that may be written, or whole drives a day and years, in the source of an endurance.
_WRITTEN = re.compile(r"([\d,.]+) TB written \(.*\), at a write amplification of 1$")
_A_DAY = re.compile(r"([\d.]+) drive writes? a day over (\d) years \(.*\), at a write amplification of 1$")


@with_each("name", [name for name in presets.names(zoned=True) if presets.load(name).flash])
def test_every_flash_drive_lasts_as_its_data_sheet_says(name: str) -> None:
    """Erases of a block, times the flash, are the bytes that may be written, where a sheet says how many; else an estimate says so."""
    preset = presets.load(name)
    flash, erases, source = preset.flash, preset.cited.block_erases, preset.cited_sources["block_erases"]
    assert flash is not None and erases is not None and not flash.endurance, "no run of a preset ends by wear"
    assert preset.lifetime_erases == erases * flash.good_blocks * flash.pools
    bytes_of_flash = flash.good_blocks * flash.pools * flash.slots_per_block * flash.unit_size
    if match := _WRITTEN.match(source):
        written = float(match[1].replace(",", "")) * TB
    elif match := _A_DAY.match(source):
        written = float(match[1]) * 365 * int(match[2]) * flash.capacity
    else:
        assert source.startswith(("estimate: ", "do2012, section 2.2: "))
        return
    assert erases == round(written / bytes_of_flash)


def test_an_origin_is_told_by_the_first_words_of_sources() -> None:
    names = ("identified", "measured", "fitted", "sourced", "estimated")
    lists = (["identified (1 us)", "fitted: x"], ["measured: x", "estimate"], ["solved from x"], ["do2009", "estimate: x"], ["estimate: x"])
    assert [origin_of(sources, []) for sources in lists] == [*names]
    assert origin_of(["estimate: x"], ["do2009"]) == "sourced" and origin_of(["do2009"], ["estimate"]) == "estimated"
    assert presets.load("samsung-980-pro-1tb").origin == "fitted" and presets.load("memoright-gt-32gb").origin == "sourced"


def _rate(device: Device, operation: int, length: int, count: int) -> float:
    """Bytes a second of synchronous sequential requests, the first left out."""
    requests = make_requests(operation, np.arange(count) * length, length, serial=True)
    if operation == READ:
        device.load(0, count * length)
    completed = device.serve(requests)["completed"]
    return float(length * (count - 1) / (completed[-1] - completed[0]) * 1e9)


def test_the_flash_drive_shows_the_figures_of_table_2() -> None:
    """Each command of 128 KiB takes 0.35 ms and its bytes at 120 or 80 MB/s (do2009, table 2)."""
    command = 128 * KIB
    assert _rate(Device.open("ocz-core-60gb"), READ, command, 500) == pytest.approx(command / (0.35e-3 + command / 120e6), rel=1e-3)
    assert _rate(Device.open("ocz-core-60gb"), WRITE, command, 500) == pytest.approx(command / (0.35e-3 + command / 80e6), rel=1e-3)


def test_the_disk_shows_the_figures_of_table_2() -> None:
    """34 MB/s in sequence; 12 ms, half a revolution of 11.1 ms and the transfer for a page anywhere (do2009, table 2)."""
    for operation in (READ, WRITE):
        assert _rate(Device.open("toshiba-5400-320gb"), operation, 128 * KIB, 2000) == pytest.approx(34e6, rel=0.02)
    device = Device.open("toshiba-5400-320gb")
    offsets = np.random.default_rng(1).integers(0, device.capacity // 8192 - 1, 4000) * 8192
    completions = device.serve(make_requests(READ, offsets, 8192, serial=True))
    mean = np.diff(completions["completed"]).mean() / 1e6
    assert mean == pytest.approx(12 + 5.56 + 8192 / 34e3, rel=0.03)


@pytest.mark.parametrize("name", presets.names())
def test_both_models_of_a_drive_give_the_same_times(name: str) -> None:
    random = np.random.default_rng(2)
    requests = make_requests(random.integers(0, 2, 60), random.integers(0, 5000, 60) * 4096, random.integers(1, 80, 60) * 4096, serial=True)
    engine, specification = (Device.open(name, model).serve(requests) for model in MODELS)
    assert np.array_equal(engine, specification)


@pytest.mark.parametrize("name", presets.names(zoned=True))
def test_larger_requests_are_split_into_commands(name: str) -> None:
    whole, split = Device.open(name, maximum_command=1024 * KIB), Device.open(name, maximum_command=64 * KIB)
    request = make_requests(READ, 0, 1024 * KIB)
    if split.kind == "ssd":
        longer = split.serve(request)["completed"][0] - whole.serve(request)["completed"][0]
        # a deep queue hides the later commands' latency behind the link
        assert longer > 0 if split.preset.parameters.queue_depth == 1 else longer >= 0
    for bad in (0, 1000, -512):
        with pytest.raises(InvalidParameterError):
            Device.open(name, maximum_command=bad)


def test_serving_waits_for_what_is_outstanding() -> None:
    device = Device.open("ocz-core-60gb")
    device.submit(make_requests(READ, 0, 4096))
    with pytest.raises(InvalidParameterError, match="outstanding"):
        device.serve(make_requests(READ, 0, 4096))
    device.advance()
    assert len(device.serve(make_requests(READ, 0, 4096))) == 1
    assert len(device.serve(make_requests(READ, [], []))) == 0


def test_unknown_presets_and_models_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean ocz-core-60gb"):
        presets.load("ocz-core-60")
    with pytest.raises(InvalidParameterError, match="engine, specification"):
        Device.open("ocz-core-60gb", "guess")
    with pytest.raises(MissingFileError):
        presets.load("nowhere.toml")


@with_each(
    ("old", "new", "says"),
    [
        ("channels = {", "canals = {", "canals"),
        ('"60GB"', '"60"', "capacity"),
        ('"60GB"', '"70GB"', "capacity"),
        ('"20us"', "true", "read"),
        ('"20us"', '"-20us"', "read"),
        ("{ value = 64,", "{ val = 64,", "pages_per_block"),
        ("value = 64", "value = 0", "pages_per_block"),
        ('"40MB/s"', '"40MB"', "channel_rate"),
        ("[parameters]", "[values]", "parameters"),
        ('kind = "ssd"', 'kind = "tape"', "tape"),
        ('"bast"', '"bost"', "bast"),
        ("sequential_read =", "sequential_reed =", "sequential_read"),
        ('sequential_read = { value = "120MB/s"', 'sequential_read = { value = "0MB/s"', "sequential_read"),
        ('sequential_read = { value = "120MB/s"', 'sequential_read = { val = "120MB/s"', "sequential_read"),
        ("[parameters]", "[parameters", "TOML"),
        ("[cited]", '[energy]\nidle = { value = "60mW", source = "" }\n[cited]', "page_read: missing"),
        ("[cited]", '[energy]\npage_read = { value = "1", source = "" }\n[cited]', "page_read: '1', but a number with a unit"),
        ("[cited]", "[energy]\nidle = 60\n[cited]", "idle must be given as"),
        ('"MLC"', '"ULC"', "cells: 'ULC'"),
        ("value = 2008", 'value = "2008"', "year"),
    ],
)
def test_damaged_presets_are_refused_in_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    assert old in OCZ.read_text()
    path.write_text(OCZ.read_text().replace(old, new))
    with pytest.raises(FlashsimError, match=says) as caught:
        Device(presets.load(str(path)))
    assert "\n" not in str(caught.value)
    if "bost" not in new:
        assert "mine.toml" in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DamagedFileError):
        presets.load(str(path))


def test_a_disk_has_no_energies(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OCZ.with_name("dell-7200-500gb.toml").read_text() + '[energy]\nidle = { value = "5W", source = "" }\n')
    with pytest.raises(DamagedFileError, match="kind hdd"):
        presets.load(str(path))
