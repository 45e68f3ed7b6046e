"""``flashsim crash``: a check that stays alive answers as the ordinary one does, and files can be left out of what cuts vary."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import flashsim as fs
from flashsim.apps.programs.check_server import CheckServer
from flashsim.apps.programs.excluded_files import ExcludedFiles
from flashsim.apps.programs.images import ImageFolder
from flashsim.apps.programs.outcomes import Coverage, CutReport
from flashsim.core.errors import RefusedError
from tests.cases import with_each

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")

#: The second file is renamed before its bytes are synced, and the journal's order keeps that of the first.
PROGRAM = """
import os
for word in ("apples", "pears"):
    with open("shop.new", "w") as file:
        file.write(word * 900)
        file.flush()
        if word == "apples":
            os.fsync(file.fileno())
    os.rename("shop.new", "shop")
    os.fsync(os.open(".", os.O_RDONLY))
    print(word, flush=True)
"""
LOOK = """
import os, sys
def look(printed):
    words = open(printed).read().split()
    text = open("shop").read() if os.path.exists("shop") else ""
    assert text in ("", "apples" * 900, "pears" * 900), f"shop has {len(text)} letters, or others"
    assert not words or text, f"{words[-1]} lost"
"""
ONCE = LOOK + "look(os.environ['FLASHSIM_PRINTED'])\n"
STAYS = (
    LOOK
    + """
for line in sys.stdin:
    folder, printed = line.rstrip("\\n").split("\\t")
    assert printed == os.environ["FLASHSIM_PRINTED"]
    os.chdir(folder)
    try:
        look(printed)
        print(0, flush=True)
    except Exception as problem:
        print(1, f"{type(problem).__name__}: {problem}", flush=True)
"""
)
LOCKED = """
import mmap, os
lock = os.open("lock.mdb", os.O_RDWR | os.O_CREAT)
os.ftruncate(lock, 8192)
memory = mmap.mmap(lock, 8192)
log = os.open("log.tmp", os.O_RDWR | os.O_CREAT)
os.rename("log.tmp", "LOG")
os.mkdir("new")
os.close(os.open("new/inner.lock", os.O_RDWR | os.O_CREAT))
os.rename("new", "old")
data = os.open("data", os.O_RDWR | os.O_CREAT)
for k in range(3):
    memory[8 * k : 8 * k + 8] = b"transact"
    os.write(log, b"line %d" % k)
    os.pwrite(data, b"%d" % k * 100, 4096 * (k % 2))
    os.fdatasync(data)
    print(k, flush=True)
