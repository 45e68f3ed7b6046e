"""Tables and views inside SQLite database files, read without a lock, and without a trace in the file's folder.

Python's `sqlite3` tells what a table is, applies the write-ahead log, and reads views, tables WITHOUT ROWID and those with generated
columns.  The rows of all other tables are read from their pages, which takes a third of the time.  Values keep the types that they are
stored with: a column that mixes several becomes a union.
"""

import re
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.errors import DamagedFileError, FlashsimError, SchemaError, UnknownNameError
from flashsim.storage.columns import column_of, mixed_array
from flashsim.storage.page.sqlite import LARGEST_PAGE, SMALLEST_PAGE
from flashsim.storage.record import locate_values, stored_values
from flashsim.storage.source._sqlite_tree import Database, read_tree
from flashsim.storage.source.base import TableRecords, reading, split_file

SUFFIXES = (".sqlite", ".sqlite3", ".db")

_MAGIC, _JOURNAL_MAGIC = b"SQLite format 3\0", bytes.fromhex("d9d505f920a163d7")
_HEADER, _SMALLEST_USABLE = 100, 480
#: Rows at a time: fewer new objects than make Python look for garbage among all it holds, which doubles the time.
_BATCH = 512
#: Bytes that a value of a view, or of a generated column, may always have.
_LONGEST_MADE = 1 << 24
#: Storage classes, in the order of `mixed_array`.
_KINDS = {int: pa.int64(), float: pa.float64(), str: pa.large_string(), bytes: pa.large_binary()}


def open_records(text: str) -> TableRecords:
    """The rows of a table, such as ``chinook.sqlite:Album``, in order of row id or of the primary key, or of a view."""
    file, table = split_file(text, SUFFIXES) or (text, "")
    path = Path(file)
    with reading(path):
        _refuse_journal(path)
        before = _state(path)
        try:
            with _settled(path) as settled:
                database = _database(path, settled)
                with closing(sqlite3.connect(f"{settled.absolute().as_uri()}?immutable=1", uri=True)) as connection:
                    name, rows = _rows(database, connection, table)
        except (sqlite3.Error, MemoryError) as problem:
            raise _refusal(f"{path}: {table}", problem) from None
        if _state(path) != before:
            raise DamagedFileError(f"{path}: it was changed while it was read")
    return TableRecords(name, rows)


