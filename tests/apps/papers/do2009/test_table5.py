"""Table 5 of do2009, made at a small scale: what was fitted to does not count, and a line through it passes as well."""

from __future__ import annotations

from flashsim.apps.papers.base import load
from flashsim.apps.papers.do2009.buffer_pools import EXHIBITS
from flashsim.experiments.judging.claims import Verdict
from flashsim.experiments.runs.jobs import Settings, make


def test_the_rows_between_those_that_were_fitted_are_predicted_and_so_does_a_line() -> None:
    """From scale 0.02 on, R is read in two chunks, as at scale 1."""
    settings, paper = Settings(scale=0.02), load("do2009")
    judged = paper.judge(paper.claim("table5"), make(EXHIBITS["table5"].jobs(["table5"], settings), settings))
    assert judged.verdict is Verdict.CONSISTENT and str(judged.tally) == "12 of 12"
    assert [cell.name for cell in judged.cells][:2] == ["HDD, user, 2 KB", "HDD, user, 4 KB"]
    assert len(judged.cells) == 20 and sum(cell.calibrates for cell in judged.cells) == 8


def test_a_pool_that_is_too_small_leaves_the_claim_open() -> None:
    settings, paper = Settings(scale=0.00001), load("do2009")
    results = make(EXHIBITS["table5"].jobs(["table5"], settings), settings)
    assert paper.judge(paper.claim("table5"), results).verdict is Verdict.NOT_ATTEMPTED
