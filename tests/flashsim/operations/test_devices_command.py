"""``flashsim device`` and what the command says of itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import flashsim as fs
from flashsim import __version__
from flashsim.device import presets
from tests.commands import Run


def test_every_preset_is_listed(here: Path, flashsim: Run) -> None:
    result = flashsim("device list --json d.json")
    assert result.exit_code == 0
    rows = json.loads((here / "d.json").read_text())["presets"]
    assert sorted(row["name"] for row in rows) == presets.names(zoned=True)
    assert all(name in result.stdout for name in presets.names(zoned=True))
    assert rows == sorted(rows, key=lambda row: (-row["year"], row["name"])), "newest first"
    assert {row["name"]: (row["cells"], row["origin"]) for row in rows}["samsung-980-pro-1tb"] == ("TLC", "fitted")
    assert fs.devices()[["preset", "year", "cells", "origin"]].values.tolist() == [
        [row[name] for name in ("name", "year", "cells", "origin")] for row in rows
    ]


@pytest.mark.parametrize("name", presets.names(zoned=True))
def test_every_value_is_shown_with_its_source(name: str, here: Path, flashsim: Run) -> None:
    result = flashsim(f"device show {name} --json d.json")
    assert result.exit_code == 0
    told = json.loads((here / "d.json").read_text())
    shown = told["parameters"]
    preset = presets.load(name)
    assert {figure: entry["source"] for figure, entry in told["energy"].items()} == preset.energy_sources
    assert all(f"\nenergy {figure}: " in result.stdout for figure in preset.energy_sources)
    assert ("no energy figures" in result.stdout) == (preset.kind == "ssd" and preset.energy is None and preset.inside is None)
    for parameter, source in preset.sources.items():
        assert shown[parameter]["source"] == source
        assert source in result.stdout and re.search(rf"^{parameter} = ", result.stdout, re.MULTILINE)


def test_version(flashsim: Run) -> None:
    assert flashsim("--version").stdout == f"flashsim {__version__}\n"


def test_without_arguments_the_help_is_shown(flashsim: Run) -> None:
    result = flashsim("")
    assert result.exit_code == 0
    assert result.stdout == flashsim("--help").stdout
