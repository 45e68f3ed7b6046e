"""The report of a made-up paper: one page that needs nothing else, whose numbers lead to their runs, and the files beside it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest

from flashsim.apps.papers.base import Exhibit, Paper
from flashsim.apps.papers.reproduction import PaperResult, write_report
from flashsim.core.members import Family
from flashsim.experiments.judging.cells import less, number, statement
from flashsim.experiments.judging.claims import Claim, Judgement
from flashsim.experiments.presentation.plots import Beside, plot_beside_published, svg
from flashsim.experiments.presentation.report import Section
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.runs.jobs import Job, JobResult, Results, Settings
from tests.html_page import whole

SETTINGS = Settings(scale=0.5, seed=7)


def nothing(number: int, word: str, scale: float, seed: int) -> None:
    """A run that nobody makes."""


JOBS = [Job.of(nothing, f"run {number} & <more>", number=number, word='"', scale=0.5, seed=7) for number in range(14)]
PUBLISHED = [1.0, 2.0, 4.0, None]
OURS = [1.1, 2.5, 4.0, 3.0]


class MadeUp(Paper):
    """A paper whose one exhibit rests on the first three runs."""

    def exhibit(self, name: str) -> Exhibit:
        return cast(Exhibit, SimpleNamespace(jobs=lambda claims, settings: JOBS[:3] if "numbers" in claims else []))


def claim(name: str, exhibit: str | None) -> Claim:
    return Claim("made-up", name, f"Claim <{name}>", "table 1 & more", "each within 20 %", exhibit, limits={"each": 0.2})


def picture() -> str:
    return svg(plot_beside_published({"one": Beside(["a", "b", "c", "d"], PUBLISHED, OURS, 0.2)}, "place", "ratio"))


@pytest.fixture(scope="module")
def done() -> PaperResult:
    numbers, words, nobody = claim("numbers", "first"), claim("words", "first"), claim("nobody", None)
    numbers, words = replace(numbers, cause="likely: <something>"), replace(words, scaled=False)
    cells = [number("a", 1.0, 1.1, 0.2, runs=(JOBS[0].id,)), number("b", 2.0, 2.5, 0.2, runs=(JOBS[1].id, JOBS[2].id))]
    judgements = [Judgement(numbers, cells), Judgement(words, [statement("c", "less", [1.0, 2.0], less(0))]), Judgement(nobody)]
    long = Table(["run", "value"], [[number, number / 7] for number in range(14)], "long", runs=[job.id for job in JOBS])
    wide = Table([f"column {number}" for number in range(40)], [[1e9 + number for number in range(40)]], "wide")
    sections = [
        Section("Numbers & words", "The picture says it.", [long], {"one": picture(), "two": picture()}),
        Section("Wide", tables=[wide]),
    ]
    made = {job: JobResult({}, 0.25 * number, number % 2 == 0) for number, job in enumerate(JOBS)}
    paper = MadeUp("made-up", Family("tests", "exhibit", Exhibit), "A <made-up> paper", "Nobody, 2009", ["first"], [numbers, words, nobody])
    return PaperResult(paper, judgements, {"first": sections}, Results(SETTINGS, made))


@pytest.fixture(scope="module")
def folder(done: PaperResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(folder, [done], SETTINGS)
    return folder


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_page_needs_nothing_else(text: str) -> None:
    page = whole(text)
    assert page.tags["svg"] == 2 and 'name="viewport"' in text
    for word in ("A <made-up> paper", "Claim <numbers>", "run 3 & <more>", "At scale 1: likely: <something>", "scale 0.5", "seed 7"):
        assert word in page.words


def test_verdicts_come_first_then_exhibits_claims_and_runs(text: str) -> None:
    parts = ['class="verdicts ', "<svg", "Claim by claim</h2>", 'class="runs ', "Provenance</h2>"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("not judged at this scale</span>") == 3 and text.count(">not attempted</span>") == 2  # no exhibit shows the latter


def test_every_claim_cell_and_row_leads_to_its_runs(text: str) -> None:
    def targets(part: str) -> list[str]:
        return re.findall(r'href="#made-up-run-(\w+)"', part)

    shown = {job.id[:10] for job in JOBS}
    assert set(re.findall(r'<tr id="made-up-run-(\w+)"', text)) == shown and len(shown) == len(JOBS)
    claims = dict(re.findall(r'<dl id="made-up-(\w+)">(.*?)</dl>', text, re.DOTALL))
    assert targets(claims["numbers"]) == [job.id[:10] for job in JOBS[:3]] and targets(claims["words"]) == targets(claims["nobody"]) == []
    rows = re.findall(r"<tr[^>]*><td>[ab]</td>.*?</tr>", text, re.DOTALL)
    assert [targets(row) for row in rows] == [[JOBS[0].id[:10]], [job.id[:10] for job in JOBS[1:3]]]
    long = text[text.index("<details><summary>Table") :]
    long = long[: long.index("</details>")]
    assert targets(long) == [job.id[:10] for job in JOBS]


def test_files_beside_the_page_tell_how_to_make_each_run_again(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "report.html",
        *(f"made-up-{name}" for name in ("claims.csv", "runs.csv", "long.csv", "wide.csv", "one.svg", "two.svg")),
    }
    ElementTree.parse(folder / "made-up-one.svg")
    with (folder / "made-up-runs.csv").open() as file:
        runs = list(csv.DictReader(file))
    assert [Job.of(run["function"], **json.loads(run["parameters"])).id for run in runs] == [run["run"] for run in runs]
    assert {run["result"] for run in runs} == {"kept", "made now"} and runs[3]["seconds"] == "0.75"
    with (folder / "made-up-long.csv").open() as file:
        assert [row["run"] for row in csv.DictReader(file)] == [job.id for job in JOBS] == [run["run"] for run in runs]
    with (folder / "made-up-wide.csv").open() as file:
        assert len(next(csv.reader(file))) == 40


def test_published_values_are_compared_where_both_are_known() -> None:
    row = Beside(["a", "b", "c", "d"], PUBLISHED, OURS, 0.2)
    assert row.errors() == [pytest.approx(10), pytest.approx(25), 0, None]
    assert row.outside() == [1]
    assert Beside(["a"], [1.0], [9.0]).outside() == [] == Beside(["a"], [1.0], [None], 0.2).outside()


def drawn(panels: dict[str, Beside], **options: Any) -> tuple[list[str], list[Sequence[float]]]:
    """The legend of a figure, and the lines of its first panel: published, ours and those outside."""
    figure = plot_beside_published(panels, "place", "ratio", **options)
    return [entry.get_text() for entry in figure.legends[0].get_texts()], [list(line.get_ydata()) for line in figure.axes[0].lines]


def test_published_and_our_values_are_drawn_with_the_band_between_which_they_agree() -> None:
    row = Beside(["a", "b", "c", "d"], PUBLISHED, OURS, 0.2)
    legend, (published, ours, outside) = drawn({"one": row})
    assert legend == ["published", "± 20 %", "flashsim", "outside"]
    assert published[:3] == PUBLISHED[:3] and published[3] != published[3] and ours == OURS and outside == [2.5]
    bars = plot_beside_published({"one": row}, "place", "ratio").axes[0].patches
    bands = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in bars if bar.get_height() == bar.get_height()]  # type: ignore[attr-defined]
    assert bands == [pytest.approx((0.8 * value, 1.2 * value)) for value in (1.0, 2.0, 4.0)]


def test_the_legend_names_only_what_is_drawn() -> None:
    unpublished = Beside(["a", "b"], [None, None], [1.0, 2.0])
    assert drawn({"one": unpublished})[0] == ["flashsim"]
    close, far = Beside(["a"], [1.0], [1.0], 0.1), Beside(["a"], [1.0], [1.0], 0.2)
    assert drawn({"one": close, "two": far, "three": far})[0] == ["published", "tolerance", "flashsim"]


def test_panels_share_one_scale_that_begins_at_0_unless_told_otherwise() -> None:
    panels = {"low": Beside(["a", "b"], [1.0, 1.0], [1.0, 1.0], 0.2), "high": Beside(["a", "b"], [9.0, 9.0], [9.0, 9.0], 0.2)}
    for share in (True, False):
        limits = [axes.get_ylim() for axes in plot_beside_published(panels, "place", "ratio", share=share).axes]
        assert all(low == 0 for low, _ in limits) and limits[1][1] > 9
        assert (limits[0] == limits[1]) is share


def test_the_same_figure_has_the_same_bytes() -> None:
    assert picture() == picture()
