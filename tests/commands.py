"""What tests of the command line share."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flashsim.command_line import app
from flashsim.experiments.presentation import progress

Run = Callable[..., Result]

#: A join of 1,500 with 15,000 rows.
SMALL_JOIN = "join bnl --r do2009:customer@0.01 --s do2009:orders@0.01 --on c_custkey=o_custkey --device ocz-core-60gb --memory 256KiB"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that commands run in; their messages have no lines of progress between them on a slow machine.

    They see one core, so that they start no process for each unless they are asked to: processes stay, with hundreds of megabytes.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    monkeypatch.setattr(progress, "_NOTED_AFTER", math.inf)
    return tmp_path


@pytest.fixture
def flashsim(here: Path) -> Run:
    """Run a command line, given as text or as words, in an empty folder."""

    def run(line: str | list[str]) -> Result:
        words = line if isinstance(line, list) else shlex.split(line) if '"' in line else line.split()
        return CliRunner().invoke(app, words, prog_name="flashsim")

    return run