def example(folder: Path) -> str:
    """A table with NULL in all columns, and values of several types in two."""
    path = folder / "example.sqlite"
    rows = [(5, "a", 1.0), (300, None, 2.5), (None, "ccc" * 50, None), (-7, "", -0.0), (5, "e", 1e300), ("mixed", b"\0\xff", 7)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (k, text TEXT, real REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    return f"{path}:t"


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _state(path: Path) -> list[tuple[int, int]]:
    return [(each.stat().st_size, each.stat().st_mtime_ns) for each in (path, _log(path)) if each.is_file()]


def _refuse_journal(path: Path) -> None:
    journal = path.with_name(path.name + "-journal")
    if journal.is_file():
        with journal.open("rb") as opened:
            if opened.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC:
                raise DamagedFileError(f"{path}: {journal.name} says that a transaction was interrupted; open it with sqlite3 once")


def _database(path: Path, file: Path) -> Database:
    """The pages of a file, which messages call `path`; SQLite checks less of its header, and reads a shorter file up to its end."""
    data = np.fromfile(file, np.uint8)
    head = data[:_HEADER].tobytes()
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        raise DamagedFileError(f"{path}: it is no SQLite database, or an encrypted one")
    (written,) = struct.unpack_from(">H", head, 16)
    size = LARGEST_PAGE if written == 1 else written
    if size & (size - 1) or not SMALLEST_PAGE <= size <= LARGEST_PAGE:
        raise DamagedFileError(f"{path}: its header gives a page size of {size} B, which SQLite does not have")
    (changed, count), (valid_for,), (encoding,) = (struct.unpack_from(form, head, at) for form, at in ((">II", 24), (">I", 92), (">I", 56)))
    held = len(data) // size
    if count == 0 or changed != valid_for:  # versions before 3.7.0 do not keep the count; the file's length holds then
        count = held
    if held < count or not held:
        raise DamagedFileError(f"{path}: it is truncated: {held} pages of {max(count, 1)}")
    if max(head[18:20]) > 2 or head[21:24] != bytes((64, 32, 32)) or size - head[20] < _SMALLEST_USABLE or encoding > 3:
        raise DamagedFileError(f"{path}: its header is damaged")
    return Database(path, data[: count * size].reshape(count, size), size - head[20])


@contextmanager
def _settled(path: Path) -> Iterator[Path]:
    """A file whose pages are those of the last commit, which nobody changes: the file itself, or a copy that its log was applied to."""
    log = _log(path)
    if not (log.is_file() and log.stat().st_size):
        yield path
        return
    with TemporaryDirectory(prefix="flashsim-") as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        shutil.copyfile(log, _log(copy))
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield copy


def _rows(database: Database, connection: sqlite3.Connection, wanted: str) -> tuple[str, pa.Table]:
    path = database.path
    # No stored value is longer than the file, whatever its damaged length says.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_LONGEST_MADE, 2 * database.pages.size))
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")  # they are no damage, and may call functions that are not there
    schema = connection.execute("SELECT name, type, rootpage, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    found = [row for row in schema if _folded(row[0]) == _folded(wanted)]
    if not found:
        raise UnknownNameError(f"table in {path}", wanted, [name for name, *_ in schema])
    name, kind, root, statement = found[0]
    if kind == "table" and re.match(r"CREATE\s+VIRTUAL", statement, re.IGNORECASE):
        raise SchemaError(f"{path}: {name} is a virtual table, but only ordinary tables and views are read")
    quoted = _quoted(name)
    columns = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
    if kind == "table" and database.is_table(root) and not any(hidden for *_, hidden in columns):
        return name, _of_pages(database, connection, quoted, root, columns)
    # Tables that a view reads are checked with all others.
    for (told,) in connection.execute(f"PRAGMA quick_check({quoted})" if kind == "table" else "PRAGMA quick_check"):
        if told.startswith("***"):
            raise DamagedFileError(f"{path}: {name} is damaged: {' '.join(told.splitlines()[1:2])[:100]}")
    cursor = connection.execute(f"SELECT * FROM {quoted}")
    names = [column[0] for column in cursor.description]
    batches: list[list[pa.Array]] = [[] for _ in names]
    while rows := cursor.fetchmany(_BATCH):
        for chunks, values in zip(batches, zip(*rows, strict=True), strict=True):
            chunks.append(_array(values))
    return name, pa.table([_column(chunks) for chunks in batches], names)


def _of_pages(database: Database, connection: sqlite3.Connection, table: str, root: int, columns: list[Any]) -> pa.Table:
    """The rows of a table with row ids, of which `table_xinfo` tells the columns."""
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    # A primary key that is the row id has no index.
    has_index = any(origin == "pk" for *_, origin, _ in connection.execute(f"PRAGMA index_list({table})"))
    keys = [place for place, *_, key, _ in columns if key]
    row_id = keys[0] if len(keys) == 1 and not has_index else -1
    rows = read_tree(database, root)
    types = np.zeros((len(rows.row_ids), len(columns)), np.int64)
    at = np.zeros_like(types)
    wrong = locate_values(rows.data, rows.starts, rows.ends, types, at)
    if wrong >= 0:
        raise database.damaged(f"the record of row {rows.row_ids[wrong]} is damaged")
    arrays = []
    for place, name, declared, *_ in columns:
        if place == row_id:
            arrays.append(column_of(rows.row_ids))
            continue
        kinds, places, data = types[:, place].copy(), at[:, place].copy(), rows.data
        if (short := kinds < 0).any():  # rows that are older than the column all have its default
            query = f"SELECT {_quoted(name)} FROM {table} NOT INDEXED LIMIT 1 OFFSET {int(np.argmax(short))}"
            (value,) = connection.execute(query).fetchone()
            kind, content = _cell(value, encoding)
            kinds[short], places[short] = kind, len(data)
            data = np.concatenate([data, np.frombuffer(content, np.uint8)])
        try:
            arrays.append(stored_values(data, kinds, places, declared_real=_is_real(declared), encoding=encoding.lower()))
        except DamagedFileError as problem:
            raise database.damaged(f"column {name}: {problem}") from None
    return pa.table(arrays, [name for _, name, *_ in columns])


def _cell(value: int | float | str | bytes | None, encoding: str) -> tuple[int, bytes]:
    """Serial type and bytes of a value."""
    if value is None:
        return 0, b""
    if isinstance(value, int | float):
        return (6, struct.pack(">q", value)) if isinstance(value, int) else (7, struct.pack(">d", value))
    content = value.encode(encoding) if isinstance(value, str) else value
    return 2 * len(content) + (13 if isinstance(value, str) else 12), content


def _is_real(declared: str) -> bool:
    """Whether a column of a declared type has the affinity REAL ("Datatypes In SQLite", section 3.1)."""
    name = _folded(declared)
    return not any(part in name for part in ("INT", "CHAR", "CLOB", "TEXT", "BLOB")) and any(
        part in name for part in ("REAL", "FLOA", "DOUB")
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _folded(name: str) -> str:
    """What SQLite compares of a name: only the case of ASCII letters is nothing to it."""
    return name.encode().upper().decode()


def _array(values: tuple[Any, ...] | list[Any]) -> pa.Array:
    found = set(map(type, values)) - {type(None)}
    if len(found) < 2:
        return pa.array(values, _KINDS[found.pop()] if found else pa.null())
    places = {kind: place for place, kind in enumerate(_KINDS)} | {type(None): 0}
    classes = np.array([places[type(value)] for value in values], np.int8)
    parts = [pa.array([value if type(value) is kind else None for value in values], stored) for kind, stored in _KINDS.items()]
    return mixed_array(classes, *parts)


def _column(chunks: list[pa.Array]) -> pa.ChunkedArray:
    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    if len(kinds) > 1 or any(map(pa.types.is_union, kinds)):
        return pa.chunked_array([_array([value for chunk in chunks for value in chunk.to_pylist()])])
    kind = kinds.pop() if kinds else pa.null()
    return pa.chunked_array([chunk if chunk.type == kind else chunk.cast(kind) for chunk in chunks], kind)


def _refusal(table: str, problem: Exception) -> FlashsimError:
    """What SQLite says, as one line about the table."""
    words = " ".join(str(problem).split())[:200]
    if text := re.match(r"Could not decode to UTF-8 column '(.*?)' with text", words):
        return DamagedFileError(f"{table} is damaged: column {text[1]}: a text is not valid UTF-8")
    if words.startswith(("no such", "unsafe use")):
        return SchemaError(f"{table} cannot be read: {words}")
    return DamagedFileError(f"{table} is damaged: {words or 'a value is too long'}")
