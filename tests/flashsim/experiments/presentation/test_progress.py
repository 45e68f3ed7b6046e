"""What is being done is shown, on a terminal and elsewhere, and never where results go."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flashsim.core.kernel import is_compiled
from flashsim.experiments.presentation import progress
from flashsim.experiments.presentation.progress import Screen
from tests.flashsim.operations.terminal import watch
from tests.flashsim.operations.test_examples import PAGES
from tests.processes import wait_until
from tests.yardstick import seconds, slowness

#: Seconds, on a quiet machine; what a terminal hears nothing in.
SILENCE = 2.0


class Clock:
    """The clock of `progress`, which only a test moves."""

    def __init__(self) -> None:
        self.now, self.readings = 1000.0, 0

    def monotonic(self) -> float:
        self.readings += 1
        return self.now

    def move(self, seconds: float) -> None:
        """Move the clock, and wait until the thread of a screen has drawn at the new time: it reads the clock before each drawing."""
        self.now += seconds
        next_but_one = self.readings + 2
        assert wait_until(lambda: self.readings >= next_but_one)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "_REDRAWN", 0.01)
    return clock


def test_elsewhere_a_line_is_written_now_and_then(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Screen().show("working hard") as tell:
        for count, seconds, line in (
            (1, 4.75, ""),
            (2, 0.25, "flashsim: working hard (2/10, 5 s, about 20 s left)\n"),
            (3, 29.75, ""),
            (4, 0.25, "flashsim: working hard (4/10, 35 s, about 52 s left)\n"),
        ):
            tell(count, 10)
            clock.move(seconds)
            assert capsys.readouterr() == ("", line)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("message", "part"), [("loading", ", loading"), ("replaying", ""), ("", "")])
def test_a_line_elsewhere_names_the_step_that_is_under_way(
    message: str, part: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Screen().show("replaying") as tell:
        tell(0, 3646, message)
        clock.move(7)
    assert capsys.readouterr().err == f"flashsim: replaying (0/3,646{part}, 7 s)\n"


@pytest.mark.parametrize(("share", "part", "estimate"), [(0.0, "", ""), (0.5, "50%, ", ", about 7 s left")])
def test_a_share_is_told_once_there_is_one_and_the_time_left_estimated(
    share: float, part: str, estimate: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Screen().show("compiling") as tell:
        tell(share, 1)
        clock.move(7)
    assert capsys.readouterr().err == f"flashsim: compiling ({part}7 s{estimate})\n"


def test_what_is_over_at_once_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen().show("nothing much"):
        pass
    assert capsys.readouterr() == ("", "")


def test_threads_end_with_the_last_activity() -> None:
    screen = Screen()
    with screen.show("outer"), screen.show("inner"):
        thread = screen._thread
        assert thread is not None and thread.is_alive()
    thread.join(seconds(60))
    assert not thread.is_alive()


SHOWN = """
import sys
from flashsim.experiments.presentation.progress import screen
with screen.around("working"):
    sys.stdin.readline()
    with screen.show("counting") as tell:
        tell(3, 4)
        sys.stdin.readline()
        print("result")
"""


def test_on_a_terminal_a_line_appears_and_vanishes() -> None:
    terminal, device = os.openpty()
    environment = os.environ | {"PYTHONPATH": str(Path(progress.__file__).parents[3]), "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", SHOWN], env=environment, stdin=subprocess.PIPE, stdout=device, stderr=device)
    os.close(device)
    output, deadline = b"", time.monotonic() + seconds(60)

    def read_until(end: bytes | None) -> None:
        """Read what appears up to some words, or all of it."""
        nonlocal output
        while end is None or end not in output:
            assert select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0], output
            try:
                output += os.read(terminal, 1 << 16)
            except OSError:  # how a terminal says that nobody writes to it any more
                assert end is None, output
                return

    with process:
        assert process.stdin is not None
        for words in (b"working", b"3/4"):
            read_until(words)
            process.stdin.write(b"go on\n")
            process.stdin.flush()
        read_until(None)
    os.close(terminal)
    assert process.returncode == 0
    assert output.index(b"working") < output.index(b"counting") < output.index(b"result")
    last = output[: output.index(b"result")]
    assert last.endswith(b"\x1b[2K")  # the line was erased before the result took its place


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


def commands_of(page: str) -> list[str]:
    """Every command of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [line.strip() for block in blocks for part in re.sub(r"\\\n\s*", "", block).splitlines() for line in part.split("&&")]
    return list(dict.fromkeys(line.removeprefix(".venv/bin/") for line in lines if line.removeprefix(".venv/bin/").startswith("flashsim ")))


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not is_compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")
@pytest.mark.parametrize("page", [Path(progress.__file__).parents[3] / "README.md", *PAGES], ids=lambda page: page.stem)
def test_no_command_of_the_pages_is_silent_with_an_empty_cache(page: Path, tmp_path: Path) -> None:
    """Of the README and the pages whose commands all run, in order, each page in a folder of its own."""
    text, silent = page.read_text(encoding="utf-8"), {}
    for name, block in re.findall(r"```python\n(?=# (\w+\.py)\n)(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(block, encoding="utf-8")
    for description in page.parent.glob("*.diskspecs"):
        shutil.copy(description, tmp_path)
    if program := "".join(re.findall(r"```python\n(?!# \w+\.py\n)((?:.*\n)*?)```", text)) if ".write_text(" in text else "":
        subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    for line in re.findall(r"^printf .*", text, re.MULTILINE):
        subprocess.run(line, shell=True, check=True, cwd=tmp_path)
    for number, line in enumerate(commands_of(text)):
        seen = watch(shlex.split(line, comments=True)[1:], tmp_path, FLASHSIM_CACHE=str(tmp_path / f"cache-{number}"))
        told = re.search(r"# exit code (\d)$", line)
        assert seen.code == int(told[1] if told else 0), f"{line}\n{seen.output[-2000:]}"
        if seen.silence > SILENCE * slowness():
            silent[line] = seen.silence
    assert not silent
