"""The contracts of page formats, sources and placements: pages' bytes give back what is put on them, and no two pages share a place."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, FlashsimError, InvalidParameterError, SchemaError, UnknownNameError
from flashsim.core.request import SECTOR, Integers
from flashsim.core.units import GIB, MIB, NEVER
from flashsim.storage.columns import plain_array
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, HeapFile, heap_file
from flashsim.storage.layout import Layout, check_page_size
from flashsim.storage.page.base import PAGE_FORMATS
from flashsim.storage.placement.base import PLACEMENTS
from flashsim.storage.rows import FixedRows, Tuples
from flashsim.storage.source.base import SOURCES, Source, TableRecords, load_pair
from flashsim.storage.texts import stored_column, without_unions
from flashsim.storage.volume import Volume
from flashsim.testing.contract import Contract, examples
from flashsim.testing.strict_driver import relation_file

__all__ = ["PageContract", "PlacementContract", "SourceContract"]

_WIDTHS = st.sampled_from([1, 2, 3, 4, 6, 8])


def page_sizes(page_format: str) -> list[int]:
    """The powers of two, bytes, that a format has pages of, ascending."""
    sizes = []
    for size in (1 << power for power in range(9, 17)):
        with suppress(InvalidParameterError):
            check_page_size(size, page_format)
            sizes.append(size)
    assert sizes, "it has no pages of 512 B to 64 KiB"
    return sizes


@st.composite
def fixed_rows(draw: st.DrawFn) -> tuple[FixedRows, Tuples]:
    """A row format, and tuples of it."""
    rows = FixedRows("drawn", draw(st.dictionaries(st.sampled_from("abcdef"), _WIDTHS, min_size=1, max_size=5)))
    count = draw(st.integers(0, 120))
    columns = {}
    for name, width in rows.widths.items():
        bound = 1 << (8 * width - 1)
        numbers = st.integers(-bound, bound - 1)
        columns[name] = np.resize(np.array(draw(st.lists(numbers, min_size=1, max_size=9)), np.int64), count)
    return rows, Tuples(columns)


def _digests(keys: Integers, *pages: int) -> Tuples:
    return Tuples({"key": keys, "row": np.zeros(len(keys), np.int64)}, np.array([0, *pages]))


class PageContract(Contract):
    """Properties of a page format (`flashsim.storage.page.base`)."""

    FAMILY = PAGE_FORMATS

    @examples(60)
    @given(drawn=fixed_rows(), place=st.integers(0, 2))
    def test_tuples_come_back_and_columns_from_their_parts_alone(self, drawn: tuple[FixedRows, Tuples], place: int) -> None:
        """Elided and byte form agree page for page, on small, middling and large pages."""
        (rows, tuples), sizes = drawn, page_sizes(self.name)
        page_size = sizes[place * (len(sizes) - 1) // 2]
        layout = Layout(rows, page_size, self.name)
        tuples.pages = layout.pack(tuples)
        numbers = np.arange(len(tuples.pages) - 1) * 70_001
        data = layout.encode(tuples, numbers)
        assert data.shape == (len(tuples.pages) - 1, page_size), f"{len(tuples.pages) - 1} pages of {page_size} B are {data.shape}"
        layout.verify(data, numbers)
        content, file = ColumnContent(), File("f", layout)
        content.write(file, np.array([0]), np.array([len(data)]), tuples)
        for found in (layout.decode(data), content.read(file, np.array([0]), np.array([len(data)]))):
            assert np.array_equal(found.pages, tuples.pages), "tuples come back on other pages"
            assert set(found.columns) == set(rows.columns), f"columns {sorted(found.columns)} come back"
            for name, column in tuples.columns.items():
                assert np.array_equal(found.columns[name], column), f"column {name} comes back as {found.columns[name][:9]}"
                assert found.columns[name].dtype == np.int64, f"column {name} comes back as {found.columns[name].dtype}"
        taken = layout.cell_sizes(tuples)
        for begin, end in pairwise(tuples.pages):
            assert taken[begin:end].sum() <= layout.room, "cells take more than a page's room"
            assert end == len(tuples) or taken[begin : end + 1].sum() > layout.room, "a page has room for the next tuple"
        for name in rows.columns:
            parts, some = layout.parts((name,)), np.zeros_like(data)
            for offset, length in parts:
                assert offset % SECTOR == length % SECTOR == 0 and 0 <= offset < offset + length <= page_size, f"parts {parts}"
                some[:, offset : offset + length] = data[:, offset : offset + length]
            alone = layout.decode(some, (name,))
            assert list(alone.columns) == [name] and np.array_equal(alone.columns[name], tuples.columns[name]), f"{name} has other parts"
            assert np.array_equal(alone.pages, tuples.pages), "the parts of a column do not tell how many tuples there are"
            with suppress(SchemaError):  # pages that hold the columns of tuples and no attributes say so
                assert layout.parts((), (name,)) == parts
                assert layout.decode_values(some, (name,)).column(0).to_pylist() == tuples.columns[name].tolist()
        for (begin, length), (following, _) in pairwise(layout.parts(rows.columns)):
            assert begin + length < following, "parts are not in order, or those that touch are not one"

    @examples(60)
    @given(noise=st.binary(min_size=1024, max_size=1024), place=st.integers(0, 511), value=st.integers(0, 255))
    def test_bytes_that_are_no_page_are_refused_or_hold_tuples(self, noise: bytes, place: int, value: int) -> None:
        size = page_sizes(self.name)[0]
        layout = Layout(FixedRows("digest", {"key": 8, "row": 4}), size, self.name)
        page = layout.encode(Tuples({"key": np.arange(9) << 40, "row": np.arange(9)}, np.array([0, 9])))
        page[0, place] = value
        any_bytes = np.resize(np.frombuffer(noise, np.uint8), (1, size))
        for data in (page, any_bytes, np.hstack([page[:, :8], any_bytes[:, 8:]])):
            try:
                found = layout.decode(data)
            except DamagedFileError:
                continue
            assert set(found.columns) == {"key", "row"} and len(found) == found.pages[-1], "other tuples are read than pages hold"

    def test_what_does_not_fit_is_refused(self) -> None:
        rows, size = FixedRows("digest", {"key": 4, "row": 2}), page_sizes(self.name)[0]
        layout = Layout(rows, size, self.name)
        fits = int(layout.pack(_digests(np.arange(1000)))[1])
        assert len(layout.encode(_digests(np.arange(fits), fits))) == 1, "as many tuples as fit are not one page"
        with pytest.raises(CapacityError, match=f"{size} B"):
            layout.encode(_digests(np.arange(fits + 1), fits + 1))
        with pytest.raises(CapacityError, match=r"key 2147483648, but 4 B hold -2147483648 to 2147483647"):
            layout.encode(_digests(np.array([1 << 31]), 1))
        if size <= 1024:
            wide = FixedRows("wide", {f"column {number}": 8 for number in range(min(126, size // 8))})
            with pytest.raises(CapacityError, match=rf"^page size: {size} B, but a row of row format wide takes \d+ B of the \d+ B"):
                Layout(wide, size, self.name)
        with pytest.raises(InvalidParameterError, match="page size"):
            Layout(rows, 500, self.name)


def _file(source: Source, column: str, page_size: int, page_format: str) -> HeapFile:
    return heap_file(load_pair(source, source, column, column)[0], page_size, page_format=page_format)


def _storable(source: Source, page_format: str) -> Source:
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
        with self.example() as source, pytest.raises(UnknownNameError, match=r"column.*: 'nothing'"):
            source.key("nothing")

    def test_elided_and_byte_form_agree_page_for_page(self) -> None:
        """By each column as a key, on pages of every format, small, middling and large."""
        with self.example() as given:
            for name in PAGE_FORMATS.names():
                source, sizes = _storable(given, name), page_sizes(name)
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
                source = _storable(given, name)
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


PAGE = 512
RELATION = relation_file("r", np.zeros(0, np.int64)).relation
LAYOUT = Layout(RELATION, PAGE)


def base_file(pages: int, page_size: int = PAGE) -> HeapFile:
    """A base relation's file of `pages` pages."""
    return HeapFile("base", Layout(RELATION, page_size), temporary=False, pages=pages, first_rows=np.zeros(pages + 1, np.int64))


