"""Table 5 of do2009, made at a small scale: its verdict says what was fitted, and its section shows every time."""

from __future__ import annotations

import pytest

from flashsim.literature.base import Claim, Verdict, load
from flashsim.literature.do2009 import table5
from flashsim.literature.do2009.cpu_fit import CALIBRATION_ROWS, ROWS
from flashsim.studies.runs.jobs import Results, Settings, make


@pytest.fixture(scope="module")
def results() -> Results:
    """From scale 0.02 on, R is read in two chunks, as at scale 1."""
    settings = Settings(scale=0.02)
    return make(table5.jobs(["table5"], settings), settings)


@pytest.fixture
def claim() -> Claim:
    return next(claim for claim in load("do2009").claims if claim.id == "table5")


def test_the_claim_holds_and_is_told_to_be_fitted(claim: Claim, results: Results) -> None:
    judged = table5.judge(claim, results)
    assert judged.verdict is Verdict.FITTED
    assert [cell.name for cell in judged.cells][:2] == ["HDD, user, 2 KB", "HDD, user, 4 KB"]
    assert len(judged.cells) == 20
    note = judged.note_at(1)
    assert "8 of the 20 cells" in note and "predicted cells inside: 12 of 12" in note


def test_the_section_shows_every_time_and_what_was_fitted(results: Results) -> None:
    (section,) = table5.sections(results)
    (table,) = section.tables
    assert table.iloc[:, 0].tolist() == [f"{kilobytes} KB" for kilobytes in ROWS]
    assert table[table.iloc[:, 1] == "fitted"].iloc[:, 0].tolist() == [f"{kilobytes} KB" for kilobytes in CALIBRATION_ROWS]
    assert all(isinstance(entry, float) for entry in table.iloc[:, 2:].to_numpy().flat)


def test_a_pool_that_is_too_small_leaves_the_claim_open(claim: Claim) -> None:
    settings = Settings(scale=0.00001)
    assert table5.judge(claim, make(table5.jobs(["table5"], settings), settings)).verdict is Verdict.NOT_ATTEMPTED
