"""The byte form of pages holds exactly the tuples of the elided form."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, FlashsimError
from flashsim.storage.heap_file import heap_file
from flashsim.storage.layout import Layout
from flashsim.storage.page import PAGE_FORMATS, _sqlite_database
from flashsim.storage.page.sqlite import leaf_offset, leaf_pages
from flashsim.storage.rows import key_tuples
from flashsim.storage.source import load_pair, open_source
from flashsim.testing.strategies import relation_of, tables
from tests.cases import with_each


@given(tables(), st.sampled_from([512, 1024, 8192, 65536]), st.data())
def test_elided_and_byte_form_agree_page_for_page(table: pa.Table, page_size: int, data: st.DataObject) -> None:
    relation = relation_of(table, data.draw(st.integers(0, table.num_columns - 1)))
    rows = np.array(data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=60) if table.num_rows else st.just([])), np.int64)
    try:
        layout = Layout(relation, page_size)
    except CapacityError:
        assert relation.largest_record() > page_size - 35
        return
    pages = layout.pack(key_tuples(relation.keys(rows), rows))
    encoded = layout.encode(key_tuples(relation.keys(rows), rows, pages))
    assert encoded.shape == (len(pages) - 1, page_size)
    found = layout.decode(encoded)
    assert np.array_equal(found.pages, pages) and np.array_equal(found.rows, rows)
    assert np.array_equal(found.keys, relation.keys(rows))


@with_each("page_size", [512, 8192, 65536])
@with_each("column", ["custkey", "padding"])
def test_the_papers_relations_agree_page_for_page(column: str, page_size: int) -> None:
    r, s = open_source("do2009:customer@0.01"), open_source("do2009:orders@0.01")
    names = ("c_custkey", "o_custkey") if column == "custkey" else ("padding", "padding")
    for relation in load_pair(r, s, *names):
        file = heap_file(relation, page_size, relation.records.published_pages(page_size))
        found = file.layout.decode(file.layout.encode(file.run(0, file.pages)))
        assert np.array_equal(found.pages, file.first_rows) and np.array_equal(found.rows, np.arange(len(relation)))
        assert np.array_equal(found.keys, relation.keys(slice(None)))


@given(st.binary(min_size=512, max_size=512), st.integers(0, 511), st.integers(0, 255))
def test_bytes_that_are_no_page_are_refused_or_hold_rows(noise: bytes, place: int, value: int) -> None:
    """Neither noise nor a page with one byte changed ends in anything but an error or tuples of existing rows."""
    relation = relation_of(pa.table({"k": list(range(0, 4000, 100)), "text": ["some text"] * 40}))
    rows = np.arange(20)
    layout = Layout(relation, 512)
    page = layout.encode(key_tuples(relation.keys(rows), rows, np.array([0, 20])))
    page[0, place] = value
    for data in (page, np.frombuffer(noise, np.uint8).reshape(1, 512), np.frombuffer(b"\x0d" + noise[1:], np.uint8).reshape(1, 512)):
        try:
            found = layout.decode(data)
        except DamagedFileError:
            continue
        assert ((found.rows >= 0) & (found.rows < len(relation))).all() and len(found.keys) == found.pages[-1]


@with_each("page_size", [1 << power for power in range(9, 17)])
def test_leaves_skip_the_lock_byte_page(page_size: int) -> None:
    """The page that holds byte 2**30 belongs to no leaf; all others do, in order."""
    before = 2**30 // page_size
    leaves = np.arange(before - 5, before + 5)
    numbers = leaf_pages(leaves, page_size)
    assert [leaf_offset(leaf, page_size) for leaf in leaves.tolist()] == ((numbers - 1) * page_size).tolist()
    starts = (numbers - 1) * page_size
    assert not ((starts <= 2**30) & (starts + page_size > 2**30)).any()
    assert sorted({*range(numbers[0], numbers[-1] + 1)} - set(numbers.tolist())) == [2**30 // page_size + 1]
    assert leaf_pages(0, page_size) == 2


def test_interior_pages_skip_the_lock_byte_page() -> None:
    """Above leaves that end two pages before the lock-byte page, interior pages stand before and behind it."""

    class Sparse(BytesIO):
        """Notes where pages are written, without room for what lies between."""

        def __init__(self) -> None:
            super().__init__()
            self.written: list[int] = []

        def write(self, data: object) -> int:
            self.written.append(self.place)
            return len(data)  # type: ignore[arg-type]

        def seek(self, place: int, whence: int = 0) -> int:
            self.place = place
            return place

    leaves = 2**30 // 65536 - 2
    out = Sparse()
    place = _sqlite_database.write_interior_pages(out, np.arange(leaves + 1), 65536)
    numbers = [offset // 65536 + 1 for offset in out.written]
    assert numbers == [leaves + 2, *range(leaves + 4, leaves + 4 + len(numbers) - 1)]
    assert int(_sqlite_database.page_numbers(place - 1, 65536)) == numbers[-1]


@pytest.mark.parametrize("name", ["", "sqlite_mine", "a\0b"])
def test_names_that_sqlite_refuses_are_refused(name: str, tmp_path: object) -> None:
    from pathlib import Path

    file = heap_file(relation_of(pa.table({"k": [1]})), 512)
    with pytest.raises(FlashsimError, match="table"):
        PAGE_FORMATS.load("sqlite").write_database(file, Path(str(tmp_path)) / "x.db", name)


def test_what_cannot_be_written_leaves_nothing(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    file = heap_file(relation_of(pa.table({"k": [1]})), 512)
    member = PAGE_FORMATS.load("sqlite")
    with pytest.raises(FlashsimError, match="cannot be written"):
        member.write_database(file, folder / "missing" / "x.db", "t")
    (folder / "x.db").write_text("kept")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(member, "write_schema", interrupted)
    with pytest.raises(KeyboardInterrupt):
        member.write_database(file, folder / "x.db", "t")
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("x.db", "kept")]
