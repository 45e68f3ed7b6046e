"""``flashsim export`` and ``fs.export``: the same files, of all rows, and nothing where something is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError, SchemaError
from flashsim.storage.source import open_source
from tests.commands import Run

FRAME = pd.DataFrame({"k": range(700), "name": [f"row {number}" for number in range(700)]})


def test_the_command_and_python_write_the_same(here: Path, flashsim: Run) -> None:
    FRAME.to_parquet("rows.parquet")
    told = flashsim("export rows.parquet --out one --json told.json")
    assert told.exit_code == 0 and "rows: 700 rows on 4 pages of 8 KiB (postgresql), in one" in told.stdout
    written = fs.export("rows.parquet", "two")
    assert dict(zip(written["file"], written["bytes"], strict=True)) == json.loads(Path("told.json").read_text())["files"]
    assert written["file"].tolist() == ["rows", "rows.sql"]
    for name in written["file"]:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    found = open_source("pg:one/rows")
    assert {name: found.key(name).to_pylist() for name in found.names} == FRAME.to_dict("list")


def test_a_database_of_sqlite(here: Path, flashsim: Run) -> None:
    fs.export(FRAME, "python", page_format="sqlite", page_size="1KiB")
    with closing(sqlite3.connect("python/table.sqlite")) as database:
        assert database.execute("PRAGMA page_size").fetchone() == (1024,)
        assert database.execute('SELECT * FROM "table"').fetchall() == list(FRAME.itertuples(index=False, name=None))


def test_files_that_are_there_are_replaced_only_where_that_is_asked_for(here: Path, flashsim: Run) -> None:
    fs.export(FRAME, "out")
    with pytest.raises(FlashsimError, match="folder: out is not empty; add force=True to replace files in it"):
        fs.export(FRAME[:9], "out")
    assert flashsim("export do2009:customer@0.0001 --out out").exit_code == 2
    assert Path("out/table").stat().st_size == 4 * 8192
    fs.export(FRAME[:9], "out", force=True)
    assert Path("out/table").stat().st_size == 8192


def test_what_is_refused_leaves_nothing(here: Path) -> None:
    with pytest.raises(SchemaError, match=r"relation table: column k is duration\[ns\], but PostgreSQL's pages hold"):
        fs.export(pd.DataFrame({"k": [pd.Timedelta(1)]}), "out")
    with pytest.raises(FlashsimError, match="page format: pax, but no other program reads its pages"):
        fs.export(FRAME, "out", page_format="pax")
    assert not list(here.iterdir())
