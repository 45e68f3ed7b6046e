"""What is being done is shown, on a terminal and elsewhere, and never where results go."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flashsim.core.kernel import compiled
from flashsim.studies.presentation import progress
from flashsim.studies.presentation.progress import Screen
from tests.flashsim.operations.terminal import watch
from tests.flashsim.operations.test_examples import PAGES

#: Seconds; what a terminal hears nothing in.
SILENCE = 2.0


def test_elsewhere_a_line_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_NOTED_AFTER", 0.3)
    with Screen().show("working hard") as tell:
        for done in range(10):
            tell(done, 10)
            time.sleep(0.1)
    out, err = capsys.readouterr()
    assert not out
    assert re.fullmatch(r"flashsim: working hard \(\d/10, \d s\)\n", err)


@pytest.mark.parametrize(("message", "part"), [("loading", ", loading"), ("replaying", ""), ("", "")])
def test_a_line_elsewhere_names_the_step_that_is_under_way(
    message: str, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_NOTED_AFTER", 0.3)
    with Screen().show("replaying") as tell:
        tell(0, 3646, message)
        time.sleep(0.7)
    assert re.fullmatch(rf"flashsim: replaying \(0/3,646{part}, \d s\)\n", capsys.readouterr().err)


def test_a_share_is_told_once_there_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_NOTED_AFTER", 0.3)
    for share, told in ((0.0, r"\d s"), (0.5, r"50%, \d s")):
        with Screen().show("compiling") as tell:
            tell(share, 1)
            time.sleep(0.7)
        assert re.fullmatch(rf"flashsim: compiling \({told}\)\n", capsys.readouterr().err)


def test_what_is_over_at_once_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen().show("nothing much"):
        pass
    assert capsys.readouterr() == ("", "")


def test_threads_end_with_the_last_activity() -> None:
    screen = Screen()
    with screen.show("outer"), screen.show("inner"):
        thread = screen._thread
        assert thread is not None and thread.is_alive()
    thread.join(1)
    assert not thread.is_alive()


SHOWN = """
import sys, time
from flashsim.studies.presentation.progress import screen
with screen.around("working"):
    time.sleep(1.6)
    with screen.show("counting") as tell:
        tell(3, 4)
        time.sleep(1.6)
        print("result")
"""


def test_on_a_terminal_a_line_appears_and_vanishes(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(SHOWN)
    code = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, 'shown.py'])))"
    environment = os.environ | {"PYTHONPATH": str(Path(progress.__file__).parents[3]), "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0
    assert done.stdout.index("working") < done.stdout.index("counting") < done.stdout.index("result")
    assert "3/4" in done.stdout
    last = done.stdout[: done.stdout.index("result")]
    assert last.endswith("\x1b[2K")  # the line was erased before the result took its place


LIGHT = ("numpy", "numba", "pandas", "pyarrow", "scipy", "matplotlib", "rich", "joblib")


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_what_needs_no_library_loads_none(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['flashsim', *{words}]\nfrom flashsim.__main__ import main\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\nprint([name for name in {LIGHT} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_join_loads_no_library_that_it_has_no_use_for(tmp_path: Path) -> None:
    line = "join bnl --r do2009:customer@0.001 --s do2009:orders@0.001 --on c_custkey=o_custkey --device ocz-core-60gb --memory 64KiB"
    code = (
        f"import sys; sys.argv = {['flashsim', *line.split()]}\nfrom flashsim.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('matplotlib', 'scipy.optimize', 'joblib', 'simpy', 'coverage') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def commands_of_pages() -> list[str]:
    """Every command of the README and the pages whose commands all run, in order."""
    readme = Path(progress.__file__).parents[3] / "README.md"
    blocks = [block for page in [readme, *PAGES] for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)]
    lines = [line.strip() for block in blocks for part in re.sub(r"\\\n\s*", "", block).splitlines() for line in part.split("&&")]
    return list(dict.fromkeys(line.removeprefix(".venv/bin/") for line in lines if line.removeprefix(".venv/bin/").startswith("flashsim ")))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")
def test_no_command_of_the_pages_is_silent_with_an_empty_cache(tmp_path: Path) -> None:
    silent = {}
    for number, line in enumerate(commands_of_pages()):
        seen = watch(shlex.split(line)[1:], tmp_path, FLASHSIM_CACHE=str(tmp_path / f"cache-{number}"))
        assert seen.code == 0, f"{line}\n{seen.output}"
        if seen.silence > SILENCE:
            silent[line] = seen.silence
    assert not silent
