"""Traces: what is recorded comes back, damaged files are refused, and a summary says what is in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError
from flashsim.core.request import COMPLETION, READ, WRITE, make_requests
from traces.file.recording import ParquetRecorder
from traces.file.schema import open_trace, provenance_of
from traces.summary.distinct import Footprint
from traces.summary.information import describe


def _completions(*rows: tuple[int, int, int]) -> np.ndarray:
    return np.array([(index, 0, *row) for index, row in enumerate(rows)], COMPLETION)


def test_recorded_requests_come_back_with_their_dependencies(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with ParquetRecorder(path, {"join": "bnl"}) as recorder:
        recorder.record(make_requests(READ, [0, 8192], 8192, serial=True, think=5), _completions((10, 10, 20), (25, 25, 40)), "orders")
        recorder.record(make_requests(WRITE, 65536, 4096), _completions((100, 101, 130)), "bucket-1")
    table = open_trace(path).read().to_pylist()
    assert [row["dependency"] for row in table] == [-1, 0, 1]
    assert [row["think"] for row in table] == [5, 5, 60]
    assert [row["completed"] for row in table] == [20, 40, 130]
    assert [row["label"] for row in table] == ["orders", "orders", "bucket-1"]
    assert provenance_of(open_trace(path).schema_arrow) == {"join": "bnl"}


def test_untimed_requests_wait_for_the_batch_before(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with ParquetRecorder(path) as recorder:
        recorder.record(make_requests(READ, [0, 512], 512), None, "r")
        recorder.record(make_requests(READ, [1024, 1536], 512), None, "r")
    table = open_trace(path).read().to_pydict()
    assert table["dependency"] == [-1, -1, 1, 1]
    assert table["arrival"] == [None] * 4


def test_a_recording_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), ParquetRecorder(tmp_path / "trace.parquet") as recorder:
        recorder.record(make_requests(READ, 0, 512), None, "r")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FlashsimError, match="cannot write"):
        ParquetRecorder(tmp_path / "missing" / "trace.parquet")


def test_missing_foreign_and_truncated_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        open_trace(tmp_path / "none.parquet")
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"a": [1]}), foreign)
    with pytest.raises(DamagedFileError, match="no flashsim trace"):
        open_trace(foreign)
    text = tmp_path / "text.parquet"
    text.write_text("nothing")
    with pytest.raises(DamagedFileError):
        open_trace(text)
    whole = tmp_path / "whole.parquet"
    with ParquetRecorder(whole) as recorder:
        recorder.record(make_requests(READ, np.arange(1000) * 4096, 4096), None, "r")
    for keep in (10, 100, whole.stat().st_size - 1):
        cut = tmp_path / "cut.parquet"
        cut.write_bytes(whole.read_bytes()[:keep])
        with pytest.raises(DamagedFileError):
            describe(cut)


def test_a_summary_says_what_the_trace_holds(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with ParquetRecorder(path) as recorder:
        recorder.record(make_requests(READ, [0, 4096, 4096], 4096, serial=True), _completions((0, 0, 10), (10, 10, 30), (30, 30, 60)), "r")
        recorder.record(make_requests(WRITE, 1 << 20, 12288), _completions((60, 60, 100)), "s")
    told = describe(path)
    assert told["requests"] == 4
    assert told["operations"]["read"]["bytes"] == told["operations"]["write"]["bytes"] == 12288
    assert told["operations"]["read"]["sizes"] == {"4096": 3}
    assert told["operations"]["read"]["latency"]["mean"] == 20
    assert told["read_share"] == 0.5
    assert told["sequential_share"] == 0.25
    assert told["footprint"] == 8192 + 12288
    assert told["labels"] == {"r": 3, "s": 1}
    assert told["duration"] == 100


@given(st.lists(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=8), max_size=6))
def test_footprint_is_the_size_of_the_union(batches: list[list[tuple[int, int]]]) -> None:
    footprint, seen = Footprint(), set()
    for batch in batches:
        footprint.add(np.array([offset for offset, _ in batch], np.int64), np.array([length for _, length in batch], np.int64))
        seen |= {byte for offset, length in batch for byte in range(offset, offset + length)}
    assert footprint.size == len(seen)
