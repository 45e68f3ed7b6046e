"""The page on the simulated SSD names every parameter of a drive, and functions that there are."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from flashsim.ssd.parameters import SsdParameters

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "ssd.md"


def test_every_parameter_is_explained() -> None:
    text = PAGE.read_text()
    missing = [field.name for field in dataclasses.fields(SsdParameters) if f"`{field.name}" not in text]
    assert not missing


def test_what_a_write_waits_for_names_functions_and_parameters_that_there_are() -> None:
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]*) \|$", PAGE.read_text().split("## What a write waits for")[1], re.MULTILINE)
    parameters = {field.name for field in dataclasses.fields(SsdParameters)}
    assert len(rows) > 10 and {name for _, names in rows for name in re.findall(r"`(\w+)`", names)} <= parameters
    for functions, _ in rows[1:]:
        module = ""
        for file, engine, name in re.findall(r"`(?:([\w/]+\.py)|(?:(\w+)\.)?(\w+))`", functions):
            folder = Path() if file.startswith("core/") else Path("ssd") if file else Path("ssd/engine")
            module = str(folder / (file or f"{engine}.py")) if file or engine else module
            assert file or f"\ndef {name}(" in (PAGE.parents[2] / "flashsim" / module).read_text(), (module, name)
