"""The process of a submission: sealed by the kernel, waited for no longer than it may be, and gone when it is closed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from flashsim.apps.labs import grading, submission, worker
from flashsim.apps.labs.face import labs
from flashsim.apps.labs.grading import LABS, WholeNumber, grade, is_like
from flashsim.apps.labs.submission import Submission, SubmissionError, seal_program, seals, source_of
from flashsim.core.rng import generator
from tests.cases import with_each
from tests.test_house import ROOT
from tests.yardstick import seconds

SEALED = pytest.mark.skipif(not seal_program(), reason="no filter of system calls for this system")


def children() -> list[str]:
    """Processes of ours that run a submission, or have ended and are not reaped."""
    every = subprocess.run(["ps", "-A", "-ww", "-o", "ppid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    own = [line for line in every if line.split()[0] == str(os.getpid())]
    return [line for line in own if "worker.py" in line or line.split()[1].startswith("Z")]


@SEALED
@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("os.getpid(), time.time(), bytearray(1 << 24), os.urandom(8), time.sleep(0.01)", 0),
        ("open('/etc/passwd')", 1), ("os.listdir('/')", 1), ("os.readlink('/proc/self/exe')", 1), ("os.stat('/')", 1), ("os.uname()", 1),
        ("os.fork()", -31), ("os.execv('/bin/true', ['true'])", -31), ("os.kill(os.getppid(), 0)", -31), ("os.pipe()", -31),
        ("os.mkdir('/tmp/loot')", -31), ("os.memfd_create('loot')", -31), ("_socket.socket()", -31), ("os.unlink('/tmp/loot')", -31),
        ("ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)", -31), ("ctypes.CDLL(None).syscall(425, 1, 0)", -31),
        ("ctypes.CDLL(None).syscall(1 << 30 | 39)", -31), ("threading.Thread(target=print).start()", -31),
    ],
)  # fmt: skip
def test_the_kernel_stops_what_is_not_computing(code: str, ends: int) -> None:
    """No hook is there to name it: 1 is an exception (EPERM), -31 the end by SIGSYS."""
    start = f"import _socket, ctypes, os, sys, threading, time\nsys.path.insert(0, {str(Path(worker.__file__).parent)!r})\n"
    start += f"import worker\nassert worker.seal({seal_program()})\n"
    done = subprocess.run([sys.executable, "-S", "-c", start + code], stderr=subprocess.PIPE, check=False)
    assert done.returncode == ends, done.stderr
    assert ends != 1 or b"PermissionError" in done.stderr


def test_offered_modules_work_under_the_seal() -> None:
    text = f"import {', '.join(worker.OFFERED)}\ndef work():\n    datetime.datetime.now(); datetime.datetime.strptime('1', '%d')\n"
    text += "    warnings.warn('a'); hashlib.sha256(b'a').hexdigest(); random.SystemRandom().random(); print(traceback.format_exc())\n"
    text += "    return [statistics.mean([1, 2]), sorted(heapq.nlargest(2, [1, 2, 3])), os.path.exists('/'), os.environ.get('HOME')]"
    with Submission([text]) as opened:
        assert opened.ask("work") == [1.5, [2, 3], False, None]


def test_a_file_that_is_open_from_the_beginning_displaces_no_pipe() -> None:
    """As libffi keeps its own open where it makes trampolines of it (Debian 14, with Python 3.14)."""
    task = json.dumps({"seconds": 5, "memory": 1 << 29, "filter": [], "source": []})
    begin = f"exec {sys.executable} -S {worker.__file__} 3</dev/null"
    done = subprocess.run(["sh", "-c", begin], input=f"{task}\n", capture_output=True, text=True, check=True)
    assert done.stdout == '{"answer": false}\n{"answer": null}\n'


def test_the_page_lists_modules_that_are_offered() -> None:
    page = (ROOT / "docs" / "how-to" / "run-a-lab.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page.partition("Submissions may import")[2].partition("\n\n")[0]))
    assert named == {each for each in worker.OFFERED if each[0] != "_"} - {"gc", "linecache", "resource", "threading"}


def test_a_process_knows_neither_seed_nor_grader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment, its arguments, what is open, and the modules that it has."""
    monkeypatch.setenv("SEED", "90210")
    text = """
import os, sys
def told():
    kept = []
    for each in range(64):
        try: os.lseek(each, 0, 1)
        except OSError as problem: kept += [each] * (problem.errno != 9)
        else: kept.append(each)
    return [dict(os.environ), sys.argv, kept, [each for each in sys.modules if "flashsim" in each]]
"""
    with Submission([text]) as opened:
        environment, arguments, kept, modules = opened.ask("told")
    environment.pop("LC_CTYPE", None)  # Python's own
    assert environment == {"PYTHONHASHSEED": "0"} and arguments == [worker.__file__] and kept == [0, 1, 2, 3, 4] and modules == []


