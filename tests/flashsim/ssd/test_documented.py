"""The page on the simulated SSD names every parameter of a drive."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from flashsim.ssd.parameters import SsdParameters

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "ssd.md"


def test_every_parameter_is_explained() -> None:
    text = PAGE.read_text()
    missing = [field.name for field in dataclasses.fields(SsdParameters) if f"`{field.name}" not in text]
    assert not missing