"""
#: The log is as the last call before the cut left it, though nothing synced it; the inner lock goes with its folder.
LOCKED_CHECK = """
import os
count = len(open(os.environ["FLASHSIM_PRINTED"]).read().split())
assert not count or (os.path.getsize("data") and os.path.getsize("LOG") >= 6 * count), "lost"
assert os.path.exists("old/inner.lock") or not os.path.exists("old"), "no inner lock"
assert not count or os.path.getsize("lock.mdb") == 8192
"""


def cut(place: Path, program: str, check: str, **how: Any) -> Any:
    folder = place / "cut"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in (("program.py", program), ("check.py", check)):
        (place / name).write_text(text)
    python = [sys.executable, "-B", "-S"]
    return fs.crash([*python, str(place / "program.py")], check=f"{' '.join(python)} {place / 'check.py'}", folder=str(folder), **how)


@needs_strace
def test_a_check_that_stays_alive_answers_as_the_ordinary_one_does(here: Path) -> None:
    ordinary, server = cut(here, PROGRAM, ONCE, outcomes=8), cut(here, PROGRAM, STAYS, check_server=True, outcomes=8)
    one, other = ordinary.as_dict(), server.as_dict()
    assert one["failed_images"] and len(one["failures"]) > 1
    told = [[(each["recipe"], each["exit_code"], each["count"]) for each in report["failures"]] for report in (one, other)]
    assert told[0] == told[1]
    lines = [[each.answer for each in result.result.failures] for result in (ordinary, server)]
    assert lines[0] == lines[1]
    assert all(one[name] == other[name] for name in ("cuts", "images", "share", "verdict"))


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """Looks at images with a command that stays alive; a code and a message each."""
    made = []

    def start(command: str, limit: float = 60.0) -> Any:
        made.append(CheckServer(command, ImageFolder(tmp_path, len(made)), limit))
        return lambda name: made[-1].look({name: b"apples"}, b"1\n")

    yield start
    for each in made:
        each.close()


@with_each(
    ("answer", "code", "told"),
    [
        ("echo 0", 0, ""),
        ("echo 3 rows are lost", 3, "rows are lost"),
        ("echo 1", 1, ""),
        ('echo "2 $PWD/a"', 2, "./a"),
        ("echo ok", 1, "the check server answered 'ok', but 0 or an exit code and a message is needed"),
        ("echo 0 rows", 1, "the check server answered '0 rows', but"),
        ("echo", 1, "the check server answered '', but"),
        ("echo 0; echo 0", 1, "the check server answered '0\\n"),
        ("echo why >&2; exit 5", 5, "the check server ended (exit code 5) without an answer: why"),
        ("exit 0", 1, "the check server ended (exit code 0) without an answer"),
        ("kill -9 $$", -9, "the check server ended (exit code -9) without an answer"),
        ("sleep 30", 1, "the check took longer than 0.5 s"),
    ],
)
def test_a_server_that_gives_no_answer_fails_the_image_and_begins_again(server: Any, answer: str, code: int, told: str) -> None:
    """On a file named ``b`` it answers well; lines of one answer may come at once, or the last of them before the next image."""
    look = server(f"while read line; do if test -e b; then echo 0; else {answer}; fi; done", 0.5)
    assert look("b") == (0, "")
    answers = [look("a"), look("a")] if "; echo" in answer else [look("a")]
    assert any(found == code and text.startswith(told) for found, text in answers), answers
    if code and "; echo" not in answer:
        assert look("b") == (0, "")


@needs_strace
def test_a_server_that_ends_with_its_first_answer_is_refused(here: Path) -> None:
    with pytest.raises(RefusedError, match=r"check: it fails before any cut, .*the check server ended \(exit code 0\) without an answer"):
        cut(here, PROGRAM, "import sys\nopen('shop')\nsys.stdin.readline()\nprint(0)\n", check_server=True)


@needs_strace
def test_excluded_files_are_not_varied_and_make_no_cuts(here: Path) -> None:
    assert cut(here, LOCKED, LOCKED_CHECK, outcomes=8).result.failed_images  # the lock, which is mapped, need not be durable
    result = cut(here, LOCKED, LOCKED_CHECK, exclude=["*.lock,LOG", "./lock.mdb"], outcomes=8)
    assert not result.result.failed_images, result.result.failures
    assert not any("lock" in each.call or "LOG" in each.call for each in result.result.coverage)


@needs_strace
def test_excluded_files_change_no_image_of_others(here: Path) -> None:
    """Of a program with a log the same cuts and images are there as without it, on a simulated drive too."""
    program = "import os\nos.open('log', 66)\n" + PROGRAM.replace("    print(", "    os.write(3, word.encode())\n    print(")
    for device in (None, "intel-x25e-64gb"):
        how: dict[str, Any] = {"device": device, "outcomes": 4, "check_server": True}
        one, other = cut(here, program, STAYS, exclude="l?g", **how).as_dict(), cut(here, PROGRAM, STAYS, **how).as_dict()
        assert one["failures"] and other["failures"]
        names = ("share",) if device else ("cuts", "images", "failed_images", "share")
        assert [one[name] for name in names] == [other[name] for name in names]


@needs_strace
def test_what_no_file_matches_is_refused(flashsim: Any, here: Path) -> None:
    result = flashsim(["crash", "--check", "cat a", "--exclude", "b,[", "--exclude", "a", "--", "touch", "a"])
    assert result.exit_code == 2 and "--exclude: 'b' matches no file of the program" in result.stderr and result.stderr.count("\n") == 1
    result = flashsim(["crash", "--check", "cat a", "--exclude", "a,", "--", "touch", "a"])
    assert result.exit_code == 2 and result.stderr.startswith("flashsim: --exclude: ''") and result.stderr.count("\n") == 1


def test_a_file_is_excluded_by_any_of_its_paths() -> None:
    rows = [
        {"call": "mkdir", "path": "/f/lib", "other": None, "file": 5},
        {"call": "openat", "path": "/f/lib/a.tmp", "other": None, "file": 6},
        {"call": "rename", "path": "/f/lib/a.tmp", "other": "/f/lib/a.lock", "file": 6},
        {"call": "write", "path": "/f/b", "other": "/f/lib/a.lock", "file": 7},
        {"call": "openat", "path": "/g/c.lock", "other": None, "file": 8},
    ]
    excluded = ExcludedFiles(["*.lock", "l*b"], Path("/f"), {"/f/lab": 0, "/f/lob/": 1}, rows)
    assert excluded.numbers == {0, 6} and excluded.has("/f/lib/a.lock") and not excluded.has("/f/b") and not excluded.has("/g/c.lock")


def test_the_share_of_outcomes_is_null_where_some_are_not_counted() -> None:
    counted, other = Coverage("a", 30, 3, ()), Coverage("b", None, 32, ())
    assert CutReport().share == 1 and CutReport(coverage=[counted, Coverage("c", 10, 7, ())]).share == 0.25
    assert CutReport(coverage=[counted, other]).as_dict()["share"] is None


@needs_strace
def test_the_report_tells_the_share_in_a_line(flashsim: Any, here: Path) -> None:
    (here / "program.py").write_text(PROGRAM)
    line = ["crash", "--check", "cat shop; true", "--outcomes", "4", "--json", "cuts.json", "--", sys.executable, "-B", "program.py"]
    result = flashsim(line)
    told = json.loads(Path("cuts.json").read_text())
    tried, possible = (sum(each[name] for each in told["coverage"]) for name in ("tried", "possible"))
    assert told["share"] == tried / possible < 1
    assert f"Coverage: {100 * told['share']:.3g}%, {tried} of {possible:,} outcomes were tried." in result.output
