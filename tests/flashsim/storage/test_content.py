"""Page content as columns: any read returns just the tuples that were put on those pages."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Tuples, key_tuples


class _NoRecords:
    def record_sizes(self) -> int:
        return 8


def _relation(rows: int) -> Relation:
    return Relation("r", "key", np.arange(rows) * 7 % 11, _NoRecords())  # type: ignore[arg-type]


def _tuples(pages: list[list[int]], relation: Relation) -> Tuples:
    rows = np.array([row for page in pages for row in page], np.int64)
    return key_tuples(relation.keys(rows), rows, np.cumsum([0] + [len(page) for page in pages]))


def _check(content: ColumnContent, file: File, pages: list[list[int]], extents: list[tuple[int, int]]) -> None:
    relation = file.layout.row_format
    assert isinstance(relation, Relation)
    starts, counts = (np.array(column, np.int64) for column in zip(*extents, strict=True)) if extents else (np.zeros(0, np.int64),) * 2
    read = content.read(file, starts, counts)
    expected = _tuples([pages[page] for start, count in extents for page in range(start, start + count)], relation)
    for name in ("keys", "rows", "pages"):
        assert np.array_equal(getattr(read, name), getattr(expected, name))


@given(st.data())
def test_reads_return_what_was_appended(data: st.DataObject) -> None:
    relation, content = _relation(50), ColumnContent()
    file, pages = File("t", Layout(relation, 512)), []
    page = st.lists(st.integers(0, 49), max_size=5)
    for more in data.draw(st.lists(st.lists(page, min_size=1, max_size=100), min_size=1, max_size=4)):
        content.write(file, np.array([len(pages)]), np.array([len(more)]), _tuples(more, relation))
        pages += more
    for _ in range(3):
        starts = st.integers(0, len(pages) - 1)
        extents = data.draw(st.lists(starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(1, len(pages) - s))), max_size=4))
        _check(content, file, pages, extents)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.data())
def test_base_relations_hold_their_rows_in_order(sizes: list[int], data: st.DataObject) -> None:
    relation = _relation(sum(sizes))
    first_rows = np.cumsum([0, *sizes])
    file = HeapFile("r", Layout(relation, 512), temporary=False, pages=len(sizes), first_rows=first_rows)
    pages = [list(range(first_rows[page], first_rows[page + 1])) for page in range(len(sizes))]
    starts = st.integers(0, len(pages) - 1)
    extents = data.draw(st.lists(starts.flatmap(lambda s: st.tuples(st.just(s), st.integers(1, len(pages) - s))), max_size=5))
    _check(ColumnContent(), file, pages, extents)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_pages_hold_what_was_written_last(sizes: list[int], writes: list[tuple[int, int]]) -> None:
    """Whether loaded or written, and however often; what they held before does not pile up."""
    relation = _relation(2000)
    base = HeapFile("r", Layout(relation, 512), temporary=False, pages=len(sizes), first_rows=np.cumsum([0, *sizes]))
    temporary, content = File("t", Layout(relation, 512)), ColumnContent()
    loaded = [list(range(base.first_rows[page], base.first_rows[page + 1])) for page in range(len(sizes))]
    content.write(temporary, np.array([0]), np.array([len(loaded)]), _tuples(loaded, relation))
    for file in (base, temporary):
        pages = list(loaded)
        for turn, (page, many) in enumerate(writes):
            page %= len(pages) + file.temporary  # behind the last, a temporary file grows
            rows = [turn * 30 + row for row in range(many * 20)]
            content.write(file, np.array([page]), np.array([1]), _tuples([rows], relation))
            pages[page : page + 1] = [rows]
        _check(content, file, pages, [(0, len(pages))])
        _check(content, file, pages, [(page, 1) for page in reversed(range(len(pages)))])
        held = [len(values) for each in content._written.values() for values in each._values.values()]
        assert all(length <= max(4096, 8 * sum(map(len, pages))) for length in held[-1:])
