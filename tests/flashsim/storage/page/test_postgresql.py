"""PostgreSQL's pages hold exactly the rows of the elided form, are read by the source of PostgreSQL's files, and tell where they belong."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, InvalidParameterError, SchemaError
from flashsim.experiments.runs.exporting import lay_out_rows
from flashsim.storage.heap_file import heap_file
from flashsim.storage.layout import Layout
from flashsim.storage.page import PAGE_FORMATS, postgresql
from flashsim.storage.page.postgresql import MOST_ROWS
from flashsim.storage.relation import Relation
from flashsim.storage.rows import FixedRows, Tuples, key_tuples
from flashsim.storage.source import open_source
from flashsim.storage.source.base import TableRecords
from flashsim.storage.texts import without_unions
from flashsim.testing.strategies import relation_of, tables
from tests.cases import with_each
from tests.tiers import examples

MEMBER = PAGE_FORMATS.load("postgresql")
SIZES = [1 << power for power in range(10, 16)]


@st.composite
def held_tables(draw: st.DrawFn) -> pa.Table:
    """Tables of types that PostgreSQL's pages hold here."""
    table = without_unions(draw(tables()))
    for index, column in enumerate(table.schema):
        if pa.types.is_time(column.type):
            table = table.set_column(index, column.name, table.column(index).cast(pa.string()))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = [text and text.replace("\0", "0") for text in table.column(index).to_pylist()]
            table = table.set_column(index, column.name, pa.array(texts, pa.string()))
    return table


def same(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    """Whether values are equal, NaN to NaN."""
    return repr(found.to_pylist()) == repr(expected.to_pylist())


@settings(max_examples=examples(60))
@given(held_tables(), st.sampled_from([1024, 8192, 32768]), st.data())
def test_elided_and_byte_form_agree_page_for_page(table: pa.Table, page_size: int, data: st.DataObject) -> None:
    relation = relation_of(table, data.draw(st.integers(0, table.num_columns - 1)))
    rows = np.array(data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=60) if table.num_rows else st.just([])), np.int64)
    layout = Layout(relation, page_size, "postgresql")
    pages = layout.pack(key_tuples(relation.keys(rows), rows))
    numbers = np.arange(len(pages) - 1) * 131_071
    encoded = layout.encode(key_tuples(relation.keys(rows), rows, pages), numbers)
    layout.verify(encoded, numbers)
    found = layout.decode(encoded)
    assert np.array_equal(found.pages, pages) and np.array_equal(found.rows, rows)
    assert np.array_equal(found.keys, relation.keys(rows))
    values = layout.decode_values(encoded, tuple(reversed(table.column_names)))
    taken = table.take(pa.array(rows))
    assert all(same(values.column(name), taken.column(name)) for name in table.column_names)
    sizes = layout.cell_sizes(found)
    lower, upper = (encoded[:, place : place + 2].copy().view("<u2")[:, 0].astype(np.int64) for place in (12, 14))
    assert (upper - lower).tolist() == [layout.room - sizes[begin:end].sum() for begin, end in pairwise(pages)]


