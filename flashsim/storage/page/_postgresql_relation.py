"""A relation as PostgreSQL keeps it: files of at most 1 GiB each, and the statement that creates their table."""

from pathlib import Path

import numpy as np

from flashsim.core.errors import SchemaError
from flashsim.core.protocols import Progress
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.page._postgresql_values import Stored

#: Bytes of a file; what follows is in another one, whose name ends in its number.
SEGMENT = 1 << 30
#: The longest name (NAMEDATALEN - 1), and columns that every table has.
_LONGEST_NAME, _SYSTEM_COLUMNS = 63, ("tableoid", "cmin", "cmax", "xmin", "xmax", "ctid")
_BYTES_AT_ONCE = 16 << 20


def write_segments(heap_file: HeapFile, path: Path, progress: Progress | None = None) -> None:
    """Write the pages of a base relation to a file, and to others beside it where it would be longer than 1 GiB."""
    size, file = heap_file.page_size, path
    file.write_bytes(b"")
    for start in range(0, heap_file.pages, _BYTES_AT_ONCE // size):
        end = min(heap_file.pages, start + _BYTES_AT_ONCE // size)
        if number := start * size // SEGMENT:
            file = path.with_name(f"{path.name}.{number}")
        with file.open("ab") as out:
            out.write(heap_file.layout.encode(heap_file.run(start, end), np.arange(start, end)).data)
        if progress is not None:
            progress(end, heap_file.pages, heap_file.name)


def create_table(name: str, columns: list[Stored]) -> str:
    r"""The statement that creates the table of such columns.

    Examples
    --------
    >>> from flashsim.storage.page._postgresql_values import stored_as
    >>> from flashsim.storage.attributes import Attribute
    >>> import pyarrow as pa
    >>> create_table("t", [stored_as(Attribute(name, kind, 4), "t") for name, kind in (("k", pa.int32()), ("day", pa.date32()))])
    'CREATE TABLE "t" (\n    "k" int4,\n    "day" date\n);\n'
    """
    lines = ",\n".join(f"    {_quoted('column', str(column.attribute.name))} {column.declared}" for column in columns)
    return f"CREATE TABLE {_quoted('table', name)} (\n{lines}\n);\n"


def _quoted(what: str, name: str) -> str:
    if not name or "\0" in name or len(name.encode()) > _LONGEST_NAME or (what == "column" and name in _SYSTEM_COLUMNS):
        bound = f"PostgreSQL takes names of 1 to {_LONGEST_NAME} bytes, and for columns none of {', '.join(_SYSTEM_COLUMNS)}"
        raise SchemaError(f"{what}: {name!r}, but {bound}")
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
