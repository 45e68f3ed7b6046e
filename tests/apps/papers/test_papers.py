"""Claims and verdicts: what the files say, and how numbers are judged."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flashsim.apps.papers import base as papers
from flashsim.apps.papers.base import Exhibit, Paper
from flashsim.core.errors import DamagedFileError
from flashsim.device import presets
from flashsim.experiments.judging.cells import NONE, Cell, changes, falling, less, null_cells, number, residual, rising, statement
from flashsim.experiments.judging.claims import ChosenParameter, Claim, Judgement, Tally, Verdict
from flashsim.experiments.runs.jobs import Results, Settings
from tests.cases import with_each


def claim(*, null: str = "equal", most: bool = False, stated: Sequence[str] = (), fitted: bool = False, **limits: float) -> Claim:
    parameters = [ChosenParameter("prices", "least squares", {"claim": ["a"]})] if fitted else []
    return Claim("paper", "claim", "title", "table 1", "words", "table1", null, parameters, limits=limits, stated=stated, most=most)


def numbers(*pairs: tuple[float, float | None], limit: float = 0.2, **more: Any) -> list[Cell]:
    return [number(name, published, ours, limit, **more) for name, (published, ours) in zip("abcdef", pairs, strict=False)]


def test_all_claims_of_do2009_are_listed() -> None:
    wanted = "table1 table3-io table3-join table4 table5 fig1-hh-best fig1-281 fig1-bnl fig1-sm-gh fig1-cpu fig1-variance slides-cpu-ratio"
    wanted += " fig2 fig3-blocked fig3-2kb slides-erase"
    found = papers.load("do2009")
    assert [each.id for each in found.claims] == wanted.split()


LEAST = {"title": "'x'", "reference": "'y'", "exhibits": "['z']"}
A_CLAIM = {"id": "'one'", "title": "'x'", "source": "'s'", "tolerance": "'t'", "exhibit": "'z'", "limits": "{ each = 0.1 }"}


def written(paper: dict[str, str], claim: dict[str, str] | None = None) -> str:
    """A claims' file with some entries."""
    lines = [f"{name} = {value}" for name, value in paper.items()]
    return "\n".join([*lines, *(["[[claims]]", *(f"{name} = {value}" for name, value in claim.items())] if claim else [])])


@pytest.mark.parametrize(
    "claims, told",
    [
        ("title = [", "Invalid value"),
        ("title = 'x'", "'claims' is missing"),
        ("exhibits = []\n[[claims]]", "'id' is missing"),
        (written(LEAST | {"claims": "3"}), "not iterable"),
        (written(LEAST | {"exhibits": "[3]"}, A_CLAIM), "rpartition"),
        (written(LEAST | {"title": "3"}, A_CLAIM), "title = 3 is not of the required kind"),
        (written(LEAST | {"least_scale": "'x'"}, A_CLAIM), "least_scale = 'x' is not of the required kind"),
        (written(LEAST | {"texts": "{ one = 3 }"}, A_CLAIM), "texts = .* is not of the required kind"),
        (written(LEAST | {"experiments": "['other']"}, A_CLAIM), "'other' of the experiments is not one of its exhibits"),
        (written(LEAST, A_CLAIM | {"exhibit": "'other'"}), "'other' of claim one is not one of its exhibits"),
        (written(LEAST, A_CLAIM | {"limits": "'x'"}), "limits = 'x' is not of the required kind"),
        (written(LEAST, A_CLAIM | {"limits": "{ each = 'x' }"}), "limits = .* is not of the required kind"),
        (written(LEAST, A_CLAIM | {"published": "3"}), "published = 3 is not of the required kind"),
        (written(LEAST, A_CLAIM | {"null": "'wild'"}), "null = 'wild' is none of equal, constant, line"),
        (written(LEAST, A_CLAIM | {"rests_on": "['other']"}), "'other' is missing"),
        (written(LEAST, A_CLAIM | {"most": "1"}), "most = 1 is not of the required kind"),
    ],
)
def test_claims_that_say_too_little_or_something_else_are_refused(
    claims: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DamagedFileError, match=rf"^.*claims\.toml: .*{told}.*$"):
        own_paper(claims, tmp_path, monkeypatch)


