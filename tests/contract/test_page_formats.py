"""Every page format holds any row format: what is put on pages is what their bytes give back, as many tuples as there is room for."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, DamagedFileError, InvalidParameterError, MissingFileError, SchemaError, UnknownNameError
from flashsim.core.request import SECTOR, Integers
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.rows import FixedRows, Tuples
from tests.contract.guide import guide_or_name
from tests.contract.page_sizes import page_sizes

WIDTHS = st.sampled_from([1, 2, 3, 4, 6, 8])


@pytest.fixture(scope="module", params=[*PAGE_FORMATS.names(), "columnwise.py"])
def page_format(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every member, and the one of the guide."""
    return guide_or_name(request.param, tmp_path_factory)


@st.composite
def fixed_rows(draw: st.DrawFn) -> tuple[FixedRows, Tuples]:
    """A row format, and tuples of it."""
    rows = FixedRows("drawn", draw(st.dictionaries(st.sampled_from("abcdef"), WIDTHS, min_size=1, max_size=5)))
    count = draw(st.integers(0, 120))
    columns = {}
    for name, width in rows.widths.items():
        bound = 1 << (8 * width - 1)
        numbers = st.integers(-bound, bound - 1)
        columns[name] = np.resize(np.array(draw(st.lists(numbers, min_size=1, max_size=9)), np.int64), count)
    return rows, Tuples(columns)


@given(drawn=fixed_rows(), place=st.sampled_from([0, 3, -1]))
def test_elided_and_byte_form_agree_page_for_page(page_format: str, drawn: tuple[FixedRows, Tuples], place: int) -> None:
    rows, tuples = drawn
    page_size = page_sizes(page_format)[place]
    layout = Layout(rows, page_size, page_format)
    tuples.pages = layout.pack(tuples)
    numbers = np.arange(len(tuples.pages) - 1) * 70_001
    data = layout.encode(tuples, numbers)
    assert data.shape == (len(tuples.pages) - 1, page_size)
    layout.verify(data, numbers)
    content, file = ColumnContent(), File("f", layout)
    content.write(file, np.array([0]), np.array([len(data)]), tuples)
    kept = content.read(file, np.array([0]), np.array([len(data)]))
    for found in (layout.decode(data), kept):
        assert np.array_equal(found.pages, tuples.pages) and set(found.columns) == set(rows.columns)
        for name, column in tuples.columns.items():
            assert np.array_equal(found.columns[name], column) and found.columns[name].dtype == np.int64
    sizes = layout.cell_sizes(tuples)
    for begin, end in pairwise(tuples.pages):
        assert sizes[begin:end].sum() <= layout.room
        assert end == len(tuples) or sizes[begin : end + 1].sum() > layout.room
    for name in rows.columns:  # a column is found when its parts alone are there
        parts, some = layout.parts((name,)), np.zeros_like(data)
        for offset, length in parts:
            assert offset % SECTOR == length % SECTOR == 0 and 0 <= offset < offset + length <= page_size
            some[:, offset : offset + length] = data[:, offset : offset + length]
        alone = layout.decode(some, (name,))
        assert list(alone.columns) == [name] and np.array_equal(alone.columns[name], tuples.columns[name])
        assert np.array_equal(alone.pages, tuples.pages)
        with suppress(SchemaError):  # pages that hold the columns of tuples and no attributes say so
            assert layout.parts((), (name,)) == parts
            assert layout.decode_values(some, (name,)).column(0).to_pylist() == tuples.columns[name].tolist()
    for (begin, length), (following, _) in pairwise(layout.parts(rows.columns)):
        assert begin + length < following  # in order, and those that touch are one request


@given(noise=st.binary(min_size=1024, max_size=1024), place=st.integers(0, 511), value=st.integers(0, 255))
def test_bytes_that_are_no_page_are_refused_or_hold_tuples(page_format: str, noise: bytes, place: int, value: int) -> None:
    size = page_sizes(page_format)[0]
    layout, noise = Layout(FixedRows("digest", {"key": 8, "row": 4}), size, page_format), noise[:size]
    page = layout.encode(Tuples({"key": np.arange(9) << 40, "row": np.arange(9)}, np.array([0, 9])))
    page[0, place] = value
    for data in (page.tobytes(), noise, page.tobytes()[:8] + noise[8:]):
        try:
            found = layout.decode(np.frombuffer(data, np.uint8).reshape(1, size))
        except DamagedFileError:
            continue
        assert set(found.columns) == {"key", "row"} and len(found) == found.pages[-1]


def test_what_does_not_fit_is_refused(page_format: str) -> None:
    rows = FixedRows("digest", {"key": 4, "row": 2})
    size = page_sizes(page_format)[0]
    layout = Layout(rows, size, page_format)
    fits = int(layout.pack(_digests(np.arange(1000)))[1])
    assert len(layout.encode(_digests(np.arange(fits), fits))) == 1
    with pytest.raises(CapacityError, match=f"{size} B"):
        layout.encode(_digests(np.arange(fits + 1), fits + 1))
    with pytest.raises(CapacityError, match=r"key 2147483648, but 4 B hold -2147483648 to 2147483647"):
        layout.encode(_digests(np.array([1 << 31]), 1))
    wide = FixedRows("wide", {f"column {number}": 8 for number in range(min(126, size // 8))})
    with pytest.raises(CapacityError, match=rf"^page size: {size} B, but a row of row format wide takes \d+ B of the \d+ B"):
        Layout(wide, size, page_format)
    with pytest.raises(InvalidParameterError, match="page size"):
        Layout(rows, 500, page_format)


def _digests(keys: Integers, *pages: int) -> Tuples:
    return Tuples({"key": keys, "row": np.zeros(len(keys), np.int64)}, np.array([0, *pages]))


def test_impossible_row_formats_and_unknown_page_formats_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="width of key: 5 B, but it must be one of 1, 2, 3, 4, 6, 8"):
        FixedRows("digest", {"key": 5})
    with pytest.raises(InvalidParameterError, match="columns: 0"):
        FixedRows("nothing", {})
    with pytest.raises(InvalidParameterError, match="columns: 127, but it must have 1 to 126"):
        FixedRows("wide", {f"c{number}": 1 for number in range(127)})
    rows = FixedRows("digest", {"key": 4})
    with pytest.raises(UnknownNameError, match="sqlite"):
        Layout(rows, 512, "sqlight")
    with pytest.raises(MissingFileError, match=r"mine\.py"):
        Layout(rows, 512, "mine.py")
