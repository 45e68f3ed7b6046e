"""Labs: solutions get all marks, the students' versions none, wrong and malicious submissions what they should, on any seed the same."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from pathlib import Path

import pytest

from flashsim.core.errors import FlashsimError
from flashsim.coursework import submission
from flashsim.coursework.grading import LABS, Mark, grade
from flashsim.coursework.submission import SECONDS, source_of
from flashsim.operations.face import labs
from tests.flashsim.coursework.wrong import MALICIOUS, WRONG
from tests.test_house import ROOT
from tests.yardstick import seconds, slowness

NAMES = LABS.names()
#: A seed of instances; on all twenty of the deep tests marks are the same.
SEED, MANY = 90210, range(20)


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
    blank = list(grade(lab, ROOT / "flashsim" / "coursework" / "notebooks" / f"{lab}.ipynb", SEED))
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


@pytest.mark.parametrize("lab", NAMES)
def test_the_students_notebook_holds_no_solution(lab: str) -> None:
    student = "\n".join(source_of(ROOT / "flashsim" / "coursework" / "notebooks" / f"{lab}.ipynb"))
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
    assert json.loads(made) == json.loads((ROOT / "flashsim" / "coursework" / "notebooks" / f"{lab}.ipynb").read_text())


@pytest.mark.parametrize("lab", NAMES)
def test_the_sources_cells_run(lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in json.loads((ROOT / "labs" / f"{lab}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), lab, "exec"), names)


def test_a_lab_is_started_graded_and_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert labs.start("replacement").summary().file.tolist() == ["replacement.ipynb"]
    with pytest.raises(FlashsimError, match="exists"):
        labs.start("replacement")
    Path("replacement_ada.py").write_text(solution("replacement"))
    ranked = labs.leaderboard(["replacement.ipynb", "replacement_ada.py"], seed=4, instances=2)
    assert ranked.submission.tolist() == ["replacement_ada.py", "replacement.ipynb"] and ranked.score[0] > 0.2
    graded = labs.grade(["replacement.ipynb", "replacement_ada.py"], seed=4, instances=2)
    assert graded.totals().points.tolist()[0] == 0 and graded.totals().points.tolist()[1] >= 80
    with pytest.raises(FlashsimError, match="has no contest"):
        labs.leaderboard("disk-scheduling.py", seed=1)
    with pytest.raises(FlashsimError, match="is unknown"):
        labs.check("unknown.py")
