"""CSV and TSV files: the first line names the columns, whose types follow from all of their fields (`_fields`).

Commas, semicolons, tabs or bars part the columns: whichever the first line has, and if it has several, the one by which all lines have as
many columns.
"""

import mmap
import re
from contextlib import suppress
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from flashsim.core.errors import DamagedFileError
from flashsim.storage.packed_files import whole_bytes
from flashsim.storage.source._fields import column_of_fields
from flashsim.storage.source.base import TextRecords, check_unique, reading

SUFFIXES = (".csv", ".tsv")
Content = bytearray | mmap.mmap
_PARTS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def open_records(text: str) -> TextRecords:
    path = Path(text)
    with reading(path):
        content = _content(path)
        part, fields = _fields_of(path, content)
        _check_quotes(path, content, part.encode())
        name = re.sub(r"\.[ct]sv(\.\w+)?$", "", path.name, flags=re.IGNORECASE)
        check_unique(name, fields.column_names)
        columns = {name: column_of_fields(fields.column(name)) for name in fields.column_names}
        table = pa.table({name: values for name, (values, _) in columns.items()})
        wide = frozenset(name for name, (_, is_wide) in columns.items() if is_wide)
        return TextRecords(name, table, partial(_fields, path, part), wide, frozenset())


def example(folder: Path) -> str:
    path = folder / "example.csv"
    path.write_text("k,text\n5,a\n,b\n70000,\n")
    return str(path)


def _content(path: Path) -> Content:
    """All bytes of a file: Arrow's readers go on for a moment after they are closed, and would read from what has their descriptor then."""
    if not path.stat().st_size or not len(content := whole_bytes(path)):
        raise DamagedFileError(f"{path}: it is empty")
    return content


def _fields_of(path: Path, content: Content) -> tuple[str, pa.Table]:
    """The delimiter of a file, and its fields as a table of texts."""
    first = _bare(bytes(content[: content.find(b"\n") + 1 or len(content)]))
    parts = [part for part in _PARTS if part.encode() in first] or [","]
    fits = []
    for part in parts if len(parts) > 1 else ():
        with suppress(pa.ArrowInvalid, DamagedFileError):
            fits.append((part, _read(path, content, part)))
    if len(fits) > 1:
        names = " as well as ".join(_PARTS[part] for part, _ in fits)
        raise DamagedFileError(f"{path}: {names} part it into columns; put names that hold one into quotes")
    return fits[0] if fits else (parts[0], _read(path, content, parts[0]))


def _fields(path: Path, part: str, column: str) -> pa.ChunkedArray:
    with reading(path):
        return _read(path, _content(path), part, column).column(column)


def _read(path: Path, content: Content, part: str, *columns: str) -> pa.Table:
    try:
        parsing = csv.ParseOptions(delimiter=part, newlines_in_values=True)
        with _open_content(content) as file, csv.open_csv(file, parse_options=parsing) as reader:
            names = reader.schema.names
        parsing.ignore_empty_lines = len(names) > 1  # of one column, such a line is an empty field
        types = dict.fromkeys(names, pa.large_string())
        converting = csv.ConvertOptions(
            column_types=types, include_columns=columns, strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False
        )
        with _open_content(content) as file:
            return csv.read_csv(file, parse_options=parsing, convert_options=converting)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        _check_utf8(path, content, part.encode())
        _check_quotes(path, content, part.encode())
        _check_columns(path, content, parsing)
        raise


def _open_content(content: Content) -> pa.NativeFile:
    """A file's bytes, with an end of its last line: without one Arrow takes an empty last field for an empty text."""
    return pa.BufferReader(content if content[-1:] == b"\n" else content[:] + b"\n")


def _check_utf8(path: Path, content: Content, part: bytes) -> None:
    data = bytes(content)
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        line = data[data.rfind(b"\n", 0, problem.start) + 1 : problem.start]
        number, column = data.count(b"\n", 0, problem.start) + 1, _bare(line).count(part) + 1
        raise DamagedFileError(f"{path}: not UTF-8, line {number}, column {column}") from None


def _check_columns(path: Path, content: Content, parsing: csv.ParseOptions) -> None:
    """Refuse a row that has more or fewer columns than names: one thread counts the rows."""
    try:
        with _open_content(content) as file:
            csv.read_csv(file, csv.ReadOptions(use_threads=False), parsing)
    except pa.ArrowInvalid as problem:
        if uneven := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(problem)):
            row, wanted, columns = uneven.groups()
            raise DamagedFileError(f"{path}: row {row} (the names are row 1): fields {columns}, but columns {wanted}") from None


def _check_quotes(path: Path, data: Content, part: bytes) -> None:
    """Refuse a field that begins with a quote and does not end with one: Arrow takes what comes up to the next quote for its text."""
    if data.find(b'"') < 0:
        return
    for field in re.finditer(rb'(?:\A|(?<=[\r\n%b])|(?<=\xef\xbb\xbf))"(?:[^"]|"")*+("(?=[\r\n%b]|\Z))?' % (part, part), data):
        if field[1] is None:
            begin = data.rfind(b"\n", 0, field.start()) + 1
            number, column = data[:begin].count(b"\n") + 1, _bare(bytes(data[begin : field.start()])).count(part) + 1
            raise DamagedFileError(f"{path}: line {number}, column {column}: a quote opens the field, but none closes it")


def _bare(line: bytes) -> bytes:
    """A line without what is in quotes."""
    return re.sub(rb'"[^"]*"', b"", line)
