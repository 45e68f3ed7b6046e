"""``flashsim reproduce`` at a small scale: verdicts, JSON, report, kept results."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from flashsim.apps.papers import base as papers
from flashsim.command_line import app
from flashsim.core.errors import UnknownNameError
from flashsim.experiments.runs.jobs import Settings
from tests.commands import Run
from tests.html_page import whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def result(folder: Path, small_scale: float) -> Result:
    """The whole command."""
    line = f"reproduce do2009 --scale {small_scale} --jobs 1 --details --out {folder / 'out'} --json {folder / 'r.json'}"
    return CliRunner().invoke(app, line.split())


@pytest.fixture(scope="module")
def told(result: Result, folder: Path) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads((folder / "r.json").read_text())


def test_every_claim_is_judged_or_said_to_be_not_attempted(told: dict, small_scale: float) -> None:
    assert told["papers"] == ["do2009"] and told["scale"] == small_scale and told["devices"] == "ships-model"
    verdicts = {each["id"]: each["verdict"] for each in told["claims"]}
    assert len(verdicts) == 16
    open_ones = {each.name for each in papers.load("do2009").claims if not each.exhibit}
    assert {name for name, verdict in verdicts.items() if verdict == "not attempted"} == open_ones
    assert set(verdicts.values()) <= {"reproduced", "fitted", "consistent", "differs", "not attempted"}
    assert told["provenance"]["seed"] == 2009


def test_verdicts_follow_from_the_cells(told: dict) -> None:
    claims = {each["id"]: each for each in told["claims"]}
    for name in ("do2009/table3-io", "do2009/table3-join"):
        cells = claims[name]["cells"]
        errors = [abs(cell["measured"] / cell["published"] - 1) for cell in cells]
        counted = sorted(error for error, cell in zip(errors, cells, strict=True) if cell["counts"])
        holds = max(errors) <= 0.2 and (counted[7] + counted[8]) / 2 <= 0.1
        assert len(cells) == 24 and len(counted) == 16
        assert claims[name]["verdict"] == ("consistent" if holds else "differs") and claims[name]["null"]["passes"]
        assert [cell["inside"] for cell in cells] == [error <= 0.2 for error in errors]


def test_allocations_are_consistent_at_the_paper_s_sizes(told: dict) -> None:
    table1 = next(each for each in told["claims"] if each["id"] == "do2009/table1")
    assert table1["verdict"] == table1["shown"] == "consistent" and len(table1["cells"]) == 24 and table1["published_cells"] == 0


def test_what_the_slides_count_is_reproduced_exactly(told: dict) -> None:
    erases = next(each for each in told["claims"] if each["id"] == "do2009/slides-erase")
    assert erases["verdict"] == erases["shown"] == "reproduced"
    assert [cell["measured"] for cell in erases["cells"]] == [1, 64, 64, 64, 2, 3, 3]


def test_how_many_numbers_are_inside_is_told_by_claim_and_over_all(result: Result, told: dict, folder: Path) -> None:
    for each in told["claims"]:
        inside = [cell["inside"] for cell in each["cells"] if cell["counts"]]
        assert (each["inside"], each["published_cells"]) == (sum(inside), len(inside))
        numbers, shown = f"{sum(inside)} of {len(inside)}" if inside else "-", each["shown"].removesuffix(" at this scale")
        own = [cell["inside"] for cell in each["cells"] if not cell["variant"]]
        assert (each["held"], each["of"]) == (sum(map(bool, own)), len(own))
        row = rf"^{each['id'].split('/')[1]} .*{shown} +{each['held']} of {each['of']} +{numbers} "
        assert re.search(row, result.stdout, re.MULTILINE)
    assert (told["inside"], told["published_cells"]) == tuple(
        sum(each[name] for each in told["claims"]) for name in ("inside", "published_cells")
    )
    words = f"{told['inside']} of {told['published_cells']}"
    assert f"{words} published numbers" in result.stdout and words in whole((folder / "out" / "report.html").read_text()).words


def test_beside_every_verdict_stand_its_null_model_and_the_parameters_that_it_rests_on(told: dict) -> None:
    for each in told["claims"]:
        assert each["null"]["model"] in ("constant", "line", "equal") and each["null"]["inside"] <= each["published_cells"]
        assert each["verdict"] != "reproduced" or (each["skill"] > 0 and not each["null"]["passes"] and not each["fitted_to"])
    assert "small commands" in next(each for each in told["claims"] if each["id"] == "do2009/fig3-blocked")["fitted_to"]
    (sentence,) = told["sentences"]
    assert sentence.startswith(f"do2009 at scale {told['scale']:g}: of 16 claims ")


def test_below_scale_1_nothing_differs_and_causes_speak_of_scale_1(result: Result, told: dict) -> None:
    assert {each["shown"] for each in told["claims"]} <= {"reproduced", "fitted", "consistent", "not judged at this scale"}
    causes = {each.name: each.cause for each in papers.load("do2009").claims if each.cause}
    for each in told["claims"]:
        assert ("at scale 1: " in each["note"]) == (each["verdict"] == "differs" and each["id"] in causes)


def test_the_first_lines_say_what_the_paper_claims_and_what_came_out_and_the_last_where_to_look(
    result: Result, told: dict, folder: Path
) -> None:
    paper = papers.load("do2009")
    first, words = result.stdout.splitlines()[0], " ".join(result.stdout.split())
    judged = [each for each in told["claims"] if each["shown"] != "not judged at this scale"]
    holds = [each for each in judged if each["verdict"] in ("reproduced", "fitted", "consistent")]
    assert first == f"{paper.title} ({paper.reference})" and f"The paper claims that {paper.says}." in words
    assert f"{len(holds)} of the {len(judged)} claims that do not depend on the scale agree" in words
    assert f"{16 - len(judged)} claims need the published size and are not judged at this scale." in words
    assert f"{told['inside']} of {told['published_cells']} published numbers are inside their tolerance." in words
    assert f"Next: {folder / 'out'}/report.html" in words and "flashsim reproduce do2009 judges all 16 claims" in words


def test_a_claim_is_judged_at_any_scale_if_its_runs_are_the_same_at_all() -> None:
    for name in papers.PAPERS.names():
        paper = papers.load(name)
        for claim in paper.claims:
            small, whole_size = ({job.id for job in paper.exhibit(claim.exhibit).jobs([claim.id], Settings(scale))} for scale in (0.1, 1.0))
            assert (small != whole_size) == claim.scaled, claim.name


@pytest.mark.deep
def test_an_exhibit_that_judges_no_claim_is_shown_by_its_name(flashsim: Run) -> None:
    shown = flashsim("reproduce do2009/cpu_bound --scale 0.01")
    assert shown.exit_code == 0 and "8 runs for no claims" in shown.stdout
    assert len(re.findall(r"^(BNL|SM|GH|HH) +[25]00 ", shown.stdout, re.MULTILINE)) == 8
    assert "Not every run that it needs could be made at scale 0.0001" in flashsim("reproduce do2009/cpu_bound --scale 0.0001").stdout


@pytest.mark.parametrize(
    "command, told",
    [
        ("do2009/cpu-bounds", "cpu_bound"),
        ("/", "paper: '' is unknown; known: do2009"),
        ("li2009/__init__", "known: example, fig10-11"),
        ("li2009/sensitivity --scale 0.05", "scale: 0.05, but li2009/sensitivity means nothing below 0.1"),
        ("--seeds 2", "--seeds: no paper is named"),
        ("--strict", "--strict: no paper is named"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_line(command: str, told: str, flashsim: Run) -> None:
    refused = flashsim(f"reproduce {command}")
    assert refused.exit_code == 2 and told in refused.stderr and refused.stderr.count("\n") == 1


def test_further_seeds_say_which_verdicts_flip(flashsim: Run) -> None:
    shown = flashsim("reproduce do2009/slides-erase --seeds 3 --json r.json")
    (claim,) = json.loads(Path("r.json").read_text())["claims"]
    assert "0 of 1 verdicts flip under 2 more seeds" in shown.stdout and (claim["seeds"], claim["flips"]) == (3, 0)


def test_without_a_paper_the_papers_are_listed(flashsim: Run) -> None:
    shown = flashsim("reproduce --json papers.json")
    listed = json.loads(Path("papers.json").read_text())["papers"]
    assert shown.exit_code == 0 and len(listed) == len(papers.PAPERS.names()) >= 2
    for name, told in zip(papers.PAPERS.names(), listed, strict=True):
        paper = papers.load(name)
        assert paper.title in shown.stdout and paper.takes in shown.stdout
        assert told["claims"] == [claim.id for claim in paper.claims] and paper.claims[0].name in shown.stdout
    refused = flashsim("reproduce --out here")
    assert refused.exit_code == 2 and "--out: no paper is named" in refused.stderr and not Path("here").exists()


def test_both_numbers_are_printed(result: Result, told: dict) -> None:
    for each in told["claims"]:
        assert each["id"].split("/")[1] in result.stdout
        assert each["measured"][:40] in result.stdout
    assert len(re.findall(r"^(bnl|sort-merge|grace-hash|hybrid-hash) +[1-6]00 ", result.stdout, re.MULTILINE)) == 24


def test_the_report_is_one_page_that_needs_nothing_else(result: Result, folder: Path) -> None:
    text = (folder / "out" / "report.html").read_text()
    page = whole(text)
    assert page.tags["svg"] >= 7
    assert {f"do2009-{each.id}" for each in papers.load("do2009").claims} <= set(page.ids)
    for word in ("Provenance", "at scale 0.01", "table3-io", "Formula against simulation", "ocz-core-60gb"):
        assert word in page.words + text


def test_tables_and_pictures_stand_beside_the_report(result: Result, folder: Path) -> None:
    out = folder / "out"
    names = {path.name for path in out.iterdir()}
    tables = [
        "claims",
        "runs",
        "seconds",
        "table1",
        "table3-io-cells",
        "table4-cells",
        "slides",
        "formula",
        "figure2",
        "figure3",
        "variance",
    ]
    pictures = ["figure1", "figure2", "figure3", "table3-io", "table3-join", "table4", "slides-cpu-ratio"]
    assert names >= {"report.html", *(f"do2009-{name}.csv" for name in tables), *(f"do2009-{name}.svg" for name in pictures)}
    assert {Path(name).suffix for name in names} == {".html", ".csv", ".svg"}
    ElementTree.parse(out / "do2009-figure1.svg")
    with (out / "do2009-seconds.csv").open() as file:
        rows = list(csv.reader(file))
    assert len(rows) == 25 and all(float(row[3]) > 0 for row in rows[1:])


def test_an_exhibit_below_its_least_scale_is_not_run_and_says_so(result: Result, folder: Path, small_scale: float) -> None:
    page, paper = whole((folder / "out" / "report.html").read_text()), papers.load("do2009")
    left_out = [paper.exhibit(name) for name in paper.exhibits if not paper.is_run(name, small_scale)]
    assert len(left_out) == page.words.count("Not run: it means nothing below scale 0.4.") == 4
    assert all(module.TITLE in page.words for module in left_out)
    made = (folder / "out" / "do2009-runs.csv").read_text()
    assert not [job.label for module in left_out for job in module.jobs([], Settings(small_scale)) if job.label in made]


def test_an_experiment_is_run_where_it_is_asked_for(result: Result, folder: Path, flashsim: Run) -> None:
    page = whole((folder / "out" / "report.html").read_text())
    assert (
        "Small pages and flash pages" in page.words and "Not run: flashsim reproduce do2009/aligned, or with --experiments." in page.words
    )
    assert "output in whole flash pages" in flashsim("reproduce do2009/aligned --scale 0.01").stdout
    every = flashsim("reproduce do2009 --experiments --scale 0.01 --out out").stdout
    assert every.split(" runs for ")[0] > result.stdout.split(" runs for ")[0] and Path("out/do2009-aligned.csv").is_file()


def test_the_formula_s_requests_are_those_of_the_runs_where_it_is_exact(result: Result, folder: Path) -> None:
    with (folder / "out" / "do2009-formula.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[0] == "bnl"]
    assert len(rows) == 12
    for row in rows:
        assert row[3] == row[4] and row[5] == row[6]


def test_a_pool_too_small_at_this_scale_is_told_and_leaves_claims_open(here: Path) -> None:
    runner = CliRunner().invoke(app, ["reproduce", "do2009/table3-io", "--scale", "0.0005", "--jobs", "1", "--json", "r.json"])
    assert runner.exit_code == 0, runner.output
    claim = json.loads((here / "r.json").read_text())["claims"][0]
    assert claim["verdict"] == "not attempted" and "sort-merge 100 MB" in claim["note"]


def test_strict_exits_1_if_a_claim_differs(here: Path, told: dict, small_scale: float) -> None:
    verdicts = {each["id"]: each["verdict"] for each in told["claims"]}
    for claim, differs in {"do2009/slides-erase": False, "do2009/table1": False, "do2009/fig1-sm-gh": True}.items():
        assert (verdicts[claim] == "differs") == differs
        code = CliRunner().invoke(app, f"reproduce {claim} --scale {small_scale} --jobs 1 --strict".split()).exit_code
        assert code == int(differs)


def test_a_run_is_made_again_from_the_table_of_runs(result: Result, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the guide to reports shows it."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "read-a-report.md").read_text(encoding="utf-8")
    block = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    exec(compile(block.replace("results/do2009", str(folder / "out")), "read-a-report.md", "exec"), {})
    assert capsys.readouterr().out.startswith("True {")


def test_several_claims_and_exhibits_of_a_paper() -> None:
    ((paper, claims, exhibits),) = papers.select_papers("do2012/tpc-c,fig4.9,plans")
    assert [each.id for each in claims] == ["fig3.1-c", "fig3.7", "tac-waste", "fig4.9"]
    assert exhibits == [name for name in paper.exhibits if name in ("tpc-c", "filling", "plans")]
    with pytest.raises(UnknownNameError, match="'nothing' is unknown"):
        papers.select_papers("do2012/tpc-c,nothing")
