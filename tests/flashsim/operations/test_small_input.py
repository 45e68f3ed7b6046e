"""Commands on small input answer as plain Python where no engine is compiled, and say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.core.kernel import compiled
from flashsim.operations import small_input
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


@pytest.mark.skipif(not compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")
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