@pytest.mark.parametrize("text", ["import time\ntime.sleep(1e9)", "while True: pass", "import os\nos.write(4, b'5\\n')\nwhile True: pass"])
def test_no_process_is_left_of_one_that_never_begins(text: str) -> None:
    with pytest.raises(SubmissionError):
        Submission([text], left=0.3)
    assert children() == []


def test_a_pipe_that_nobody_reads_is_not_waited_for() -> None:
    with (
        Submission(["import time\ndef sleep(text): time.sleep(1e9)"], left=seconds(20)) as opened,
        pytest.raises(SubmissionError, match="was left"),
    ):
        opened.process.end = time.monotonic() + 0.1
        opened.process.send(b'{"name": "sleep", "arguments": [""], "asked": false}')
        opened.ask("sleep", "x" * (1 << 22))


def test_answers_that_came_before_their_questions_end_too() -> None:
    text = "import os\ndef f():\n    os.write(4, b'{\"answer\": 1}\\n' * 2)\n    return 1"
    with Submission([text], left=seconds(20)) as opened, pytest.raises(SubmissionError, match="was left"):
        opened.process.end = time.monotonic() + 0.1
        while True:
            assert opened.ask("f") == 1


def test_another_process_knows_nothing_and_ends_with_the_first() -> None:
    with Submission(["count = []\ndef f():\n    count.append(1)\n    return len(count)"], left=seconds(20)) as opened:
        assert [opened.ask("f"), opened.ask("f"), opened.other(4).ask("f"), opened.other(0).ask("f"), opened.other(4).ask("f")] == [
            1,
            2,
            1,
            1,
            2,
        ]
        assert opened.other(4).sealed == opened.sealed and opened.other(4).process.end == opened.process.end
        assert len(children()) == 3
    assert children() == []


def test_all_exercises_share_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []

    class Sleeper(Submission):
        def __init__(self, source: list[str], seconds: int, left: float) -> None:
            shares.append(left)
            super().__init__(source, seconds, left=left)

    monkeypatch.setattr(grading, "TOGETHER", 3)
    monkeypatch.setattr(grading, "Submission", Sleeper)
    (tmp_path / "join-buffers.py").write_text("import time\ntime.sleep(1e9)")
    marks = list(grade("join-buffers", tmp_path / "join-buffers.py", 1))
    assert len(shares) == len(marks) and sum(shares) < 3.001
    assert all("more time than" in each.reason or "more than what" in each.reason for each in marks)


#: Answers of the wrong kind: the lab, a submission, its exercise, and what is said.
ODD = [
    ("translation-layer", "return 5", "Ftl", "returns 5, but [0, 0], its block and slot, is right"),
    ("write-amplification", "return [1e-300, 2.0]", "divide", "a share between 0 and 1"),
    ("write-amplification", "return [0.9999999999999999, 2.0]", "divide", "a share between 0 and 1"),
]


@pytest.mark.parametrize(("lab", "body", "exercise", "said"), ODD)
def test_an_answer_of_the_wrong_kind_is_said_in_words(lab: str, body: str, exercise: str, said: str, tmp_path: Path) -> None:
    text = f"def divide(*rest): {body}\nclass Ftl:\n    def __init__(self, *rest): self.slot = -1\n    def read(self, page): {body}\n"
    text += "    def write(self, page):\n        self.slot += 1\n        return [['program', 0, self.slot, page]]\n"
    (tmp_path / "odd.py").write_text(text)
    every = {each.exercise: each for each in grade(lab, tmp_path / "odd.py", 7, instances=1)}
    assert every[exercise].points == 0 and said in every[exercise].reason


#: Answers of every kind, in JSON.
KINDS = [
    "null", "true", "5", "-1", "1e400", "NaN", '""', '"text"', "[]", "[null]", "[[]]", "[[[]]]", "{}", '{"a": 1}', "[1, 2]", "[1.5, {}]",
    '["program", 0]', '[["program", 0, 0, {}]]', '[["log", {}]]', '[["page", "a", []]]', "[[1, []]]", "[{}, {}]",
]  # fmt: skip


