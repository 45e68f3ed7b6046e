"""The contract of sources: columns, rows and records agree, rows lie on pages of every format, and damage is one line."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import FlashsimError, SchemaError, UnknownNameError
from flashsim.core.request import SECTOR
from flashsim.storage.columns import plain_array
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.source.base import SOURCES, Source, TableRecords, load_pair
from flashsim.storage.texts import stored_column, without_unions
from flashsim.testing.contract import Contract
from flashsim.testing.contracts.page import page_sizes


def _file(source: Source, column: str, page_size: int, page_format: str) -> HeapFile:
    return heap_file(load_pair(source, source, column, column)[0], page_size, page_format=page_format)


def _held(source: Source, page_format: str) -> Source:
    """The rows, with texts in columns of several types if the format has no such columns."""
    try:
        _file(source, source.names[0], 8192, page_format)
    except SchemaError:
        return TableRecords(source.name, without_unions(source.take(np.arange(source.rows))))
    return source


def _without_nan(values: Iterable[Any]) -> list[Any]:
    """Values with NULL for NaN, as SQLite has them."""
    return [None if value != value else value for value in values]


class SourceContract(Contract):
    """Properties of a source (`flashsim.storage.source.base`), which brings an example."""

    FAMILY = SOURCES

    @contextmanager
    def example(self) -> Iterator[Source]:
        member = SOURCES.load(self.name)
        with TemporaryDirectory() as folder:
            text = member.example(Path(folder))
            yield member.open_records(text if member.SUFFIXES else text.partition(":")[2])

    def test_columns_and_rows_agree(self) -> None:
        with self.example() as source:
            rows = source.take(np.arange(source.rows))
            assert source.rows > 0 and source.name, "its example has no rows, or no name"
            assert len(set(source.names)) == len(source.names), f"two columns have one name: {source.names}"
            assert rows.column_names == source.names and rows.num_rows == source.rows, f"{rows.num_rows} rows of {rows.column_names}"
            types: Any = source
            assert rows.schema.types == types.types, f"types are {rows.schema.types}, and should be {types.types}"
            for name in source.names:
                assert repr(source.key(name).to_pylist()) == repr(rows.column(name).to_pylist()), f"column {name} has other values"

    def test_rows_come_in_the_order_asked_for(self) -> None:
        with self.example() as source:
            all_rows = source.take(np.arange(source.rows)).to_pylist()
            chosen = np.array([source.rows - 1, 0, 0, source.rows // 2])
            assert source.take(chosen).to_pylist() == [all_rows[row] for row in chosen], f"rows {chosen} are others"
            assert source.take(np.zeros(0, np.int64)).schema == source.take(chosen).schema, "no rows have another schema"

    def test_records_have_the_sizes_that_are_told(self) -> None:
        with self.example() as source:
            rows = np.array([0, source.rows - 1, 0])
            data, starts = source.encode(rows)
            sizes = np.broadcast_to(source.record_sizes(), source.rows)[rows]
            assert np.array_equal(np.diff(starts), sizes), f"records of {sizes} B take {np.diff(starts)}"
            assert starts[0] == 0 and starts[-1] == len(data) and len(source.encode(rows[:0])[0]) == 0, "records do not fill their bytes"

    def test_unknown_columns_are_refused(self) -> None:
        with self.example() as source, pytest.raises(UnknownNameError, match="column: 'nothing'"):
            source.key("nothing")

    def test_elided_and_byte_form_agree_page_for_page(self) -> None:
        """By each column as a key, on pages of every format, small, middling and large."""
        with self.example() as given:
            for name in PAGE_FORMATS.names():
                source, sizes = _held(given, name), page_sizes(name)
                for column in source.names:
                    for page_size in (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
                        file = _file(source, column, page_size, name)
                        found = file.layout.decode(file.layout.encode(file.run(0, file.pages)))
                        assert np.array_equal(found.pages, file.first_rows), f"rows lie on other pages: {name}, {column}, {page_size} B"
                        assert np.array_equal(found.rows, np.arange(source.rows)), f"other rows: {name}, {column}, {page_size} B"
                        assert np.array_equal(found.keys, file.relation.keys(slice(None))), f"other keys: {name}, {column}, {page_size} B"

    def test_columns_are_found_where_their_parts_alone_are(self) -> None:
        with self.example() as given:
            for name in PAGE_FORMATS.names():
                source = _held(given, name)
                file = _file(source, source.names[0], 2048, name)
                data = file.layout.encode(file.run(0, file.pages))
                whole = source.take(np.arange(source.rows))
                for chosen in ((), *((column,) for column in source.names), tuple(reversed(source.names))):
                    some = np.zeros_like(data)
                    for offset, length in file.layout.parts(("key",), chosen):
                        assert offset % SECTOR == length % SECTOR == 0 and 0 <= offset < offset + length <= 2048
                        some[:, offset : offset + length] = data[:, offset : offset + length]
                    assert np.array_equal(file.layout.decode(some, ("key",)).keys, file.relation.codes)
                    found = file.layout.decode_values(some, chosen) if chosen else pa.table({})
                    assert tuple(found.column_names) == chosen
                    for column in chosen:
                        values, wanted = (stored_column(plain_array(table.column(column))).to_pylist() for table in (found, whole))
                        assert _without_nan(values) == _without_nan(wanted), f"column {column} comes back otherwise from pages of {name}"
                with pytest.raises(UnknownNameError, match=r"column of relation .*: 'nothing' is unknown"):
                    file.layout.parts((), ("nothing",))

    def test_sqlite_reads_what_is_written(self) -> None:
        with self.example() as source, TemporaryDirectory() as folder:
            database: Any = PAGE_FORMATS.load("sqlite")
            database.write_database(_file(source, source.names[0], 4096, "sqlite"), Path(folder) / "x.db", "t")
            with closing(sqlite3.connect(Path(folder) / "x.db")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "SQLite finds the database damaged"
                rows = connection.execute("SELECT * FROM t").fetchall()
            whole = source.take(np.arange(source.rows))
            wanted = list(zip(*(stored_column(plain_array(column)).to_pylist() for column in whole.columns), strict=True))
            assert rows == [tuple(_without_nan(row)) for row in wanted], "SQLite reads other rows"

    def test_damage_and_absence_are_flashsims_errors(self) -> None:
        member = SOURCES.load(self.name)
        if not member.SUFFIXES:
            pytest.skip("it reads no files")
        with TemporaryDirectory() as folder:
            for suffix in member.SUFFIXES:
                damaged, absent = (Path(folder) / f"{name}{suffix}" for name in "xy")
                damaged.write_bytes(b'\0\xff\n"' * 100)
                for path in (damaged, absent):
                    with pytest.raises(FlashsimError, match=r"[xy]\."):
                        member.open_records(str(path))
