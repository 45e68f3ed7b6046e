"""What flashsim writes, the real SQLite opens, finds intact, and reads row for row."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError
from flashsim.storage.columns import plain_array
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.page.sqlite import leaf_offset, write_database
from flashsim.storage.source import load_pair, open_source
from flashsim.storage.source.do2009 import PaperRecords
from flashsim.storage.texts import stored_column
from flashsim.testing.strategies import relation_of, tables
from tests.tiers import examples

PAGE_SIZES = [1 << power for power in range(9, 17)]


def typed(rows: list[Any]) -> list[Any]:
    """Rows in which 1 and 1.0 differ."""
    return [[(type(value), value) for value in row] for row in rows]


def stored_rows(table: pa.Table) -> list[Any]:
    """Rows as SQLite gives them, which takes NaN for NULL."""
    columns = [stored_column(plain_array(column)).to_pylist() for column in table.columns]
    return [tuple(None if value != value else value for value in row) for row in zip(*columns, strict=True)]


def read(path: Path, table: str) -> tuple[list[Any], list[str]]:
    quoted = table.replace('"', '""')
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        cursor = connection.execute(f'SELECT rowid, * FROM "{quoted}" ORDER BY rowid')
        return cursor.fetchall(), [column[0] for column in cursor.description[1:]]


def check_leaves(file: HeapFile, path: Path) -> None:
    """Leaf p stands at its offset and holds the rows of page p."""
    data = path.read_bytes()
    pages = [data[leaf_offset(page, file.page_size) :][: file.page_size] for page in range(file.pages)]
    found = file.layout.decode(np.frombuffer(b"".join(pages), np.uint8).reshape(-1, file.page_size))
    assert np.array_equal(found.rows, np.arange(len(file.relation))) and np.array_equal(found.pages, file.first_rows)


@settings(max_examples=examples(60))
@given(tables(), st.sampled_from(PAGE_SIZES), st.sampled_from(["t", 'a "quoted" name', "select", "ünïcode"]))
def test_sqlite_reads_every_row(table: pa.Table, page_size: int, name: str) -> None:
    try:
        file = heap_file(relation_of(table), page_size)
    except CapacityError:
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        write_database(file, path, name)
        rows, names = read(path, name)
        check_leaves(file, path)
        again = open_source(f"{path}:{name}")
    expected = stored_rows(table)
    assert names == again.names == table.column_names
    assert [row[0] for row in rows] == list(range(1, len(expected) + 1))
    assert typed([row[1:] for row in rows]) == typed(expected)
    assert typed(list(zip(*(again.key(column).to_pylist() for column in names), strict=True))) == typed(expected)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_trees_of_several_levels_are_intact(page_size: int, tmp_path: Path) -> None:
    records = PaperRecords("customer", 0.2)
    file = heap_file(load_pair(records, records, "c_custkey", "c_custkey")[0], page_size, records.published_pages(page_size))
    write_database(file, tmp_path / "x.db")
    rows, names = read(tmp_path / "x.db", "customer")
    assert names == ["c_custkey", "padding"]
    expected = records.take(np.arange(records.rows))
    assert rows == list(zip(range(1, records.rows + 1), expected.column(0).to_pylist(), expected.column(1).to_pylist(), strict=True))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("columns", [8, 12, 16, 40, 400])
def test_schemas_that_do_not_fit_on_page_1_are_intact(page_size: int, columns: int, tmp_path: Path) -> None:
    table = pa.table({f"column number {index}": pa.array([None] * 5, pa.int32()) for index in range(columns)})
    file = heap_file(relation_of(table), page_size)
    write_database(file, tmp_path / "x.db")
    assert read(tmp_path / "x.db", "t") == ([(row, *[None] * columns) for row in range(1, 6)], table.column_names)
    assert open_source(f"{tmp_path / 'x.db'}:t").names == table.column_names


def test_a_database_can_be_written_to_afterwards(tmp_path: Path) -> None:
    file = heap_file(relation_of(pa.table({"k": list(range(5000)), "text": ["words"] * 5000})), 512)
    path = tmp_path / "x.db"
    write_database(file, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM t WHERE k % 3 = 0")
        connection.execute("INSERT INTO t SELECT k + 5000, text || text FROM t")
        connection.execute("CREATE INDEX i ON t (k)")
        connection.commit()
        expected = connection.execute("SELECT * FROM t ORDER BY rowid").fetchall()
    assert read(path, "t")[0]
    source = open_source(f"{path}:t")
    assert list(zip(*(source.key(name).to_pylist() for name in source.names), strict=True)) == expected


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page_size", [8192, 65536])
def test_a_database_beyond_the_lock_byte_is_intact(page_size: int, tmp_path: Path) -> None:
    """More than 2**30 bytes, so that the page that SQLite keeps for locks lies among the leaves."""
    records = PaperRecords("orders", 7.2)
    file = heap_file(load_pair(records, records, "o_custkey", "o_custkey")[0], page_size)
    path = tmp_path / "x.db"
    write_database(file, path)
    assert path.stat().st_size > 2**30 + 2 * page_size
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        figures = connection.execute("SELECT count(*), sum(o_custkey), sum(length(padding)), max(rowid) FROM orders").fetchone()
    assert figures == (records.rows, int(records.keys.sum(dtype=np.int64)), 90 * records.rows, records.rows)
