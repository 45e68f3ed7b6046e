"""What every source does, whatever it reads."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import FlashsimError, SchemaError, UnknownNameError
from flashsim.core.request import SECTOR
from flashsim.storage.columns import plain_array, stored_column, without_unions
from flashsim.storage.heap_file import heap_file
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.record import encode_records
from flashsim.storage.source import SOURCES, Source, load_pair, open_source
from flashsim.storage.source.base import TableRecords
from tests.contract.page_sizes import page_sizes


@pytest.fixture(scope="module", params=SOURCES.names())
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    return open_source(SOURCES.load(request.param).example(tmp_path_factory.mktemp("source")))


def test_columns_and_rows_agree(source: Source) -> None:
    rows = source.take(np.arange(source.rows))
    assert source.rows > 0 and len(set(source.names)) == len(source.names) and source.name
    assert rows.column_names == source.names and rows.num_rows == source.rows
    assert rows.schema.types == source.types
    for name in source.names:
        assert repr(source.key(name).to_pylist()) == repr(rows.column(name).to_pylist())


def test_rows_come_in_the_order_asked_for(source: Source) -> None:
    all_rows = source.take(np.arange(source.rows)).to_pylist()
    chosen = np.array([source.rows - 1, 0, 0, source.rows // 2])
    assert source.take(chosen).to_pylist() == [all_rows[row] for row in chosen]
    assert source.take(np.zeros(0, np.int64)).schema == source.take(chosen).schema


def test_records_have_the_sizes_that_are_told(source: Source) -> None:
    rows = np.array([0, source.rows - 1, 0])
    data, starts = source.encode(rows)
    assert np.array_equal(np.diff(starts), np.broadcast_to(source.record_sizes(), source.rows)[rows])
    assert starts[0] == 0 and starts[-1] == len(data)
    assert len(source.encode(rows[:0])[0]) == 0


def test_unknown_columns_are_refused(source: Source) -> None:
    with pytest.raises(UnknownNameError, match="column: 'nothing'"):
        source.key("nothing")


def held(source: Source, page_format: str) -> Source:
    """The rows, with texts in columns of several types if the format has no such columns."""
    try:
        heap_file(load_pair(source, source, source.names[0], source.names[0])[0], 8192, page_format=page_format)
    except SchemaError:
        return TableRecords(source.name, without_unions(source.take(np.arange(source.rows))))
    return source


@pytest.mark.parametrize("place", [0, 4, -1])
@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_elided_and_byte_form_agree_page_for_page(source: Source, name: str, place: int) -> None:
    source, page_size, rows = held(source, name), page_sizes(name)[place], np.arange(source.rows)
    for column in source.names:
        relation = load_pair(source, source, column, column)[0]
        file = heap_file(relation, page_size, page_format=name)
        found = file.layout.decode(file.layout.encode(file.run(0, file.pages)))
        assert np.array_equal(found.pages, file.first_rows) and np.array_equal(found.rows, rows)
        assert np.array_equal(found.keys, relation.keys(slice(None)))


@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_columns_are_found_where_their_parts_alone_are(source: Source, name: str) -> None:
    source = held(source, name)
    relation = load_pair(source, source, source.names[0], source.names[0])[0]
    file = heap_file(relation, 2048, page_format=name)
    data = file.layout.encode(file.run(0, file.pages))
    whole = source.take(np.arange(source.rows))
    for chosen in ((), *((column,) for column in source.names), tuple(reversed(source.names))):
        some = np.zeros_like(data)
        for offset, length in file.layout.parts(("key",), chosen):
            assert offset % SECTOR == length % SECTOR == 0 and 0 <= offset < offset + length <= 2048
            some[:, offset : offset + length] = data[:, offset : offset + length]
        assert np.array_equal(file.layout.decode(some, ("key",)).keys, relation.codes)
        found = file.layout.decode_values(some, chosen) if chosen else pa.table({})
        assert tuple(found.column_names) == chosen
        for column in chosen:
            values, wanted = (stored_column(plain_array(table.column(column))).to_pylist() for table in (found, whole))
            assert values == wanted
    with pytest.raises(UnknownNameError, match=r"column of relation .*: 'nothing' is unknown"):
        file.layout.parts((), ("nothing",))


def test_sqlite_reads_what_is_written(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    column = source.names[0]
    PAGE_FORMATS.load("sqlite").write_database(heap_file(load_pair(source, source, column, column)[0], 4096), path, "t")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT * FROM t").fetchall()
    whole = source.take(np.arange(source.rows))
    assert rows == list(zip(*(stored_column(plain_array(column)).to_pylist() for column in whole.columns), strict=True))


def test_a_generated_record_is_what_the_general_encoder_makes() -> None:
    """The paper's keys take 4 bytes whatever their value; apart from that width its records are like any other's."""
    source = open_source("do2009:customer@0.001")
    rows = np.arange(source.rows)
    whole = source.take(rows)
    data, starts = source.encode(rows)
    general, general_starts = encode_records(pa.table({name: plain_array(whole.column(name)) for name in whole.column_names}))
    for row in rows.tolist():
        record, other = data[starts[row] : starts[row + 1]], general[general_starts[row] : general_starts[row + 1]]
        assert np.array_equal(record[-130:], other[-130:]) and np.array_equal(record[2:4], other[2:4])
        key = int.from_bytes(record[4:8].tobytes(), "big")
        assert key == whole.column(0)[row].as_py() and record[0] == 4 and record[1] == 4


def test_damage_and_absence_are_flashsims_errors(tmp_path: Path) -> None:
    for member in SOURCES.names():
        for suffix in SOURCES.load(member).SUFFIXES:
            (tmp_path / f"x{suffix}").write_bytes(b'\0\xff\n"' * 100)
            for text in (f"{tmp_path / 'x'}{suffix}", f"{tmp_path / 'y'}{suffix}"):
                with pytest.raises(FlashsimError, match=r"[xy]\."):
                    open_source(text)
