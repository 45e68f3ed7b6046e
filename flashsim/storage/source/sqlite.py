"""Tables and views inside SQLite database files, read without a lock, and without a trace in the file's folder.

Python's `sqlite3` checks a table, applies the write-ahead log and reads the rows.  Values keep the types that they are stored with: a
column that mixes several becomes a union.
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
from flashsim.storage.columns import mixed_array
from flashsim.storage.packed_files import unpack_first
from flashsim.storage.page.base import quote_name
from flashsim.storage.page.sqlite import LARGEST_PAGE, SMALLEST_PAGE
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
            with _settled_file(path) as settled:
                _check_header(path, settled)
                with closing(sqlite3.connect(f"{settled.absolute().as_uri()}?immutable=1", uri=True)) as connection:
                    # No stored value is longer than the file, whatever its damaged length says.
                    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_LONGEST_MADE, 2 * settled.stat().st_size))
                    name, rows = _rows(path, connection, table)
        except (sqlite3.Error, MemoryError) as problem:
            raise _refusal(f"{path}: {table}", problem) from None
        if _state(path) != before:
            raise DamagedFileError(f"{path}: it was changed while it was read")
    return TableRecords(name, rows)


def example(folder: Path) -> str:
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


def _check_header(path: Path, file: Path) -> None:
    """Refuse a file, which messages call `path`, by its header: SQLite checks less of it, and reads a shorter file up to its end."""
    head, length = np.fromfile(file, np.uint8, _HEADER).tobytes(), file.stat().st_size
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        raise DamagedFileError(f"{path}: {unpack_first(path) or 'it is not a SQLite database, or it is encrypted'}")
    (written,) = struct.unpack_from(">H", head, 16)
    size = LARGEST_PAGE if written == 1 else written
    if size & (size - 1) or not SMALLEST_PAGE <= size <= LARGEST_PAGE:
        raise DamagedFileError(f"{path}: its header gives a page size of {size} B, which SQLite does not have")
    (changed, count), (valid_for,), (encoding,) = (struct.unpack_from(form, head, at) for form, at in ((">II", 24), (">I", 92), (">I", 56)))
    stored = length // size
    if count == 0 or changed != valid_for:  # versions before 3.7.0 do not keep the count; the file's length holds then
        count = stored
    if stored < count or not stored:
        raise DamagedFileError(f"{path}: it is truncated: {stored} pages of {max(count, 1)}")
    if max(head[18:20]) > 2 or head[21:24] != bytes((64, 32, 32)) or size - head[20] < _SMALLEST_USABLE or encoding > 3:
        raise DamagedFileError(f"{path}: its header is damaged")


@contextmanager
def _settled_file(path: Path) -> Iterator[Path]:
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


def _rows(path: Path, connection: sqlite3.Connection, table: str) -> tuple[str, pa.Table]:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")  # they are no damage, and may call functions that are not there
    schema = connection.execute("SELECT name, type, rootpage, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    if not all(isinstance(name, str) and isinstance(statement, str) for name, _, _, statement in schema):
        raise sqlite3.DatabaseError("its schema is malformed")
    matches = [row for row in schema if _fold_case(row[0]) == _fold_case(table)]
    if not matches:
        raise UnknownNameError(f"table in {path}", table, [name for name, *_ in schema])
    name, kind, root, statement = matches[0]
    if kind == "table" and re.match(r"CREATE\s+VIRTUAL", statement, re.IGNORECASE):
        raise SchemaError(f"{path}: {name} is a virtual table, but only ordinary tables and views are read")
    try:
        return name, _select(connection, name, kind)
    except sqlite3.DatabaseError as problem:
        if root and "malformed" in str(problem):
            raise sqlite3.DatabaseError(f"the tree at page {root} is malformed") from None
        raise


def _select(connection: sqlite3.Connection, name: str, kind: str) -> pa.Table:
    # Tables that a view reads are checked with all others.  Damage of trees comes first, and may end the check with an error.
    arguments = [name] if kind == "table" else []
    ((problem,),) = connection.execute(f"SELECT * FROM pragma_quick_check({', '.join('?' * len(arguments))}) LIMIT 1", arguments)
    if problem.startswith("***"):
        damage = " ".join(problem.splitlines()[1:2])[:100]
        raise sqlite3.DatabaseError(re.sub(r"^(On tree page|Tree) (\d+)", r"the tree at page \2", damage))
    table = quote_name(name)
    cursor = connection.execute(f"SELECT * FROM {table}{' NOT INDEXED' * (kind == 'table')}")  # an index has another order
    names = [column[0] for column in cursor.description]
    batches: list[list[pa.Array]] = [[] for _ in names]
    while rows := cursor.fetchmany(_BATCH):
        for chunks, values in zip(batches, zip(*rows, strict=True), strict=True):
            chunks.append(_array(values))
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    for column in map(quote_name, names) if encoding != "UTF-8" else ():  # SQLite makes UTF-8 of any UTF-16
        for (data,) in connection.execute(f"SELECT CAST({column} AS BLOB) FROM {table} WHERE typeof({column}) = 'text'"):
            try:
                data.decode(encoding)
            except UnicodeDecodeError:
                raise sqlite3.DataError(f"column {column}: a text is not valid {encoding}") from None
    return pa.table([_column(chunks) for chunks in batches], names)


def _fold_case(name: str) -> str:
    """The form of a name that SQLite compares: only the case of ASCII letters is nothing to it."""
    return name.encode().upper().decode()


def _array(values: tuple[Any, ...] | list[Any]) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) < 2:
        return pa.array(values, _KINDS[kinds.pop()] if kinds else pa.null())
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
    """SQLite's message, as one line about the table."""
    words = " ".join(str(problem).split())[:200]
    if text := re.match(r"Could not decode to UTF-8 column '(.*?)' with text", words):
        return DamagedFileError(f"{table} is damaged: column {text[1]}: a text is not valid UTF-8")
    if words.startswith(("no such", "unsafe use")):
        return SchemaError(f"{table} cannot be read: {words}")
    return DamagedFileError(f"{table} is damaged: {words or 'a value is too long'}")
