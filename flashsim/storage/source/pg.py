"""Tables of a PostgreSQL cluster that is shut down, read from their relation files.

``pg:BASE/16384/16385:orders.sql`` names the table's file (``SELECT pg_relation_filepath('orders')``) and statements that create the table;
without them, ``16385.sql`` beside the file is taken.
"""

import re
from pathlib import Path

import pyarrow as pa

from flashsim.core.errors import SchemaError, UnknownNameError
from flashsim.core.input_files import read_text
from flashsim.storage.heap_file import heap_file
from flashsim.storage.page._postgresql import PAGE_SIZE
from flashsim.storage.source._postgresql_cluster import cluster_of
from flashsim.storage.source._postgresql_heap import read_heap
from flashsim.storage.source._postgresql_schema import TableDefinition, parse_table
from flashsim.storage.source.base import TableRecords, load_pair, reading

SUFFIXES = ()
FORM = "FILE:DEFINITION.sql"

_TEXT = re.compile(r"(?P<file>.*?)(?::(?:(?P<statement>\s*CREATE\s.*)|(?P<path>.+?\.sql)(?::(?P<table>.+))?))?", re.IGNORECASE | re.DOTALL)
_OTHER_FORK = re.compile(r"(\d+)(_(?:fsm|vm|init)(?:\.\d+)?|\.\d+)")


def open_records(text: str) -> TableRecords:
    """The rows of a table, in the order in which they lie.

    The text is ``FILE``, ``FILE:DEFINITION.sql``, ``FILE:DEFINITION.sql:TABLE`` or ``FILE:CREATE TABLE ...``.
    """
    path = file_of(text)
    if fork := _OTHER_FORK.fullmatch(path.name):
        raise SchemaError(f"{path}: it is a part of relation {fork[1]}; name that file instead")
    with reading(path):
        cluster = cluster_of(path)
        definition = _definition(path, *_split(text).group("statement", "path", "table"))
        return TableRecords(definition.name, read_heap(path, definition.columns, cluster))


def file_of(text: str) -> Path:
    return Path(_split(text)["file"])


def _split(text: str) -> re.Match[str]:
    match = _TEXT.fullmatch(text)
    assert match, "any text is at least the path of a file"
    return match


def _definition(path: Path, statement: str | None, file_name: str | None, table: str | None) -> TableDefinition:
    """The table that statements define: those of the text, of the file of this name, or of one beside the table's."""
    where = Path(file_name) if file_name else path.with_name(f"{path.name}.sql")
    if statement is None:
        if not file_name and not where.is_file():
            raise SchemaError(f"{path}: nothing tells its columns; name a file with the table's CREATE TABLE, as in pg:{path}:orders.sql")
        with reading(where):
            text = read_text(where)
    else:
        text, where = statement, path
    try:
        return parse_table(text, table or "")
    except IndexError:
        raise SchemaError(f"{where}: a statement breaks off") from None
    except LookupError as names:
        if names.args and table:
            raise UnknownNameError(f"table in {where}", table, names.args) from None
        why = f"it creates {', '.join(names.args)}; name one, as in {where}:{names.args[0]}" if names.args else "it has no CREATE TABLE"
        raise SchemaError(f"{where}: {why}") from None
    except ValueError as problem:
        raise SchemaError(f"{where}: {problem}") from None


def example(folder: Path) -> str:
    """A table with NULL in all columns, on a page with a checksum."""
    columns = {"k": [5, 300, None, -7, 5], "text": ["a", None, "ccc" * 50, "", "e"], "real": [1.0, 2.5, None, -0.0, 1e300]}
    records = TableRecords("t", pa.table(columns))
    file = heap_file(load_pair(records, records, "k", "k")[0], PAGE_SIZE, page_format="postgresql")
    path = folder / "16385"
    path.write_bytes(file.layout.encode(file.run(0, file.pages)).tobytes())
    path.with_name("16385.sql").write_text("CREATE TABLE t (k bigint, text text, real double precision);\n")
    return f"pg:{path}"
