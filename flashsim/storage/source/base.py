"""Contract of sources, their names in text, and the relations of a join from two sources.

A member follows `SourceReader`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from flashsim.core import errors
from flashsim.core.errors import option
from flashsim.core.members import Family, optional
from flashsim.core.processes import free_memory
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.attributes import Attribute, attribute
from flashsim.storage.columns import column_of, is_flat, plain_array
from flashsim.storage.keys import encode_keys
from flashsim.storage.packed_files import ENDINGS, unpack_first
from flashsim.storage.record import Bytes, encode_records, record_sizes
from flashsim.storage.relation import Records, Relation
from flashsim.storage.source._fields import type_name, typed_fields


class Source(Records, Protocol):
    """Stored rows with a name."""

    @property
    def name(self) -> str:
        """Name of the table."""


class SourceReader(Protocol):
    """A member of the family."""

    #: The endings of the files that it reads; none where its name is written before the text, as in ``tpch:customer@0.1``.
    SUFFIXES: tuple[str, ...]
    #: Text that follows the source's name in messages, if it has no endings.
    FORM: str = "TABLE@SCALE"

    def open_records(self, text: str) -> Source:
        """The rows that a text names, which follows the member's name or is the path of a file."""

    @optional
    def file_of(self, text: str) -> Path | None:
        """The file that a text after the member's name tells to read; None if there is none."""
        return None

    @optional
    def example(self, folder: Path) -> str:
        """A source of some rows by its whole name, in a file that is made in a folder if it takes one; for the tests of the family."""
        raise errors.FlashsimError(f"{SOURCES.kind}: a reader of {self.SUFFIXES} brings no example")


SOURCES = Family("flashsim.storage.source", "source", SourceReader)


class TableRecords:
    """Rows that stand in an Arrow table, whose columns are of any flat type, or dense unions.

    Raises
    ------
    SchemaError
        A column is nested, or two share a name.
    """

    def __init__(self, name: str, table: pa.Table) -> None:
        for column in table.schema:
            if not is_flat(column.type):
                raise errors.SchemaError(f"column {column.name}: its type is {column.type}, but only flat columns can be stored")
        check_unique(name, table.column_names)
        self.name = name
        self.table = pa.table({column: plain_array(table.column(column)) for column in table.column_names})
        self.names: list[str] = self.table.column_names
        self.types: list[pa.DataType] = self.table.schema.types
        self.rows = int(self.table.num_rows)
        self._sizes: npt.NDArray[Any] | None = None
        self._attributes: tuple[Attribute, ...] | None = None

    def key(self, column: str) -> pa.ChunkedArray:
        check_column(self, column, self.name)
        return self.table.column(column)

    def record_sizes(self) -> npt.NDArray[Any]:
        if self._sizes is None:
            self._sizes = record_sizes(self.table)
        return self._sizes

    def encode(self, rows: Integers) -> tuple[Bytes, Integers]:
        return encode_records(self.take(rows))

    def attributes(self) -> tuple[Attribute, ...]:
        if self._attributes is None:
            self._attributes = tuple(attribute(name, self.table.column(name)) for name in self.names)
        return self._attributes

    def take(self, rows: Integers) -> pa.Table:
        return self.table.take(column_of(rows))


class TextRecords(TableRecords):
    """Rows of a text file, whose columns have types by a rule or by a user's word, and can be had as they are spelled."""

    def __init__(
        self, name: str, table: pa.Table, spelled: Callable[[str], pa.ChunkedArray], wide: frozenset[str], typed: frozenset[str]
    ) -> None:
        super().__init__(name, table)
        #: The fields of a column as texts; columns of integers that no type holds, which are texts; those whose types the user named.
        self.spelled, self.wide, self.typed = spelled, wide, typed

    def with_type(self, column: str, kind: pa.DataType) -> "TextRecords":
        """The same rows with one column read as a type."""
        check_column(self, column, self.name)
        fields = self.spelled(column)
        if len(fields) != self.rows:
            raise errors.DamagedFileError(f"{self.name}: it changed while it was read")
        try:
            values = typed_fields(fields, kind)
        except errors.SchemaError as problem:
            raise errors.SchemaError(f"{self.name}: column {column}: {problem}") from None
        table = self.table.set_column(self.names.index(column), column, values)
        return TextRecords(self.name, table, self.spelled, self.wide - {column}, self.typed | {column})