@settings(max_examples=examples(50))
@given(held_tables())
def test_the_source_reads_what_is_written(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> None:
    folder = tmp_path_factory.mktemp("written")
    MEMBER.write_files(lay_out_rows(TableRecords("t", table), 8192, "postgresql"), folder)
    found = open_source(f"pg:{folder / 't'}")
    assert found.names == table.column_names and found.rows == table.num_rows
    assert all(same(_plain(found.key(name)), _plain(table.column(name))) for name in table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers of less than 64 bits and texts of any kind in one type each; a column without values as one of texts."""
    if pa.types.is_decimal(column.type) or pa.types.is_uint64(column.type):
        return column.cast(pa.decimal128(24, 4))
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def test_segments_are_read_as_one_relation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "SEGMENT", 3 * 8192)
    monkeypatch.setattr(postgresql, "_BYTES_AT_ONCE", 8192)
    table = pa.table({"k": range(5000), "text": ["some words"] * 5000})
    file = lay_out_rows(TableRecords("t", table), 8192, "postgresql")
    MEMBER.write_files(file, tmp_path)
    lengths = [(tmp_path / "t").stat().st_size, *((tmp_path / f"t.{number}").stat().st_size for number in range(1, -(-file.pages // 3)))]
    assert sum(lengths) == file.pages * 8192 and len(lengths) > 10 and set(lengths[:-1]) == {3 * 8192}
    assert open_source(f"pg:{tmp_path / 't'}").take(np.arange(5000)).to_pydict() == table.to_pydict()


@with_each("page_size", SIZES)
def test_a_page_tells_where_it_belongs_and_whether_it_was_changed(page_size: int) -> None:
    layout = Layout(FixedRows("digest", {"key": 8, "row": 4}), page_size, "postgresql")
    tuples = Tuples({"key": np.arange(99), "row": np.arange(99)})
    tuples.pages = layout.pack(tuples)
    numbers = np.arange(len(tuples.pages) - 1) + 70_000
    pages = layout.encode(tuples, numbers)
    layout.verify(pages, numbers)
    with pytest.raises(DamagedFileError, match="row format digest: page 70001 has another checksum than its bytes"):
        layout.verify(pages, numbers + 1)
    for place in (0, 8, 24, page_size // 2, page_size - 1):
        pages[-1, place] ^= 16
        with pytest.raises(DamagedFileError, match=f"page {numbers[-1]} has another checksum"):
            layout.verify(pages, numbers)
        pages[-1, place] ^= 16


@settings(max_examples=examples(60))
@given(st.binary(min_size=1024, max_size=1024), st.integers(0, 1023), st.integers(0, 255))
def test_bytes_that_are_no_page_are_refused_or_hold_rows(noise: bytes, place: int, value: int) -> None:
    """Neither noise nor a page with one byte changed, of which no checksum tells, ends in anything but an error or existing rows."""
    decimals = [Decimal(number) / 100 for number in range(40)]
    relation = relation_of(pa.table({"k": list(range(0, 4000, 100)), "text": ["some text", None] * 20, "money": decimals}))
    rows = np.arange(9)
    layout = Layout(relation, 1024, "postgresql")
    page = layout.encode(key_tuples(relation.keys(rows), rows, np.array([0, 9])))
    head = page[:, :24].tobytes()
    page[0, place] = value
    for data in (page.tobytes(), noise, head + noise[24:]):
        pages = np.frombuffer(data, np.uint8).reshape(1, 1024)
        try:
            found = layout.decode(pages)
            assert ((found.rows >= 0) & (found.rows < len(relation))).all() and len(found.keys) == found.pages[-1]
            assert layout.decode_values(pages, ("money", "text")).num_rows == len(found)
        except DamagedFileError:
            continue


@with_each(
    ("column", "told"),
    [
        (pa.array([1], pa.time32("s")), r"column c is time32\[s\], but PostgreSQL's pages hold numbers"),
        (pa.array([1], pa.duration("s")), r"column c is duration\[s\]"),
        (pa.array(["a\0b"]), "column c cannot be stored as text: a text has a zero character"),
        (pa.array([1], pa.timestamp("ns")), "column c cannot be stored as timestamp: Casting .* would lose data"),
        (pa.array([-(2**62)], pa.timestamp("us")), "it has a day that PostgreSQL's calendar has not"),
        (pa.array([2**62], pa.timestamp("s")), "column c cannot be stored as timestamp: "),
        (pa.array([-(2**31)], pa.int32()).cast(pa.date32()), "column c cannot be stored as date: overflow"),
        (pa.array([2**31 - 5], pa.int32()).cast(pa.date32()), "it has a day that PostgreSQL's calendar has not"),
    ],
)
def test_what_postgresql_has_not_is_refused(column: pa.Array, told: str) -> None:
    with pytest.raises(SchemaError, match=f"^relation t: .*{told}"):
        lay_out_rows(TableRecords("t", pa.table({"c": column})), 8192, "postgresql")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SchemaError, match="1601 columns, but a table of PostgreSQL has at most 1600"):
        lay_out_rows(TableRecords("t", pa.table({f"c{number}": [True] for number in range(1601)})), 8192, "postgresql")
    for size in SIZES:
        longest = size - 32 - 24 - 4
        assert lay_out_rows(TableRecords("t", pa.table({"c": ["x" * longest]})), size, "postgresql").pages == 1
        with pytest.raises(CapacityError, match=rf"page size: {size} B, but a row of relation t takes {size - 24} B of the {size - 32} B"):
            lay_out_rows(TableRecords("t", pa.table({"c": ["x" * (longest + 1)]})), size, "postgresql")
    for size in (512, 3000, 65536):
        with pytest.raises(
            InvalidParameterError, match=f"page size: {size} B, but PostgreSQL's pages are a power of two from 1 KiB to 32 KiB"
        ):
            Layout(FixedRows("digest", {"key": 8}), size, "postgresql")
    many = Relation("t", "c", np.broadcast_to(np.zeros(1, np.int32), MOST_ROWS + 1), TableRecords("t", pa.table({"c": [1]})))
    with pytest.raises(CapacityError, match="relation t: 4294967297 rows, but row ids have 4 bytes"):
        Layout(many, 8192, "postgresql")


@with_each("name", ["", "a\0b", "x" * 64, "ctid"])
def test_names_that_postgresql_refuses_are_refused(name: str, tmp_path: Path) -> None:
    file = lay_out_rows(TableRecords("t", pa.table({name: [1]})), 8192, "postgresql")
    with pytest.raises(SchemaError, match="column: .* PostgreSQL takes names of 1 to 63 bytes"):
        MEMBER.write_files(file, tmp_path)
    assert not list(tmp_path.iterdir())


def test_dates_and_decimals_take_the_bytes_that_their_types_say() -> None:
    """A header of 24; then by type: 4, 1 + 2 + digits, 8 from a multiple of 8 on, 1 + text."""
    table = pa.table({"day": [date(2024, 2, 29)], "money": [Decimal("12345.60")], "time": [datetime(2024, 2, 29)], "text": ["x" * 20]})
    file = heap_file(relation_of(table), 8192, page_format="postgresql")
    assert file.layout.cell_sizes(file.run(0, 1)).tolist() == [4 + 24 + 4 + (1 + 2 + 6) + 3 + 8 + (1 + 20) + 3]