def own_paper(claims: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Paper:
    (folder / "claims.toml").write_text(claims)
    monkeypatch.setattr(papers.PAPERS, "load", lambda name: SimpleNamespace(__name__="mine", __file__=str(folder / "__init__.py")))
    return papers.load("mine")


def test_what_the_claims_file_lacks_is_refused_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = own_paper(written(LEAST | {"texts": "{ one = 'a {place}' }"}, A_CLAIM), tmp_path, monkeypatch)
    one = paper.claim("one")
    assert (one.limits["each"], paper.text("one", place=3)) == (0.1, "a 3")
    for ask in (lambda: one.limits["points"], lambda: one.published["row"], lambda: paper.text("two"), lambda: paper.text("one")):
        with pytest.raises(DamagedFileError, match=r"mine.*(points|row|two|place)"):
            ask()
    with pytest.raises(DamagedFileError, match=r"there is no exhibit 'nothing:z'"):
        replace(papers.load("mine"), family=papers.PAPERS, exhibits={"z": "nothing"}).exhibit("z")


@with_each("name", papers.PAPERS.names())
def test_every_paper_keeps_the_contract(name: str) -> None:
    paper = papers.load(name)
    for each in paper.claims:
        assert each.title and each.source and each.tolerance
        assert each.exhibit is None or each.exhibit in paper.exhibits
        assert not each.experiment or (each.experiment in paper.exhibits and each.cause)
    for exhibit in paper.exhibits:
        judges = getattr(paper.exhibit(exhibit).cells, "__func__", None) is not vars(Exhibit)["cells"]  # that of those that judge nothing
        assert judges == any(each.exhibit == exhibit for each in paper.claims)
        assert exhibit not in paper.experiments or (not judges and paper.exhibit(exhibit).TITLE)
    assert set(paper.experiments) <= set(paper.exhibits)


@pytest.mark.parametrize("name", papers.PAPERS.names())
def test_runs_of_every_exhibit_and_experiment_fit_the_functions_that_make_them(name: str) -> None:
    paper = papers.load(name)
    for exhibit in paper.exhibits:  # a job of arguments that its function does not take, or lacks, cannot be made
        jobs = paper.exhibit(exhibit).jobs([claim.id for claim in paper.claims], Settings(1.0))
        assert all(callable(getattr(import_module(job.module), job.function.partition(":")[2])) for job in jobs)


@with_each(
    "measured, verdict",
    [
        ((2.0, 3.0), Verdict.REPRODUCED),
        ((2.3, 3.0), Verdict.REPRODUCED),
        ((2.5, 3.0), Verdict.DIFFERS),
        ((1.5, 3.0), Verdict.DIFFERS),
        ((2.3, 3.4), Verdict.DIFFERS),  # by the median
        ((2.25, 3.0), Verdict.REPRODUCED),
    ],
)
def test_each_cell_and_the_median_are_judged(measured: tuple[float, float], verdict: Verdict) -> None:
    assert Judgement(claim(median=0.1), numbers((2.0, measured[0]), (3.0, measured[1]))).verdict is verdict


def test_the_median_is_that_of_the_errors_and_not_the_least() -> None:
    assert Judgement(claim(median=0.1), numbers((2.0, 2.0), (2.0, 2.3), (2.0, 2.3))).verdict is Verdict.DIFFERS


@with_each("points, ours, inside", [(False, 2.4, True), (False, 2.41, False), (True, 2.2, True), (True, 2.21, False)])
def test_a_number_is_inside_up_to_its_limit(points: bool, ours: float, inside: bool) -> None:
    (cell,) = numbers((2.0, ours), points=points, limit=0.2000000001)
    assert cell.inside is inside and (cell.loss <= 1) is inside
    assert numbers((2.0, 4 - ours), points=points, limit=0.2000000001)[0].inside is inside


def test_a_limit_of_nothing_asks_for_equality() -> None:
    assert number("a", 2.0, 2.0, 0).inside and not number("a", 2.0, 2.0000001, 0).inside
    assert (number("a", 2.0, 2.0, 0).loss, number("a", 2.0, 3.0, 0).loss) == (0.0, 2.0)


def test_what_was_looked_for_and_is_not_there_is_outside() -> None:
    cell = number("crossing", 0.3, NONE, 0.1, points=True)
    assert (cell.inside, cell.measured, cell.loss) == (False, "none", 2.0)


@pytest.mark.parametrize(
    "rule, holds, fails",
    [
        (less(0.1), [(1.0, 1.2), (1.0, 1.2, 1.3)], [(1.0, 1.0), (1.0, 1.1), (1.0, 1.05), (1.0, 1.2, 1.05), (1.2, 1.0)]),
        (rising(1), [(0.0, 1.5, 3.0), (0.0, 0.0, 2.0)], [(0.0, 0.0, 0.0), (0.0, 0.5, 0.9), (0.0, 3.0, 2.0), (3.0, 0.0)]),
        (falling(0.1), [(3.0, 2.0, 1.0), (3.0, 3.0, 2.0)], [(1.0, 1.0), (1.0, 0.95), (3.0, 1.0, 2.0), (1.0, 3.0)]),
    ],
)
def test_orders_need_their_margin(rule: Callable[..., bool], holds: list[tuple[float, ...]], fails: list[tuple[float, ...]]) -> None:
    assert all(rule(*values) for values in holds) and not any(rule(*values) for values in fails)


def test_a_fitted_claim_is_never_reproduced_and_its_solved_cells_do_not_count() -> None:
    inside, outside = numbers((2.0, 2.0), (4.0, 4.0)), numbers((2.0, 2.0), (4.0, 8.0))
    assert Judgement(claim(fitted=True), inside).verdict is Verdict.FITTED
    assert Judgement(claim(fitted=True), outside).verdict is Verdict.DIFFERS
    judged = made_up_paper(inside).judge(claim(fitted=True), Results(Settings(), {}))
    assert [cell.counts for cell in judged.cells] == [False, True] and str(judged.tally) == "1 of 1"
    assert judged.as_dict(1)["fitted_to"] == {"prices": {"claim": ["a"]}} and "least squares" in judged.note_at(1)


def test_a_number_counts_once_whatever_is_held_against_it_and_not_if_others_give_it() -> None:
    shared = numbers((2.0, 2.0), (2.0, 3.0), (2.0, 2.0), printed="two") + numbers((4.0, 4.0), (4.0, 4.0), printed="four")
    tally = Tally.of([*shared, *numbers((5.0, 5.0)), *numbers((2.5, 2.5), follows=True), number("missing", 4.0, None, 0.1, printed="four")])
    assert str(tally) == "2 of 3"  # four and five; of two one cell is outside
    assert number("a", "no number", 2.0, 0.1).inside is False  # type: ignore[arg-type]


def made_up_paper(cells: list[Cell]) -> Paper:
    class MadeUp(Paper):
        def exhibit(self, name: str) -> Exhibit:
            return cast(Exhibit, SimpleNamespace(cells=lambda claim, results: cells))

    return MadeUp("paper", papers.PAPERS, "title", "reference", {}, [])  # type: ignore[arg-type]


def test_a_part_of_a_name_is_a_whole_word_of_it() -> None:
    parameter = ChosenParameter("times", "solved", {"table1": ["5 MB"], "table2": []})
    assert parameter.is_solved_from("table1", "P300, total 5 MB") and not parameter.is_solved_from("table1", "P300, total 15 MB")
    assert parameter.is_solved_from("table2", "anything") and not parameter.is_solved_from("table3", "5 MB")


def test_what_its_null_model_passes_is_consistent_and_not_reproduced() -> None:
    cells = numbers((2.0, 2.0), (2.2, 2.2))
    judged = Judgement(claim(null="constant"), cells)
    assert judged.verdict is Verdict.CONSISTENT and judged.null["passes"] and judged.null["inside"] == 2
    assert Judgement(claim(), cells).verdict is Verdict.REPRODUCED


def test_what_is_no_nearer_than_its_null_model_has_no_skill() -> None:
    near, far = numbers((2.0, 2.01), (3.0, 3.01), limit=0.25), numbers((2.0, 2.49), (3.0, 3.74), limit=0.25)
    above = claim(null="constant", median=0.19)
    assert Judgement(above, near).skill == pytest.approx(1 - (0.005 + 0.00333) / (0.2), abs=0.2)
    assert Judgement(claim(null="constant"), far).skill < 0.01  # type: ignore[operator]


@pytest.mark.parametrize(("last", "verdict"), [(2.9, Verdict.REPRODUCED), (6.0, Verdict.CONSISTENT)])
def test_what_holds_without_skill_is_consistent_though_its_null_model_fails(last: float, verdict: Verdict) -> None:
    """Most cells are inside, but one is so far off that the constant, which has half of them, loses less in all."""
    judged = Judgement(claim(null="constant", most=True), numbers((1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (2.0, last)))
    assert judged.null["passes"] is False
    assert judged.verdict is verdict


def test_changes_and_the_residual_are_what_a_constant_cannot_get() -> None:
    pairs = ((1.0, 2.0), (2.0, 4.1), (2.01, 1.0), (1.0, 0.9))  # the third differs too little
    judged = Judgement(claim(null="constant"), [*numbers(*pairs, row="one"), *numbers((9.0, 1.0), row="two")])
    assert changes(judged.cells) == (2, 2) and judged.beyond_null is not None
    assert (judged.beyond_null["changes"], judged.beyond_null["right"], judged.beyond_null["null_right"]) == (2, 2, 0)
    turned = numbers((1.0, 2.0), (2.0, 1.0), (1.0, 2.0))
    assert changes(turned) == (2, 0) and residual(turned) == pytest.approx(4)
    assert residual(numbers((1.0, 3.0), (2.0, 6.0))) == pytest.approx(0) and residual(numbers((1.0, 5.0), (2.0, 5.0))) == pytest.approx(1)
    fitted = [replace(cell, calibrates=cell.name == "b") for cell in numbers((1.0, 1.0), (9.0, 2.0), (1.5, 1.4))]
    assert changes(fitted) == (1, 1)
    assert Judgement(claim(), numbers((1.0, 1.0))).beyond_null is None and residual(numbers((1.0, 1.0))) is None


def test_null_models_are_the_best_constant_of_a_row_and_a_line_through_what_calibrates() -> None:
    rows = [*numbers((2.0, 9.0), (2.2, 9.0), (9.0, 9.0), row="one"), *numbers((5.0, 1.0), row="two")]
    assert [replaced.inside for replaced in null_cells(rows, "constant")] == [True, True, False, True]
    line = [
        replace(cell, place=place, calibrates=place != 2)
        for cell, place in zip(numbers((12.0, 1.0), (7.0, 1.0), (4.5, 1.0)), (1, 2, 4), strict=True)
    ]
    assert [replaced.values[0] for replaced in null_cells(line, "line")] == pytest.approx([12.0, 7.0, 4.5])
    assert [replaced.values for replaced in null_cells(numbers((2.0, 9.0), equal=(0.0,)), "equal")] == [(0.0,)]


def test_a_variant_decides_nothing_and_has_a_verdict_of_its_own() -> None:
    cells = [*numbers((2.0, 4.0), (5.0, 5.0)), *numbers((2.0, 2.0), (5.0, 5.0), variant="faster")]
    judged = Judgement(claim(), cells)
    assert judged.verdict is Verdict.DIFFERS and judged.variants == {"faster": Verdict.REPRODUCED}
    assert str(judged.tally) == "1 of 2" and judged.outside() == ["a 4.00 against 2"]
    absent = Judgement(claim(), [*cells[:2], replace(cells[2], values=(None,)), cells[3]])
    assert absent.verdict is Verdict.DIFFERS and absent.variants == {}


def test_cells_outside_are_named_with_both_numbers() -> None:
    judged = Judgement(claim(), numbers((2.0, 2.0), (2.0, 4.0)))
    assert judged.outside() == ["b 4.00 against 2"] and [cell.inside for cell in judged.cells] == [True, False]


def test_what_is_not_attempted_shows_how_much_was_published() -> None:
    claims = {each.id: each for each in papers.load("do2009").claims}
    assert Judgement(claims["table5"]).published == "20 values, 8.6 to 324" and Judgement(claims["fig2"]).published == "holds"
    assert Judgement(claims["table5"]).verdict is Verdict.NOT_ATTEMPTED and Judgement(claims["table5"]).skill is None


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_cell_among_several_that_could_not_be_measured_leaves_the_claim_open(place: int) -> None:
    cells = numbers((2.0, 2.0), (3.0, 3.0), (4.0, 4.0))
    cells[place] = replace(cells[place], values=(None,))
    judged = Judgement(claim(), cells)
    assert judged.verdict is Verdict.NOT_ATTEMPTED and judged.note_at(1) == f"not measured at this scale: {cells[place].name}"
    assert Judgement(claim(), [statement("a", "less", [None, 1.0], less(0))]).verdict is Verdict.NOT_ATTEMPTED


@with_each("inside, most, verdict", [(4, False, "reproduced"), (3, False, "differs"), (3, True, "reproduced"), (2, True, "differs")])
def test_a_claim_that_holds_must_hold_everywhere_or_in_most_cases(inside: int, most: bool, verdict: str) -> None:
    cells = [statement(str(place), "less", [1.0, 2.0 if place < inside else 0.5], less(0)) for place in range(4)]
    judged = Judgement(claim(most=most), cells)
    assert judged.verdict.value == verdict and judged.measured == f"holds in {inside} of 4 comparisons"


def test_below_scale_1_a_claim_that_needs_the_published_size_is_not_judged() -> None:
    judged = Judgement(claim(), numbers((2.0, 2.0)))
    assert (judged.kind_at(0.1), judged.verdict_at(0.1)) == ("not judged", "not judged at this scale")
    assert judged.verdict_at(1) == "reproduced"
    assert Judgement(claim()).verdict_at(0.1) == "not attempted"


@pytest.mark.parametrize("fitted", [False, True])
def test_what_differs_below_scale_1_is_not_judged_and_its_cause_is_that_of_scale_1(fitted: bool) -> None:
    judged = Judgement(replace(claim(fitted=fitted), cause="it is so"), numbers((2.0, 2.0), (2.0, 4.0)))
    assert (judged.verdict, judged.kind_at(1), judged.verdict_at(1)) == (Verdict.DIFFERS, "differs", "differs")
    assert judged.kind_at(0.1) == "not judged" and judged.as_dict(0.1)["verdict"] == "differs"
    assert (judged.cells_inside, judged.cells_judged, judged.holds_in_words) == (1, 2, "1 of 2")
    assert judged.note_at(1) == "it is so" and judged.note_at(0.1) == "at scale 1: it is so"
    anyway = replace(judged, claim=replace(judged.claim, scaled=False))
    assert anyway.verdict_at(0.1) == "differs" and anyway.note_at(0.1) == "it is so"


def test_the_published_numbers_inside_are_counted() -> None:
    judged = Judgement(claim(), [*numbers((2.0, 2.0), (2.0, 4.0), (2.0, 2.1)), statement("d", "less", [1.0, 2.0], less(0))])
    assert str(judged.tally) == "2 of 3" and str(judged.tally + judged.tally) == "4 of 6"
    assert {"inside": 2, "published_cells": 3}.items() <= judged.as_dict(1).items()
    assert str(Judgement(claim()).tally) == "-"


def test_every_limit_that_changed_is_one_of_a_claim() -> None:
    names = {each.name for name in papers.PAPERS.names() for each in papers.load(name).claims}
    changed = Path(papers.__file__).with_name("changes.toml").read_text(encoding="utf-8")
    for change in tomllib.loads(changed)["changes"]:
        assert set(change["claims"]) <= names and {"date", "what", "was", "now", "why"} <= set(change)


def test_no_parameter_of_a_preset_was_solved_from_a_claim_that_it_is_not_listed_for() -> None:
    """Sources in presets name the tables and figures that values were solved from."""
    pattern = re.compile(
        r"(?:solved from|fitted to|fitted:|explains?|as the drive reaches).*?(do2009|shin2016|li2009|do2012),? (table|figure)s? (\w+)"
    )
    sources = [source for name in presets.names(zoned=True) for source in presets.load(name).sources.values()]
    found = {
        (paper, f"{kind[:3] if kind == 'figure' else kind}{number}") for text in sources for paper, kind, number in pattern.findall(text)
    }
    assert found
    for paper, exhibit in found:
        listed = {claim for each in papers.load(paper).claims for parameter in each.rests_on for claim in parameter.solved_from}
        assert any(claim.startswith(exhibit) for claim in listed), (paper, exhibit)


def test_a_claim_without_a_simulator_is_consistent_at_best() -> None:
    cells = numbers((2.0, 2.0), (5.0, 5.0))
    assert Judgement(claim(), cells).verdict is Verdict.REPRODUCED
    alone = Judgement(replace(claim(), simulated=False), cells)
    assert alone.verdict is Verdict.CONSISTENT and alone.note_at(1) == "no simulator has a part in it"


def test_calibrated_cells_count_neither_in_errors_nor_in_skill() -> None:
    """One predicted cell 10 % off, between two calibrated ones that are right."""
    cells = [replace(cell, calibrates=place != 1) for place, cell in enumerate(numbers((2.0, 2.0), (5.0, 5.5), (9.0, 9.0)))]
    judged = Judgement(claim(median=0.05), cells)
    assert judged.verdict is Verdict.DIFFERS and str(judged.tally) == "1 of 1" and "median error 10.0 %" in judged.measured
    assert judged.skill is not None and judged.skill < 1


def test_cells_without_runs_are_not_tallied() -> None:
    cells = numbers((2.0, 2.0), (5.0, 5.0))
    assert str(Tally.of([cells[0], replace(cells[1], values=(None,))])) == "1 of 1"


def test_one_of_several_parameters_that_was_solved_from_a_cell_is_enough() -> None:
    paper = papers.load("shin2016")
    solved = next(each for each in paper.claims if each.id == "fig5")
    assert [any(parameter.is_solved_from("fig5", "best speedup, ioDrive") for parameter in solved.rests_on)] == [True]
    assert not all(parameter.is_solved_from("fig5", "best speedup, ioDrive") for parameter in solved.rests_on)
