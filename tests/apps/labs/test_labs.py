"""Labs: solutions get all marks, the students' versions none, wrong and malicious submissions what they should, on any seed the same."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import math
import os
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from flashsim.apps.labs import submission
from flashsim.apps.labs.face import labs
from flashsim.apps.labs.grading import LABS, Mark, grade
from flashsim.apps.labs.submission import SECONDS, source_of
from flashsim.command_line import app
from flashsim.core.errors import FlashsimError
from flashsim.core.rng import generator
from tests.apps.labs.cheats import CHEATS, KEEPS_ALL
from tests.apps.labs.wrong import MALICIOUS, WRONG
from tests.cases import with_each
from tests.test_house import ROOT
from tests.yardstick import seconds, slowness

NAMES = LABS.names()
#: A seed of instances; on all twenty of the deep tests marks are the same.
SEED, MANY = 90210, range(20)
#: A seed of grading, which is long, and seeds on which cheats earn nothing.
LONG, SEVERAL = 0x9E3779B97F4A7C15F39CC0605CEDC834, [90210, 0x6A09E667F3BCC908B2FB1366EA957D3E, 0xBB67AE8584CAA73B3C6EF372FE94F82B]


def solution(lab: str) -> str:
    return "\n\n".join(source_of(ROOT / "labs" / f"{lab}.ipynb"))


def marks(lab: str, source: str, folder: Path, seed: int, instances: int = 20) -> list[Mark]:
    path = folder / f"{lab}_somebody.py"
    path.write_text(source)
    return list(grade(lab, path, seed, instances))


@pytest.mark.parametrize("lab", NAMES)
def test_the_solution_gets_all_marks_and_the_students_version_none(lab: str) -> None:
    begin = time.monotonic()
    every = list(grade(lab, ROOT / "labs" / f"{lab}.ipynb", SEED))
    assert time.monotonic() - begin < seconds(60)
    assert sum(each.points for each in every) == sum(each.of for each in every) == 100 and not any(each.reason for each in every)
    blank = list(grade(lab, ROOT / "flashsim" / "apps" / "labs" / "notebooks" / f"{lab}.ipynb", SEED))
    assert not any(each.points for each in blank) and all("NotImplementedError" in each.reason for each in blank)


@pytest.mark.parametrize(("lab", "what"), WRONG)
def test_a_typical_wrong_solution_loses_the_marks_that_it_should(lab: str, what: str, tmp_path: Path) -> None:
    old, new, exercise, share = WRONG[lab, what]
    assert solution(lab).count(old) >= 1
    every = {each.exercise: each for each in marks(lab, solution(lab).replace(old, new), tmp_path, SEED)}
    assert {name: each.points / each.of for name, each in every.items()} == dict.fromkeys(every, 1) | dict.fromkeys(
        exercise.split(", "), share
    )
    assert all(every[each].reason for each in exercise.split(", "))


@pytest.mark.deep
@pytest.mark.parametrize("lab", NAMES)
def test_marks_are_the_same_on_twenty_seeds(lab: str, tmp_path: Path) -> None:
    sources = {"right": solution(lab)} | {what: solution(lab).replace(*each[:2]) for (of, what), each in WRONG.items() if of == lab}
    for source in sources.values():
        assert len({tuple(each.points for each in marks(lab, source, tmp_path, seed)) for seed in MANY}) == 1


def test_there_are_six_wrong_solutions_of_each_lab() -> None:
    assert all(sum(of == lab for of, _ in WRONG) >= 6 for lab in NAMES)


@pytest.mark.deep
def test_the_same_seed_gives_the_same_marks(tmp_path: Path) -> None:
    """Scores too, though the process is another one."""
    assert marks("replacement", solution("replacement"), tmp_path, 5, 2) == marks("replacement", solution("replacement"), tmp_path, 5, 2)


@pytest.mark.parametrize("what", MALICIOUS)
def test_a_malicious_submission_is_stopped_and_named(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it does it, and though it catches all exceptions."""
    attack, named = MALICIOUS[what]
    caught = "MemoryError" if what == "all memory" else "()"
    body = "\n".join(f"        {line}" for line in attack.splitlines())
    handlers = f"    except {caught}:\n        raise\n    except BaseException:\n        pass\n"
    source = f"{solution('disk-scheduling')}\n\ndef sstf(waiting, head):\n    try:\n{body}\n{handlers}    return 0\n"
    path = tmp_path / "disk-scheduling_eve.py"
    path.write_text(source)
    limit = SECONDS
    if "more time" in named:  # only what would never end is stopped by its time: any other attack is named on a slow machine too
        limit = math.ceil(slowness())
        named = f"{named} {limit} s"
        monkeypatch.setattr(submission, "_PATIENCE", 3)
    first, *others = grade("disk-scheduling", path, 3, instances=1, seconds=limit)
    assert first.points == 0 and named in first.reason and first.reason.isprintable()
    assert all(each.points == each.of for each in others)
    assert not (tmp_path / "loot").exists()


