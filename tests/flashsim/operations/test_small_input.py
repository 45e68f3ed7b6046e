"""Commands on small input answer as plain Python where no engine is compiled, and say the same."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.core.kernel import is_compiled
from flashsim.operations import first_joins, small_input
from tests.cases import with_each
from tests.commands import Run

_TABLES = "--r do2009:customer@0.01 --s do2009:orders@{} --on c_custkey=o_custkey"
_ON = "--device ocz-core-60gb --memory 1MiB"


@with_each(
    ("command", "is_small"),
    [
        (f"join bnl {_TABLES.format(0.01)}", True),
        (f"join bnl {_TABLES.format('.01')} --r=do2009:customer@0.5", False),
        (f"join bnl {_TABLES.format(0.011)}", False),
        ("join bnl --r=small.csv --s=tpch:orders@0.001", True),
        ("join bnl --r=large.csv --s=small.csv", False),
        ("join bnl --r=absent.csv --s=small.csv", False),
        (f"join bnl --r={300 * 'a'} --s=small.csv", False),
        ("join bnl --r small.csv", False),
        ("lab check replacement.ipynb", True),
        ("reproduce do2009 --scale 0.01", False),
        ("", False),
    ],
)
def test_it_is_the_input_that_decides(command: str, is_small: bool, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(here / "cache"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    (here / "small.csv").write_text("id\n1\n")
    (here / "large.csv").write_text("id\n" + "1\n" * (1 << 17))
    small_input.leave_uncompiled(command.split())
    assert os.environ.pop("NUMBA_DISABLE_JIT", "0") == str(int(is_small))


_FIRST = "--r do2009:customer@0.1 --s do2009:orders@0.1 --on c_custkey=o_custkey --device ocz-core-60gb --memory 1MiB"


@with_each(
    ("command", "is_first"),
    [
        (f"join hybrid-hash {_FIRST}", True),
        (f"join grace-hash {_FIRST.replace('@0.1', '@0.05')}", True),
        (f"join digest {_FIRST}", False),  # takes 40 s in plain Python
        (f"join hybrid-hash {_FIRST.replace('1MiB', '1000KiB')}", False),
        (f"join hybrid-hash {_FIRST.replace('1MiB', 'much')}", False),
        (f"join hybrid-hash {_FIRST.replace('@0.1', '@0.2')}", False),
        (f"join hybrid-hash {_FIRST.replace('do2009', 'tpch')}", False),
        (f"join hybrid-hash {_FIRST} --json out.json", False),  # which a second process would write, too
    ],
)
def test_a_join_of_first_steps_is_compiled_in_the_background(
    command: str, is_first: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(here / "cache"))
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **options: started.append([*words, options["env"]["NUMBA_DISABLE_JIT"]]))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    small_input.leave_uncompiled(command.split())
    assert os.environ.pop("NUMBA_DISABLE_JIT", "0") == str(int(is_first))
    assert len(started) == is_first and all("do2009:customer@0.01" in words and words[-1] == "0" for words in started)


def test_one_process_at_a_time_compiles(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(here / "cache"))
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **options: started.append(words))
    options = {"--r": "do2009:customer@0.1", "--s": "do2009:orders@0.1"}
    first_joins.compile_in_background("grace-hash", options)
    with (here / "cache" / "kernels" / "first.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first_joins.compile_in_background("grace-hash", options)
        assert len(started) == 1 and first_joins.is_compiling()
    assert not first_joins.is_compiling()


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")
def test_the_second_of_first_joins_has_its_kernels(here: Path, flashsim: Run) -> None:
    command = [sys.executable, "-m", "flashsim", "join", "hybrid-hash", *_FIRST.split()]
    environment = {**os.environ, "FLASHSIM_CACHE": str(here / "cache"), "COLUMNS": "200"}
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    with (here / "cache" / "kernels" / "first.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is compiled
    kept = {*(here / "cache").rglob("*.kernel")}
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert kept and kept == {*(here / "cache").rglob("*.kernel")}
    assert first.stdout == second.stdout and "in the background" in first.stderr and "in the background" not in second.stderr


@pytest.mark.skipif(not is_compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")
def test_a_first_small_join_compiles_nothing_and_says_what_a_compiled_one_says(here: Path, flashsim: Run) -> None:
    command = f"join hybrid-hash {_TABLES.format(0.01)} {_ON}"
    environment = {**os.environ, "FLASHSIM_CACHE": str(here / "cache"), "COLUMNS": "200"}
    started = subprocess.run(
        [sys.executable, "-m", "flashsim", *command.split()], env=environment, capture_output=True, text=True, check=True
    )
    assert not [*(here / "cache").rglob("*.kernel")]
    assert started.stdout.split() == flashsim(command).stdout.split()


def test_where_an_engine_is_compiled_it_is_used(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(here))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    (here / "kernels" / "0123").mkdir(parents=True)
    (here / "kernels" / "0123" / "flashsim.ssd.engine.drive.advance-89ab.kernel").touch()
    small_input.leave_uncompiled(f"join bnl {_TABLES.format(0.01)}".split())
    assert "NUMBA_DISABLE_JIT" not in os.environ
