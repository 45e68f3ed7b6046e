"""What the real SQLite writes, flashsim reads row for row."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, SchemaError, UnknownNameError
from flashsim.storage.source import open_source
from tests.tiers import examples

CHINOOK = {
    "Album", "Artist", "Customer", "Employee", "Genre", "Invoice", "InvoiceLine", "MediaType", "Playlist", "PlaylistTrack", "Track",
}  # fmt: skip


def typed(rows: list[Any]) -> list[Any]:
    """Rows in which 1 and 1.0 differ."""
    return [[(type(value), value) for value in row] for row in rows]


def check(path: Path, table: str, connection: sqlite3.Connection) -> int:
    """Both read the same rows in order of the row id, or else of the primary key; returns how many."""
    quoted = table.replace('"', '""')
    try:
        cursor = connection.execute(f'SELECT * FROM "{quoted}" NOT INDEXED ORDER BY rowid')
    except sqlite3.OperationalError:
        cursor = connection.execute(f'SELECT * FROM "{quoted}"')
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
    "INTEGER(10)",
    "FLO/* INT */AT (3)",
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


@settings(max_examples=examples(120))
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
    "create",
    [
        "CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID",
        "CREATE TABLE t (b, a, PRIMARY KEY (a DESC)) WITHOUT ROWID, STRICT".replace("b, a,", "b ANY, a ANY,"),
        "CREATE TABLE t (a, b, c AS (a + 1))",
        "CREATE TABLE t (a, b, c INT GENERATED ALWAYS AS (a || b) STORED)",
        "CREATE TABLE t (rowid, a, b, oid)",
        "CREATE TABLE t (a, b CHECK (b <> 'four' OR unknown(b)))",
        "CREATE TABLE s (a, b); CREATE VIEW t AS SELECT b, a, a || b AS c FROM s WHERE a <> 2 ORDER BY b",
    ],
)
def test_what_is_no_plain_table_is_read_as_select_does(create: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("unknown", 1, bool)  # which only this program defines
        connection.executescript(create)
        filled = "s" if "VIEW" in create else "t"
        connection.executemany(f"INSERT INTO {filled} (a, b) VALUES (?, ?)", [(3, "three"), (1, None), (2, "two"), (-4, "four")])
        connection.commit()
        expected = connection.execute("SELECT * FROM t").fetchall()
    source = open_source(f"{path}:t")
    assert typed(list(zip(*(source.key(name).to_pylist() for name in source.names), strict=True))) == typed(expected)
    assert source.rows == len(expected) == (3 if filled == "s" else 4)


@pytest.mark.parametrize(
    ("create", "error", "message"),
    [
        ("CREATE VIEW t AS SELECT * FROM absent", SchemaError, "t cannot be read: no such table: main.absent"),
        ("CREATE VIEW t AS SELECT load_extension('x')", SchemaError, "t cannot be read: unsafe use of load_extension"),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", SchemaError, "t is a virtual table"),
        ("CREATE TABLE Tea (a)", UnknownNameError, "'t' is unknown"),
    ],
)
def test_what_has_no_rows_to_read_is_refused_by_name(create: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    make(tmp_path / "x.sqlite3", create)
    with pytest.raises(error, match=message):
        open_source(f"{tmp_path / 'x.sqlite3'}:t")


WORDS_OF_TYPES = [
    "INTEGER", "integer", "InTeGeR", '"INTEGER"', "[integer]", "`INTEGER`", "'INTEGER'", "INT", "BIGINT", "TEXT", '""',
    '"INTE""GER"', "ıNTEGER", "GENERATED", "generated", "ALWAYS", "KEY",
]  # fmt: skip
BETWEEN = [" ", "  ", "/**/", " /* INTEGER */ ", "\n", " -- INTEGER (10)\n"]
NAMES = ["id", "ID", '"id"', "[Id]", "`iD`", "'id'"]


@st.composite
def key_columns(draw: st.DrawFn) -> str:
    """A table with a column `id` that may be an alias of the row id, in one of SQLite's many spellings."""
    words = draw(st.lists(st.sampled_from(WORDS_OF_TYPES), max_size=3) | st.sampled_from([["INTEGER"], ["integer", "generated", "ALWAYS"]]))
    kind = "".join(draw(st.sampled_from(BETWEEN)) + word for word in words)
    if words:
        kind += draw(st.sampled_from(["", "", "", "(10)", " (10)", "/**/(+10,-2)"]))
    constraints = draw(
        st.sampled_from(["", "", " NOT NULL", " DEFAULT 7", " CONSTRAINT c", " CHECK (id > 0)", " COLLATE nocase", " UNIQUE"])
    )
    order = draw(st.sampled_from(["", "", " ASC", " DESC", " desc"]))
    conflict = draw(st.sampled_from(["", "", " ON CONFLICT IGNORE"]))
    space = draw(st.sampled_from(BETWEEN))
    if draw(st.booleans()):
        counted = draw(st.sampled_from(["", "", " AUTOINCREMENT"]))
        return f"{draw(st.sampled_from(NAMES))}{kind}{constraints}{space}PRIMARY{space}KEY{order}{conflict}{counted}, x"
    key = draw(st.sampled_from([*NAMES, "(id)", '(("id"))', "id COLLATE nocase", "id, x", "x"]))
    counted = draw(st.sampled_from(["", "", "", " AUTOINCREMENT"]))
    before = draw(st.sampled_from(["", "CONSTRAINT k ", "CHECK (x <> 'PRIMARY KEY (x)') ", "UNIQUE (x), "]))
    return f"{draw(st.sampled_from(NAMES))}{kind}{constraints}, x,{space}{before}primary{space}key{space}({key}{order}{counted}){conflict}"


