"""Completion in shells, and what help texts list: what exists, members of one's own among it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from typer.testing import CliRunner

from algorithms.joins.base import JOINS
from algorithms.page_access.planners.base import PLANNERS
from algorithms.partitioning.base import PARTITIONING
from algorithms.replacement.base import REPLACEMENT
from flashsim.apps.papers import base as papers
from flashsim.command_line import app
from flashsim.core import members
from flashsim.device import presets
from tests.commands import Run
from traces.format.base import FORMATS, writable

#: A join as far as its text goes; it cannot be run.
MINE = "raise SystemExit\nfrom algorithms.joins.bnl import allocate\ndef join(r, s, parameters, allocation=None): ...\n"


def completed(line: str) -> list[str]:
    """What bash is told for a line that ends where the cursor is."""
    words = line.split(" ")
    told = {"_FLASHSIM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    result = CliRunner().invoke(app, [], prog_name="flashsim", env=told)
    assert result.exit_code == 0 and not result.stderr
    return result.stdout.split()


def test_values_are_completed(here: Path) -> None:
    assert completed("flashsim jo") == ["join"] and "serve" in completed("flashsim device ")
    assert completed("flashsim join ") == JOINS.names() and completed("flashsim join hy") == ["hybrid-hash"]
    for line in ("device show ", "device bench ", "device serve ", "trace replay t --device ", "join bnl --device "):
        assert completed(f"flashsim {line}") == presets.names()
    claims = [claim.name for name in papers.PAPERS.names() for claim in papers.load(name).claims]
    assert completed("flashsim reproduce ") == [*papers.PAPERS.names(), *claims]
    assert completed("flashsim trace convert a b --to ") == writable()
    assert completed("flashsim trace info a --format ") == FORMATS.names()
    assert completed("flashsim device bench x --only lo") == ["locality"] and completed("flashsim join bnl --cpu no") == ["none"]
    assert completed("flashsim fetch ge") == ["general", "geometric"]
    assert completed("flashsim fetch join --frames 3 --planner ") == PLANNERS.names()
    assert completed("flashsim cache simulate t --policy l") == [name for name in REPLACEMENT.names() if name.startswith("l")]
    assert completed("flashsim cache compare t lru si") == ["sieve"] and completed("flashsim cache curve zi") == ["zipf"]
    assert completed("flashsim join grace-hash --partition ") == PARTITIONING.names()
    assert completed("flashsim device show nothing-of-that-name") == []


@pytest.mark.parametrize(
    ("shell", "answer"), [("zsh", """_arguments '*: :(("hybrid-hash"))'"""), ("fish", "hybrid-hash"), ("powershell", "hybrid-hash")]
)
def test_other_shells_are_told_in_their_own_way(shell: str, answer: str) -> None:
    told = {"_TYPER_COMPLETE_ARGS": "flashsim join hy", "_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "hy"}
    result = CliRunner().invoke(app, [], prog_name="flashsim", env={"_FLASHSIM_COMPLETE": f"complete_{shell}", **told})
    assert result.exit_code == 0 and result.stdout.split(":::")[0].strip() == answer


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_that_is_installed_works_in_its_shell(shell: str, tmp_path: Path) -> None:
    """Installed from a shell, as the guide says, and used in another."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ask = {
        "bash": ". ~/.bashrc; COMP_WORDS=(flashsim join hy); COMP_CWORD=2; _flashsim_completion flashsim hy join; echo ${COMPREPLY[@]}",
        "zsh": "_FLASHSIM_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS='flashsim join hy' flashsim; zsh -n ~/.zfunc/_flashsim",
        "fish": "complete -C 'flashsim join hy'",
    }
    told = [
        subprocess.run([shell, "-c", line], env=environment, capture_output=True, text=True, check=True)
        for line in ("flashsim --install-completion; true", ask[shell])
    ]
    assert "completion installed in" in told[0].stdout and not told[0].stderr
    assert "hybrid-hash" in told[1].stdout


def test_help_lists_the_members_that_exist(flashsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(line: str) -> str:
        return " ".join(flashsim(f"{line} --help-all").stdout.split()).replace("- ", "-")

    Path("mine.py").write_text(MINE)  # read, and not run
    Path("other.py").write_text("def join(): ...")
    Path("broken.py").write_text("def (")
    point = EntryPoint("theirs", "theirs.join", "flashsim.joins")
    monkeypatch.setattr(members, "_entry_points", lambda group: EntryPoints([point] if group == "flashsim.joins" else []))
    shown = listed("join")
    assert "theirs" in JOINS.names()
    assert f"Join algorithm: {', '.join(JOINS.names())}, ./mine.py; or a Python file" in shown and "./other.py" not in shown
    assert "ext3, ext3-interleaved, packed, spread, two-disks" in shown and "pentium-d-2009, none" in shown
    assert ", ".join(writable()) in listed("trace convert") and "device: builtin, fio" in listed("trace replay")
    assert "of one: do2009" in listed("reproduce") and "alignment, bursts" in listed("device bench")
    assert "{" not in shown.replace("{ALGORITHM}", "")
    assert completed("flashsim join ./") == ["./mine.py"]