class Odd(Submission):
    """A submission without a process, whose functions and methods all return the same."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def ask(self, name: str, *arguments: Any) -> Any:
        return self.answer

    def tell(self, name: str, *arguments: Any) -> None:
        return None

    def other(self, number: int) -> Odd:
        return self

    def new(self, name: str, *arguments: Any) -> Any:
        return self


@with_each("lab", LABS.names())
def test_any_kind_of_answer_can_be_judged(lab: str) -> None:
    for name, exercise in LABS.load(lab).EXERCISES.items():
        instance = exercise.draw(generator(7, name))
        for kind in KINDS:
            with suppress(SubmissionError):
                if not exercise.fault(Odd(json.loads(kind)), instance):
                    assert exercise.score and exercise.score(Odd(json.loads(kind)), instance) < 0


#: Answers with True or False in the place of 1 and 0, which Python takes for equal: the exercise's function and what is returned.
TRUE = [
    (is_like, True, 1), (is_like, False, 0), (is_like, True, 1.0), (is_like, [0, True], [0, 1]), (is_like, [[False]], [[0]]),
]  # fmt: skip


@with_each(("alike", "answer", "right"), TRUE)
def test_true_is_not_like_1(alike: Any, answer: Any, right: Any) -> None:
    assert not alike(answer, right) and alike(right, right)
    assert not isinstance(True, WholeNumber) and isinstance(1, WholeNumber) and not isinstance(1.0, WholeNumber)


class Truth(Odd):
    """Answers of a right submission with True and False in the place of 1 and 0."""

    def __init__(self, opened: Any) -> None:
        self.opened = opened

    def ask(self, name: str, *arguments: Any) -> Any:
        return truths(self.opened.ask(name, *arguments))

    def tell(self, name: str, *arguments: Any) -> None:
        self.opened.tell(name, *arguments)

    def new(self, name: str, *arguments: Any) -> Any:
        return Truth(self.opened.new(name, *arguments))

    def other(self, number: int) -> Odd:
        return Truth(self.opened.other(number))


def truths(answer: Any) -> Any:
    """The same with True and False."""
    if isinstance(answer, list):
        return [truths(each) for each in answer]
    return bool(answer) if type(answer) is int and answer in (0, 1) else answer


@pytest.mark.parametrize("lab", LABS.names())
def test_true_does_not_count_as_1(lab: str) -> None:
    """Wherever an answer of a right submission has a 1 or a 0 it is refused with True or False there; what has none is right as before."""
    refused = set()
    with Submission(source_of(ROOT / "labs" / f"{lab}.ipynb")) as opened:
        for name, exercise in LABS.load(lab).EXERCISES.items():
            for number in range(8):
                try:
                    fault = exercise.fault(Truth(opened), exercise.draw(generator(7, name, number)))
                    if exercise.score and not fault:
                        exercise.score(Truth(opened), exercise.draw(generator(7, name, number)))
                except SubmissionError as problem:
                    fault = str(problem)
                refused |= {name} if fault else set()
    assert {*ONES.get(lab, [])} <= refused


#: Exercises of which answers have a 1 or a 0 on these instances.
ONES = {
    "disk-scheduling": ["sstf", "look", "c_look"], "join-buffers": ["plan", "plan: few pages", "match"],
    "recovery": ["recovered", "Database", "Database: crashes again"], "replacement": ["Lru", "Clock", "Best"],
    "smart-ssd": ["Aggregation", "whole", "bloom", "passes"], "translation-layer": ["greedy", "Ftl", "Ftl: few moves"],
}  # fmt: skip


def test_what_cannot_be_judged_costs_one_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LABS.load("disk-scheduling"), "way_length", lambda order, head: 1 // 0)
    (tmp_path / "odd.py").write_text("def shortest_way(cylinders, head): return cylinders")
    *_, last = grade("disk-scheduling", tmp_path / "odd.py", 7, instances=1)
    assert last.points == 0 and last.reason.startswith("its answer cannot be judged: ZeroDivisionError")


def test_a_file_that_is_no_notebook_gets_no_marks(tmp_path: Path) -> None:
    (tmp_path / "disk-scheduling_eve.ipynb").write_text('{"cells":' + "[" * 100_000)
    with pytest.raises(SubmissionError, match="is not a notebook"):
        source_of(tmp_path / "disk-scheduling_eve.ipynb")
    assert {each.points for each in grade("disk-scheduling", tmp_path / "disk-scheduling_eve.ipynb", 1)} == {0}


def test_grade_says_once_that_nothing_was_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk-scheduling.py").write_text("")
    for program, said in ((seal_program(), 0), ([], 1)):
        monkeypatch.setattr(submission, "seal_program", lambda program=program: program)
        seals.cache_clear()
        lines = list(labs.lab_grade([str(tmp_path / "disk-scheduling.py")], instances=1).printout())
        assert sum("Not sealed" in str(line) for line in lines) == (said or not seal_program())
    seals.cache_clear()