def check_unique(table: str, columns: list[str]) -> None:
    """Refuse a table without columns, or with two of one name."""
    repeated = {column for column in columns if columns.count(column) > 1}
    if repeated or not columns:
        raise errors.SchemaError(f"table {table}: {'two columns are named ' + min(repeated) if repeated else 'it has no columns'}")


def check_column(records: Records, column: str, table: str) -> None:
    """Refuse a column that a table does not have."""
    if column not in records.names:
        raise errors.UnknownNameError(f"column of {table}", column, records.names)


def open_source(text: str) -> Source:
    """The rows that a source's text names.

    Such as ``tpch:customer@0.1``, ``do2009:orders@3``, ``FILE.parquet``, ``FILE.csv``, ``FILE.sqlite:TABLE`` or ``pg:FILE:DEFINITION.sql``.

    Raises
    ------
    UnknownNameError
        No source has that name, or reads such a file.
    MissingFileError, DamagedFileError
        The file does not exist, or is not what its name says.
    """
    if named := _reader_of(text):
        member, rest = named
        return member.open_records(rest)
    members = _members()
    known = [f"{name}:{member.FORM}" for name, member in members.items() if not member.SUFFIXES]
    raise errors.UnknownNameError("source", text, [*known, *(f"FILE{suffix}" for member in members.values() for suffix in member.SUFFIXES)])


def source_file(text: str) -> Path | None:
    """The file that a source's text names; None for a generator, or what no source reads."""
    if not (named := _reader_of(text)):
        return None
    member, rest = named
    split = split_file(rest, member.SUFFIXES)
    return Path(split[0]) if split else member.file_of(rest)


def _reader_of(text: str) -> tuple[SourceReader, str] | None:
    """The member that a source's text names, and the text that it opens; where several read such a file, the one with the shortest path."""
    prefix, colon, rest = text.partition(":")
    members = _members()
    if colon and prefix in members and not members[prefix].SUFFIXES:
        return members[prefix], rest
    split = {name: parts for name, member in members.items() if (parts := split_file(text, member.SUFFIXES))}
    return (members[min(split, key=lambda name: len(split[name][0]))], text) if split else None


@cache
def _members() -> dict[str, SourceReader]:
    return {name: SOURCES.load(name) for name in SOURCES.names()}


def split_file(text: str, suffixes: tuple[str, ...]) -> tuple[str, str] | None:
    """Path and table of ``FILE.sqlite:TABLE`` (the table is empty without a colon); None if the file ends in none of the suffixes.

    What packs a file may follow its suffix.

    Examples
    --------
    >>> split_file("a.sqlite:Album", (".sqlite", ".db")), split_file("a.csv", (".db",))
    (('a.sqlite', 'Album'), None)
    """
    endings, packed = ("|".join(map(re.escape, each)) for each in (suffixes, ENDINGS))
    match = re.fullmatch(rf"(.+?(?:{endings})(?:{packed})?)(?::(.*))?", text, re.IGNORECASE | re.DOTALL) if suffixes else None
    return (match[1], match[2] or "") if match else None


