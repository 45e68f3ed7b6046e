"""What the real SQLite writes, flashsim reads row for row from the pages."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, SchemaError, UnknownNameError
from flashsim.storage.source import open_source

CHINOOK = {
    "Album", "Artist", "Customer", "Employee", "Genre", "Invoice", "InvoiceLine", "MediaType", "Playlist", "PlaylistTrack", "Track",
}  # fmt: skip


def typed(rows: list[Any]) -> list[Any]:
    """Rows in which 1 and 1.0 differ."""
    return [[(type(value), value) for value in row] for row in rows]


def check(path: Path, table: str, connection: sqlite3.Connection) -> int:
    """Both read the same rows; returns how many."""
    quoted = table.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}" NOT INDEXED ORDER BY rowid')
    expected, names = cursor.fetchall(), [column[0] for column in cursor.description]
    source = open_source(f"{path}:{table}")
    assert source.names == names
    columns = [source.key(name).to_pylist() for name in names]
    assert typed(list(zip(*columns, strict=True))) == typed(expected)
    assert source.rows == len(expected)
    return len(expected)


def test_chinook_in_whole(test_data: Path) -> None:
    path = test_data / "sqlite" / "Chinook_Sqlite.sqlite"
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == CHINOOK
        assert sum(check(path, table, connection) for table in CHINOOK) == 15_607


whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300) | st.sampled_from([0, 1, 2**47, -(2**47)])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["1", "1.0", " 7 ", "1e3", "é" * 300, "long " * 700]
)
values = st.none() | whole | st.floats(allow_nan=False) | texts | st.binary(max_size=30) | st.sampled_from([b"\0" * 4000, b"x" * 490])
DECLARED = [
    "",
    "INTEGER",
    "INT",
    "TEXT",
    "VARCHAR(20)",
    "REAL",
    "DOUBLE PRECISION",
    "FLOAT",
    "BLOB",
    "NUMERIC(10, 2)",
    "BOOLEAN",
    "DATE",
    '"my type"',
]
ADDED = [
    None, "z INTEGER", "z TEXT DEFAULT 5", "z DEFAULT -1.5", "z REAL DEFAULT 3", "z INT DEFAULT '12'", "z DEFAULT x'0aff'",
    "z DEFAULT 'it''s'", "z DEFAULT TRUE", "z NUMERIC DEFAULT 1e3", "z DEFAULT 0x10",
]  # fmt: skip
COLUMN_NAMES = ["a", "B", '"two words"', "[br ack]", "`tick`", "'string'", '"quo""te"', "größe", "_x9", '"select"', '"a,b"', '"c)"']


@st.composite
def databases(draw: st.DrawFn) -> dict[str, Any]:
    """What to make a database of."""
    names = draw(st.lists(st.sampled_from(COLUMN_NAMES), min_size=1, max_size=5, unique=True))
    columns = [f"{name} {draw(st.sampled_from(DECLARED))}" for name in names]
    extra = draw(
        st.sampled_from(
            ["", " -- a comment, with (marks\n", " CHECK (1 IN (1, 2)) NOT NULL DEFAULT 'a, b'", " /* note */ UNIQUE", " COLLATE NOCASE"]
        )
    )
    if draw(st.booleans()):
        key = draw(
            st.sampled_from(
                ["id INTEGER PRIMARY KEY", "id integer primary key autoincrement", "id INTEGER PRIMARY KEY DESC", "id INT PRIMARY KEY"]
            )
        )
        columns.insert(draw(st.integers(0, len(columns))), key)
    elif draw(st.booleans()):
        columns += [
            "k INTEGER",
            draw(st.sampled_from(["PRIMARY KEY (k)", "CONSTRAINT c PRIMARY KEY (k DESC)", "UNIQUE (k) CHECK (k > -99)"])),
        ]
    return {
        "create": f"CREATE TABLE t({columns[0]}{extra if columns[0].startswith(names[0]) and not extra.startswith(' CHECK') else ''}"
        + "".join(f", {column}" for column in columns[1:]) + ")",
        "names": names,
        "rows": draw(st.lists(st.lists(values, min_size=len(names), max_size=len(names)), max_size=40)),
        "page_size": draw(st.sampled_from([512, 1024, 4096, 65536])),
        "encoding": draw(st.sampled_from(["UTF-8", "UTF-16le", "UTF-16be"])),
        "vacuum": draw(st.sampled_from(["NONE", "FULL", "INCREMENTAL"])),
        "delete": draw(st.sampled_from([None, 2, 3])),
        "compact": draw(st.booleans()),
        "wal": draw(st.booleans()),
        "add": draw(st.sampled_from(ADDED)),
    }  # fmt: skip


@settings(max_examples=120)
@given(databases())
def test_tables_of_all_kinds(made: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            for pragma in ("page_size", "encoding"):
                connection.execute(f"PRAGMA {pragma} = '{made[pragma]}'")
            connection.execute(f"PRAGMA auto_vacuum = {made['vacuum']}")
            connection.execute(made["create"])
            connection.execute("CREATE TABLE other (x); ")
            insert = f"INSERT OR IGNORE INTO t ({', '.join(made['names'])}) VALUES ({', '.join('?' * len(made['names']))})"
            connection.executemany(insert, made["rows"])
            if made["wal"]:
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
            if made["delete"]:
                connection.execute(f"DELETE FROM t WHERE rowid % {made['delete']} = 0")
            if made["add"]:
                connection.execute(f"ALTER TABLE t ADD COLUMN {made['add']}")
                connection.executemany(insert, made["rows"][:5])
            if made["compact"]:
                connection.execute("VACUUM")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            check(path, "t", connection)
            assert check(path, "other", connection) == 0
            assert (Path(folder) / "x.db-wal").exists() == made["wal"]


def make(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_log_counts_up_to_its_last_commit(tmp_path: Path) -> None:
    """Frames of an unfinished transaction, and a log that is torn anywhere, leave the rows of the last whole commit."""
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    states = []
    log = tmp_path / "x.db-wal"
    for count in range(6):
        connection.execute("INSERT INTO t VALUES (?)", (f"row {count} " * 900,))
        states.append((log.stat().st_size, connection.execute("SELECT a FROM t").fetchall()))
    whole = log.read_bytes()
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    connection.close()
    for size in range(0, len(whole), 997):
        (tmp_path / "copy.db-wal").write_bytes(whole[:size])
        committed = [rows for end, rows in states if end <= size]
        try:
            rows = open_source(f"{copy}:t").key("a").to_pylist()
        except UnknownNameError:  # not even the table is committed
            rows = []
            assert not committed
        assert rows == [row[0] for row in (committed[-1] if committed else [])]
    first = states[0][0]
    for place in (first + 1, first + 9, first + 30, first + 2000):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / "copy.db-wal").write_bytes(damaged)
        assert open_source(f"{copy}:t").key("a").to_pylist() == [row[0] for row in states[0][1]]


def test_a_restarted_log_ignores_old_frames(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"first {i} " * 200,) for i in range(20)])
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("UPDATE t SET a = 'second'  WHERE rowid = 3")
        assert check(path, "t", connection) == 20


def test_an_interrupted_transaction_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    journal = tmp_path / "x.db-journal"
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    with pytest.raises(DamagedFileError, match=r"x\.db-journal says that a transaction was interrupted"):
        open_source(f"{path}:t")
    journal.write_bytes(bytes(512))  # the journal mode PERSIST leaves zeros
    assert open_source(f"{path}:t").rows == 1


@pytest.mark.parametrize(
    ("create", "error", "message"),
    [
        ("CREATE VIEW t AS SELECT 1 AS a", SchemaError, "t is a view"),
        ("CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID", SchemaError, "t is a table WITHOUT ROWID"),
        ("CREATE TABLE t (a, b AS (a + 1))", SchemaError, "column b of t is generated"),
        ("CREATE TABLE t (a, b INT GENERATED ALWAYS AS (a + 1) STORED)", SchemaError, "column b of t is generated"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", SchemaError, "t is a virtual table"),
        ("CREATE TABLE Tea (a)", UnknownNameError, "'t' is unknown"),
    ],
)
def test_what_has_no_rows_on_table_pages_is_refused_by_name(create: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    make(tmp_path / "x.sqlite3", create)
    with pytest.raises(error, match=message):
        open_source(f"{tmp_path / 'x.sqlite3'}:t")


def test_a_default_that_is_an_expression_is_refused_where_rows_need_it(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b TEXT DEFAULT 1.5")
    with pytest.raises(SchemaError, match="column b is missing from older rows"):
        open_source(f"{path}:t")
    make(path, "DELETE FROM t", "INSERT INTO t VALUES (1, 2)")
    assert open_source(f"{path}:T").key("b").to_pylist() == ["2"]


def test_texts_of_no_encoding_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (CAST(x'ff00fe' AS TEXT))")
    with pytest.raises(DamagedFileError, match="column a: a text is not valid UTF-8"):
        open_source(f"{path}:t")


def test_trees_of_thousands_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(
        path,
        "PRAGMA page_size = 512",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        "INSERT INTO t SELECT i * 7, 'row ' || i || ' of many' FROM n",
    )
    with closing(sqlite3.connect(path)) as connection:
        assert check(path, "t", connection) == 100_000
