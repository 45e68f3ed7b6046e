"""The examples of the explanation run and print what it says."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_examples_of_the_explanation() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "optimal_allocations.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted >= 12 and results.failed == 0
