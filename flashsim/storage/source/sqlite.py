"""Tables inside SQLite database files, read from their pages.

Values keep the types that they are stored with: a column that mixes several becomes a union.  The row id stands in the column that
SQLite makes its alias (INTEGER PRIMARY KEY), and rows that are older than a column have its default.
"""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core.errors import DamagedFileError, SchemaError, UnknownNameError
from flashsim.core.request import Integers
from flashsim.storage.columns import column_of
from flashsim.storage.record import locate_values, stored_values
from flashsim.storage.source._sql import folded
from flashsim.storage.source._sqlite_file import Database, read_database
from flashsim.storage.source._sqlite_schema import Column, TableDefinition, Value, parse_table
from flashsim.storage.source._sqlite_tree import TreeRows, read_tree
from flashsim.storage.source.base import TableRecords, split_file

SUFFIXES = (".sqlite", ".sqlite3", ".db")

_SCHEMA = TableDefinition(
    [Column(name, "INTEGER" if name == "rootpage" else "TEXT") for name in ("type", "name", "tbl_name", "rootpage", "sql")], False
)


def open_records(text: str) -> TableRecords:
    """The rows of a table, such as ``chinook.sqlite:Album``, in order of row id."""
    path, table = split_file(text, SUFFIXES) or (text, "")
    database = read_database(Path(path))
    name, root, definition = _find(database, table)
    return TableRecords(name, _read(database, root, definition))


def example(folder: Path) -> str:
    """A table with NULL in all columns, and values of several types in two."""
    path = folder / "example.sqlite"
    rows = [(5, "a", 1.0), (300, None, 2.5), (None, "ccc" * 50, None), (-7, "", -0.0), (5, "e", 1e300), ("mixed", b"\0\xff", 7)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (k, text TEXT, real REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    return f"{path}:t"


def _find(database: Database, wanted: str) -> tuple[str, int, TableDefinition]:
    schema = _read(database, 1, _SCHEMA).to_pylist()
    if not all(row["type"] in ("table", "view", "index", "trigger") and isinstance(row["name"], str) for row in schema):
        raise database.damaged("its schema table is damaged")
    rows = [row for row in schema if row["type"] in ("table", "view")]
    found = [row for row in rows if folded(row["name"]) == folded(wanted)]
    if not found:
        raise UnknownNameError(f"table in {database.path}", wanted, [row["name"] for row in rows])
    name, root, statement = found[0]["name"], found[0]["rootpage"], found[0]["sql"]
    if found[0]["type"] == "view":
        raise SchemaError(f"{database.path}: {name} is a view, but only tables have pages")
    if not isinstance(statement, str) or not isinstance(root, int):
        raise database.damaged(f"the definition of table {name} is damaged")
    if statement.upper().startswith("CREATE VIRTUAL"):
        raise SchemaError(f"{database.path}: {name} is a virtual table, but only ordinary tables have pages")
    try:
        definition = parse_table(statement)
    except ValueError as problem:
        raise database.damaged(f"the definition of table {name} is damaged: {problem}") from None
    if definition.without_row_id:
        raise SchemaError(f"{database.path}: {name} is a table WITHOUT ROWID, but only rowid tables are read")
    generated = [column.name for column in definition.columns if column.generated]
    if generated:
        raise SchemaError(f"{database.path}: column {generated[0]} of {name} is generated, but only stored columns are read")
    return name, root, definition


def _read(database: Database, root: int, definition: TableDefinition) -> pa.Table:
    """All rows of a table."""
    rows = read_tree(database, root)
    columns = definition.columns
    types = np.zeros((len(rows.row_ids), len(columns)), np.int64)
    at = np.zeros_like(types)
    wrong = locate_values(rows.data, rows.starts, rows.ends, types, at)
    if wrong >= 0:
        raise database.damaged(f"the record of row {rows.row_ids[wrong]} is damaged")
    arrays = {}
    for index, column in enumerate(columns):
        if column.is_row_id:
            arrays[column.name] = column_of(rows.row_ids)
            continue
        try:
            arrays[column.name] = _values(database, rows, column, types[:, index].copy(), at[:, index].copy())
        except DamagedFileError as problem:
            raise database.damaged(f"column {column.name}: {problem}") from None
    if len(arrays) < len(columns):
        raise database.damaged("two columns of a table share a name")
    return pa.table(arrays)


def _values(database: Database, rows: TreeRows, column: Column, types: Integers, at: Integers) -> pa.Array:
    """One column, with its default where records are too short to hold it."""
    data = rows.data
    short = types < 0
    if short.any():
        if column.default_problem:
            raise SchemaError(f"{database.path}: column {column.name} is missing from older rows, and {column.default_problem}")
        kind, content = _default_cell(column.default, database.encoding)
        types[short], at[short] = kind, len(data)
        data = np.concatenate([data, np.frombuffer(content, np.uint8)])
    return stored_values(data, types, at, declared_real=column.affinity == "REAL", encoding=database.encoding)


def _default_cell(value: Value, encoding: str) -> tuple[int, bytes]:
    """Serial type and bytes of a constant."""
    if value is None:
        return 0, b""
    if isinstance(value, int):
        return 6, struct.pack(">q", value)
    if isinstance(value, float):
        return 7, struct.pack(">d", value)
    content = value.encode(encoding) if isinstance(value, str) else value
    return 2 * len(content) + (13 if isinstance(value, str) else 12), content
