"""Every preset shows the figures that it cites, measured below the block layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from flashsim.apps.calibration.nominal_figures import figures
from flashsim.core.errors import UnknownNameError
from flashsim.core.units import KIB, MB, MIB, transfer_time
from flashsim.device import presets
from flashsim.device.figures import NAMES
from tests.commands import Run


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_shows_the_figures_that_it_cites(name: str) -> None:
    preset = presets.load(name)
    cited = {figure: value for figure, value in preset.cited.as_dict().items() if figure in NAMES}
    assert cited
    measured = figures(preset, list(cited))
    assert [figure.name for figure in measured] == list(cited)
    for figure in measured:
        assert figure.source
        assert figure.measured == pytest.approx(cited[figure.name], rel=0.02 if preset.kind == "hdd" else 0.05), figure.name


def test_figures_are_what_the_parameters_say() -> None:
    """A drive with one command at a time: every figure follows from its latency and its link."""
    preset = presets.load("memoright-gt-32gb")
    drive = preset.parameters
    found = {figure.name: figure.measured for figure in figures(preset)}
    times = {length: drive.read_latency + transfer_time(length, drive.link_read_rate) for length in (512, 4 * KIB, 8 * KIB, MIB)}
    assert found["read_access"] == pytest.approx(times[512], abs=2)
    # the pages of a request lie on dies of their own, and their channel transfers overlap with the link
    assert found["random_read"] == pytest.approx(times[4 * KIB], rel=0.01)
    assert found["sequential_read"] == pytest.approx(MIB / times[MIB] * 1e9, rel=0.01)
    assert found["random_read_iops"] == pytest.approx(1e9 / found["random_read"], rel=0.01)
    assert found["random_write"] > drive.write_latency


@pytest.mark.parametrize(
    ("name", "figure", "rate"),
    [
        ("nvme-qlc-2tb", "sequential_write", 480 * MB),
        ("nvme-qlc-2tb", "random_write_iops", 480 * MB / (4 * KIB)),
        ("nvme-tlc-1tb", "sequential_write", 1700 * MB),
    ],
)
def test_rates_of_writes_are_those_of_flash_not_of_the_buffer(name: str, figure: str, rate: float) -> None:
    """Without an SLC cache 30 MB/s a QLC chip, and what a TLC drive's maker cites, however much the drive can acknowledge before."""
    preset = presets.load(name)
    assert preset.flash
    drive, rates = replace(preset.flash, slc_cache=0, slc_program=0), []
    for size in (drive.write_buffer, 4 * drive.write_buffer):
        changed = replace(preset, parameters=replace(drive, write_buffer=size))
        rates.append(figures(changed, [figure])[0].measured)
    assert rates == pytest.approx([rate, rate], rel=0.05)
    assert rates[1] == pytest.approx(rates[0], rel=0.02)


def test_a_write_is_acknowledged_from_the_buffer() -> None:
    preset = presets.load("intel-x25e-64gb")
    drive = preset.parameters
    (buffered,) = figures(preset, ["random_write"])
    through = replace(preset, parameters=replace(drive, write_buffer_mode="write-through"))
    (programmed,) = figures(through, ["random_write"])
    assert buffered.measured < drive.program < programmed.measured


def test_what_is_not_cited_has_no_difference() -> None:
    preset = replace(presets.load("ocz-core-60gb"), cited=presets.CitedFigures(), cited_sources={})
    (figure,) = figures(preset, ["read_access"])
    assert figure.cited is None and figure.difference is None
    with pytest.raises(UnknownNameError, match="did you mean read_access"):
        figures(preset, ["read_acces"])
    with pytest.raises(UnknownNameError, match="mean_seek"):  # flash has none
        figures(preset, ["mean_seek"])


def test_cited_figures_are_shown_with_their_sources(here: Path, flashsim: Run) -> None:
    result = flashsim("device show micron-p300 --json p300.json")
    shown = json.loads((here / "p300.json").read_text())["cited"]
    preset = presets.load("micron-p300")
    assert {name: figure["value"] for name, figure in shown.items()} == preset.cited.as_dict()
    for name, figure in shown.items():
        assert figure["source"] == preset.cited_sources[name]
        assert f"{name}: {figure['shown']}" in result.stdout


def test_values_without_a_source_are_shown_as_defaults(here: Path, flashsim: Run) -> None:
    flashsim("device show intel-x25e-64gb --json x25e.json")
    shown = json.loads((here / "x25e.json").read_text())["parameters"]
    sources = presets.load("intel-x25e-64gb").sources
    assert {name for name, value in shown.items() if value["source"] != "default"} == set(sources)
    assert shown["write_buffer"]["source"] != "default" and shown["suspend"]["source"] == "default"