def load_pair(r_records: Source, s_records: Source, r_column: str, s_column: str) -> tuple[Relation, Relation]:
    """The two relations of a join, with key codes that they share.

    Raises
    ------
    UnknownNameError
        A column does not exist.
    SchemaError
        The columns cannot be compared.
    """
    check_column(r_records, r_column, r_records.name)
    check_column(s_records, s_column, s_records.name)
    r_name, s_name = r_records.name, s_records.name
    if r_name == s_name:
        s_name += " 2"
    r_records, s_records = _as_compared((r_records, r_column), (s_records, s_column))
    keys = r_records.key(r_column), s_records.key(s_column)
    keys = _as_integers(keys[0], s_records, s_column), _as_integers(keys[1], r_records, r_column)
    try:
        codes = encode_keys(*keys, f"{r_name}.{r_column}", f"{s_name}.{s_column}")
    except errors.SchemaError as problem:
        for text, column, other in ((r_records, r_column, keys[1]), (s_records, s_column, keys[0])):
            if isinstance(text, TextRecords) and column not in text.typed:
                raise errors.SchemaError(
                    f"{problem}; {text.name} is text: " + option("types") + f" {column}={type_name(other.type)} names its type"
                ) from None
        raise
    return Relation(r_name, r_column, codes[0], r_records), Relation(s_name, s_column, codes[1], s_records)


def _as_compared(r: tuple[Source, str], s: tuple[Source, str]) -> list[Source]:
    """The sources of two key columns: of two text files, where one column is of texts, both as spelled."""
    kinds = [records.key(column).type for records, column in (r, s)]
    if any(map(pa.types.is_null, kinds)) or pa.types.is_large_string(kinds[0]) == pa.types.is_large_string(kinds[1]):
        return [r[0], s[0]]
    untyped = [(records, column) for records, column in (r, s) if isinstance(records, TextRecords) and column not in records.typed]
    if any(map(pa.types.is_union, kinds)) and any(map(pa.types.is_large_string, kinds)) and untyped:
        name, column = untyped[0][0].name, untyped[0][1]
        raise errors.SchemaError(
            f"key: {name}.{column} is text, but the other column has values of several types: "
            + option("types")
            + f" {column}=text compares texts"
        )
    return [each.with_type(column, pa.large_string()) for each, column in untyped] if len(untyped) == 2 else [r[0], s[0]]


def _as_integers(keys: pa.ChunkedArray, other: Source, column: str) -> pa.ChunkedArray:
    """Integers as texts, where those of the other column are: no type holds them."""
    is_wide = isinstance(other, TextRecords) and column in other.wide
    return keys.cast(pa.large_string()) if is_wide and pa.types.is_integer(keys.type) else keys


def table_and_scale(text: str, member: str, tables: tuple[str, ...]) -> tuple[str, Decimal]:
    """Table and scale factor of ``customer@0.1``.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        The table does not exist; the scale factor is no number above 0.
    """
    table, _, scale = text.partition("@")
    if table not in tables:
        raise errors.UnknownNameError(f"table of {member}", table, tables)
    try:
        factor = Decimal(scale)
    except InvalidOperation:
        factor = Decimal(0)
    if not (factor.is_finite() and 0 < factor <= 100_000):
        raise errors.InvalidParameterError("scale factor", repr(scale), f"{member}:{table}@0.1 needs a number above 0 and up to 100000")
    return table, factor


def check_memory(source: str, size: int, what: str, purpose: str = "") -> None:
    """Refuse what takes more bytes of memory than are free; the message says what, and what for."""
    free = free_memory()
    if free is not None and size > free:
        raise errors.CapacityError(f"{source}: {what} {format_size(size)} of memory{purpose}, and {format_size(free)} are free")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one line that names it."""
    if not path.is_file():
        raise errors.MissingFileError(f"{path}: {'it is not a file' if path.exists() else 'there is no such file'}")
    try:
        yield
    except (errors.FlashsimError, MemoryError):
        raise
    except PermissionError:
        raise errors.MissingFileError(f"{path}: it may not be read") from None
    except (pa.ArrowException, OSError, ValueError) as problem:
        reason = str(problem).strip().splitlines() or [type(problem).__name__]
        raise errors.DamagedFileError(f"{path}: {unpack_first(path) or f'it cannot be read: {reason[0]}'}") from None
