"""Marks of a submission: each exercise is tried on instances that are drawn from the grader's seed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from flashsim.apps.labs.submission import SECONDS, TOGETHER, Submission, SubmissionError, source_of
from flashsim.core.errors import MissingFileError, UnknownNameError, in_one_line, shorten
from flashsim.core.members import Family
from flashsim.core.rng import generator

#: Instances of an exercise.
INSTANCES = 20
#: The longest reason, characters.
_LONGEST = 4000
#: A reason that may lie in the cells of a notebook that are not run, and what is then added to it.
_UNDEFINED = re.compile("NameError:.* is not defined")
_RUN = "; of a notebook only the cells for solutions are run, and imports in cells that hold nothing else"


@dataclass(frozen=True)
class Exercise:
    """An exercise: what a student writes, and how it is judged."""

    #: Marks where every instance is right.
    points: int
    #: An instance.
    draw: Callable[[np.random.Generator], Any]
    #: What is wrong with an answer to an instance, in words, or raised as a `SubmissionError`; empty if nothing is. Whatever decides is
    #: computed here, on the spot.
    fault: Callable[[Submission, Any], str]
    #: In a contest: how good a right answer is, 1 the best possible.
    score: Callable[[Submission, Any], float] | None = None
    #: In a contest: the shares of the points, by the mean score that each needs.
    steps: Mapping[float, float] | None = None


def obeys(judged: Callable[[Submission, Any], object]) -> Callable[[Submission, Any], str]:
    """Find fault with nothing but what is raised."""

    def fault(submission: Submission, instance: Any) -> str:
        judged(submission, instance)
        return ""

    return fault


def answers(name: str, reference: Callable[..., Any], tolerance: float = 0.0) -> Callable[[Submission, Any], str]:
    """Compare what a function of the submission returns with a reference, numbers up to a relative difference.

    An instance is the arguments of both.
    """

    def fault(submission: Submission, arguments: Any) -> str:
        answer, right = submission.ask(name, *arguments), reference(*arguments)
        called = f"{name}({', '.join(map(str, arguments))})"
        return "" if is_like(answer, right, tolerance) else f"{called[:600]} is {str(answer)[:80]}, but {str(right)[:80]} is right"

    return fault


class _Exactly(type):
    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is int


class WholeNumber(int, metaclass=_Exactly):
    """A whole number in an answer; unlike for `int`, True and False are none."""


def is_like(answer: Any, right: Any, tolerance: float = 0.0) -> bool:
    """True of an answer that is of the right kind, and equal; True is not 1."""
    if isinstance(right, list | tuple):
        return isinstance(answer, list) and len(answer) == len(right) and all(map(is_like, answer, right, [tolerance] * len(right)))
    if isinstance(right, float):
        return type(answer) in (int, float) and abs(answer - right) <= tolerance * abs(right)
    return type(answer) is type(right) and bool(answer == right)


def in_no_order(pages: list[int], random: np.random.Generator) -> list[int]:
    """The same pages, numbered from 0 in no order, so that a number tells nothing of its page.

    Examples
    --------
    >>> a, b, c, d = in_no_order([7, 5, 7, 6], np.random.default_rng(1))
    >>> a == c, sorted({a, b, d})
    (True, [0, 1, 2])
    """
    different, places = np.unique(pages, return_inverse=True)
    renumbered: list[int] = random.permutation(len(different))[places].tolist()
    return renumbered


class Lab(Protocol):
    """A member of the family."""

    #: What it is about, in a line.
    TITLE: str
    #: By what the student defines, in the notebook's order.
    EXERCISES: Mapping[str, Exercise]


LABS = Family("flashsim.apps.labs.assignments", "lab", Lab)


@dataclass(frozen=True)
class Mark:
    """Points of a submission for an exercise."""

    exercise: str
    points: float
    of: int
    #: Why points are missing: the first instance that is wrong, or why the submission was stopped.
    reason: str = ""
    #: In a contest the mean score; None elsewhere.
    score: float | None = None


def lab_of(path: Path, lab: str | None = None) -> str:
    """The lab that a submission is for: as said, or as its file is named up to the first point or underscore.

    Raises
    ------
    UnknownNameError
        There is no such lab.
    """
    name = lab or path.name.partition(".")[0].partition("_")[0]
    if name not in LABS.names():
        raise UnknownNameError("lab", name, LABS.names())
    return name


def grade(
    lab: str, path: Path, seed: int, instances: int = INSTANCES, seconds: int = SECONDS, *, contests: bool = False, fault: str = ""
) -> Iterator[Mark]:
    """The marks of a submission, exercise by exercise, each in a new process; the same seed gives the same marks anywhere.

    With `contests` only of exercises that have a score; with a `fault` all are without points, for that reason.
    What goes wrong costs an exercise its marks, and never the others theirs: of the
    time that all share, half is kept in equal parts for those to come.
    """
    exercises = {name: each for name, each in LABS.load(lab).EXERCISES.items() if each.score or not contests}
    left = float(TOGETHER)
    for later, (name, exercise) in zip(range(len(exercises) - 1, -1, -1), exercises.items(), strict=True):
        begin, drawn = time.monotonic(), (exercise.draw(generator(seed, f"{lab} {name} {number}")) for number in range(instances))
        try:
            if fault:
                raise SubmissionError(fault)
            with Submission(source_of(path), seconds, left=left - later * TOGETHER / 2 / len(exercises)) as submission:
                mark = _mark(submission, name, exercise, drawn)
        except (SubmissionError, MissingFileError) as problem:
            mark = Mark(name, 0, exercise.points, str(problem))
        if path.suffix == ".ipynb" and _UNDEFINED.search(mark.reason):
            mark = replace(mark, reason=mark.reason + _RUN)
        left -= time.monotonic() - begin
        # A submission's words are part of a reason: it is printed in one line without control characters, and no longer than a page.
        reason = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in mark.reason)
        yield replace(mark, reason=shorten(reason, _LONGEST))


def _mark(submission: Submission, name: str, exercise: Exercise, drawn: Iterable[Any]) -> Mark:
    scores = []
    for instance in drawn:
        try:
            if reason := exercise.fault(submission, instance):
                return Mark(name, 0, exercise.points, reason)
            if exercise.score:
                scores.append(exercise.score(submission, instance))
        except SubmissionError:
            raise
        except Exception as problem:  # by an answer that no exercise thought of
            raise SubmissionError(f"its answer cannot be judged: {in_one_line(problem)}") from problem
    if not exercise.score:
        return Mark(name, exercise.points, exercise.points)
    mean = float(np.mean(scores))
    share = max((share for least, share in (exercise.steps or {}).items() if mean >= least), default=0.0)
    reason = "" if share == 1 else f"a mean score of {mean:.3f}; all points need {max(exercise.steps or {0: 0}):g}"
    return Mark(name, exercise.points * share, exercise.points, reason, mean)
