"""Which tuples lie on which page, and that no layout holds more than a page can."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.storage import heap_file as module
from flashsim.storage.heap_file import heap_file
from flashsim.storage.layout import Layout
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Tuples, key_tuples
from flashsim.storage.source.base import TableRecords
from tests.cases import with_each


def relation(lengths: list[int]) -> Relation:
    """Rows whose texts have these lengths."""
    texts = pa.array(["x" * length for length in lengths], pa.large_string())
    return Relation(
        "t", "k", np.arange(len(lengths), dtype=np.int32), TableRecords("t", pa.table({"k": np.arange(len(lengths)), "text": texts}))
    )


def tuples_of(table: Relation, rows: np.ndarray) -> Tuples:
    return key_tuples(table.keys(rows), rows)


@given(st.lists(st.integers(0, 400), max_size=60), st.sampled_from([512, 1024, 4096]), st.integers(1, 7), st.randoms(use_true_random=False))
def test_pages_are_filled_in_order_each_before_the_next(lengths: list[int], page_size: int, chunk: int, random: object) -> None:
    table = relation(lengths)
    rows = np.array(random.sample(range(len(lengths)), len(lengths)), np.int64)  # type: ignore[attr-defined]
    layout = Layout(table, page_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)  # the layout does not depend on how many rows are laid out at a time
        assert np.array_equal(heap_file(table, page_size).first_rows, layout.pack(tuples_of(table, np.arange(len(lengths)))))
    pages = layout.pack(tuples_of(table, rows))
    sizes, room = layout.cell_sizes(tuples_of(table, rows)), page_size - 8
    assert layout.room == room
    assert pages[0] == 0 or not len(rows)
    assert pages[-1] == len(rows)
    for page in range(len(pages) - 1):
        held = sizes[pages[page] : pages[page + 1]].sum()
        assert 0 < held <= room
        assert pages[page + 1] == len(rows) or held + sizes[pages[page + 1]] > room


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 80), st.integers(1, 7))
def test_rows_spread_evenly_over_as_many_pages_as_asked(lengths: list[int], pages: int, chunk: int) -> None:
    table = relation(lengths)
    sizes = Layout(table, 512).cell_sizes(tuples_of(table, np.arange(len(lengths))))
    expected = np.arange(pages + 1) * len(lengths) // pages
    fits = all(sizes[begin:end].sum() <= 512 - 8 for begin, end in pairwise(expected))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        if not fits:
            with pytest.raises(CapacityError, match="page size: 512 B"):
                heap_file(table, 512, pages)
            return
        assert np.array_equal(heap_file(table, 512, pages).first_rows, expected)


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_the_largest_row_is_what_sqlite_keeps_on_a_leaf(page_size: int) -> None:
    fits = page_size - 35 - relation([page_size // 2]).largest_record() + page_size // 2
    table = relation([fits])
    assert table.largest_record() == page_size - 35
    assert heap_file(table, page_size).pages == 1
    with pytest.raises(CapacityError, match=f"page size: {page_size} B"):
        heap_file(relation([fits + 1]), page_size)
    with pytest.raises(CapacityError, match=f"page size: {page_size} B"):
        heap_file(relation([fits + 1]), page_size, 1)


def test_an_empty_relation_takes_no_page() -> None:
    assert heap_file(relation([]), 512).pages == 0 and heap_file(relation([]), 512, 0).pages == 0


def test_rows_on_no_page_are_refused() -> None:
    with pytest.raises(CapacityError, match="2 rows"):
        heap_file(relation([1, 1]), 512, 0)


@with_each("page_size", [0, 256, 513, 131072, -512])
def test_page_sizes_are_powers_of_two_that_sqlite_knows(page_size: int) -> None:
    with pytest.raises(InvalidParameterError, match="page size"):
        heap_file(relation([1]), page_size)
