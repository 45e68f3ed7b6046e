"""``flashsim lab`` and ``fs.labs``: labs for courses, from the student's notebook to marks on fresh instances."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from flashsim.apps.labs import grading
from flashsim.apps.labs.submission import seals
from flashsim.core.activity import activity
from flashsim.core.errors import FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError, shorten
from flashsim.experiments.presentation.terminal import Explanation, Part
from flashsim.experiments.runs.outputs import Outputs
from flashsim.operations import fields
from flashsim.operations.fields import Count, Name, Names
from flashsim.operations.operation import operation
from flashsim.operations.outcome import TABLE, Listing, Outcome, frame

#: The seed of the instances on which students check their own work; whoever grades has another.
PUBLIC_SEED = 0
#: Bits of a seed that is drawn for grading, and those of the shortest that is taken: a submission could find a shorter one by trial.
_BITS, _LEAST_BITS = 128, 96
#: What makes a spreadsheet take a text for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _grading_seed(value: Any, parameter: str) -> int:
    """A seed as it was printed with marks."""
    try:
        number = fields.seed(int(value, 0) if isinstance(value, str) else value, parameter)
    except ValueError as problem:
        wanted = "a seed as `lab grade` prints it is needed, such as 0x..."
        raise InvalidParameterError(parameter, shorten(repr(value)), wanted) from problem
    if number.bit_length() < _LEAST_BITS:
        why = f"a submission can find a seed of less than {_LEAST_BITS} bits by trial"
        raise InvalidParameterError(parameter, number, f"{why}; leave {parameter} out, and one is drawn and printed")
    return number


_Lab = Annotated[str | None, Name("Name of the lab; by default the file name up to its first dot or underscore.", "LAB")]
_Instances = Annotated[int, Count("Instances per exercise.")]
_Seed = Annotated[Any, Name("Seed of earlier marks, to reproduce them; by default drawn and printed.", "SEED", parse=_grading_seed)]
_Files = Annotated[Any, Names("Submissions: notebooks or Python files.", "FILE", argument=True, reads=True)]


def _write_marks(outcome: LabOutcome, target: Path, path: Path) -> None:
    table = outcome.totals()
    if path.suffix == ".csv":
        for name in ("submission", "reason"):
            table[name] = [f"'{each}" if each.startswith(_FORMULA) else each for each in table[name]]
        table.to_csv(target, index=False)
    else:
        table.to_parquet(target, index=False)


class LabOutcome(Outcome):
    """Marks of submissions, a row an exercise."""

    FILES = (replace(TABLE, help="Write the marks, one row per submission.", write=_write_marks),)
    #: False where submissions were graded that nothing but their own process kept from files and programs.
    sealed = True

    def __init__(self, lab: str, marks: dict[str, list[grading.Mark]], title: str, seed: int) -> None:
        super().__init__(marks, title)
        self.lab, self.seed = lab, f"{seed:#x}"  # as text, since spreadsheets and JSON's readers round so large a number
        self.provenance |= {"seed": self.seed}

    def summary(self) -> pd.DataFrame:
        """A row a submission and exercise: its points, how many there are, in a contest the mean score, and why points are missing."""
        rows = [
            (file, each.exercise, each.points, each.of, each.score, each.reason) for file, marks in self.result.items() for each in marks
        ]
        return frame(rows, ["submission", "exercise", "points", "of", "score", "reason"])

    def totals(self) -> pd.DataFrame:
        """A row a submission: its rank, total, how many there are, those of each exercise, scores of contests, reasons, and the seed."""
        rows: list[dict[str, Any]] = []
        for file, marks in self.result.items():
            row = {"rank": 0, "submission": file, "total": float(sum(each.points for each in marks)), "of": sum(each.of for each in marks)}
            row |= {each.exercise: float(each.points) for each in marks}
            row |= {f"{each.exercise}: score": each.score for each in marks if grading.LABS.load(self.lab).EXERCISES[each.exercise].score}
            rows.append(row | {"reason": "; ".join(f"{each.exercise}: {each.reason}" for each in marks if each.reason), "seed": self.seed})
        for row in rows:
            row["rank"] = 1 + sum(other["total"] > row["total"] for other in rows)
        return frame(rows)

    def as_dict(self) -> dict[str, Any]:
        """The marks JSON-ready."""
        marks = [vars(each) | {"submission": file} for file, marks in self.result.items() for each in marks]
        return {"lab": self.lab, "seed": self.seed, "marks": marks}

    def printout(self) -> Iterator[Part]:
        """A line an exercise, and below it why points are missing."""
        for file, marks in self.result.items():
            yield f"{file}: {sum(each.points for each in marks):g} of {sum(each.of for each in marks)} points"
            for each in marks:
                score = "" if each.score is None else f", score {each.score:.3f}"
                yield f"    {each.exercise}: {each.points:g} of {each.of}{score}"
                if each.reason:
                    yield Explanation(f"        {each.reason}", " " * 8)
        if self.seed != f"{PUBLIC_SEED:#x}":
            yield f"seed {self.seed}"
        if not self.sealed:
            yield Explanation(
                "Not sealed: outside Linux on x86-64 and ARM a submission can reach files; grade what you do not trust in a container"
            )


@operation
def labs() -> pd.DataFrame:
    """List the labs.

    Examples::

        flashsim lab list

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.labs().lab.tolist()
    ['disk-scheduling', 'join-buffers', 'page-fetching', 'recovery', 'replacement', 'smart-ssd', 'translation-layer', 'write-amplification']
    """
    every = [(name, grading.LABS.load(name)) for name in grading.LABS.names()]
    rows = [(name, sum(each.points for each in lab.EXERCISES.values()), ", ".join(lab.EXERCISES), lab.TITLE) for name, lab in every]
    table = frame(rows, ["lab", "points", "exercises", "title"])
    table.attrs["lead"] = f"{len(rows)} labs: notebooks with exercises that are marked"
    table.attrs["next"] = ["flashsim lab start LAB writes the notebook", "docs/how-to/run-a-lab.md explains marking"]
    return table


@operation
def lab_start(
    lab: Annotated[str, Name("Name of the lab (see flashsim lab list).", "LAB", argument=True)],
    *,
    folder: Annotated[str | Any, Name("Target folder.", "FOLDER", option="--out")] = ".",
    force: fields.Force = False,
) -> Listing:
    """Copy a lab's notebook into a folder.

    Examples::

        flashsim lab start disk-scheduling
        flashsim lab start replacement --out my-labs
    """
    lab = grading.lab_of(Path(lab), lab)
    text = Path(grading.__file__).with_name("notebooks").joinpath(f"{lab}.ipynb").read_text(encoding="utf-8")
    place = Path(folder) / f"{lab}.ipynb"
    place.parent.mkdir(parents=True, exist_ok=True)
    with Outputs(force) as outputs:
        outputs.file("folder", place).write_text(text, encoding="utf-8")
    return Listing([f"{place}: open it in Jupyter; `flashsim lab check {place}` marks it"], [{"lab": lab, "file": str(place)}])


@operation
def lab_check(
    file: Annotated[str, Name("A notebook or a Python file.", "FILE", argument=True, reads=True)],
    *,
    lab: _Lab = None,
    instances: _Instances = 20,
) -> LabOutcome:
    """Test a student's work on public instances.

    The first wrong answer is shown.

    Examples::

        flashsim lab check replacement.ipynb
        flashsim lab check mine.py --lab disk-scheduling
    """
    return _grade([file], lab, PUBLIC_SEED, instances)


@operation
def lab_grade(files: _Files, *, seed: _Seed = None, lab: _Lab = None, instances: _Instances = 20) -> LabOutcome:
    """Mark submissions on fresh instances.

    Instances are drawn from a new seed, which is printed last and gives the same marks everywhere.

    A submission runs in a process of its own, which has limits on time and memory and reaches no files, network or other processes. On
    systems other than Linux on x86-64 and ARM no kernel keeps it from them, and the output says so.

    Examples::

        flashsim lab grade replacement_ada.ipynb replacement_bo.ipynb
        flashsim lab grade replacement_ada.ipynb --out marks.csv
    """
    outcome = _grade(files, lab, seed, instances)
    outcome.sealed = seals()
    return outcome


@operation
def lab_leaderboard(files: _Files, *, seed: _Seed = None, lab: _Lab = None, instances: _Instances = 20) -> pd.DataFrame:
    """Rank submissions of a contest.

    Examples::

        flashsim lab leaderboard replacement_ada.ipynb replacement_bo.ipynb
    """
    outcome = _grade(files, lab, seed, instances, contests=True)
    table = outcome.summary().sort_values("score", ascending=False, kind="stable", na_position="last")
    table = table[["submission", "exercise", "score", "reason"]].reset_index(drop=True)
    table.attrs = {
        "lead": f"Scores of {len(table)} submissions, best first; seed {outcome.seed}",
        "document": {"seed": outcome.seed, "rows": table.to_dict("records")},
    }
    return table


def _grade(files: list[str] | str, lab: str | None, seed: int | None, instances: int, *, contests: bool = False) -> LabOutcome:
    paths = [Path(each) for each in fields.several(files, "files")]
    for path in paths:
        if not path.exists():
            raise MissingFileError(f"no file at {path}")
    seed = secrets.randbits(_BITS) if seed is None else seed
    names, unknown = set[str](), dict[Path, str]()
    for path in paths:
        try:
            names |= {grading.lab_of(path, lab)} if lab or not path.is_dir() else set()
        except UnknownNameError as problem:
            unknown[path] = f"its name does not name a lab: {problem}"
    names = names or {grading.lab_of(paths[0], lab)}
    if len(names) > 1:
        raise FlashsimError(f"files: they are for different labs, {', '.join(sorted(names))}; grade one lab at a time")
    (name,) = names
    if contests and not any(each.score for each in grading.LABS.load(name).EXERCISES.values()):
        raise FlashsimError(f"lab: {name} has no contest")
    marks = {}
    with activity(f"the marks of {name}") as progress:
        for done, path in enumerate(paths):
            progress(done, len(paths), path.name)
            marks[str(path)] = list(grading.grade(name, path, seed, instances, contests=contests, fault=unknown.get(path, "")))
    title = f"{name}: {len(paths)} submission{'s' * (len(paths) > 1)}, {instances} instances of each exercise"
    return LabOutcome(name, marks, title, seed)
