"""Claims and verdicts: what the files say, and how numbers are judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MethodType, SimpleNamespace

import pytest

from flashsim.core.errors import DamagedFileError
from flashsim.literature import base as papers
from flashsim.literature.base import Cell, Claim, Verdict, judge_holds, judge_numbers, not_attempted


def claim(fitted: str = "", **limits: float) -> Claim:
    return Claim("paper", "claim", "title", "table 1", "words", "table1", fitted, "", limits, {"row": [2.0]}, {})


def test_all_claims_of_do2009_are_listed() -> None:
    wanted = "table1 table3-io table3-join table4 table5 fig1-hh-best fig1-281 fig1-bnl fig1-sm-gh fig1-cpu fig1-variance slides-cpu-ratio"
    wanted += " fig2 fig3-blocked fig3-2kb slides-erase"
    found = papers.load("do2009")
    assert [each.id for each in found.claims] == wanted.split()


@pytest.mark.parametrize(
    "claims, told", [("title = [", "Invalid value"), ("title = 'x'", "'claims' is missing"), ("[[claims]]", "'id' is missing")]
)
def test_claims_that_say_too_little_are_refused(claims: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "claims.toml").write_text(claims)
    monkeypatch.setattr(papers.PAPERS, "load", lambda name: SimpleNamespace(__name__="mine", __file__=str(tmp_path / "__init__.py")))
    with pytest.raises(DamagedFileError, match=rf"^.*claims\.toml: .*{told}.*$"):
        papers.load("mine")


@pytest.mark.parametrize("name", papers.PAPERS.names())
def test_every_paper_keeps_the_contract(name: str) -> None:
    paper = papers.load(name)
    for each in paper.claims:
        assert each.title and each.source and each.tolerance
        assert each.exhibit is None or each.exhibit in paper.exhibits
    for exhibit in paper.exhibits:
        judges = not isinstance(paper.exhibit(exhibit).judge, MethodType)  # as the contract has it for those that judge nothing
        assert judges == any(each.exhibit == exhibit for each in paper.claims)


@pytest.mark.parametrize(
    "measured, verdict",
    [((2.0, 3.0), Verdict.REPRODUCED), ((2.3, 3.0), Verdict.REPRODUCED), ((2.5, 3.0), Verdict.DIFFERS), ((2.3, 3.4), Verdict.DIFFERS)],
)
def test_each_cell_and_the_median_are_judged(measured: tuple[float, float], verdict: Verdict) -> None:
    judged = judge_numbers(claim(each=0.2, median=0.1), [("a", 2.0, measured[0]), ("b", 3.0, measured[1])])
    assert judged.verdict is verdict


def test_a_fitted_claim_is_never_reproduced() -> None:
    inside, outside = ([("a", 2.0, value)] for value in (2.0, 4.0))
    assert judge_numbers(claim("prices", each=0.2), inside).verdict is Verdict.FITTED
    assert judge_numbers(claim("prices", each=0.2), outside).verdict is Verdict.DIFFERS


def test_cells_outside_are_named_with_both_numbers() -> None:
    judged = judge_numbers(claim(each=0.2), [("a", 2.0, 2.0), ("b", 2.0, 4.0)])
    assert judged.outside() == ["b 4.00 against 2"] and [cell.inside for cell in judged.cells] == [True, False]


def test_what_is_not_attempted_shows_how_much_was_published() -> None:
    claims = {each.id: each for each in papers.load("do2009").claims}
    told = {name: not_attempted(claims[name]) for name in ("table5", "fig2", "fig3-blocked")}
    assert told["table5"].published == "20 values, 8.6 to 324" and told["fig2"].published == "holds"
    assert [cell.published for cell in told["fig3-blocked"].cells] == ["2.1, 2.2, 2.0, 2.3", "1.7, 1.6, 1.7, 1.9"]
    assert all(each.outside() == [] for each in told.values())


def test_what_could_not_be_measured_is_not_attempted() -> None:
    assert judge_numbers(claim(each=0.2), [("a", 2.0, 2.0), ("b", 2.0, None)]).verdict is Verdict.NOT_ATTEMPTED
    assert judge_holds(claim(), [Cell("a", "less", None, None)]).verdict is Verdict.NOT_ATTEMPTED


def test_a_claim_that_holds_must_hold_everywhere() -> None:
    cells = [Cell("a", "less", "1 s against 2 s", True), Cell("b", "less", "2 s against 1 s", False)]
    assert judge_holds(claim(), cells[:1]).verdict is Verdict.REPRODUCED
    assert judge_holds(claim(), cells).verdict is Verdict.DIFFERS


def test_below_scale_1_the_verdict_says_so() -> None:
    judged = judge_numbers(claim(each=0.2), [("a", 2.0, 2.0)])
    assert judged.verdict_at(0.1) == "reproduced at 0.1"
    assert judged.verdict_at(1) == "reproduced"
    assert papers.not_attempted(claim()).verdict_at(0.1) == "not attempted"


def test_what_differs_below_scale_1_is_outside_at_that_scale_and_its_cause_is_that_of_scale_1() -> None:
    judged = judge_numbers(replace(claim(each=0.2), cause="it is so"), [("a", 2.0, 2.0), ("b", 2.0, 4.0)], "a is near")
    assert (judged.verdict, judged.kind_at(1), judged.verdict_at(1)) == (Verdict.DIFFERS, "differs", "differs")
    assert (judged.kind_at(0.1), judged.verdict_at(0.1)) == ("outside", "outside at 0.1")
    assert judged.note_at(1) == "a is near. it is so" and judged.note_at(0.1) == "a is near. at scale 1: it is so"
    anyway = replace(judged, scaled=False)
    assert anyway.verdict_at(0.1) == "differs" and anyway.note_at(0.1) == "a is near. it is so"


def test_the_published_numbers_inside_are_counted() -> None:
    judged = judge_numbers(claim(each=0.2), [("a", 2.0, 2.0), ("b", 2.0, 4.0), ("c", 2.0, 2.1)])
    assert str(judged.tally) == "2 of 3" and str(judged.tally + judged.tally) == "4 of 6"
    assert {"inside": 2, "numbers": 3}.items() <= judged.as_dict(1).items()
    assert str(not_attempted(claim()).tally) == "-"
