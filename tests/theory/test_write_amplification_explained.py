"""The examples of the explanation run and print what it says, and its table agrees with the formulas."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tests.theory.amplification import Trial

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "write_amplification.md"
ROW = re.compile(r"\| (?P<gc>[\w-]+)(, d = (?P<d>\d+))?(, (?P<writes>\d+)% to (?P<data>\d+)%)? \| (?P<alpha>1\.\d+) \|(?P<columns>.*)\|")
ENTRY = re.compile(r"(?P<simulated>[\d.]+) ± [\d.]+ / (?P<predicted>[\d.]+) \((?P<error>[+-][\d.]+)%\)")


def test_examples_of_the_explanation() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted >= 8 and results.failed == 0


def test_table_of_the_explanation() -> None:
    """Formulas, errors and tolerances; what was simulated is of the run that the page names."""
    entries = 0
    for row in ROW.finditer(PAGE.read_text(encoding="utf-8")):
        columns = row["columns"].split("|")
        for pages_per_block, column in zip((64,) if row["writes"] else (32, 64, 128), columns, strict=True):
            if (entry := ENTRY.search(column)) is None:
                continue
            writes, data = (int(row[name] or 0) / 100 for name in ("writes", "data"))
            cell = Trial(row["gc"], float(row["alpha"]), pages_per_block, int(row["d"] or 1), writes, data)
            # Logical pages are whole, so that the drive's alpha is not exactly the one asked for.
            assert float(entry["predicted"]) == pytest.approx(cell.predicted(cell.alpha), rel=2e-4, abs=5e-4)
            error = float(entry["simulated"]) / float(entry["predicted"]) - 1
            assert float(entry["error"]) / 100 == pytest.approx(error, abs=5e-4)
            assert abs(error) < cell.tolerance
            entries += 1
    assert entries == 6 * 3 * 3 + 3 + 2 * 3 * 3  # policies over alpha and pages, one choice at 64 pages, skewed traffic
