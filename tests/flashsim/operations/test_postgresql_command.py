"""A PostgreSQL relation file in commands and in Python."""

from __future__ import annotations

import random
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import flashsim as fs
from flashsim.storage.source import open_source, pg, source_file
from tests.commands import Run
from tests.postgresql_server import Cluster

LINE = "join grace-hash --r pg:16385 --s tpch:customer@0.01 --on k=c_custkey --device ocz-core-60gb --memory 256KiB --out rows.parquet"


@pytest.fixture
def file(here: Path) -> Path:
    pg.example(here)
    return here / "16385"


def test_the_definition_beside_the_file_or_named_or_told(file: Path, here: Path) -> None:
    (here / "other.sql").write_text("CREATE TABLE other (a int8, b text, c float)")
    for text, names in (
        ("pg:16385", ["k", "text", "real"]),
        ("pg:16385:other.sql", ["a", "b", "c"]),
        ("pg:16385:other.sql:other", ["a", "b", "c"]),
        ('pg:16385:create table "T" (x bigint, y text, z float8)', ["x", "y", "z"]),
    ):
        source = open_source(text)
        assert source.names == names and source_file(text) == Path("16385")
        assert [row[names[0]] for row in source.take(np.arange(5)).to_pylist()] == [5, 300, None, -7, 5]


def test_a_command_and_python_join_it(file: Path, here: Path, flashsim: Run) -> None:
    assert flashsim(LINE).exit_code == 0
    joined = fs.join("pg:16385", "tpch:customer@0.01", on="k=c_custkey", device="ocz-core-60gb", memory="256KiB")
    assert sorted(joined.rows()["k"]) == [5, 5, 300]
    result = flashsim(LINE.replace("ocz-core-60gb", "16385 --allow-write --force"))
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


def test_the_guide_runs_with_what_pg_dump_writes(postgresql: Cluster, here: Path, flashsim: Run) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "read-a-postgresql-table.md"
    blocks = re.findall(r"^```(sh|python|sql)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    columns = (
        "o_orderkey int PRIMARY KEY, o_custkey int DEFAULT 5 NOT NULL, o_totalprice numeric(15, 2), o_orderdate date, o_comment varchar(79)"
    )
    postgresql.sql(
        f"""CREATE TABLE orders ({columns}, CHECK (o_custkey < 9999), UNIQUE (o_comment, o_orderkey));
        CREATE INDEX ON orders (o_custkey);
        COMMENT ON TABLE orders IS 'it''s; "quoted"'; CREATE TABLE others (a jsonb, b int[]);
        INSERT INTO orders SELECT i, i % 2000, i * 1.01, date '1992-01-01' + i, repeat('x', i % 79) FROM generate_series(1, 9000) i"""
    )
    (here / "orders.sql").write_text(postgresql.run("pg_dump", "--schema-only", "-h", str(postgresql.folder), "-U", "postgres", "postgres"))
    path = postgresql.path("orders")
    for name in ("base/16384", "pg_xact"):
        (here / name).mkdir(parents=True)
    with postgresql.stopped():
        shutil.copy(path, here / "base" / "16384" / "16385")
        shutil.copytree(postgresql.data / "pg_xact", here / "pg_xact", dirs_exist_ok=True)
    ran = 0
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(page), "exec"), {})
        for line in block.splitlines():
            if line.startswith("flashsim "):
                shown = shlex.join(shlex.split(line)[1:]).replace("orders.sql", "orders.sql:orders")
                ran += flashsim(f"{shown} --out rows.parquet").exit_code == 0
    assert ran == 1 and pq.read_metadata(here / "rows.parquet").num_rows == sum(1 <= i % 2000 <= 1500 for i in range(1, 9001))
    told = open_source("pg:base/16384/16385:orders.sql:orders")
    assert told.name == "orders" and told.rows == 9000 and told.names[0] == "o_orderkey"