def test_a_part_that_fails_leaves_the_other_exercises_as_they_are(tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "labs" / "disk-scheduling.ipynb").read_text())
    cell = next(each for each in notebook["cells"] if each["metadata"].get("nbgrader", {}).get("grade_id") == "look")
    cell["source"] = "def look(waiting, head, direction"
    path = tmp_path / "disk-scheduling.ipynb"
    path.write_text(json.dumps(notebook))
    every = {each.exercise: each for each in grade("disk-scheduling", path, 3)}
    assert every["look"].points == 0 and "look is not defined; SyntaxError" in every["look"].reason
    assert sum(each.points for each in every.values()) == 70


@with_each("lab", NAMES)
def test_the_students_notebook_holds_no_solution(lab: str) -> None:
    """Not in a comment outside the marks either: a cell for a solution has imports, heads, their docstrings and the place for it."""
    cells = source_of(ROOT / "flashsim" / "apps" / "labs" / "notebooks" / f"{lab}.ipynb")
    for cell in cells:
        comments = re.findall(r"#.*", cell)
        assert {*comments} == {"# YOUR CODE HERE"}
        for node in ast.walk(ast.parse(cell)):
            if isinstance(node, ast.FunctionDef):
                assert [type(each) for each in node.body if not isinstance(each, ast.Expr)] == [ast.Raise]
                assert all(isinstance(each.value, ast.Constant) for each in node.body if isinstance(each, ast.Expr))
        assert all(isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Import) for each in ast.parse(cell).body)
    student = "\n".join(cells)
    inside = False
    for line in solution(lab).splitlines():
        if "### " in line:
            inside = "BEGIN" in line
        elif inside and line.strip():
            assert line.strip() not in student


@pytest.mark.skipif(not importlib.util.find_spec("nbgrader"), reason="nbgrader is not installed")
@pytest.mark.parametrize("lab", NAMES)
@pytest.mark.filterwarnings("default")
def test_the_students_notebook_is_what_nbgrader_makes(lab: str) -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "labs" / "make.py")
    assert spec and spec.loader
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    made = make.student_version(ROOT / "labs" / f"{lab}.ipynb")
    assert json.loads(made) == json.loads((ROOT / "flashsim" / "apps" / "labs" / "notebooks" / f"{lab}.ipynb").read_text())


@pytest.mark.parametrize("lab", NAMES)
def test_the_students_notebook_has_the_sources_cells(lab: str) -> None:
    source, students = (
        [cell for cell in json.loads((ROOT / folder / f"{lab}.ipynb").read_text())["cells"] if not cell["metadata"].get("nbgrader")]
        for folder in ("labs", "flashsim/apps/labs/notebooks")
    )
    assert len(source) > 5 and [cell["source"] for cell in source] == [cell["source"] for cell in students]


