"""The contract of page formats: what is put on pages is what their bytes give back, as many tuples as there is room for."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, InvalidParameterError, SchemaError
from flashsim.core.request import SECTOR, Integers
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout, check_page_size
from flashsim.storage.page.base import PAGE_FORMATS
from flashsim.storage.rows import FixedRows, Tuples
from flashsim.testing.contract import Contract, examples

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
