"""A PostgreSQL relation file in a command and in Python, without a server."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import flashsim as fs
from flashsim.storage.source import open_source, pg, source_file
from tests.experiments.conftest import Run

LINE = "join grace-hash --r pg:16385 --s tpch:customer@0.01 --on k=c_custkey --device ocz-core-60gb --memory 256KiB --out rows.parquet"


@pytest.fixture
def file(here: Path) -> Path:
    pg.example(here)
    return here / "16385"


def test_the_definition_beside_the_file_or_named_or_told(file: Path, here: Path) -> None:
    (here / "other.sql").write_text("CREATE TABLE other (a int, b text, c float)")
    for text, names in (
        ("pg:16385", ["k", "text", "real"]),
        ("pg:16385:other.sql", ["a", "b", "c"]),
        ("pg:16385:other.sql:other", ["a", "b", "c"]),
        ('pg:16385:create table "T" (x integer, y text, z float8)', ["x", "y", "z"]),
    ):
        source = open_source(text)
        assert source.names == names and source_file(text) == Path("16385")
        assert [row[names[0]] for row in source.take(np.arange(5)).to_pylist()] == [5, 300, None, -7, 5]


def test_a_command_and_python_join_it(file: Path, here: Path, flashsim: Run) -> None:
    assert flashsim(LINE).exit_code == 0
    joined = fs.join("pg:16385", "tpch:customer@0.01", on="k=c_custkey", device="ocz-core-60gb", memory="256KiB")
    assert sorted(joined.rows()["k"]) == [5, 5, 300]
    result = flashsim(LINE.replace("ocz-core-60gb", "16385 --allow-write"))
    assert result.exit_code == 2 and "would be overwritten" in result.stderr


def test_one_line_and_exit_code_2(file: Path, here: Path, flashsim: Run) -> None:
    draws, whole = random.Random("damage"), file.read_bytes()
    for content in (whole[:-1], draws.randbytes(24) + whole[24:], whole[:8180] + b"x" + whole[8181:], b"PAR1" * 4096):
        file.write_bytes(content)
        result = flashsim(LINE)
        assert result.exit_code == 2 and result.stderr.startswith("flashsim: 16385: ") and result.stderr.count("\n") == 1
    file.unlink()
    assert "16385: there is no such file" in flashsim(LINE).stderr
    assert not list(here.glob("rows*"))