def places_of(volume: Volume, file: File) -> list[tuple[int, int]]:
    """(device, offset) of every page, asked for together, one by one, and as one long extent."""
    numbers, one = np.arange(file.pages), np.ones(1, np.int64)
    if not file.pages:
        return []
    extents = volume.locate(file, numbers, np.ones(file.pages, np.int64))
    assert (extents.lengths == file.page_size).all()
    alone = [volume.locate(file, np.array([page]), one) for page in range(file.pages)]
    assert [each.offsets.tolist() for each in alone] == [[offset] for offset in extents.offsets.tolist()]
    assert all(each.device == extents.device and each.lengths.tolist() == [file.page_size] for each in alone)
    whole = volume.locate(file, np.zeros(1, np.int64), np.array([file.pages]))
    covered = [range(*run, file.page_size) for run in zip(whole.offsets, whole.offsets + whole.lengths, strict=True)]
    assert [offset for run in covered for offset in run] == extents.offsets.tolist()
    return [(extents.device, offset) for offset in extents.offsets.tolist()]


class PlacementContract(Contract):
    """Properties of a placement (`flashsim.storage.placement.base`)."""

    FAMILY = PLACEMENTS

    def volume(self, capacity: int) -> Volume:
        return Volume([capacity] * PLACEMENTS.load(self.name).DEVICE_MAP.devices, self.name)

    @examples(60)
    @given(
        base_pages=st.integers(0, 50),
        turns=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), max_size=40),
        expected=st.integers(0, 20),
    )
    @example(base_pages=1, turns=[(0, 2), (0, 0), (1, 2), (2, 2)], expected=0)
    def test_no_two_pages_share_a_place(self, base_pages: int, turns: list[tuple[int, int]], expected: int) -> None:
        """A relation and five temporary files that grow by some pages in turn, or are dropped and begin anew; pages are sectors."""
        volume, base = self.volume(NEVER), base_file(base_pages)
        volume.add(base)
        files = [File(f"t{index}", LAYOUT, expected_pages=expected) for index in range(5)]
        wanted = [0] * 5
        for index, count in turns:
            wanted[index] = wanted[index] + count if count else 0
            if count:
                volume.extend(files[index], count)
                continue
            freed = volume.drop(files[index])
            live = [place for file in (base, *files) for place in places_of(volume, file)]
            for device, offset, length in freed:
                inside = [at for on, at in live if on == device and offset - PAGE < at < offset + length]
                assert not inside, f"{length} B at {offset} are given back, but a page lies at {inside[:1]}"
        assert [file.pages for file in files] == wanted, f"files have {[file.pages for file in files]} pages, and {wanted} were asked for"
        places = [place for file in (base, *files) for place in places_of(volume, file)]
        assert len(set(places)) == len(places), "two pages share a place"
        for _, offset in places:
            assert offset >= 0 and offset % PAGE == 0, f"a page of {PAGE} B lies at byte {offset}"

    def test_a_file_lies_on_a_device_that_there_is(self) -> None:
        member = PLACEMENTS.load(self.name).DEVICE_MAP
        for file in (base_file(1), File("t", LAYOUT)):
            assert 0 <= member.device(file) < member.devices, f"{file.name} lies on device {member.device(file)} of {member.devices}"

    def test_a_full_device_is_refused(self) -> None:
        """Files of 32 MiB, until a device of one GiB has no room."""
        volume, files = self.volume(GIB), [File(f"t{number}", Layout(RELATION, 8192)) for number in range(40)]
        with pytest.raises(CapacityError, match="device"):
            for file in files:
                volume.extend(file, 32 * MIB // 8192)
                extents = volume.locate(file, np.zeros(1, np.int64), np.array([file.pages]))
                assert (extents.offsets + extents.lengths <= GIB).all(), "a page lies behind the end of its device"