@pytest.mark.parametrize("lab", NAMES)
def test_the_sources_cells_run(lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in json.loads((ROOT / "labs" / f"{lab}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), lab, "exec"), names)


def test_a_lab_is_started_graded_and_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert labs.lab_start("replacement").summary().file.tolist() == ["replacement.ipynb"]
    with pytest.raises(FlashsimError, match="exists"):
        labs.lab_start("replacement")
    Path("replacement_ada.py").write_text(solution("replacement"))
    ranked = labs.lab_leaderboard(["replacement.ipynb", "replacement_ada.py"], seed=LONG, instances=2)
    assert ranked.submission.tolist() == ["replacement_ada.py", "replacement.ipynb"] and ranked.score[0] > 0.2
    graded = labs.lab_grade(["replacement.ipynb", "replacement_ada.py"], seed=LONG, instances=2)
    assert graded.totals().total.tolist()[0] == 0 and graded.totals().total.tolist()[1] >= 80
    assert graded.totals()["rank"].tolist() == [2, 1]
    Path("disk-scheduling.py").write_text("")
    with pytest.raises(FlashsimError, match="has no contest"):
        labs.lab_leaderboard("disk-scheduling.py")
    Path("unknown.py").write_text("")
    with pytest.raises(FlashsimError, match="is unknown"):
        labs.lab_check("unknown.py")


@pytest.mark.parametrize("seed", [SEVERAL[0], *(pytest.param(each, marks=pytest.mark.deep) for each in SEVERAL[1:])])
@pytest.mark.parametrize(("lab", "exercise"), CHEATS)
def test_a_cheat_earns_nothing(lab: str, exercise: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = LABS.load(lab)
    monkeypatch.setattr(module, "EXERCISES", {exercise: module.EXERCISES[exercise]})
    (mark,) = marks(lab, CHEATS[lab, exercise], tmp_path, seed)
    assert mark.points == 0 and mark.reason
    assert not any(word in mark.reason for word in ("stopped", "failed with", "is not defined"))  # it runs, and is wrong


def test_parts_of_nothing_make_no_room(tmp_path: Path) -> None:
    """A key that is handed on without its rows is still held."""
    mark = marks("smart-ssd", KEEPS_ALL, tmp_path, LONG)[0]
    assert mark.points == 0 and "groups at least that parts have not told all of" in mark.reason


def test_there_is_a_cheat_of_each_exercise() -> None:
    assert {*CHEATS} == {(lab, exercise) for lab in NAMES for exercise in LABS.load(lab).EXERCISES}


@pytest.mark.parametrize("number", range(20))
def test_a_page_s_number_tells_nothing_of_it(number: int) -> None:
    """Of the ways to win by numbers alone none is better than chance: popular pages are not the small ones, a scan's do not ascend."""
    random = generator(LONG, number)
    pages = LABS.load("replacement").draw_contest(random).pages
    counts = Counter(pages)
    once = [page for page in pages if counts[page] == 1]
    popular = [page for page in counts if counts[page] > 1]
    assert abs(np.mean(popular) - np.mean(once)) < 0.2 * len(counts) and 0.3 < np.mean(np.diff(once) > 0) < 0.7
    drive = LABS.load("translation-layer").draw_drive(random)
    fills, writes = drive.writes[: drive.logical], Counter(drive.writes[drive.logical :])
    hot = [page for page, _ in writes.most_common(drive.logical // 5)]
    assert sorted(fills) == [*range(drive.logical)] and sorted(hot) != [*range(len(hot))]
    history = LABS.load("recovery").draw_history(random, LABS.load("recovery").draw_numbers(random))
    values = [call[3] for call in history if call[0] == "write"]
    begun = list(dict.fromkeys(call[1] for call in history if call[0] == "write"))
    assert len({*values}) == len(values) and values != sorted(values) and begun != sorted(begun)


def test_a_grader_s_seed_is_drawn_named_and_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("replacement_ada.py")
    file.write_text(solution("replacement"))
    first = labs.lab_grade(str(file), instances=2)
    number = int(first.seed, 16)
    assert 96 < number.bit_length() <= 128 and [*first.printout()][-1] == f"seed {first.seed}"
    again = [labs.lab_grade(str(file), instances=2, seed=each) for each in (first.seed, number)]
    assert all(each.as_dict() == first.as_dict() for each in again) and first.provenance["seed"] == first.seed == first.as_dict()["seed"]
    assert labs.lab_grade(str(file), instances=1).seed != first.seed
    ranked = labs.lab_leaderboard(str(file), instances=1)
    assert re.fullmatch(r"Scores of \d+ submissions, best first; seed 0x[0-9a-f]{24,32}", ranked.attrs["lead"])
    for short in (90210, 20261129, "0x5", 2**95 - 1, "today", 0.5, True):
        with pytest.raises(FlashsimError, match="^seed: "):
            labs.lab_grade(str(file), seed=short)


def test_every_bit_of_a_seed_counts() -> None:
    drawn = {generator(LONG ^ 1 << bit, "lab").integers(1 << 62) for bit in range(128)}
    assert len(drawn) == 128 and generator(LONG, "lab").integers(1 << 62) not in drawn


def test_what_recovers_has_not_seen_what_crashed(tmp_path: Path) -> None:
    """No process meets two crashes of a history: the first call of each history in a process is the only one of `recover`."""
    counted = solution("recovery").replace("class Database:", "seen = []\n\n\nclass Database:")
    counted = counted.replace(
        "self.values = list(pages)\n",
        "assert not ({*log_of(log)} & {*seen})\n        seen.extend(log_of(log))\n" + "        self.values = list(pages)\n",
    )
    counted += "\n\ndef log_of(log):\n    return [str(each) for each in log if each[0] == 'update']\n"
    assert counted.count("seen") == 3
    (tmp_path / "recovery.py").write_text(counted)
    assert sum(each.points for each in grade("recovery", tmp_path / "recovery.py", LONG, 4)) == 100


@pytest.mark.deep
def test_marks_of_others_go_on_beside_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("disk-scheduling_ada.py").write_text(solution("disk-scheduling"), encoding="utf-8-sig")
    Path("disk-scheduling_bo").mkdir()
    os.mkfifo("disk-scheduling_cy")
    files = ["disk-scheduling_bo", "disk-scheduling_cy", "disk-scheduling_ada.py"]
    graded = labs.lab_grade(files, instances=2)
    assert graded.totals().total.tolist() == [0, 0, 100] and graded.totals()["rank"].tolist() == [2, 2, 1]
    assert "is a folder" in graded.totals().reason[0] and "is no file" in graded.totals().reason[1]
    Path("feedback").mkdir()
    assert labs.lab_grade(["feedback", *files], instances=2).totals().total.tolist() == [0, 0, 0, 100]
    Path("homework.py").write_text(solution("disk-scheduling"))
    beside = labs.lab_grade(["homework.py", *files], instances=2)
    assert beside.totals().total.tolist() == [0, 0, 0, 100] and beside.status == graded.status
    assert "its name does not name a lab: lab: 'homework' is unknown" in beside.totals().reason[0]
    assert labs.lab_grade(["homework.py", *files], lab="disk-scheduling", instances=2).totals().total.tolist() == [100, 0, 0, 100]
    with pytest.raises(FlashsimError, match="'homework' is unknown"):
        labs.lab_grade(["homework.py"])
    with pytest.raises(FlashsimError, match="'feedback' is unknown"):
        labs.lab_grade(["feedback"])
    with pytest.raises(FlashsimError, match="no file at missing.py"):
        labs.lab_grade([*files, "missing.py"], lab="disk-scheduling")


def test_marks_as_csv_have_a_row_a_student_and_no_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["=1+1.py", "+1.py", "-1.py", "@sum.py", "ada.py"]
    for name in names:
        Path(name).write_text(solution("disk-scheduling") if name == "ada.py" else "")
    command = "lab grade --lab disk-scheduling --instances 1 --out marks.csv --"
    assert CliRunner().invoke(app, [*command.split(), *names], prog_name="flashsim").exit_code == 0
    rows = list(csv.DictReader(Path("marks.csv").read_text().splitlines()))
    assert [row["submission"] for row in rows] == ["'=1+1.py", "'+1.py", "'-1.py", "'@sum.py", "ada.py"]
    assert [(row["rank"], row["total"], row["sstf"], row["look"]) for row in rows][3:] == [
        ("2", "0.0", "0.0", "0.0"),
        ("1", "100.0", "20.0", "30.0"),
    ]
    assert "NameError" in rows[0]["reason"] and rows[4]["reason"] == "" and len({row["seed"] for row in rows}) == 1


def notebook(*cells: tuple[str, bool]) -> str:
    """A notebook of code cells, each for a solution or not."""
    metadata = {True: {"nbgrader": {"solution": True}}, False: {}}
    return json.dumps({"cells": [{"cell_type": "code", "metadata": metadata[solution], "source": source} for source, solution in cells]})


def test_imports_in_cells_of_imports_run_and_nothing_else_does(tmp_path: Path) -> None:
    file = tmp_path / "disk-scheduling.ipynb"
    own = [
        ("import math, flashsim", False),
        ("# what I need\nimport math as m\nfrom flashsim import fs\nfrom heapq import nsmallest", False),
    ]
    own += [("%matplotlib inline\nimport bisect", False), ("import statistics\nx = 1", False), ("", False)]
    file.write_text(notebook(*own, ("def sstf(waiting, head):\n    return nsmallest(1, [m.floor(1.5)])[0]", True)), encoding="utf-8-sig")
    assert source_of(file)[:-1] == ["import math as m", "from heapq import nsmallest"]
    sstf, look, *_ = grade("disk-scheduling", file, 3, 20)
    assert "but the request at place" in sstf.reason
    said = "is not defined; of a notebook only the cells for solutions are run, and imports in cells that hold nothing else"
    assert look.reason.endswith(f"look {said}")
    file.write_text(notebook(*own, ("def sstf(waiting, head):\n    return statistics.mean(waiting)", True)))
    assert next(iter(grade("disk-scheduling", file, 3))).reason.endswith(f"name 'statistics' {said}")


@with_each("lab", NAMES)
def test_the_students_notebook_says_what_is_run(lab: str) -> None:
    first = "".join(json.loads((ROOT / "flashsim" / "apps" / "labs" / "notebooks" / f"{lab}.ipynb").read_text())["cells"][0]["source"])
    said = "Only your solution cells are checked and marked; of your own cells, only those with nothing but imports are run."
    assert said in " ".join(first.split())
