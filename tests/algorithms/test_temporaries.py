"""Output buffers: whatever the tuples' columns are, each file gets its own, in order and packed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.files import Output, temporary_files
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm
from flashsim.storage.content import ColumnContent
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples


@given(
    columns=st.integers(1, 4),
    buffers=st.integers(1, 5),
    pages=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 700), max_size=4),
    page_io=st.booleans(),
)
def test_every_file_gets_its_tuples_in_order(columns: int, buffers: int, pages: int, lengths: list[int], page_io: bool) -> None:
    rows = FixedRows("drawn", {f"column {number}": 8 for number in range(columns)})
    files = temporary_files("test", "bucket", buffers, Layout(rows, 512), 0)
    random = np.random.default_rng(1)
    batches = [Tuples({name: random.integers(-(2**62), 2**62, length) for name in rows.columns}) for length in lengths]
    targets = [random.integers(0, buffers, length) for length in lengths]

    def write() -> Algorithm:
        output = Output(files, pages, page_io=page_io)
        for batch, target in zip(batches, targets, strict=True):
            yield from output.append(batch, target)
        yield from output.finish()

    content = ColumnContent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flashsim.execution.drivers.ColumnContent", lambda: content)
        trace_only(write(), [])
    for number, file in enumerate(files):
        mine = [batch.select(target == number).columns for batch, target in zip(batches, targets, strict=True)]
        expected = {name: np.concatenate([np.zeros(0, np.int64), *(part[name] for part in mine)]) for name in rows.columns}
        assert file.pages == len(file.layout.pack(Tuples(expected))) - 1
        if file.pages:
            found = content.read(file, np.array([0]), np.array([file.pages]))
            assert np.array_equal(found.pages, file.layout.pack(Tuples(expected)))
            assert all(np.array_equal(found.columns[name], expected[name]) for name in rows.columns)