@settings(max_examples=examples(400))
@given(key_columns(), st.sampled_from(["", "", " STRICT", " WITHOUT ROWID"]))
def test_which_column_is_the_row_id(columns: str, options: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            try:
                connection.execute(f"CREATE TABLE t ({columns}){options}")
            except sqlite3.OperationalError:
                return
            connection.execute("INSERT INTO t (id, x) VALUES (100, 7), (101, 8)")
            assert check(path, "t", connection) == 2


@pytest.mark.parametrize("kind", ["INTEGER(10)", "INTEGER (10, 2)", "INTEGER"])
@pytest.mark.parametrize("table", ["id {} PRIMARY KEY, x", "id {}, x, PRIMARY KEY (id)", "x, id {}, PRIMARY KEY (ID DESC)"])
def test_a_length_keeps_a_key_from_being_the_row_id(table: str, kind: str, tmp_path: Path) -> None:
    make(tmp_path / "x.db", f"CREATE TABLE t ({table.format(kind)})", "INSERT INTO t (id, x) VALUES (100, 'a'), (101, 'b')")
    assert open_source(f"{tmp_path / 'x.db'}:t").key("id").to_pylist() == [100, 101]


def test_a_column_whose_type_says_generated_is_stored(tmp_path: Path) -> None:
    make(tmp_path / "x.db", "CREATE TABLE t (id INTEGER GENERATED ALWAYS PRIMARY KEY, x)", "INSERT INTO t VALUES (100, 'a')")
    assert open_source(f"{tmp_path / 'x.db'}:t").key("id").to_pylist() == [100]


NUMBERS = [
    "0", "5", "007", "1.5", "1.50", "5.", ".5", "1e3", "1E+3", "1e-400", "1e400", "1e15", "1e18", "1e19", "1e22", "0.0",
    "9007199254740993.0",
    "2147483647", "2147483648", "02147483648", "4611686018427387904.0", "4611686018427387905", "9223372036854775807", "9223372036854775808",
    "9223372036854775807.0", "18446744073709551616", "123456789012345678901234567890", "0x10", "0X0000000000000001f", "0x7fffffff",
    "0x80000000", "0x0000000080000000", "0x7fffffffffffffff", "0x8000000000000000", "0xFFFFFFFFFFFFFFFF", "1_000", "0x1_0", "1_0.5_0e1_0",
]  # fmt: skip
TEXTS_OF_NUMBERS = [
    "'5'",
    "' 5 '",
    "'+5'",
    "'-0'",
    "'1e3'",
    "'5.'",
    "'0x10'",
    "'1_0'",
    "'1e'",
    "''",
    "'- 5'",
    "'9223372036854775807.0'",
    "'٣'",
]


@pytest.mark.parametrize("affinity", ["", "TEXT", "INTEGER", "NUMERIC", "REAL", "BLOB"])
def test_defaults_of_added_columns(affinity: str, tmp_path: Path) -> None:
    """Rows that are older than a column have what SQLite gives them for each way to write a number."""
    path = tmp_path / "x.db"
    written = [sign + number for number in NUMBERS for sign in ("", "-", "+", "- /**/ ")] + TEXTS_OF_NUMBERS + ["TRUE", "false", "NULL"]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        columns = {}
        for index, default in enumerate(written):
            if "_" not in default or sqlite3.sqlite_version_info >= (3, 46):
                connection.execute(f"ALTER TABLE t ADD COLUMN z{index} {affinity} DEFAULT {default}")
                columns[default] = f"z{index}"
        told = dict(zip(columns, connection.execute(f"SELECT {', '.join(columns.values())} FROM t").fetchone(), strict=True))
    source = open_source(f"{path}:t")
    read = {default: source.key(column).to_pylist()[0] for default, column in columns.items()}
    assert {(key, type(read[key]), read[key]) for key in told} == {(key, type(told[key]), told[key]) for key in told}


def test_a_default_that_is_an_expression_is_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b TEXT DEFAULT (-5)")
    assert open_source(f"{path}:t").key("b").to_pylist() == ["-5"]
    make(path, "DELETE FROM t", "INSERT INTO t VALUES (1, 2)")
    assert open_source(f"{path}:T").key("b").to_pylist() == ["2"]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_is_neither_altered_nor_locked_nor_left_with_company(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while somebody writes to it, and not where its folder may not be written to."""
    path, writer = tmp_path / "x ?#%.db", sqlite3.connect(tmp_path / "x ?#%.db", isolation_level=None, timeout=0)
    with closing(writer):
        writer.execute(f"PRAGMA journal_mode = {mode}")
        writer.execute("CREATE TABLE t (a)")
        writer.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(2000)])
        before = {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in tmp_path.iterdir()}
        steps = []

        def beginning(*arguments: Any, **options: Any) -> pa.Table:  # while the reader is about to return its rows
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("ROLLBACK")
            steps.append(mode)
            return genuine(*arguments, **options)

        genuine = pa.table
        monkeypatch.setattr("pyarrow.table", beginning)
        assert open_source(f"{path}:t").key("a").to_pylist() == list(range(2000)) and steps
        monkeypatch.undo()
        after = {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in tmp_path.iterdir()}
        assert {name for name in after if not name.endswith("-shm")} == {name for name in before if not name.endswith("-shm")}
        assert all(after[name] == before[name] for name in before if not name.endswith("-shm"))
    left = {each.name for each in tmp_path.iterdir()}
    assert open_source(f"{path}:t").rows == 2000
    assert {each.name for each in tmp_path.iterdir()} == left == {path.name}


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    make(path, "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    genuine = pa.table

    def changing(*arguments: Any, **options: Any) -> pa.Table:
        make(path, "INSERT INTO t VALUES (2)")
        return genuine(*arguments, **options)

    monkeypatch.setattr("pyarrow.table", changing)
    with pytest.raises(DamagedFileError, match="it was changed while it was read"):
        open_source(f"{path}:t")


@pytest.mark.parametrize(("encoding", "data"), [("UTF-8", "ff00fe"), ("UTF-16le", "3dd80041"), ("UTF-16be", "d83d4100")])
def test_texts_of_no_encoding_are_refused(encoding: str, data: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, f"PRAGMA encoding = '{encoding}'", "CREATE TABLE t (a)", f"INSERT INTO t VALUES (CAST(x'{data}' AS TEXT))")
    with pytest.raises(DamagedFileError, match=f'column "?a"?: a text is not valid {encoding}'):
        open_source(f"{path}:t")


@pytest.mark.parametrize("rows", [45_000, pytest.param(100_000, marks=pytest.mark.deep)])
def test_trees_of_thousands_of_pages(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(
        path,
        "PRAGMA page_size = 512",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        "INSERT INTO t SELECT i * 7, 'row ' || i || ' of many' FROM n",
    )
    with closing(sqlite3.connect(path)) as connection:
        assert check(path, "t", connection) == rows
